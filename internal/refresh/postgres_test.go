package refresh_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/user"
)

// planned returns a batch with two items of a user, ready to be estimated.
func planned(t *testing.T, s *db.DB) (b *refresh.Batch, items []refresh.Item) {
	t.Helper()
	keys := []catalog.Key{{AppID: 730, Name: "A"}, {AppID: 730, Name: "B"}}
	must(t, s.InTx(t.Context(), func(tx *db.Tx) error {
		user, err := user.Ensure(tx, "u")
		if err != nil {
			return err
		}
		made, err := catalog.EnsureItems(tx, 730, keys)
		if err != nil {
			return err
		}
		if err := addRows(tx, user, []int64{made[keys[0]].ID, made[keys[1]].ID}, nil); err != nil {
			return err
		}
		job, _, err := refresh.InsertJob(tx, refresh.Job{Kind: refresh.Bulk, RequestedBy: "test"})
		if err != nil {
			return err
		}
		if _, err := refresh.StartJob(tx, job, 1, 0); err != nil {
			return err
		}
		plan, err := refresh.ReadPlan(tx, refresh.Rules{Now: tx.Now(), Forced: true})
		if err != nil {
			return err
		}
		if err := plan.Write(tx, job, 1); err != nil {
			return err
		}
		if _, err := refresh.StoreValidation(tx, job, nil, nil); err != nil {
			return err
		}
		b, err = refresh.ClaimBatch(tx, "me")
		return err
	}))
	items, err := refresh.BatchItems(t.Context(), s, *b)
	must(t, err)
	if len(items) != len(keys) {
		t.Fatalf("got %d items to estimate, want %d", len(items), len(keys))
	}
	return b, items
}

// estimatesAt returns estimates with one price for all items.
func estimatesAt(items []refresh.Item, price money.Micro) (s refresh.Estimates) {
	for _, i := range items {
		s.Items = append(s.Items, refresh.EstimatedItem{Item: i, State: refresh.ItemUpdated, Responded: true, Estimate: pricing.Priced{Price: price, Estimated: price}})
	}
	s.Counts = refresh.Counts{Updated: int64(len(items)), Changed: int64(len(items))}
	return s
}

