package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	syncItems  = 1_000
	syncUsers  = 20
	crowd      = 100
	targetSync = 2.0
)

// measureSync measures pushes of new inventories in which half of the names are known (T7). It
// alternates with hand-written SQL for the same rows. Then it repeats the same pushes, and
// finally pushes many concurrently. No provider is configured, so pricing the other half does
// not interfere.
func (b *bench) measureSync(ctx context.Context) error {
	w, err := b.fullWorld(ctx)
	if err != nil {
		return err
	}
	known, err := knownItems(ctx, w.floor)
	if err != nil {
		return err
	}
	pricing := w.server.env
	w.server.env = w.database
	if err := w.restart(ctx, nil); err != nil {
		return err
	}
	defer func() { w.server.env = pricing }()

	var took, again, floor []time.Duration
	var ratios []float64
	for n := range syncUsers + 1 {
		work := newSync(n, known)
		body, err := pushBody(work.at, work.assets)
		if err != nil {
			return err
		}
		first, err := w.timePush(ctx, work.user, body, synced{Added: syncItems, QueuedNames: syncItems / 2})
		if err != nil {
			return err
		}
		repeated, err := w.timePush(ctx, work.user, body, synced{Unchanged: syncItems})
		if err != nil {
			return err
		}
		began := time.Now()
		if err := b.engine.syncFloor(ctx, w.floor, work); err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		least := time.Since(began)
		if n == 0 {
			continue // now caches are warm
		}
		took, again, floor = append(took, first), append(again, repeated), append(floor, least)
		ratios = append(ratios, quotient(first, least))
	}
	at, err := w.timeCrowd(ctx, known)
	if err != nil {
		return err
	}
	ratio := median(ratios)
	b.results = append(b.results,
		result{
			id: "T7", what: fmt.Sprintf("sync of %s new rows over HTTP, half of the names known, median of %d", count(syncItems), syncUsers),
			ours: short(median(took)), floor: short(median(floor)), ratio: times(ratio),
			target: fmt.Sprintf("<= %.0f", targetSync), good: ratio <= targetSync,
		},
		result{id: "T7", what: "same push again: all rows unchanged", ours: short(median(again)), target: "no row written", good: true},
		result{id: "T7", what: fmt.Sprintf("%d concurrent users, total time", crowd), ours: short(at), target: "no error", good: true})
	return nil
}

// knownItems returns items that have a price.
func knownItems(ctx context.Context, db *sql.DB) (items []pricedItem, err error) {
	err = eachRow(ctx, db, `SELECT name, id, price FROM item WHERE price > 0 ORDER BY id`, func(_ int, scan func(...any) error) error {
		var i pricedItem
		defer func() { items = append(items, i) }()
		return scan(&i.name, &i.id, &i.price)
	})
	if err == nil && len(items) < syncItems/2 {
		err = errors.New("too few items have a price")
	}
	return items, err
}

// newSync returns the n-th user's inventory.
func newSync(n int, known []pricedItem) *syncWork {
	w := &syncWork{user: fmt.Sprint("sync-", n), at: time.Now()}
	for i := range syncItems {
		id := n*syncItems + i
		name := fmt.Sprintf("Souvenir Unknown | Item (%d)", id)
		if i < syncItems/2 {
			item := known[scatter(id, len(known))]
			w.known = append(w.known, item)
			name = item.name
		}
		w.assets = append(w.assets, newAsset(1_000_000_000+id, name))
	}
	return w
}

// timePush pushes an inventory. It fails if the result is not want.
func (w *world) timePush(ctx context.Context, user string, body []byte, want synced) (time.Duration, error) {
	var got synced
	began := time.Now()
	err := w.server.push(ctx, user, body, &got)
	took := time.Since(began)
	if err == nil && got != want {
		err = fmt.Errorf("push: got %+v, want %+v", got, want)
	}
	return took, err
}

// timeCrowd pushes the inventories of many new users concurrently.
func (w *world) timeCrowd(ctx context.Context, known []pricedItem) (time.Duration, error) {
	errs := make([]error, crowd)
	bodies := make([][]byte, crowd)
	for n := range crowd {
		work := newSync(syncUsers+1+n, known)
		if bodies[n], errs[n] = pushBody(work.at, work.assets); errs[n] != nil {
			return 0, errs[n]
		}
	}
	var wg sync.WaitGroup
	began := time.Now()
	for n, body := range bodies {
		wg.Go(func() {
			_, errs[n] = w.timePush(ctx, fmt.Sprint("crowd-", n), body, synced{Added: syncItems, QueuedNames: syncItems / 2})
		})
	}
	wg.Wait()
	return time.Since(began), errors.Join(errs...)
}
