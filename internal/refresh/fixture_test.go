package refresh_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/catalog/catalogtest"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/user"
	"assay/internal/view"
)

// app is the game of all items in a fixture.
const app = catalog.CS2

// fixture is an empty database for tests that run the SQL of a refresh step by step.
type fixture struct{ *dbtest.Fixture }

func each(t *testing.T, test func(f *fixture)) {
	t.Helper()
	dbtest.Each(t, func(f *dbtest.Fixture) { test(&fixture{f}) })
}

// items inserts items without a phase and returns their ids.
func (f *fixture) items(names ...string) []int64 {
	f.Helper()
	return catalogtest.Items(f.Fixture, app, names...)
}

func key(name string) catalog.Key { return catalog.Key{AppID: app, Name: name} }

// own gives a user one asset of each item, in order.
func (f *fixture) own(userID string, items ...int64) (userKey int64) {
	f.Helper()
	f.Tx(func(tx *db.Tx) (err error) {
		if userKey, err = user.Ensure(tx, userID); err != nil {
			return err
		}
		prices, err := catalog.LockPrices(tx, items)
		if err != nil {
			return err
		}
		return addRows(tx, userKey, items, prices)
	})
	return userKey
}

// addRows inserts one inventory row for each item, with the price of the item as its value.
func addRows(tx *db.Tx, userKey int64, items []int64, prices map[int64]money.Micro) error {
	for i, id := range items {
		if _, err := tx.Exec(`INSERT INTO inventory (user_key, app_id, item_id, amount, context_id, asset_id, class_id, instance_id, inspect, tradable, marketable, value)
			VALUES ($1, $2, $3, 1, '2', $4, '', '', '', TRUE, TRUE, nullif($5, 0))`, userKey, app, id, fmt.Sprint(i), int64(prices[id])); err != nil {
			return err
		}
	}
	return nil
}

// rules returns the rules of a bulk job that is planned now.
func (f *fixture) rules() refresh.Rules {
	return refresh.Rules{Now: f.Now, TTL: 6 * time.Hour, NoSalesRetry: 72 * time.Hour}
}

// plan starts and plans a job for the items in inventories.
func (f *fixture) plan(kind refresh.Kind, batches int, units ...refresh.FetchUnit) int64 {
	f.Helper()
	r := f.rules()
	if kind == refresh.Missing {
		r.Missing, r.Limit = true, 1000
	}
	var id int64
	f.Tx(func(tx *db.Tx) (err error) {
		var made bool
		if id, made, err = refresh.InsertJob(tx, refresh.Job{Kind: kind, RequestedBy: "test"}); err != nil {
			return err
		}
		if !made {
			return errors.New("a job of this kind is live")
		}
		if _, err := refresh.StartJob(tx, id, batches, 0); err != nil {
			return err
		}
		items, err := refresh.ReadPlan(tx, r)
		if err != nil {
			return err
		}
		if err := items.Write(tx, id, batches); err != nil {
			return err
		}
		for i := range units {
			units[i].JobID = id
		}
		return refresh.InsertUnits(tx, units)
	})
	return id
}

// unit returns a file unit that all batches wait for.
func unit(provider, file string) refresh.FetchUnit {
	return refresh.FetchUnit{Provider: provider, AppID: app, File: file, BatchTo: catalog.Buckets, State: refresh.UnitPending}
}

// claim claims a unit of a provider. It returns nil if no unit can be claimed.
func (f *fixture) claim(provider string) (u *refresh.FetchUnit) {
	f.Helper()
	f.Tx(func(tx *db.Tx) (err error) {
		u, err = refresh.ClaimUnit(tx, refresh.Claim{Provider: provider, Owner: "me"})
		return err
	})
	return u
}

// fetch claims a unit of a provider and ends it with blobs.
func (f *fixture) fetch(provider string, blobs ...refresh.Blob) refresh.FetchUnit {
	f.Helper()
	u := f.claim(provider)
	if u == nil {
		f.Fatalf("got no unit of %s to claim, want one", provider)
	}
	u.State, u.FetchedAt, u.Requests, u.Bytes = refresh.UnitDone, f.Now, 1, 100
	f.Tx(func(tx *db.Tx) error {
		ended, _, err := refresh.EndUnit(tx, *u, nil, blobs)
		f.Is("ended", ended, true)
		return err
	})
	return *u
}

