package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 10, 5, 0, 0, 0, 0, time.UTC)

// rising returns one point per hour.
func rising(values ...float64) []Point {
	points := make([]Point, len(values))
	for i, v := range values {
		points[i] = Point{At: start.Add(time.Duration(i) * time.Hour), Value: v}
	}
	return points
}

// samples returns one chart of each kind.
func samples() map[string]template.HTML {
	banded := rising(12.5, 13, math.NaN(), 12.8)
	banded[0].Low, banded[0].High = 12, 13.5
	stacked := StepOptions{
		Label: "Responses", From: start, To: start.Add(3 * time.Hour), Zero: true, Stacked: true,
		Lines: []Line{{Name: "2xx", Class: "ok", Points: rising(20, 0, 7)}, {Name: "no response", Class: "noResponse", Points: rising(0, 0, 3)}},
	}
	return map[string]template.HTML{
		"sparkline":       Sparkline(`Age of <quotes> & "more"`, rising(3, 4, math.NaN(), 2, 9)),
		"sparkline-empty": Sparkline("Age of quotes", nil),
		"bars": Bars("Last runs", []Bar{
			{Title: "Run 41, 5 Oct 00:00: 90 updated, 10 failed", At: start, Href: "/runs/41", Label: "41", Parts: []Part{{"updated", 90}, {"failed", 10}}},
			{Title: "Run 42: nothing", Href: "/runs/42", Label: "42"},
		}),
		"health": HealthBars("sim, last 24 h", []Cell{{"good", "5 Oct 00:00: 12 responses", start}, {State: "bad", Title: "3 failures"}, {State: "none", Title: "no requests"}}),
		"step": Step(StepOptions{
			Label: "Price", From: start, To: start.Add(6 * time.Hour),
			Lines:  []Line{{Name: "Aurum", Class: "thin", Points: rising(12, 14)}, {Name: "Price", Class: "main", Points: banded}},
			Dots:   []Dot{{At: start.Add(time.Hour), Value: 14, Class: "used", Title: "Aurum: $14.00"}},
			Format: func(v float64) string { return fmt.Sprintf("$%.2f", v) },
		}),
		"step-stacked": Step(stacked),
		"live":         Live(stacked),
		"live-dots": Live(StepOptions{
			Label: "Price", From: start, To: start.AddDate(0, 0, 7), Lines: []Line{{Name: "Price", Class: "main", Points: banded}}, Prefix: "$", Places: 2,
			Dots: []Dot{{At: start, Value: 14, Class: "out", Name: "Seller's \"held\" price", Title: "Held: $14.00"}},
		}),
		"live-empty":     Live(StepOptions{Label: "Price", From: start, To: start.Add(time.Hour)}),
		"step-one-value": Step(StepOptions{Label: "Budget", From: start, To: start.AddDate(0, 0, 30), Lines: []Line{{Points: rising(5)}}, Zero: true}),
		"step-empty":     Step(StepOptions{Label: "Price", From: start, To: start.Add(time.Hour), Lines: []Line{{Points: rising(math.NaN())}}}),
		"timeline": Timeline("Run 42", start, start.Add(4*time.Minute), []Lane{
			{Name: "plan", Segments: []Segment{{start, start.Add(time.Second), "work", "1 s"}}, Note: ": first, second"},
			{Name: "<sim>", Segments: []Segment{{start.Add(time.Second), start.Add(time.Minute), "work", "40 requests"}, {start.Add(time.Minute), start.Add(3 * time.Minute), "wait", "rate limit"}}},
		}),
	}
}

func TestCharts_MatchGoldenFiles(t *testing.T) {
	for name, got := range samples() {
		file := filepath.Join("testdata", name+".svg")
		if os.Getenv("ASSAY_UPDATE") != "" {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s differs; if this is intended, run with ASSAY_UPDATE=1 (-want +got):\n%s", name, diff)
		}
	}
}

func TestCharts_AreXMLWithoutStyles(t *testing.T) {
	for name, got := range samples() {
		if strings.Contains(string(got), "style=") || strings.Contains(string(got), "NaN") || strings.Contains(string(got), "Inf") {
			t.Errorf("%s: got %s, want no style attribute and only finite numbers", name, got)
		}
		d := xml.NewDecoder(strings.NewReader("<p>" + string(got) + "</p>"))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Errorf("%s: got the error %v, want well-formed elements", name, err)
				break
			}
		}
	}
}

func TestStep_AxisOfWholeNumbersHasWholeLabels(t *testing.T) {
	for _, top := range []float64{0, 1, 2, 4, 5, 7, 44, 100, 1000} {
		s, _ := StepOptions{Lines: []Line{{Points: rising(top)}}, Zero: true, Whole: true}.scale()
		for i := range ticks {
			if v := s.tick(i); math.Abs(v-math.Round(v)) > 1e-9 || s.high < top {
				t.Errorf("values up to %g: got a label at %g of %+v, want whole numbers up to the value", top, v, s)
			}
		}
	}
}

func TestStep_AxisContainsAllValues(t *testing.T) {
	for _, values := range [][]float64{{0, 0}, {1e-6, 2e-6}, {99.99, 100.01}, {-5, 5}, {3, 1e9}, {47.2, 107.4}, {7}, {-0.5}, {0.1, 0.3}} {
		s, ok := StepOptions{Lines: []Line{{Points: rising(values...)}}}.scale()
		for _, v := range values {
			if y := s.y(v); !ok || y < -0.01 || y > plotHeight+0.01 {
				t.Errorf("values %v: got y %g of %g in %+v, want it within the axis", values, y, v, s)
			}
		}
	}
}
