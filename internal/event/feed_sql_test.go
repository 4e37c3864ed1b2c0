package event_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/event"
)

// change writes an event with price changes of items.
func change(f *dbtest.Fixture, items ...int64) {
	f.Helper()
	f.Tx(func(tx *db.Tx) error { return event.Add(tx, event.PricesChanged{Items: items}) })
}

// changed returns the items of the changes after a number, and the number of the last change.
func changed(f *dbtest.Fixture, since int64, most int) (items []int64, last int64) {
	f.Helper()
	batches, err := event.Changes(f.Context(), f.DB.Read, since, most, false)
	f.Must(err)
	last = since
	for _, b := range batches {
		if b.First() <= last {
			f.Errorf("got the change %d after %d, want a higher number", b.First(), last)
		}
		items, last = append(items, b.Items...), b.Number
	}
	return items, last
}

func number(f *dbtest.Fixture) {
	f.Helper()
	f.Must(event.NewFeed(f.DB, slog.New(slog.DiscardHandler)).Number(f.Context()))
}

func TestFeed_NumbersChangesInTheirOrder(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		change(f, 7, 8)
		items, last := changed(f, 0, 10)
		f.Is("changes without a number", len(items), 0)
		_, err := event.LastChange(f.Context(), f.DB.Read)
		f.Is("LastChange returned ErrPending before the numbering", errors.Is(err, event.ErrPending), true)
		number(f)
		items, last = changed(f, last, 10)
		f.Is("changes", fmt.Sprint(items), "[7 8]")
		f.Tx(func(tx *db.Tx) error { return event.Add(tx, event.ProviderUp{Provider: "s"}) })
		change(f, 9)
		number(f)
		items, next := changed(f, last, 10)
		f.Is("changes after the first two", fmt.Sprint(items), "[9]")
		items, _ = changed(f, last-1, 10)
		f.Is("changes from the middle of an event", fmt.Sprint(items), "[8 9]")
		got, err := event.LastChange(f.Context(), f.DB.Read)
		f.Must(err)
		f.Is("last change", got, next)
		f.Is("numbers are above the time in microseconds", next > f.Now.UnixMicro(), true)
		f.Now = f.Now.Add(-time.Hour) // the clock is set back
		change(f, 10)
		number(f)
		items, _ = changed(f, next, 10)
		f.Is("changes after the clock was set back", fmt.Sprint(items), "[10]")
	})
}

func TestChanges_RefusesNumbersOfNoChange(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		expired := func(since int64) bool {
			_, err := event.Changes(f.Context(), f.DB.Read, since, 1, false)
			return errors.Is(err, event.ErrExpired)
		}
		f.Is("cursor 0 expired before the first change", expired(0), false)
		f.Is("cursor 5 expired before the first change", expired(5), true)
		change(f, 1, 2)
		number(f)
		_, first := changed(f, 0, 9)
		f.Now = f.Now.Add(4 * 24 * time.Hour)
		change(f, 3)
		number(f)
		_, last := changed(f, first, 9)
		f.Is("a number between two events expired", expired(first+1), true)
		f.Is("a number that was never assigned expired", expired(last+1), true)
		f.Must(event.Retain(f.Context(), f.DB, 0))
		f.Is("cursor 0 expired after the first event was deleted", expired(0), true)
		f.Is("a number in the middle of a deleted event expired", expired(first-1), true)
		items, _ := changed(f, first, 9)
		f.Is("changes after the last expired one", fmt.Sprint(items), "[3]")
		f.Now = f.Now.Add(4 * 24 * time.Hour)
		f.Must(event.Retain(f.Context(), f.DB, 0))
		got, err := event.LastChange(f.Context(), f.DB.Read)
		f.Must(err)
		f.Is("last change when all have expired", got, last)
		f.Is("the number of the last change expired", expired(last), false)
	})
}

