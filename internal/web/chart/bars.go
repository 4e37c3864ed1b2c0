package chart

import (
	"html"
	"html/template"
	"math"
	"time"
)

const (
	sparkHeight  = 28
	barsHeight   = 96
	healthHeight = 24
)

// Sparkline draws a small line without axes. The label states what it shows and its last
// value.
func Sparkline(label string, points []Point) template.HTML {
	c := open("spark", "img", label, sparkHeight)
	points = sorted(points)
	low, high, ok := reach(points)
	if ok && len(points) > 1 {
		s := scale{low, high, sparkHeight - 4}
		c.stretch(2, sparkHeight-4)
		line(c, "line", "", points, span{points[0].At, points[len(points)-1].At}, s, false)
		c.WriteString("</svg>")
	}
	return c.html()
}

// Bar is a column of stacked parts. Its title states the values.
type Bar struct {
	Title string
	At    time.Time // the title contains its Moment; zero: no time
	Href  string    // page of the bar; empty: none
	Label string    // below the bar, if it is the first or the last one; empty: none
	Parts []Part    // from the bottom to the top
}

// Part is a part of a bar.
type Part struct {
	Class string // sets the colour, such as "updated" or "failed"
	Value float64
}

// Bars draws stacked columns, the first on the left. All columns have the scale of the tallest one.
func Bars(label string, bars []Bar) template.HTML {
	role := "img"
	if len(bars) > 0 && bars[0].Href != "" {
		role = "group" // links are not part of an image
	}
	height := barsHeight
	if len(bars) > 0 && bars[0].Label != "" {
		height += axisHeight
	}
	c := open("bars", role, label, height)
	top := 0.0
	for _, b := range bars {
		top = max(top, b.total())
	}
	width := 100 / float64(max(len(bars), 1))
	for i, b := range bars {
		if b.Href != "" {
			c.printf(`<a href="%s" aria-label="%s"%s>`, html.EscapeString(b.Href), html.EscapeString(b.Title), moment(b.At))
		}
		c.column(b, float64(i)*width, width, barsHeight, (barsHeight-2)/max(top, 1e-9))
		if b.Href != "" {
			c.WriteString("</a>")
		}
	}
	if height > barsHeight {
		for i, anchor := range []string{"start", "end"}[:min(2, len(bars))] {
			c.printf(`<text x="%d%%" y="%d" text-anchor="%s" aria-hidden="true">%s</text>`, 100*i, height-4, anchor, html.EscapeString(bars[i*(len(bars)-1)].Label))
		}
	}
	return c.html()
}

// column draws a bar that stands on the floor. The unit is the height of the value 1.
func (c *canvas) column(b Bar, x, width, floor, unit float64) {
	c.printf(`<g>%s`, titled(b.Title, b.At))
	c.rect("hit", x, 0, width, floor, "")
	b.draw(c, x+width*0.1, width*0.8, floor, unit)
	c.WriteString("</g>")
}

func (b Bar) total() (sum float64) {
	for _, p := range b.Parts {
		sum += max(0, p.Value)
	}
	return sum
}

// draw draws the parts. A part with a value above 0 is at least one pixel high.
func (b Bar) draw(c *canvas, x, width, floor, unit float64) {
	y := floor
	for _, p := range b.Parts {
		if p.Value <= 0 {
			continue
		}
		height := min(y, max(1, math.Round(p.Value*unit)))
		y -= height
		c.rect("seg "+p.Class, x, y, width, height, "")
	}
	if y == floor {
		c.rect("seg none", x, floor-1, width, 1, "")
	}
}

// Cell is the state of a short period.
type Cell struct {
	State string    // sets the colour: "good", "warn", "bad" or "none"
	Title string    // period and values
	At    time.Time // the title contains its Moment; zero: no time
}

// HealthBars draws one cell per period, the oldest on the left.
func HealthBars(label string, cells []Cell) template.HTML {
	c := open("health", "img", label, healthHeight)
	width := 100 / float64(max(len(cells), 1))
	for i, cell := range cells {
		c.rect("cell "+cell.State, (float64(i)+0.1)*width, 0, width*0.8, healthHeight, titled(cell.Title, cell.At))
	}
	return c.html()
}
