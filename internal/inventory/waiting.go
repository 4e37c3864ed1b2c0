package inventory

import (
	"context"
	"fmt"
	"time"

	"assay/internal/db"
	"assay/internal/event"
)

const (
	// maxWaiting is how long an inventory waits for the first prices of its items. The event is
	// then sent without them, because the providers may be down for longer.
	maxWaiting = 24 * time.Hour
	// waitingAtOnce is how many waiting inventories one transaction checks.
	waitingAtOnce = 100
)

// waiting is an inventory with rows that wait for the first price of their item.
type waiting struct {
	user      int64
	app       int32
	contextID string
	since     time.Time // time of the first sync that left such rows
	item      int64     // one of the items that it waits for
}

// awaitPrices starts or ends the wait of an inventory after a sync. unpriced are its items
// without a price, which the sync has queued. The inventory waits for an item until the markets
// have answered the first attempt to price it.
func awaitPrices(tx *db.Tx, user int64, app int32, contextID string, unpriced []int64) error {
	item, err := unansweredItem(tx, unpriced)
	if err != nil {
		return fmt.Errorf("unanswered item: %w", err)
	}
	w := waiting{user: user, app: app, contextID: contextID, since: tx.Now(), item: item}
	return w.begin(tx)
}

// awaitMoved is awaitPrices for the inventories of rows that changed their item.
func awaitMoved(tx *db.Tx, rows []int64) error {
	places, err := placesOf(tx, rows)
	if err != nil {
		return fmt.Errorf("inventories of rows: %w", err)
	}
	for _, w := range places {
		w.since = tx.Now()
		if w.item, err = awaitedItem(tx, &w); err != nil {
			return fmt.Errorf("awaited item: %w", err)
		}
		if err := w.begin(tx); err != nil {
			return err
		}
	}
	return nil
}

// begin stores that an inventory waits for w.item, unless it already waits. If w.item is 0,
// begin calls end for an earlier wait, because the last rows without a price may have been
// removed or changed.
func (w *waiting) begin(tx *db.Tx) error {
	item := w.item
	known, err := lockWaiting(tx, w)
	switch {
	case err != nil:
		return fmt.Errorf("waiting inventory: %w", err)
	case known && item == 0:
		return w.end(tx)
	case !known && item != 0:
		return addWaiting(tx, w)
	}
	return nil
}

// end deletes a locked wait and adds its event, if no row still waits for a price, or if the
// wait has lasted for maxWaiting.
func (w *waiting) end(tx *db.Tx) error {
	item, err := awaitedItem(tx, w)
	if err != nil {
		return fmt.Errorf("awaited item: %w", err)
	}
	if item != 0 && tx.Now().Sub(w.since) < maxWaiting {
		if item == w.item {
			return nil
		}
		return setAwaited(tx, w, item)
	}
	e := event.InventoryPriced{AppID: w.app, ContextID: w.contextID, Since: w.since}
	if e.UserID, e.Currency, err = names(tx, w.user); err != nil {
		return fmt.Errorf("user and currency: %w", err)
	}
	total, err := totalOf(tx, w)
	if err != nil {
		return fmt.Errorf("total: %w", err)
	}
	e.Rows, e.UnpricedRows, e.TotalValue, e.TotalValueDecimal = total.Assets, total.Unpriced, total.Value, total.Value.String()
	if err := removeWaiting(tx, w); err != nil {
		return err
	}
	return event.Add(tx, e)
}

// AnnouncePriced writes the event inventory.priced for each waiting inventory in which every row
// has a price or a name that no market quotes. It also writes the event after a wait of
// maxWaiting. Call it after prices were applied to all rows. Each event is written in the
// transaction that ends the wait, so AnnouncePriced may be interrupted, repeated, and called by
// several processes at the same time. If no inventory waits, it only reads one empty table.
func AnnouncePriced(ctx context.Context, s *db.DB) error {
	for last, more := (waiting{}), true; more; {
		due, err := answered(ctx, s, &last, waitingAtOnce)
		if err != nil || len(due) == 0 {
			return err
		}
		last, more = due[len(due)-1], len(due) == waitingAtOnce
		err = s.InTx(ctx, func(tx *db.Tx) error {
			if err := tx.ByIndex(); err != nil {
				return err
			}
			for _, w := range due { // in order of the key, so that two processes cannot deadlock
				known, err := lockWaiting(tx, &w)
				if err == nil && known {
					err = w.end(tx)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
