package view_test

import (
	"fmt"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"assay/internal/catalog"
	"assay/internal/pricing"
	"assay/internal/view"
)

func TestParseFields_AcceptsKnownNamesOnly(t *testing.T) {
	for text, want := range map[string]view.Fields{
		"": 0, "interval": view.FieldInterval, "usedMarkets,average": view.FieldAverage | view.FieldUsedMarkets,
		"interval,average,usedMarkets": view.FieldInterval | view.FieldAverage | view.FieldUsedMarkets, "average,average": view.FieldAverage,
	} {
		if got, err := view.ParseFields(text); err != nil || got != want {
			t.Errorf("ParseFields(%q) = %b, %v, want %b", text, got, err, want)
		}
	}
	for _, text := range []string{",", "interval,", "median", "Interval", "interval, average"} {
		if _, err := view.ParseFields(text); err == nil {
			t.Errorf("ParseFields(%q): got no error, want one", text)
		}
	}
}

// An inventory row and a lookup return the same status, time and figures for an item. The
// status is computed at the time of the request.
func TestPrices_RowsAndLookupsReturnSameStatusAndFigures(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "good", "weak", "none")
	id := w.begin(1)
	w.estimateWith(map[string]pricing.Priced{
		"good": {Price: 2e6, Estimated: 2e6, Status: pricing.OK, Average: 2_100_000, UsedMarkets: 4, Interval: pricing.Interval{Low: 1_800_000, High: 2_200_000}},
		"weak": {Price: 3e6, Estimated: 3e6, Status: pricing.Thin, Average: 3e6, UsedMarkets: 1, Interval: pricing.Interval{Low: 1e6, High: 9e6}},
	})
	w.end(id)
	w.own("v", "good", "weak", "none") // copies the prices to the rows
	all := view.FieldInterval | view.FieldAverage | view.FieldUsedMarkets
	good := "ok at 12:00, interval 1.8-2.2, average 2.1, used 4"
	weak := "thin at 12:00, interval 1-9, average 3, used 1"
	w.expectFigures("fresh", all, map[string]string{"good": good, "weak": weak, "none": "noPrice at -"})
	w.expectFigures("without fields", 0, map[string]string{"good": "ok at 12:00", "weak": "thin at 12:00", "none": "noPrice at -"})
	w.expectFigures("one field", view.FieldAverage, map[string]string{"good": "ok at 12:00, average 2.1", "weak": "thin at 12:00, average 3", "none": "noPrice at -"})
	w.now = w.now.Add(24*time.Hour + time.Microsecond)
	w.expectFigures("a day later", view.FieldUsedMarkets, map[string]string{"good": "stale at 12:00, used 4", "weak": "stale at 12:00, used 1", "none": "noPrice at -"})
}

func (w *world) expectFigures(when string, fields view.Fields, want map[string]string) {
	w.Helper()
	inv, err := w.Inventory(w.Context(), "v", 0, fields, "", "", 10)
	w.must(err)
	rows := map[string]string{}
	var keys []catalog.Key
	for _, r := range inv.Items {
		rows[r.MarketHashName] = figuresText(r.PriceStatus, r.PriceCheckedAt, r.Figures)
		keys = append(keys, catalog.Key{AppID: catalog.CS2, Name: r.MarketHashName})
	}
	found, err := w.Lookup(w.Context(), keys, fields, "")
	w.must(err)
	looked := map[string]string{}
	for _, v := range found.Items {
		looked[v.MarketHashName] = figuresText(v.PriceStatus, v.PriceCheckedAt, v.Figures)
	}
	if fmt.Sprint(rows) != fmt.Sprint(want) || fmt.Sprint(looked) != fmt.Sprint(want) {
		w.Errorf("%s: got the rows %v\nand the lookup %v\nwant %v", when, rows, looked, want)
	}
	text, err := jsonv2.Marshal(found)
	w.must(err)
	if string(text) != string(found.JSON()) {
		w.Errorf("%s: JSON() returns\n%s\nwant the text of json.Marshal\n%s", when, found.JSON(), text)
	}
}

func figuresText(status string, checked *time.Time, f *view.Figures) string {
	text := status + " at -"
	if checked != nil {
		text = status + " at " + checked.Format("15:04")
	}
	if f == nil {
		return text
	}
	if f.Interval != nil {
		text += fmt.Sprintf(", interval %s-%s", f.Interval.Low, f.Interval.High)
	}
	if f.Average != nil {
		text += fmt.Sprintf(", average %s", *f.Average)
	}
	if f.UsedMarkets != nil {
		text += fmt.Sprintf(", used %d", *f.UsedMarkets)
	}
	return text
}
