package chart

import (
	"html"
	"html/template"
	"time"
)

// Lane is a row of a timeline.
type Lane struct {
	Name     string
	Segments []Segment
	Note     string // after the name; empty: none
}

// Segment is a period of a lane.
type Segment struct {
	From, To time.Time
	Class    string // sets the colour: "work", "wait", "failed" or "pause"
	Title    string // what happened
}

const (
	laneHeight = 36
	laneBar    = 12
	axisHeight = 18
)

// Timeline draws lanes below each other, and a list of all segments for screen readers.
func Timeline(label string, from, to time.Time, lanes []Lane) template.HTML {
	at := span{from, to}
	height := len(lanes)*laneHeight + axisHeight
	c := open("timeline", "img", label, height)
	text := &canvas{}
	text.WriteString(`<ul class="sr">`)
	for i, l := range lanes {
		y := i * laneHeight
		c.printf(`<text class="lane" x="0" y="%d">%s</text>`, y+14, html.EscapeString(l.Name+l.Note))
		c.rect("track", 0, float64(y+20), 100, laneBar, "")
		for _, s := range l.Segments {
			x := 100 * at.share(s.From)
			width := max(0.4, 100*at.share(s.To)-x) // short segments stay visible
			c.rect("seg "+s.Class, min(x, 99.6), float64(y+20), width, laneBar, titled(s.Title, time.Time{}))
			text.printf("<li>%s: %s</li>", html.EscapeString(l.Name), html.EscapeString(s.Title))
		}
	}
	timeAxis(c, at, height-4)
	text.WriteString("</ul>")
	return c.html() + template.HTML(text.String()) //nolint:gosec // all texts are escaped
}
