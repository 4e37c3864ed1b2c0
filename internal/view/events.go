package view

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"assay/internal/event"
	"assay/internal/fault"
)

// NumberedEvent is an event with its number. Numbers follow the order of commits.
type NumberedEvent struct {
	Number string `json:"number"`
	Event
}

// Events is a page of events, oldest first.
type Events struct {
	Items    []NumberedEvent `json:"items"`
	Next     string          `json:"next"`     // number to continue after
	UpToDate bool            `json:"upToDate"` // no later event is known
}

// Events returns the events that follow the event with the number after. If there are none, it
// waits for one, up to the duration wait. A page ends when it has limit events or price changes.
// Events returns a fault.Expired if one of these events was deleted, or if no event has the
// number.
func (r *FeedReader) Events(ctx context.Context, after int64, limit int, wait time.Duration) (Events, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		last := r.o.Feed.Last()
		page, err := r.events(ctx, after, limit)
		if err != nil || len(page.Items) > 0 || !r.o.Feed.Wait(waiting, last) {
			return page, err
		}
	}
}

func (r *FeedReader) events(ctx context.Context, after int64, limit int) (Events, error) {
	page := Events{Items: []NumberedEvent{}, Next: id(after)}
	found, err := event.After(ctx, r.o.Store.Read, after, limit)
	if errors.Is(err, event.ErrExpired) {
		err = r.eventExpired(ctx)
	}
	if err != nil {
		return page, err
	}
	for i := range found {
		e := &found[i]
		if e.Batch != nil {
			if e.Data, err = r.ChangeData(ctx, e.Batch); err != nil {
				return page, err
			}
		}
		page.Next = id(e.Number)
		page.Items = append(page.Items, NumberedEvent{page.Next, Event{ID: id(e.ID), Kind: string(e.Kind), At: e.At, Data: e.Data}})
	}
	page.UpToDate = len(found) == 0 || found[len(found)-1].Number >= r.o.Feed.Last()
	return page, nil
}

// eventExpired returns the fault for a number that Events does not accept. The fault contains
// the lowest accepted number.
func (r *FeedReader) eventExpired(ctx context.Context) error {
	first, err := event.FirstCursor(ctx, r.o.Store.Read)
	if err != nil {
		return err
	}
	f := fault.New(fault.Expired, "cursor_expired", "This event number has expired or is unknown. Continue after %d: the events up to it are deleted. "+
		"To follow prices, read a snapshot and continue after its change number.", first)
	f.Change = id(first)
	return f
}

// ChangeData returns the data of a price.changed event for clients. It leaves out items with
// id 0.
func (r *FeedReader) ChangeData(ctx context.Context, b *event.Batch) (json.RawMessage, error) {
	changes, err := r.appendChanges(ctx, nil, b, 0)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, lookupSize*(len(changes)+1))
	out = append(out, `{"items":[`...)
	for i := range changes {
		if i > 0 {
			out = append(out, ',')
		}
		out = changes[i].appendJSON(out)
	}
	return append(out, `]}`...), nil
}
