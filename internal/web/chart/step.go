package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
	"time"
)

// Line is a line of a step chart.
type Line struct {
	Name   string
	Class  string // sets the colour: "main", "thin", "limit" or "forecast"
	Points []Point
}

// StepOptions describe a step chart. From, To, Label and Lines are required.
type StepOptions struct {
	Label    string
	From, To time.Time
	// Lines are drawn in order, so the last one is in front. Points with an interval have a
	// band.
	Lines []Line
	// Dots are marked values, such as runs or sales.
	Dots []Dot
	// Format formats values of the axis. The default shows up to two decimal places.
	Format func(float64) string
	// Zero extends the axis down to 0.
	Zero bool
	// Whole labels the axis with whole numbers only.
	Whole bool
	// Stacked draws columns instead of lines: each line is a part of every column, the first one
	// at the bottom. All lines have the same times.
	Stacked bool
	// Prefix and Suffix enclose the exact values of a live chart, which have at least Places decimal
	// places.
	Prefix, Suffix string
	Places         int
}

// Dot is a marked value.
type Dot struct {
	At    time.Time
	Value float64
	Class string
	Name  string // in a live chart
	Title string
}

const (
	stepHeight = 200
	plotTop    = 14
	plotHeight = 164
	ticks      = 4 // grid lines
)

// Step draws a step chart: each value holds until the next point. The accessible name contains
// the label and the lowest, highest and last value of the last line, or the sum of each line if
// they are stacked.
func Step(o StepOptions) template.HTML {
	s, ok := o.scale()
	if !ok {
		return template.HTML(`<p class="empty-line">There are no values in this period.</p>`)
	}
	c := open("step", "img", o.Label+": "+o.summary(), stepHeight)
	for i := range ticks {
		y := number(plotTop + s.y(s.tick(i)))
		c.printf(`<line class="grid" x1="0" x2="100%%" y1="%s" y2="%s"/>`, y, y)
	}
	at := span{o.From, o.To}
	if o.Stacked {
		o.columns(c, at, s)
	} else {
		c.stretch(plotTop, plotHeight)
		for _, l := range o.Lines {
			points := sorted(l.Points)
			band(c, points, at, s)
			line(c, "line "+l.Class, l.Name, points, at, s, true)
		}
		c.WriteString("</svg>")
	}
	for _, d := range o.Dots {
		c.printf(`<circle class="dot %s" cx="%s%%" cy="%s" r="3.5">%s</circle>`,
			html.EscapeString(d.Class), number(100*at.share(d.At)), number(plotTop+s.y(d.Value)), titled(d.Title, time.Time{}))
	}
	for i := range ticks {
		v := s.tick(i)
		c.printf(`<text class="value" x="0" y="%s">%s</text>`, number(plotTop+s.y(v)-3), html.EscapeString(o.format(v)))
	}
	timeAxis(c, at, stepHeight-4)
	return c.html()
}

// format formats a value of the axis.
func (o StepOptions) format(v float64) string {
	if o.Format == nil {
		return number(v)
	}
	return o.Format(v)
}

// tick returns the value of a grid line, the highest first.
func (s scale) tick(i int) float64 { return s.high - (s.high-s.low)*float64(i)/(ticks-1) }

// bars returns the columns of stacked lines.
func (o StepOptions) bars() []Bar {
	if !o.Stacked || len(o.Lines) == 0 {
		return nil
	}
	bars := make([]Bar, len(o.Lines[0].Points))
	for i := range bars {
		b := &bars[i]
		b.At = o.Lines[0].Points[i].At
		for _, l := range o.Lines {
			b.Parts = append(b.Parts, Part{l.Class, l.Points[i].Value})
		}
		b.Title = Moment(b.At) + ": " + o.parts(func(line int) float64 { return b.Parts[line].Value })
	}
	return bars
}

