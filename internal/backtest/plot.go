package backtest

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// Plot is a plot as an SVG image.
type Plot struct {
	Name string // file name without .svg
	SVG  []byte
}

// line is one curve of a chart.
type line struct {
	name   string
	values []float64
}

const (
	plotWidth, plotHeight = 640, 360
	plotLeft, plotTop     = 60, 40
	plotRight, plotBottom = 620, 320

	// plotPoints is the maximum number of points in a scatter plot.
	plotPoints = 3000
)

func plotColor(i int) string { return [...]string{"#0b6", "#06c", "#c60", "#888"}[i%4] }

func newPlot(title string) *bytes.Buffer {
	b := new(bytes.Buffer)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight)
	fmt.Fprintf(b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="%d" y="20" font-size="14">%s</text>`+"\n", plotLeft, html.EscapeString(title))
	fmt.Fprintf(b, `<path d="M%d %dV%dH%d" fill="none" stroke="#333"/>`+"\n", plotLeft, plotTop, plotBottom, plotRight)
	return b
}

// chart draws lines with one value per run.
func chart(name, title, unit string, lines []line) Plot {
	b := newPlot(title)
	high, n := 0.0, 1
	for _, l := range lines {
		n = max(n, len(l.values))
		for _, v := range l.values {
			high = max(high, v)
		}
	}
	high = max(high, 1)
	x := func(i int) float64 {
		return plotLeft + float64(i)*(plotRight-plotLeft)/float64(max(1, n-1))
	}
	y := func(v float64) float64 { return plotBottom - v*(plotBottom-plotTop)/high }
	for _, v := range []float64{0, high / 2, high} {
		fmt.Fprintf(b, `<text x="%d" y="%.0f" text-anchor="end">%.4g %s</text>`+"\n", plotLeft-4, y(v)+4, v, html.EscapeString(unit))
	}
	for k, l := range lines {
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, plotColor(k))
		for i, v := range l.values {
			fmt.Fprintf(b, "%.1f,%.1f ", x(i), y(v))
		}
		fmt.Fprintf(b, `"/><text x="%d" y="%d" fill="%s">%s</text>`+"\n", plotLeft+k*150, plotBottom+30, plotColor(k), html.EscapeString(l.name))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">run %d</text></svg>`+"\n", plotRight, plotBottom+16, n-1)
	return Plot{Name: name, SVG: b.Bytes()}
}

// scatter draws points on logarithmic axes, and the diagonal with equal values.
func scatter(name, title string, xs, ys []float64) Plot {
	b := newPlot(title)
	low, high := math.Inf(1), math.Inf(-1)
	for i := range xs {
		low, high = min(low, xs[i], ys[i]), max(high, xs[i], ys[i])
	}
	low, high = math.Log10(low), math.Log10(high)
	span := max(high-low, 0.01)
	x := func(v float64) float64 { return plotLeft + (math.Log10(v)-low)*(plotRight-plotLeft)/span }
	y := func(v float64) float64 { return plotBottom - (math.Log10(v)-low)*(plotBottom-plotTop)/span }
	fmt.Fprintf(b, `<path d="M%d %dL%d %d" stroke="#ccc"/>`+"\n", plotLeft, plotBottom, plotRight, plotTop)
	step := max(1, (len(xs)+plotPoints-1)/plotPoints)
	for i := 0; i < len(xs); i += step {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="1.5" fill="#06c" fill-opacity="0.4"/>`+"\n", x(xs[i]), y(ys[i]))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">truth, %.3g to %.3g</text></svg>`+"\n", plotRight, plotBottom+16, math.Pow(10, low), math.Pow(10, high))
	return Plot{Name: name, SVG: b.Bytes()}
}
