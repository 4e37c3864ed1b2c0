package view

import (
	"context"
	"errors"
	"strconv"
	"time"

	"assay/internal/event"
	"assay/internal/fault"
	"assay/internal/money"
)

// PriceChange is a new price or price status of an item.
type PriceChange struct {
	Change string `json:"change"` // number of the change
	PublishedPrice
}

// Changes is a page of the change feed, oldest first.
type Changes struct {
	Items    []PriceChange    `json:"items"`
	Next     string           `json:"next"`     // number to continue after
	UpToDate bool             `json:"upToDate"` // no later change is known
	Currency money.Currency   `json:"currency"`
	Rates    []ConversionRate `json:"rates,omitempty"`
}

// JSON encodes the page as json.Marshal would.
func (c *Changes) JSON() []byte {
	b := make([]byte, 0, lookupSize*(len(c.Items)+1))
	b = append(b, `{"items":[`...)
	for i := range c.Items {
		if i > 0 {
			b = append(b, ',')
		}
		b = c.Items[i].appendJSON(b)
	}
	b = appendText(append(b, `],"next":`...), c.Next)
	b = strconv.AppendBool(append(b, `,"upToDate":`...), c.UpToDate)
	b = appendText(append(b, `,"currency":`...), string(c.Currency))
	return append(appendRates(b, c.Rates), '}')
}

func (c *PriceChange) appendJSON(b []byte) []byte {
	b = appendText(append(b, `{"change":`...), c.Change)
	return append(c.appendMembers(append(b, ',')), '}')
}

// Changes returns up to limit price changes after the number since. If fields selects figures, it
// includes items of which only figures changed. If there are none, it
// waits for one, up to the duration wait. It returns a fault.Expired if since is older than
// the stored changes or is not the number of a change. The parameter to is the currency of the
// amounts ("": the base currency), converted at the rates in force.
func (r *FeedReader) Changes(ctx context.Context, since int64, limit int, wait time.Duration, fields Fields, to money.Currency) (Changes, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		last := r.o.Feed.Last()
		page, err := r.changes(ctx, since, limit, fields, to)
		if err != nil || len(page.Items) > 0 || !page.UpToDate || !r.o.Feed.Wait(waiting, last) {
			return page, err
		}
		since = numberOf(page.Next)
	}
}

// changes reads a page. It reads one change more than the page holds, to know whether the page
// is the last one.
func (r *FeedReader) changes(ctx context.Context, since int64, limit int, fields Fields, to money.Currency) (Changes, error) {
	convert, err := r.o.converter(ctx, to, r.o.Now())
	if err != nil {
		return Changes{}, err
	}
	page := Changes{Next: id(since), UpToDate: true, Currency: convert.to, Rates: convert.used()}
	batches, err := event.Changes(ctx, r.o.Store.Read, since, limit+1, fields.figuresSelected())
	if errors.Is(err, event.ErrExpired) {
		return page, r.cursorExpired(ctx)
	}
	if err != nil {
		return page, err
	}
	page.UpToDate = len(batches) < event.MaxBatches
	for _, b := range batches {
		if left := limit - len(page.Items); len(b.Items) > left {
			b.Number -= int64(len(b.Items) - left)
			b.Items = b.Items[:left]
			page.UpToDate = false
			if left == 0 {
				break
			}
		}
		if page.Items, err = r.appendChanges(ctx, page.Items, &b, fields); err != nil {
			return page, err
		}
		page.Next = id(b.Number)
	}
	for i := range page.Items {
		convert.published(&page.Items[i].PublishedPrice)
	}
	return page, nil
}

func (r *FeedReader) cursorExpired(ctx context.Context) error {
	last, err := event.LastChange(ctx, r.o.Store.Read)
	if err != nil && !errors.Is(err, event.ErrPending) {
		return err
	}
	f := fault.New(fault.Expired, "cursor_expired",
		"This change number has expired or is unknown. Read a snapshot and continue after its change number. The last change is %d.", last)
	f.Change = id(last)
	return f
}
