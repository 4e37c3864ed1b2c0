package assay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"assay/client/go/api"
)

// Batch is a part of the change feed. Store its prices and Cursor in one transaction.
type Batch struct {
	// Reset is true for a snapshot: Prices replace all prices that you have.
	Reset  bool
	Prices []api.PublishedPrice
	// Cursor is the number of the last change that you have once Prices are stored.
	Cursor int64
}

// FollowOptions select what the prices of [Client.Follow] contain. They are parameters of both the
// snapshot and the changes.
type FollowOptions struct {
	// Fields are figures to add, separated by commas: interval, average, usedMarkets. Items of which
	// only figures changed are changes too.
	Fields *string
	// Currency of all amounts, the base currency by default. A batch is converted at the exchange
	// rates of its time. A new rate is not a change.
	Currency *string
}

const (
	pollSeconds = 30
	pollItems   = 1000
	firstPause  = time.Second // after a failed poll; doubles up to lastPause
	lastPause   = 30 * time.Second
)

// Follow reads the changes of all prices after a cursor, each exactly once and in order. It waits for
// more changes until the context ends. With the cursor 0, and when the cursor has expired, it begins
// with a snapshot. After a restart, continue a cursor with the same options.
//
// If a server cannot be reached, the batch has no prices and the error is [Temporary]: continue
// the loop to let Follow retry. After any other error, the sequence ends.
func (c *Client) Follow(ctx context.Context, since int64, o FollowOptions) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		pause, known := firstPause, since > 0
		for ctx.Err() == nil {
			read := c.snapshot
			if known {
				read = func(ctx context.Context, o FollowOptions) (Batch, error) { return c.changes(ctx, since, o) }
			}
			batch, err := read(ctx, o)
			if e, ok := errors.AsType[*Error](err); ok && e.Code == api.ProblemCodeCursorExpired && known {
				known = false
				continue
			}
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				if !yield(Batch{Cursor: since}, err) || !Temporary(err) || c.wait(ctx, pause) != nil {
					return
				}
				pause = min(2*pause, lastPause)
				continue
			}
			pause = firstPause
			if batch.Cursor == since && !batch.Reset {
				continue // nothing changed while the server waited
			}
			since, known = batch.Cursor, true
			if !yield(batch, nil) {
				return
			}
		}
	}
}

// changes returns the changes after a cursor. If there are none, the request waits up to
// pollSeconds for the first one.
func (c *Client) changes(ctx context.Context, since int64, o FollowOptions) (Batch, error) {
	got, err := c.GetPricesChangesWithResponse(ctx, &api.GetPricesChangesParams{
		Since: &since, Wait: new(int64(pollSeconds)), Limit: new(int64(pollItems)), Fields: o.Fields, Currency: o.Currency,
	})
	if err != nil {
		return Batch{}, err
	}
	page := got.JSON200
	batch := Batch{Prices: make([]api.PublishedPrice, len(page.Items))}
	for i, p := range page.Items {
		batch.Prices[i] = api.PublishedPrice{
			AppId: p.AppId, MarketHashName: p.MarketHashName, Phase: p.Phase, CurrentPrice: p.CurrentPrice, CurrentPriceDecimal: p.CurrentPriceDecimal,
			PriceStatus: p.PriceStatus, PriceUpdatedAt: p.PriceUpdatedAt, PriceCheckedAt: p.PriceCheckedAt,
			Interval: p.Interval, Average: p.Average, UsedMarkets: p.UsedMarkets,
		}
	}
	batch.Cursor, err = cursor(page.Next)
	return batch, err
}

func (c *Client) snapshot(ctx context.Context, o FollowOptions) (Batch, error) {
	got, err := c.GetPricesSnapshotJsonWithResponse(ctx, &api.GetPricesSnapshotJsonParams{Fields: o.Fields, Currency: o.Currency})
	if err != nil {
		return Batch{}, err
	}
	number, err := cursor(got.JSON200.Change)
	return Batch{Reset: true, Prices: got.JSON200.Items, Cursor: number}, err
}

func cursor(text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, &Error{Status: 200, Code: "invalid_response", Detail: fmt.Sprintf("The server sent the change number %q.", text)}
	}
	return number, nil
}
