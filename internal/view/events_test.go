package view_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/internal/event"
	"assay/internal/exchange"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/view"
)

// If the next events of a reader were deleted, the error contains the number to continue after.
// From there on, the reader gets all events, not only price changes.
func TestEvents_ExpiredNumberNamesTheOneToContinueAfter(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A")
	w.price(map[string]money.Micro{"A": units(10)})
	_, err := w.LastNumber(t.Context())
	w.must(err)
	old, err := w.Events(t.Context(), 0, 1, 0, view.EventForm{})
	w.must(err)
	w.now = w.now.Add(4 * 24 * time.Hour) // price changes are kept for three days
	w.price(map[string]money.Micro{"A": units(11)})
	_, err = w.LastNumber(t.Context())
	w.must(err)
	w.must(event.Retain(t.Context(), w.store, 7*24*time.Hour))
	for what, read := range map[string]func(int64) error{
		"Events": func(after int64) error { _, err := w.Events(t.Context(), after, 10, 0, view.EventForm{}); return err },
		"Stream": func(after int64) error { _, err := w.stream.Read(t.Context(), after); return err },
	} {
		f := fault.Of(read(0))
		if f == nil || f.Code != "cursor_expired" || f.Kind != fault.Expired || f.Change != old.Next || !strings.Contains(f.Detail, "Continue after "+old.Next) {
			t.Fatalf("%s after a deleted event: got the fault %+v, want cursor_expired with the number %s", what, f, old.Next)
		}
		if f := fault.Of(read(1)); f == nil || f.Code != "cursor_expired" {
			t.Errorf("%s after a number that no event has: got the fault %+v, want cursor_expired", what, f)
		}
	}
	after, err := strconv.ParseInt(old.Next, 10, 64)
	w.must(err)
	page, err := w.Events(t.Context(), after, 10, 0, view.EventForm{})
	w.must(err)
	var kinds []string
	for _, e := range page.Items {
		kinds = append(kinds, e.Kind)
	}
	if got := strings.Join(kinds, " "); got != "job.finished price.changed job.finished" {
		t.Errorf("after the number in the error: got the events %s, want job.finished, price.changed and job.finished", got)
	}
}

// TestStream_SharesReadsAndShowsProgress reads the events of two jobs, as pages and as
// server-sent events.
func TestStream_SharesReadsAndShowsProgress(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A", "B")
	w.price(map[string]money.Micro{"A": units(10), "B": units(20)})
	last, err := w.LastNumber(t.Context())
	w.must(err)
	var kinds []string
	for after := int64(0); ; {
		page, err := w.Events(t.Context(), after, 2, 0, view.EventForm{})
		w.must(err)
		for _, e := range page.Items {
			kinds = append(kinds, e.Kind)
			if e.Kind == "price.changed" && strings.Count(string(e.Data), `"currentPriceDecimal"`) != 2 {
				t.Errorf("got the data %s, want two prices", e.Data)
			}
		}
		if page.UpToDate {
			break
		}
		after, err = strconv.ParseInt(page.Next, 10, 64)
		w.must(err)
	}
	if got := strings.Join(kinds, " "); got != "price.changed job.finished" {
		t.Errorf("got the events %s, want price.changed and job.finished", got)
	}
	first, err := w.stream.Read(t.Context(), 0)
	w.must(err)
	again, err := w.stream.Read(t.Context(), 0)
	w.must(err)
	if &first.Text[0] != &again.Text[0] || first.Next != last {
		t.Errorf("got %q up to %d, and then other bytes; want the bytes of one shared read up to %d", first.Text, first.Next, last)
	}
	if !strings.HasPrefix(string(first.Text), "id: ") || strings.Count(string(first.Text), "\n\n") != 2 {
		t.Errorf("got the frames %q, want two with ids", first.Text)
	}
	none, err := w.stream.Read(t.Context(), last)
	w.must(err)
	if len(none.Text) > 0 || none.Next != last {
		t.Errorf("after the last event: got %q, want nothing", none.Text)
	}
	if _, err := w.stream.Read(t.Context(), last+1); err == nil {
		t.Error("Stream after an unknown number: got no error, want one")
	}
	w.begin(1)
	frame, err := view.New(view.Options{Store: w.store, Currency: "USD", Now: func() time.Time { return w.now }}).Jobs.Progress(t.Context())
	w.must(err)
	if !strings.Contains(string(frame), `"jobId":"2"`) || strings.Contains(string(frame), "id: ") {
		t.Errorf("progress frame: got %q, want the frame of job 2 without an id", frame)
	}
}

