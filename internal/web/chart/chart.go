// Package chart draws charts as SVG on the server. The result has no inline styles: classes
// and the style sheet of the page set all colours, so charts follow the colour scheme. Equal
// input gives equal output.
//
// Horizontal positions are percentages, so text keeps its size at every width. Values are floats
// for display only. The caller formats amounts of money.
package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Point is a value at a time. A NaN value is a gap, which lasts until the next point.
type Point struct {
	At    time.Time
	Value float64
	// Low and High are the interval around the value. If both are 0, there is none.
	Low, High float64
}

// across is the width of the viewBox that the browser stretches to the width of the page.
const across = 1000

// canvas collects SVG elements.
type canvas struct {
	strings.Builder
}

// printf adds formatted text.
func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(&c.Builder, format, args...) }

// open begins a chart. The label is its accessible name.
func open(class, role, label string, height int) *canvas {
	c := &canvas{}
	c.printf(`<svg class="chart %s" width="100%%" height="%d" role="%s" aria-label="%s">`, class, height, role, html.EscapeString(label))
	return c
}

// html ends the chart.
func (c *canvas) html() template.HTML {
	c.WriteString("</svg>")
	return template.HTML(c.String()) //nolint:gosec // all texts are escaped, the rest are numbers and constants
}

// stretch begins an area whose content is stretched to the whole width.
func (c *canvas) stretch(top, height int) {
	c.printf(`<svg y="%d" width="100%%" height="%d" viewBox="0 0 %d %d" preserveAspectRatio="none">`, top, height, across, height)
}

// rect draws a rectangle. The content is "" or an element of titled.
func (c *canvas) rect(class string, x, y, width, height float64, content string) {
	c.printf(`<rect class="%s" x="%s%%" y="%s" width="%s%%" height="%s">%s</rect>`,
		html.EscapeString(class), number(x), number(y), number(width), number(height), content)
}

// titled returns the element that browsers show on hover. If the title contains the Moment of a
// time, at is this time.
func titled(title string, at time.Time) string {
	if title == "" {
		return ""
	}
	return "<title" + moment(at) + ">" + html.EscapeString(title) + "</title>"
}

// Moment returns a time in UTC, for titles.
func Moment(t time.Time) string { return t.UTC().Format("2 Jan 15:04") }

// moment returns an attribute with the time of a title. With it, the page's script shows the time
// in local time if the user prefers that.
func moment(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ` data-moment="` + at.UTC().Format(time.RFC3339) + `"`
}

// number formats a coordinate with at most two decimal places.
func number(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// scale maps values to heights. Greater values are further up.
type scale struct {
	low, high float64
	height    float64
}

func (s scale) y(v float64) float64 {
	if s.high <= s.low {
		return s.height / 2
	}
	return s.height * (s.high - v) / (s.high - s.low)
}

// span is the period of a chart.
type span struct{ from, to time.Time }

// share returns the position of a time, from 0 to 1.
func (s span) share(t time.Time) float64 {
	if !s.to.After(s.from) {
		return 0
	}
	return min(1, max(0, float64(t.Sub(s.from))/float64(s.to.Sub(s.from))))
}

// reach returns the lowest and the highest value of the points, including their intervals. It
// reports false if all points are gaps.
func reach(points []Point) (low, high float64, ok bool) {
	for _, p := range points {
		if math.IsNaN(p.Value) {
			continue
		}
		if !ok {
			low, high, ok = p.Value, p.Value, true
		}
		low, high = min(low, p.Value), max(high, p.Value)
		if p.banded() {
			low, high = min(low, p.Low), max(high, p.High)
		}
	}
	return low, high, ok
}

func (p Point) banded() bool { return (p.Low != 0 || p.High != 0) && !math.IsNaN(p.Value) }

// sorted returns the points sorted by time.
func sorted(points []Point) []Point {
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b Point) int { return a.At.Compare(b.At) })
	return points
}
