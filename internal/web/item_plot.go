package web

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"assay/internal/money"
)

// plot shows the prices of the markets on a line. The scale is logarithmic, so half a price and
// twice a price are equally far from it.
type plot struct {
	Min, Max money.Micro
	Price    string // position of the item's price; empty: none
	Dots     []dot
	Far      []dot // prices too far away to show on the scale
	Height   int
}

// dot is the price of one market.
type dot struct {
	X     string
	Y     int
	Used  bool
	Title string
	Price money.Micro
}

// reach is the factor by which the line extends beyond the used prices.
const reach = 2

// newPlot returns nil unless there are two different prices.
func newPlot(quotes []quoteRow, price money.Micro) *plot {
	var all []dot
	var used []money.Micro
	for _, q := range quotes {
		if q.Price == nil || *q.Price <= 0 {
			continue
		}
		all = append(all, dot{Used: q.Used, Title: q.Title, Price: *q.Price})
		if q.Used {
			used = append(used, *q.Price)
		}
	}
	if price > 0 {
		used = append(used, price)
	}
	if len(all) < 2 || len(used) == 0 {
		return nil
	}
	return drawn(all, slices.Min(used), slices.Max(used), price)
}

// drawn returns a plot of the prices near the range from low to high. The range contains all used
// prices.
func drawn(all []dot, low, high, price money.Micro) *plot {
	p := &plot{Min: low, Max: high}
	for _, d := range all {
		if d.Price < low/reach || d.Price > high*reach {
			p.Far = append(p.Far, d)
			continue
		}
		p.Dots = append(p.Dots, d)
		p.Min, p.Max = min(p.Min, d.Price), max(p.Max, d.Price)
	}
	if p.Min == p.Max {
		return nil
	}
	p.stack()
	if price > 0 {
		p.Price = acrossText(p.place(price))
	}
	return p
}

// Size of the dots: their height in pixels, and their width in percent of a narrow screen.
const (
	dotHeight = 13
	dotWidth  = 4.0
)

// stack places the dots in rows around the line, so that no dot hides another.
func (p *plot) stack() {
	slices.SortStableFunc(p.Dots, func(a, b dot) int { return cmp.Compare(a.Price, b.Price) })
	var ends []float64 // right end of the last dot in each row
	rows := make([]int, len(p.Dots))
	for i := range p.Dots {
		x := p.place(p.Dots[i].Price)
		row := 0
		for row < len(ends) && ends[row] > x-dotWidth/2 {
			row++
		}
		if row == len(ends) {
			ends = append(ends, 0)
		}
		ends[row], rows[i], p.Dots[i].X = x+dotWidth/2, row, acrossText(x)
	}
	p.Height = max(34, (len(ends)+1)*dotHeight)
	for i, row := range rows {
		offset := (row + 1) / 2 * dotHeight // row 0 is on the line; the other rows alternate below and above it
		if row%2 == 0 {
			offset = -offset
		}
		p.Dots[i].Y = p.Middle() + offset
	}
}

// Middle returns the vertical position of the line.
func (p *plot) Middle() int { return p.Height / 2 }

// Bottom returns the lower end of the price marker.
func (p *plot) Bottom() int { return p.Height - 3 }

// place returns the horizontal position of a price, between 2 and 98 percent. It is only for
// display.
func (p *plot) place(m money.Micro) float64 {
	low, high := math.Log(float64(p.Min)), math.Log(float64(p.Max))
	return 2 + 96*(math.Log(float64(m))-low)/(high-low)
}

func acrossText(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) + "%" }
