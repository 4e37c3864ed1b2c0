package web

import (
	"context"
	"html/template"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/view"
	"assay/internal/web/chart"
)

// itemChart is the history of a price.
type itemChart struct {
	Ranges  []tab
	SVG     template.HTML // empty: the item had no price in the period
	Candles string        // length of a candle; empty: all changes are shown
	Markets int           // number of market lines
	Far     []string      // markets whose prices are too far off to draw
}

const (
	maxChartPoints  = 600
	maxChartCandles = 4000
	marketSteps     = 200 // points of a market line
	// farFactor limits market lines. A market price is not drawn if it is more than this factor
	// below the lowest or above the highest price of the item.
	farFactor = 1.5
	// shortest is the part of a period that a line must fill to be visible. The chart of a shorter
	// history begins at the first price.
	shortest = 100
	// chartStep is the precision of the end of a chart, so that equal prices give an equal chart
	// for a while. Otherwise open pages would draw it at each update.
	chartStep = 5 * time.Minute
)

// chartOf draws the price history of a period. It shows every change, or candles if there are too
// many changes or older changes are stored only as candles.
func (s *itemPages) chartOf(ctx context.Context, key catalog.Key, item *view.ItemDetail, period string) (itemChart, error) {
	now := s.Now().Add(chartStep).Truncate(chartStep)
	days, known := map[string]int{"": 7, "7d": 7, "30d": 30, "all": 0}[period]
	if !known {
		return itemChart{}, fault.New(fault.Invalid, "invalid_parameters", "The range must be 7d, 30d or all.")
	}
	out := itemChart{Ranges: rangeTabs(key, days)}
	f, step := view.HistoryFilter{}, 24*time.Hour
	if days > 0 {
		f.From, step = now.AddDate(0, 0, -days), time.Hour
	}
	h, err := s.History.History(ctx, key, f, "", maxChartPoints)
	if err == nil && (h.NextCursor != nil || days == 0 && h.PointsFrom != nil) {
		f.Interval, out.Candles = step, map[time.Duration]string{time.Hour: "hour", 24 * time.Hour: "day"}[step]
		h, err = s.History.History(ctx, key, f, "", maxChartCandles)
	}
	price := priceLine(&h)
	if err != nil || len(price) == 0 {
		return out, err
	}
	if first := price[0].At; days == 0 || now.Sub(first) < now.Sub(f.From)/shortest {
		f.From = first
	}
	o := chart.StepOptions{
		Label: "Price", From: f.From, To: now, Prefix: symbol(s.Currency), Places: 2,
		Format: func(v float64) string { return shortPrice(money.Micro(math.Round(v*money.Scale)), s.Currency) },
	}
	shown := price
	if c := item.CandidatePrice; c != nil && !item.CandidateAt.Before(f.From) {
		o.Dots = []chart.Dot{{At: *item.CandidateAt, Value: amountValue(*c), Class: "out", Name: "Held price", Title: "Held: " + shortPrice(*c, s.Currency)}}
		shown = append(slices.Clone(price), chart.Point{Value: amountValue(*c)})
	}
	if out.Candles != "day" { // quotes of older days are not stored
		lines, err := s.History.MarketLines(ctx, key, f.From, now, now.Sub(f.From)/marketSteps)
		if err != nil {
			return out, err
		}
		o.Lines, out.Far = marketLines(lines, shown)
		out.Markets = len(o.Lines)
	}
	o.Lines = append(o.Lines, chart.Line{Name: "Price", Class: "main", Points: price})
	out.SVG = chart.Live(o)
	return out, nil
}

func rangeTabs(key catalog.Key, days int) (out []tab) {
	for _, r := range []struct {
		label, value string
		days         int
	}{{"7 days", "7d", 7}, {"30 days", "30d", 30}, {"All", "all", 0}} {
		out = append(out, tab{Label: r.label, Href: "/item?" + itemQuery(key) + "&range=" + url.QueryEscape(r.value) + "#history", Current: days == r.days})
	}
	return out
}

// amountValue converts an amount to a chart value. The value is only for display.
func amountValue(m money.Micro) float64 { return float64(m) / money.Scale }

// priceLine returns the points of a history. The band is the interval of the price, or the
// range of a candle. It omits an interval that does not contain the price: that interval belongs
// to a held estimate.
func priceLine(h *view.History) (out []chart.Point) {
	for _, p := range h.Points {
		point := chart.Point{At: p.At, Value: math.NaN()}
		if p.Price != nil {
			point.Value = amountValue(*p.Price)
			if i := p.Interval; i != nil && i.Low <= *p.Price && *p.Price <= i.High {
				point.Low, point.High = amountValue(i.Low), amountValue(i.High)
			}
		}
		if len(out) > 0 || p.Price != nil {
			out = append(out, point)
		}
	}
	for _, c := range h.Candles {
		out = append(out, chart.Point{At: c.At, Value: amountValue(c.Close), Low: amountValue(c.Low), High: amountValue(c.High)})
	}
	return out
}

// marketLines returns the lines of the markets with at least one price near the item's prices,
// including a held one. It returns the titles of all other markets as far.
func marketLines(lines []view.MarketLine, prices []chart.Point) (out []chart.Line, far []string) {
	low, high := math.Inf(1), 0.0
	for _, p := range prices {
		if !math.IsNaN(p.Value) {
			low, high = min(low, p.Value), max(high, p.Value)
		}
	}
	for _, l := range lines {
		line, near := chart.Line{Name: l.Title, Class: "thin"}, false
		for _, p := range l.Points {
			v := amountValue(p.Price)
			if v < low/farFactor || v > high*farFactor {
				v = math.NaN()
			}
			near = near || !math.IsNaN(v)
			line.Points = append(line.Points, chart.Point{At: p.At, Value: v})
		}
		if near {
			out = append(out, line)
		} else {
			far = append(far, l.Title)
		}
	}
	return out, far
}

// FarText lists the markets that are not shown.
func (c itemChart) FarText() string { return strings.Join(c.Far, ", ") }