// storeValidation moves a job on to its estimate stage.
func (f *fixture) storeValidation(job int64, results ...refresh.ValidationResult) {
	f.Helper()
	f.Tx(func(tx *db.Tx) error {
		_, err := refresh.StoreValidation(tx, job, results, nil)
		return err
	})
}

// claimBatch claims a batch. It returns nil if no batch can be claimed.
func (f *fixture) claimBatch() (b *refresh.Batch) {
	f.Helper()
	f.Tx(func(tx *db.Tx) (err error) {
		b, err = refresh.ClaimBatch(tx, "me")
		return err
	})
	return b
}

// estimate stores the same price for all items of a batch.
func (f *fixture) estimate(b *refresh.Batch, price money.Micro) {
	f.Helper()
	s := f.estimates(b, price)
	f.Tx(func(tx *db.Tx) error {
		done, err := refresh.StoreEstimates(tx, *b, s)
		f.Is("estimated", done, true)
		return err
	})
}

// estimates returns estimates that give all items of a batch the same price.
func (f *fixture) estimates(b *refresh.Batch, price money.Micro) refresh.Estimates {
	f.Helper()
	items, err := refresh.BatchItems(f.Context(), f.DB, *b)
	f.Must(err)
	s := refresh.Estimates{MissingRetry: time.Hour}
	for _, i := range items {
		out := refresh.EstimatedItem{
			Item: i, State: refresh.ItemUpdated, Responded: true, AsOf: f.Now, QuotedAt: f.Now,
			Estimate: pricing.Priced{Price: price, Estimated: price, Average: price, Markets: 1, UsedMarkets: 1},
		}
		s.Counts.Updated++
		if out.Changed() {
			s.Counts.Changed++
		}
		s.Items = append(s.Items, out)
	}
	return s
}

// run runs a job with one file up to its apply stage. The job prices all items in inventories.
func (f *fixture) run(price money.Micro) int64 {
	f.Helper()
	id := f.plan(refresh.Bulk, 1, unit("s", "f"))
	f.fetch("s")
	f.storeValidation(id)
	if b := f.claimBatch(); b != nil {
		f.estimate(b, price)
	}
	f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
	return id
}

// finish applies the prices of a job and ends it.
func (f *fixture) finish(id int64) (state refresh.State) {
	f.Helper()
	f.Tx(func(tx *db.Tx) (err error) {
		end, err := refresh.FinishJob(tx, id, nil)
		if end != nil {
			state = end.State
		}
		return err
	})
	return state
}

func (f *fixture) job(id int64) refresh.Job {
	f.Helper()
	j, err := refresh.ReadJob(f.Context(), f.DB, id)
	f.Must(err)
	return j
}

func (f *fixture) item(name string) view.StoredItem {
	f.Helper()
	i, err := view.ReadItem(f.Context(), f.DB, key(name))
	f.Must(err)
	if i == nil {
		f.Fatalf("got no item %q, want one", name)
	}
	return *i
}

// values returns the values of a user's rows in order.
func (f *fixture) values(user int64) []money.Micro {
	f.Helper()
	rows, err := view.ReadInventory(f.Context(), f.DB, user, 0, 0, 1<<20)
	f.Must(err)
	var out []money.Micro
	for _, r := range rows {
		out = append(out, r.Value)
	}
	return out
}

// market returns the id of a market.
func (f *fixture) market(provider, market string) (id int64) {
	f.Helper()
	name := refresh.MarketName{Provider: provider, Key: market, Title: market}
	f.Tx(func(tx *db.Tx) error {
		ids, err := refresh.MarketIDs(tx, []refresh.MarketName{name})
		id = ids[name]
		return err
	})
	return id
}

// missingIn inserts an item within a transaction.
func (f *fixture) missingIn(tx *db.Tx, name string) []int64 {
	f.Helper()
	items, err := catalog.EnsureItems(tx, app, []catalog.Key{key(name)})
	f.Must(err)
	return []int64{items[key(name)].ID}
}

// inBackground makes the units of a file units of the background fetch.
func (f *fixture) inBackground(file string) {
	f.Helper()
	f.Tx(func(tx *db.Tx) error {
		_, err := tx.Exec(`UPDATE fetch_unit SET detached = `+refresh.DetachedBackgroundSQL+` WHERE file = $1`, file)
		return err
	})
}