// StoreEstimates spends most of its time on other tables than item. Syncs that copy prices
// must not wait for these writes.
func TestPostgres_SyncWaitsOnlyForTheItemWrites(t *testing.T) {
	database := dbtest.On(t, dbtest.PostgreSQL)
	s := database.Open(t, db.Options{})
	raw := database.Raw(t)
	defer func() { must(t, raw.Close()) }()
	b, items := planned(t, s)
	held, err := raw.BeginTx(t.Context(), nil)
	must(t, err)
	_, err = held.ExecContext(t.Context(), `LOCK TABLE refresh_batch_items IN SHARE MODE`)
	must(t, err)
	estimated := make(chan error, 1)
	go func() {
		estimated <- s.InTx(t.Context(), func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, estimatesAt(items, 10)); return err })
	}()
	for waits := false; !waits; {
		must(t, held.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'refresh_batch_items'::regclass)`).Scan(&waits))
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err = s.InTx(soon, func(tx *db.Tx) error {
		prices, err := catalog.LockPrices(tx, []int64{items[0].ID, items[1].ID})
		if prices[items[0].ID] != 0 {
			t.Errorf("got the prices %v, want no uncommitted price", prices)
		}
		return err
	})
	if err != nil {
		t.Errorf("sync during an estimate that has not written items: got error %v, want no wait", err)
	}
	must(t, held.Rollback())
	must(t, <-estimated)
}

// An estimate changes the quotes of an item after the background fetch has read them and
// before it writes.
func TestPostgres_ConcurrentEstimateRetriesNamedQuotes(t *testing.T) {
	s := dbtest.On(t, dbtest.PostgreSQL).Open(t, db.Options{})
	b, items := planned(t, s)
	var revs []int64
	must(t, s.InTx(t.Context(), func(tx *db.Tx) error {
		named, err := refresh.NamedItems(tx, 730, []string{"A"})
		if err != nil {
			return err
		}
		revs = append(revs, named[0].Rev)
		if len(revs) == 1 {
			must(t, s.InTx(t.Context(), func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, estimatesAt(items, 10)); return err }))
		}
		return refresh.WriteNamedQuotes(tx, named)
	}))
	if want := []int64{0, 1}; !slices.Equal(revs, want) {
		t.Errorf("got the revisions %v, want %v", revs, want)
	}
}

// oneApplied returns a PostgreSQL database with one item, whose price is applied to a row of a user.
func oneApplied(t *testing.T, price money.Micro) (f *fixture, item, userKey int64) {
	t.Helper()
	f = &fixture{&dbtest.Fixture{TB: t, Database: dbtest.On(t, dbtest.PostgreSQL), Now: dbtest.Epoch}}
	f.DB = f.Open(t, db.Options{Now: func() time.Time { return f.Now }})
	item = f.items("A")[0]
	userKey = f.own("u", item)
	job := f.run(price)
	f.openShards(job, 1)
	f.apply(job)
	f.finish(job)
	f.Now = f.Now.Add(7 * time.Hour)
	return f, item, userKey
}

// A price changes and soon returns to its old value. A transaction that applies prices to a
// range has read the price in between. So it differs from the rows, and the old one does not.
func TestPostgres_RangeDoesNotKeepAPriceThatWasReplaced(t *testing.T) {
	const price, between = 10, 20
	for name, c := range map[string]struct {
		late bool // the old price returns after the range is written, before its commit
		back func(f *fixture, item int64) (apply func())
	}{
		"items before the write": {back: priceAndItems},
		"items after the write":  {back: priceAndItems, late: true},
		"batch before the write": {back: runAndBatch},
		"batch after the write":  {back: runAndBatch, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			f, item, u := oneApplied(t, price)
			f.Tx(func(tx *db.Tx) error { return setPrice(tx, item, between) })
			returned := make(chan struct{})
			start := sync.OnceFunc(func() {
				apply := c.back(f, item)
				go func() {
					defer close(returned)
					apply()
				}()
				giveHeadstart(returned) // it may wait for the range
			})
			f.Tx(func(tx *db.Tx) error {
				var read money.Micro
				if err := tx.ExecPostgres(refresh.FailFast); err != nil {
					return err
				}
				if err := tx.QueryRow(`SELECT price FROM item WHERE id = $1`, item).Scan(&read); err != nil {
					return err
				}
				if !c.late {
					start()
				}
				err := inventory.ApplyToRows(tx, 0, 100, false, false)
				start()
				return err
			})
			<-returned
			f.Is("price and values", fmt.Sprint(f.item("A").Price, f.values(u)), fmt.Sprint(money.Micro(price), []money.Micro{price}))
		})
	}
}

// A batch applies a price that returns to its old value before the batch has committed.
func TestPostgres_BatchDoesNotApplyAPriceThatWasReplaced(t *testing.T) {
	const price, between = 10, 20
	f, item, u := oneApplied(t, price)
	job := f.run(between)
	returned := make(chan struct{})
	f.Tx(func(tx *db.Tx) error {
		n, err := refresh.ApplyBatch(tx, job, 0)
		f.Is("rows of the batch", n, int64(1))
		go func() {
			defer close(returned)
			f.Try(func(tx *db.Tx) error { return setPrice(tx, item, price) })
			f.Try(func(tx *db.Tx) error { return inventory.ApplyToRows(tx, 0, 100, false, true) })
		}()
		giveHeadstart(returned) // it waits for the batch
		return err
	})
	<-returned
	f.Is("price and values", fmt.Sprint(f.item("A").Price, f.values(u)), fmt.Sprint(money.Micro(price), []money.Micro{price}))
}

func setPrice(tx *db.Tx, item int64, price money.Micro) error {
	_, err := tx.Exec(`UPDATE item SET price = $2 WHERE id = $1`, item, int64(price))
	return err
}

// priceAndItems changes a price to 10 and applies it in one transaction, as accepting a price does.
func priceAndItems(f *fixture, item int64) (apply func()) {
	return func() {
		f.Try(func(tx *db.Tx) error {
			if err := setPrice(tx, item, 10); err != nil {
				return err
			}
			return inventory.ApplyToItems(tx, []int64{item})
		})
	}
}

// runAndBatch runs a job with the price 10, and applies its batch.
func runAndBatch(f *fixture, _ int64) (apply func()) {
	job := f.run(10)
	return func() {
		f.Try(func(tx *db.Tx) error { _, err := refresh.ApplyBatch(tx, job, 0); return err })
	}
}
