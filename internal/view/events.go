package view

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"assay/internal/event"
	"assay/internal/fault"
	"assay/internal/money"
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

// EventForm is the form of the price changes in events. If Fields selects figures, they include items
// of which only figures changed. If Currency is not empty, their amounts are converted at the rates in
// force, and the data has the currency and the rates. Hidden events are left out.
type EventForm struct {
	Fields   Fields
	Currency money.Currency
	Hidden   HiddenEvents
}

// HiddenEvents are the kinds of events that an API key may not read.
type HiddenEvents struct{ Inventory, Market, Wallet bool }

// Has reports whether events of a kind are hidden.
func (h HiddenEvents) Has(kind event.Kind) bool {
	switch subject, _, _ := strings.Cut(string(kind), "."); subject {
	case "inventory":
		return h.Inventory
	case "listing", "trade":
		return h.Market
	case "ledger":
		return h.Wallet
	default:
		return false
	}
}

// Events returns the events that follow the event with the number after. If there are none, it
// waits for one, up to the duration wait. A page ends when it has limit events or price changes.
// Events returns a fault.Expired if one of these events was deleted, or if no event has the
// number.
func (r *FeedReader) Events(ctx context.Context, after int64, limit int, wait time.Duration, form EventForm) (Events, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		last := r.o.Feed.Last()
		page, err := r.events(ctx, after, limit, form)
		if err != nil || len(page.Items) > 0 || !page.UpToDate || !r.o.Feed.Wait(waiting, last) {
			return page, err
		}
		after = numberOf(page.Next)
	}
}

func (r *FeedReader) events(ctx context.Context, after int64, limit int, form EventForm) (Events, error) {
	page := Events{Items: []NumberedEvent{}, Next: id(after)}
	convert, err := r.o.converter(ctx, form.Currency, r.o.Now())
	if err != nil {
		return page, err
	}
	found, err := event.After(ctx, r.o.Store.Read, after, limit, form.Fields.figuresSelected())
	if errors.Is(err, event.ErrExpired) {
		err = r.eventExpired(ctx)
	}
	if err != nil {
		return page, err
	}
	for i := range found {
		e := &found[i]
		page.Next = id(e.Number)
		if form.Hidden.Has(e.Kind) {
			continue
		}
		if e.Batch != nil {
			if len(e.Batch.Items) == 0 {
				continue // only figures changed, and form selects none
			}
			if e.Data, err = r.changeData(ctx, e.Batch, form, convert); err != nil {
				return page, err
			}
		}
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
	f := fault.New(fault.Expired, "cursor_expired", "This event number has expired or is unknown. Continue after %d to get all stored events. "+
		"To follow prices, read a snapshot and continue after its change number.", first)
	f.Change = id(first)
	return f
}

// ChangeData returns the data of a price.changed event for clients. It leaves out items with
// id 0.
func (r *FeedReader) ChangeData(ctx context.Context, b *event.Batch) (json.RawMessage, error) {
	return r.changeData(ctx, b, EventForm{}, &converter{})
}

func (r *FeedReader) changeData(ctx context.Context, b *event.Batch, form EventForm, convert *converter) (json.RawMessage, error) {
	changes, err := r.appendChanges(ctx, nil, b, form.Fields)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, lookupSize*(len(changes)+1))
	out = append(out, `{"items":[`...)
	for i := range changes {
		if i > 0 {
			out = append(out, ',')
		}
		convert.published(&changes[i].PublishedPrice)
		out = changes[i].appendJSON(out)
	}
	out = append(out, ']')
	if form.Currency != "" {
		out = appendRates(appendText(append(out, `,"currency":`...), string(convert.to)), convert.used())
	}
	return append(out, '}'), nil
}
