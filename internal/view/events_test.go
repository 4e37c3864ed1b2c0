package view_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/fault"
	"assay/internal/money"
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
	old, err := w.Events(t.Context(), 0, 1, 0)
	w.must(err)
	w.now = w.now.Add(4 * 24 * time.Hour) // price changes are kept for three days
	w.price(map[string]money.Micro{"A": units(11)})
	_, err = w.LastNumber(t.Context())
	w.must(err)
	w.must(w.store.InTx(t.Context(), func(tx *db.Tx) error { return event.Retain(tx, 7*24*time.Hour) }))
	for what, read := range map[string]func(int64) error{
		"Events": func(after int64) error { _, err := w.Events(t.Context(), after, 10, 0); return err },
		"Stream": func(after int64) error { _, err := w.Stream(t.Context(), after); return err },
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
	page, err := w.Events(t.Context(), after, 10, 0)
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
		page, err := w.Events(t.Context(), after, 2, 0)
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
	first, err := w.Stream(t.Context(), 0)
	w.must(err)
	again, err := w.Stream(t.Context(), 0)
	w.must(err)
	if &first.Text[0] != &again.Text[0] || first.Next != last {
		t.Errorf("got %q up to %d, and then other bytes; want the bytes of one shared read up to %d", first.Text, first.Next, last)
	}
	if !strings.HasPrefix(string(first.Text), "id: ") || strings.Count(string(first.Text), "\n\n") != 2 {
		t.Errorf("got the frames %q, want two with ids", first.Text)
	}
	none, err := w.Stream(t.Context(), last)
	w.must(err)
	if len(none.Text) > 0 || none.Next != last {
		t.Errorf("after the last event: got %q, want nothing", none.Text)
	}
	if _, err := w.Stream(t.Context(), last+1); err == nil {
		t.Error("Stream after an unknown number: got no error, want one")
	}
	w.begin(1)
	frame, err := view.New(view.Options{Store: w.store, Currency: "USD", Now: func() time.Time { return w.now }}).Jobs.Progress(t.Context())
	w.must(err)
	if !strings.Contains(string(frame), `"jobId":"2"`) || strings.Contains(string(frame), "id: ") {
		t.Errorf("progress frame: got %q, want the frame of job 2 without an id", frame)
	}
}
