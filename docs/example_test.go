package docs_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// exampleRow is a market of the example in docs/explanation/pricing.md.
type exampleRow struct {
	market                        string
	quote, level, levelled, noise money.Micro
}

func exampleRows(t *testing.T, page string) []exampleRow {
	t.Helper()
	_, table, ok := strings.Cut(page, "| market | quote | level | quote at the consensus level | noise |\n|---|---|---|---|---|\n")
	if !ok {
		t.Fatal("the page lacks the table of the example")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var rows []exampleRow
	for line := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 5 {
			t.Fatalf("row %q: got %d cells, want 5", line, len(cells))
		}
		rows = append(rows, exampleRow{cells[0], micro(t, cells[1]), micro(t, cells[2]), micro(t, cells[3]), micro(t, cells[4])})
	}
	return rows
}

func micro(t *testing.T, text string) money.Micro {
	t.Helper()
	v, err := money.Parse([]byte(text), 1)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestPricing_TheExampleIsWhatTheProgramComputes computes the example's table with
// the production code and compares every figure of the page with the result.
func TestPricing_TheExampleIsWhatTheProgramComputes(t *testing.T) {
	page := read(t, "docs/explanation/pricing.md") + read(t, "docs/contribute/pricing.md")
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	set := pricing.NewSet(money.Scale)
	var quotes []pricing.Quote
	rows := exampleRows(t, page)
	for i, r := range rows {
		level := pricing.Ln(r.level) - pricing.Ln(money.Scale)
		m := pricing.SetMarket{ID: int64(i + 1), Known: true, Level: level, Noise: pricing.Ln(r.noise) - pricing.Ln(money.Scale), Far: -1}
		for b := range m.Bands {
			m.Bands[b] = level
		}
		set.Markets = append(set.Markets, m)
		quotes = append(quotes, pricing.Quote{ID: m.ID, Market: r.market, Currency: "USD", Ask: r.quote, FetchedAt: now})
	}
	pricer := pricing.NewPricer(pricing.Policy{Currency: "USD"}, set)
	var p pricing.Priced
	price := func(quotes []pricing.Quote, last money.Micro) {
		pricer.Price(now, pricing.Rest, quotes, pricing.State{Price: last}, pricing.References{}, &p)
	}
	states := func(text string) {
		t.Helper()
		if !strings.Contains(strings.Join(strings.Fields(page), " "), text) {
			t.Errorf("the page lacks the text %q", text)
		}
	}

	price(quotes, 0)
	distance := 0.0
	for i, r := range rows {
		q := p.Quotes[i]
		if q.Levelled != r.levelled || (q.Reason == pricing.Outlier) != (r.market == "waxpeer") {
			t.Errorf("%s: got %s at the consensus level (%q), want %s as on the page", r.market, q.Levelled, q.Reason, r.levelled)
		}
		if q.Reason == pricing.Used {
			distance += math.Abs(math.Log(float64(q.Levelled) / float64(p.Price)))
		}
	}
	h := math.Log(float64(p.Width) / money.Scale)
	states("The price is the middle of the five: **" + p.Price.String() + "**. The plain average of all six would be " + p.Average.String() +
		", the plain median " + p.Median.String() + ".")
	states("by " + places(distance) + " in all")
	states("d = (" + places(distance) + " + 3 x 0.1) / (5 + 2) = " + places((distance+0.3)/7) + ", and h = 1.86 x " + places((distance+0.3)/7) +
		" x sqrt(1 + 1/5) = " + strconv.FormatFloat(h, 'f', 4, 64) + ".")
	states("**" + p.Interval.Low.String() + " to " + p.Interval.High.String() + "**")
	states("the status is **" + p.Status.String() + "**")
	if p.UsedMarkets != 5 || p.Near != 5 || !p.Majority {
		t.Errorf("got %d used quotes, %d near, majority %v, want 5, 5, true", p.UsedMarkets, p.Near, p.Majority)
	}
	estimated := p.Price

	last := micro(t, regexp.MustCompile(`Had the last price been ([\d.]+),`).FindStringSubmatch(page)[1])
	price(quotes, last)
	if p.Price != last || p.Status != pricing.Suspect || p.State.Held.Candidate != estimated {
		t.Errorf("no market moved: got the price %s, status %s, held %s, want a held price with status suspect", p.Price, p.Status, p.State.Held.Candidate)
	}
	states("moved by " + places2(p.Move.Factor) + "x")
	quotes[0].Moved, quotes[1].Moved = pricing.Ln(2*money.Scale)-pricing.Ln(money.Scale), pricing.Ln(2*money.Scale)-pricing.Ln(money.Scale)
	price(quotes, last)
	if p.Price != estimated || p.Status != pricing.Suspect || p.Move.Decision != pricing.TakenAtOnce {
		t.Errorf("two markets doubled: got the price %s, status %s, decision %s, want the new price at once with status suspect", p.Price, p.Status, p.Move.Decision)
	}

	price(append(quotes[:4:4], quotes[5]), 0)
	states("so the price is their mean, " + p.Price.String() + ".")
}

// places formats a number with up to six decimal places.
func places(v float64) string { return money.Micro(math.Round(v * money.Scale)).String() }

func places2(factor money.Micro) string { return ((factor + 5_000) / 10_000 * 10_000).String() }