// parts lists the values of the lines that are not 0.
func (o StepOptions) parts(value func(line int) float64) string {
	var texts []string
	for i, l := range o.Lines {
		if v := value(i); v > 0 {
			texts = append(texts, l.Name+" "+o.format(v))
		}
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

// columns draws stacked lines.
func (o StepOptions) columns(c *canvas, at span, s scale) {
	bars := o.bars()
	for i, b := range bars {
		x, end := 100*at.share(b.At), 100.0
		if i+1 < len(bars) {
			end = 100 * at.share(bars[i+1].At)
		}
		c.column(b, x, end-x, plotTop+plotHeight, plotHeight/s.high)
	}
}

// scale returns a scale that contains all lines and dots and ends at round numbers. It reports
// false if there are no values.
func (o StepOptions) scale() (s scale, ok bool) {
	lines := o.Lines
	if o.Stacked {
		lines = nil
		for _, b := range o.bars() {
			lines = append(lines, Line{Points: []Point{{Value: b.total()}}})
		}
	}
	for _, l := range lines {
		low, high, some := reach(l.Points)
		if !some {
			continue
		}
		if !ok {
			s, ok = scale{low, high, plotHeight}, true
		}
		s.low, s.high = min(s.low, low), max(s.high, high)
	}
	for _, d := range o.Dots {
		if !ok {
			s, ok = scale{d.Value, d.Value, plotHeight}, true
		}
		s.low, s.high = min(s.low, d.Value), max(s.high, d.Value)
	}
	if o.Zero {
		s.low = min(s.low, 0)
	}
	if s.high == s.low {
		margin := max(math.Abs(s.high)*0.05, 0.01)
		if s.high += margin; !o.Zero {
			s.low -= margin
		}
	}
	low, step := s.low, o.round((s.high-s.low)/(ticks-1))
	for s.low = math.Floor(low/step) * step; s.low+step*(ticks-1) < s.high; s.low = math.Floor(low/step) * step {
		step = o.round(step * 1.01)
	}
	s.high = s.low + step*(ticks-1)
	return s, ok
}

// round rounds a step of the axis up to 1, 1.5, 2, 2.5, 3, 4, 5, 6 or 8 times a power of ten, and
// then to a whole number if the labels are whole.
func (o StepOptions) round(v float64) float64 {
	if o.Whole {
		return math.Ceil(round(max(1, v)))
	}
	return round(v)
}

func round(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10} {
		if v <= f*unit*(1+1e-9) {
			return f * unit
		}
	}
	return 10 * unit
}

func (o StepOptions) summary() string {
	if len(o.Lines) == 0 {
		return fmt.Sprintf("%d values", len(o.Dots))
	}
	if o.Stacked {
		return o.parts(func(line int) (sum float64) {
			for _, p := range o.Lines[line].Points {
				sum += p.Value
			}
			return sum
		})
	}
	points := sorted(o.Lines[len(o.Lines)-1].Points)
	low, high, last := math.NaN(), math.NaN(), math.NaN()
	for _, p := range points {
		if !math.IsNaN(p.Value) {
			if math.IsNaN(low) {
				low, high = p.Value, p.Value
			}
			low, high, last = min(low, p.Value), max(high, p.Value), p.Value
		}
	}
	if math.IsNaN(low) {
		return "no values"
	}
	return "lowest " + o.format(low) + ", highest " + o.format(high) + ", last " + o.format(last)
}

// line draws points as a line. If steps is true, each value holds until the next point, and the
// last value holds until the end of the span.
func line(c *canvas, class, title string, points []Point, at span, s scale, steps bool) {
	var path strings.Builder
	drawing, x, y := false, 0.0, 0.0
	for _, p := range points {
		px := math.Round(across*at.share(p.At)*10) / 10
		if math.IsNaN(p.Value) {
			if drawing && steps {
				fmt.Fprintf(&path, "H%s", number(px))
			}
			drawing = false
			continue
		}
		py := s.y(p.Value)
		switch {
		case !drawing:
			fmt.Fprintf(&path, "M%s %s", number(px), number(py))
		case !steps:
			fmt.Fprintf(&path, "L%s %s", number(px), number(py))
		default:
			if px != x {
				fmt.Fprintf(&path, "H%s", number(px))
			}
			if py != y {
				fmt.Fprintf(&path, "V%s", number(py))
			}
		}
		drawing, x, y = true, px, py
	}
	if drawing && steps {
		fmt.Fprintf(&path, "H%d", across)
	}
	c.printf(`<path class="%s" d="%s">%s</path>`, html.EscapeString(class), path.String(), titled(title, time.Time{}))
}

// band draws the interval of each point as a rectangle that ends at the next point.
func band(c *canvas, points []Point, at span, s scale) {
	for i := range points {
		if !points[i].banded() {
			continue
		}
		end := float64(across)
		if i+1 < len(points) {
			end = across * at.share(points[i+1].At)
		}
		begin := across * at.share(points[i].At)
		top, bottom := s.y(points[i].High), s.y(points[i].Low)
		if end > begin {
			c.printf(`<rect class="band" x="%s" y="%s" width="%s" height="%s"/>`, number(begin), number(top), number(end-begin), number(max(1, bottom-top)))
		}
	}
}

// timeForm returns the form and the layout of the times of an axis.
func timeForm(length time.Duration) (form, layout string) {
	switch {
	case length <= 10*time.Minute:
		return "second", "15:04:05"
	case length <= 48*time.Hour:
		return "minute", "15:04"
	case length > 300*24*time.Hour:
		return "month", "Jan 2006"
	}
	return "day", "2 Jan"
}

// widestLabel is the number of characters of a time up to which five labels fit next to each other on a
// narrow screen.
const widestLabel = 6

// timeAxis labels the time axis below a chart with five times. Narrow screens omit the second and
// fourth if they are long. The page's script shows the times in local time if the user prefers that.
func timeAxis(c *canvas, at span, y int) {
	form, layout := timeForm(at.to.Sub(at.from))
	for i, anchor := range []string{"start", "middle", "middle", "middle", "end"} {
		t := at.from.Add(at.to.Sub(at.from) * time.Duration(i) / 4).UTC()
		class := "time"
		if i%2 == 1 && len(layout) > widestLabel {
			class = "time between"
		}
		c.printf(`<text class="%s" x="%d%%" y="%d" text-anchor="%s" data-at="%s" data-form="%s">%s</text>`,
			class, 25*i, y, anchor, t.Format(time.RFC3339), form, t.Format(layout))
	}
}