// With figures, readers get items of which only figures changed, as a snapshot has them. The other
// readers pass them.
func TestFigures_AreChangesForReadersThatSelectThem(t *testing.T) {
	w := newWorld(t, false)
	inForce := pricing.Rates{"EUR": {Value: 2 * money.RateScale, Date: w.now.Truncate(24 * time.Hour)}}
	w.read(view.Options{
		Store: w.store, Currency: "USD", Now: func() time.Time { return w.now },
		Rates: exchange.New(exchange.Options{Base: "USD", Fixed: inForce, Store: w.store, Now: func() time.Time { return w.now }}),
	})
	w.own("u", "A", "B")
	w.quotes = func() []refresh.MarketSnapshot {
		return []refresh.MarketSnapshot{{MarketID: 1, Currency: "USD", Ask: units(10), Reason: pricing.Used}}
	}
	run := func(average money.Micro) int64 {
		w.Helper()
		w.now = w.now.Add(7 * time.Hour)
		id := w.begin(1)
		b := pricing.Priced{Price: units(20), Estimated: units(20), Average: units(20), Interval: pricing.Interval{Low: units(19), High: units(21)}, UsedMarkets: 1}
		a := b
		a.Average = average
		for w.estimateWith(map[string]pricing.Priced{"A": a, "B": b}) {
		}
		w.end(id)
		last, err := w.LastNumber(t.Context())
		w.must(err)
		return last
	}
	var exported view.Export
	export := func() (text string) {
		w.must(w.Export(t.Context(), 0, view.FieldAverage, "", func(e view.Export) func(*view.PublishedPrice) error {
			exported = e
			return func(p *view.PublishedPrice) error {
				text += fmt.Sprintln(p.MarketHashName, p.CurrentPrice, *p.Average)
				return nil
			}
		}))
		return text
	}
	first := run(units(20))
	export()
	since := exported.Change
	last := run(units(24))
	if got, want := export(), "A 20 24\nB 20 20\n"; got != want || exported.Change <= since {
		t.Errorf("got the export %q at change %d, want %q after change %d", got, exported.Change, want, since)
	}
	page, err := w.Changes(t.Context(), since, 10, 0, view.FieldAverage, "")
	w.must(err)
	if len(page.Items) != 1 || page.Items[0].MarketHashName != "A" || *page.Items[0].Average != units(24) || page.Next != fmt.Sprint(exported.Change) || !page.UpToDate {
		t.Errorf("changes with figures: got %+v, want A with the average 24 up to change %d", page, exported.Change)
	}
	page, err = w.Changes(t.Context(), since, 10, time.Millisecond, 0, "")
	w.must(err)
	if len(page.Items) != 0 || page.Next != fmt.Sprint(exported.Change) || !page.UpToDate {
		t.Errorf("changes without figures: got %+v, want none up to change %d", page, exported.Change)
	}
	form := view.EventForm{Fields: view.FieldAverage, Currency: "EUR"}
	const want = `"currentPrice":10,"currentPriceDecimal":"10","priceStatus":"ok","priceUpdatedAt":"2026-03-01T19:00:00Z",` +
		`"priceCheckedAt":"2026-03-02T02:00:00Z","average":12}],"currency":"EUR","rates":[{"currency":"USD","rate":0.5,"date":"2026-03-01T00:00:00Z","old":false,"origin":"fixed"}]}`
	for of, kinds := range map[view.EventForm]string{form: "price.changed job.finished", {}: "job.finished", {Currency: "EUR"}: "job.finished"} {
		events, err := w.Events(t.Context(), first, 10, 0, of)
		w.must(err)
		s, err := w.OpenStream(t.Context(), of)
		w.must(err)
		frames, err := s.Read(t.Context(), first)
		w.must(err)
		s.Close()
		var got []string
		for _, e := range events.Items {
			got = append(got, e.Kind)
			if !strings.Contains(string(frames.Text), "event: "+e.Kind+"\ndata: "+string(e.Data)+"\n\n") {
				t.Errorf("%+v: got the stream %s, want the event %s", of, frames.Text, e.Data)
			}
			if e.Kind == "price.changed" && !strings.HasSuffix(string(e.Data), want) {
				t.Errorf("%+v: got the data %s, want the end %s", of, e.Data, want)
			}
		}
		if text := strings.Join(got, " "); text != kinds || frames.Next != last {
			t.Errorf("%+v: got the events %s up to %d, want %s up to %d", of, text, frames.Next, kinds, last)
		}
	}
	if _, err := w.OpenStream(t.Context(), view.EventForm{Currency: "CNY"}); fault.Of(err) == nil || fault.Of(err).Code != "no_exchange_rate" {
		t.Errorf("a stream in a currency without a rate: got error %v, want no_exchange_rate", err)
	}
}

// The pages of up to four forms with figures or a currency are in memory. Streams of further forms read
// the database.
func TestOpenStream_LimitsTheFormsInMemory(t *testing.T) {
	w := newWorld(t, false)
	var open []*view.Stream
	for fields := view.Fields(1); fields <= 5; fields++ {
		for range 2 {
			s, err := w.OpenStream(t.Context(), view.EventForm{Fields: fields})
			w.must(err)
			open = append(open, s)
			if behind := s.Behind(0); behind != (fields == 5) {
				t.Errorf("form %d: got behind %t, want %t", fields, behind, fields == 5)
			}
		}
	}
	if _, err := open[9].Older(t.Context(), 0); err != nil {
		t.Errorf("Older of the fifth form: got error %v, want none", err)
	}
	for _, s := range open[:2] {
		s.Close()
	}
	s, err := w.OpenStream(t.Context(), view.EventForm{Fields: 5})
	w.must(err)
	if s.Behind(0) {
		t.Error("a form after another one was closed: got behind true, want false")
	}
}