// After must report that events after a cursor were deleted, whatever their kind.
func TestAfter_RefusesCursorsBeforeDeletedEvents(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		up := func() {
			f.Tx(func(tx *db.Tx) error { return event.Add(tx, event.ProviderUp{Provider: "s"}) })
		}
		after := func(cursor int64) (numbers []int64, err error) {
			events, err := event.After(f.Context(), f.DB.Read, cursor, 100, false)
			for _, e := range events {
				numbers = append(numbers, e.Number)
			}
			return numbers, err
		}
		expired := func(cursor int64) bool {
			_, err := after(cursor)
			return errors.Is(err, event.ErrExpired)
		}
		for range 60 {
			up()
		}
		number(f)
		all, err := after(0)
		f.Must(err)
		f.Is("number of events", len(all), 60)
		f.Now = f.Now.Add(time.Hour)
		change(f, 1)
		number(f)
		f.Must(event.Retain(f.Context(), f.DB, time.Minute)) // keeps 50 of the 60
		first, err := event.FirstCursor(f.Context(), f.DB.Read)
		f.Must(err)
		f.Is("first cursor", first, all[9])
		f.Is("cursor 0 expired", expired(0), true)
		f.Is("the number before the last deleted event expired", expired(all[8]), true)
		rest, err := after(first)
		f.Must(err)
		f.Is("events after the last deleted one", len(rest), 51)
		f.Is("number of the first event after the deleted ones", rest[0], all[10])
		f.Is("the number of a stored event expired", expired(all[10]), false)
		items, _ := changed(f, all[9], 9)
		f.Is("price changes after the last deleted event", fmt.Sprint(items), "[1]")
		for range 60 {
			up()
		}
		number(f)
		f.Now = f.Now.Add(time.Hour)
		f.Must(event.Retain(f.Context(), f.DB, time.Minute)) // deletes events after the price change
		last, err := event.LastChange(f.Context(), f.DB.Read)
		f.Must(err)
		f.Is("the number of a snapshot expired", expired(last), false)
		items, _ = changed(f, last, 9)
		f.Is("price changes after the snapshot", fmt.Sprint(items), "[]")
	})
}

// TestFeed_WakesWaitingClients runs a feed while a second feed numbers the events, as another
// process does.
func TestFeed_WakesWaitingClients(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		feed := event.NewFeed(f.DB, slog.New(slog.DiscardHandler))
		ended := make(chan struct{})
		go func() { feed.Run(ctx); close(ended) }()
		woken := make(chan bool)
		go func() { woken <- feed.Wait(f.Context(), 0) }()
		change(f, 1)
		f.Is("a change woke the client", <-woken, true)
		last := feed.Last()
		short, end := context.WithTimeout(f.Context(), 10*time.Millisecond)
		defer end()
		f.Is("Wait returned true without a change", feed.Wait(short, last), false)
		go func() { woken <- feed.Wait(f.Context(), last) }()
		cancel()
		f.Is("Wait returned true at the end of the feed", <-woken, false)
		<-ended
	})
}

// Only readers with figures get the items of which only figures changed. Cursors of the other readers
// pass them.
func TestChanges_FiguresAreForReadersThatSelectThem(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		add := func(items, figures []int64) {
			f.Tx(func(tx *db.Tx) error { return event.Add(tx, event.PricesChanged{Items: items, Figures: figures}) })
			number(f)
		}
		add([]int64{1}, []int64{2, 3})
		add(nil, []int64{4})
		last, err := event.LastChange(f.Context(), f.DB.Read)
		f.Must(err)
		add([]int64{5}, nil)
		read := func(since int64, figures bool) (items []int64, numbers []int64) {
			batches, err := event.Changes(f.Context(), f.DB.Read, since, 10, figures)
			f.Must(err)
			events, err := event.After(f.Context(), f.DB.Read, since, 10, figures)
			f.Must(err)
			f.Is("batches and events", len(batches), len(events))
			for i, b := range batches {
				f.Is("event and batch", fmt.Sprint(*events[i].Batch), fmt.Sprint(b))
				for k, item := range b.Items {
					items, numbers = append(items, item), append(numbers, b.First()+int64(k))
				}
			}
			return items, numbers
		}
		all, numbers := read(0, true)
		f.Is("changes with figures", fmt.Sprint(all), "[2 3 1 4 5]")
		f.Is("number of the last change of figures", numbers[3], last)
		prices, own := read(0, false)
		f.Is("changes without figures", fmt.Sprint(prices), "[1 5]")
		f.Is("numbers without figures", fmt.Sprint(own), fmt.Sprint([]int64{numbers[2], numbers[4]}))
		for i, since := range numbers {
			rest, _ := read(since, true)
			f.Is("changes with figures after a number", fmt.Sprint(rest), fmt.Sprint(all[i+1:]))
		}
		rest, _ := read(numbers[0], false)
		f.Is("changes without figures after a number of figures", fmt.Sprint(rest), "[1 5]")
		batches, err := event.Changes(f.Context(), f.DB.Read, numbers[2], 10, false)
		f.Must(err)
		f.Is("first batch without items", fmt.Sprint(batches[0].Number, len(batches[0].Items)), fmt.Sprint(last, 0))
	})
}
