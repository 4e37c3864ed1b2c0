// Package storetest is the suite that a store passes on every database: what
// its methods promise to those who consume them, without regard to the SQL
// behind them.
package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/user"
	"assay/internal/view"
)

// Open makes an empty store that tb closes. It sets in o what its database
// needs.
type Open func(tb testing.TB, o db.Options) *db.DB

// Run runs the suite.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*fixture){
		"names are kept byte for byte":                     namesAreKept,
		"items are listed in the order of their bytes":     itemsAreListed,
		"prices are looked up by key":                      pricesAreLookedUp,
		"prices are read by bucket":                        pricesByBucket,
		"a commit that changes prices is counted":          priceVersions,
		"inventory rows are listed and summed up":          rowsAreListed,
		"an unknown price is queued once":                  missingIsQueuedOnce,
		"one job of a kind lives":                          oneJobLives,
		"a plan counts what is due":                        planCounts,
		"a plan of the failed items":                       planRetries,
		"a job goes through its stages":                    stages,
		"a cancelled job keeps what is estimated":          cancels,
		"ended jobs are removed":                           retains,
		"a unit is claimed once":                           unitsAreClaimedOnce,
		"a unit that was taken away cannot be ended":       lateEndsAreRefused,
		"a unit is ended once, however often it is said":   endingTwice,
		"a unit is put off":                                unitsArePutOff,
		"requests are counted before they are sent":        requestsAreReserved,
		"a unit is divided":                                unitsAreDivided,
		"a paused provider is not asked":                   pausedProviders,
		"a provider that is not configured is forgone":     forgoneProviders,
		"what is in nobody's hands is given back":          reclaims,
		"instances are known while they live":              instancesAreKnown,
		"what a dead instance had claimed is given back":   deadInstances,
		"a living instance keeps what it has claimed":      livingInstances,
		"claims of nobody are found":                       claimsOfNobody,
		"a restart forgets all instances":                  restartForgets,
		"answers are read by bucket":                       blobsByBucket,
		"answers that nobody needs are dropped":            blobsAreDropped,
		"a file is judged":                                 judges,
		"what became of markets outlives their jobs":       marketStates,
		"a batch is claimed when its answers are there":    batchesAreClaimed,
		"a batch is estimated once":                        batchesAreEstimatedOnce,
		"an item that another job estimated is a conflict": conflicts,
		"estimating writes what it was told":               estimatesAreWritten,
		"what is not found waits longer each time":         missingWaits,
		"prices are applied by range":                      appliesByRange,
		"prices are applied by batch":                      appliesByBatch,
		"a held price is accepted":                         acceptsItems,
		"the state of providers is kept":                   providerStates,
		"a host that was resumed is believed no more":      aResumedHostIsBelievedNoMore,
		"an event and what made it are kept together":      eventsAreWhole,
		"jobs tell of their end":                           jobsTellOfTheirEnd,
		"a quarantine tells once":                          quarantinesTellOnce,
		"work is counted":                                  workIsCounted,
		"the oldest work is of any queue":                  oldestWork,
		"failures are told with different names":           causes,
		"all failures are counted by their causes":         causesOfAll,
		"levels are stored once and read by game":          levels,
		"another currency is refused":                      otherCurrency,
		"units are claimed once by many workers":           claimsRace,
		"batches are claimed once by many workers":         batchClaimsRace,
		"a dying range leaves its shard":                   aDyingRangeLeavesItsShard,
		"one of many callers makes a job":                  jobsRace,
		"an estimate beside syncs leaves no stale value":   syncAndEstimateRace,
		"an estimate waits for a sync that has the price":  estimateWaitsForASync,
		"large lists are written in one call":              largeLists,
	} {
		t.Run(name, func(t *testing.T) {
			f := &fixture{TB: t, now: dbtest.Epoch}
			f.open = func(o db.Options) *db.DB { return open(t, o) }
			f.s = open(t, db.Options{Now: func() time.Time { return f.now }, Faults: func(point string) error {
				if f.faults == nil {
					return nil
				}
				return f.faults(point)
			}})
			test(f)
		})
	}
}

// app is the game of all items here.
const app = catalog.CS2

// fixture is an empty store with a clock.
type fixture struct {
	testing.TB
	s      *db.DB
	open   func(db.Options) *db.DB
	now    time.Time
	faults func(point string) error
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// tx runs fn in a transaction that must succeed.
func (f *fixture) tx(fn func(tx *db.Tx) error) {
	f.Helper()
	f.must(f.s.InTx(f.Context(), fn))
}

// items makes items without a phase and returns their ids.
func (f *fixture) items(names ...string) []int64 {
	f.Helper()
	ids := make([]int64, len(names))
	keys := make([]catalog.Key, len(names))
	for i, n := range names {
		keys[i] = key(n)
	}
	f.tx(func(tx *db.Tx) error {
		items, err := catalog.EnsureItems(tx, app, keys)
		for i, k := range keys {
			ids[i] = items[k].ID
		}
		return err
	})
	return ids
}

func key(name string) catalog.Key { return catalog.Key{AppID: app, Name: name} }

// own gives a user one asset of each item; the asset's id is its place.
func (f *fixture) own(userID string, items ...int64) (userKey int64) {
	f.Helper()
	f.tx(func(tx *db.Tx) (err error) {
		if userKey, err = user.Ensure(tx, userID); err != nil {
			return err
		}
		prices, err := catalog.HoldPrices(tx, items)
		if err != nil {
			return err
		}
		return AddRows(tx, userKey, items, prices)
	})
	return userKey
}

// AddRows inserts one inventory row of each item, with its price.
func AddRows(tx *db.Tx, userKey int64, items []int64, prices map[int64]money.Micro) error {
	for i, id := range items {
		if _, err := tx.Exec(`INSERT INTO inventory (user_key, app_id, item_id, amount, context_id, asset_id, class_id, instance_id, inspect, tradable, marketable, value)
			VALUES ($1, $2, $3, 1, '2', $4, '', '', '', TRUE, TRUE, nullif($5, 0))`, userKey, app, id, fmt.Sprint(i), int64(prices[id])); err != nil {
			return err
		}
	}
	return nil
}

func assetID(i int) string { return string(rune('a' + i)) }

// rules are those of a bulk job now.
func (f *fixture) rules() refresh.Rules {
	return refresh.Rules{Now: f.now, TTL: 6 * time.Hour, NoSalesRetry: 72 * time.Hour}
}

// plan starts a job over what is in inventories, with units and batches.
func (f *fixture) plan(kind refresh.Kind, batches int, units ...refresh.Unit) int64 {
	f.Helper()
	r := f.rules()
	if kind == refresh.Missing {
		r.Missing, r.Limit = true, 1000
	}
	var id int64
	f.tx(func(tx *db.Tx) (err error) {
		var made bool
		if id, made, err = refresh.InsertJob(tx, refresh.Job{Kind: kind, RequestedBy: "test"}); err != nil {
			return err
		}
		if !made {
			return errors.New("a job of the kind is live")
		}
		if _, err := refresh.StartJob(tx, id, batches, 0); err != nil {
			return err
		}
		if err := refresh.PlanItems(tx, id, r, batches); err != nil {
			return err
		}
		for i := range units {
			units[i].JobID = id
		}
		return refresh.InsertUnits(tx, units)
	})
	return id
}

// unit is a file of a provider that all batches wait for.
func unit(provider, file string) refresh.Unit {
	return refresh.Unit{Provider: provider, AppID: app, File: file, BatchTo: catalog.Buckets, State: refresh.UnitPending}
}

// claim claims a unit of a provider, or nil.
func (f *fixture) claim(provider string) (u *refresh.Unit) {
	f.Helper()
	f.tx(func(tx *db.Tx) (err error) {
		u, err = refresh.ClaimUnit(tx, refresh.Claim{Provider: provider, Owner: "me"})
		return err
	})
	return u
}

// fetch claims a unit of a provider and ends it with blobs.
func (f *fixture) fetch(provider string, blobs ...refresh.Blob) refresh.Unit {
	f.Helper()
	u := f.claim(provider)
	if u == nil {
		f.Fatalf("no unit of %s to be claimed", provider)
	}
	u.State, u.FetchedAt, u.Requests, u.Bytes = refresh.UnitDone, f.now, 1, 100
	f.tx(func(tx *db.Tx) error {
		ended, _, err := refresh.EndUnit(tx, *u, nil, blobs)
		f.is("ended", ended, true)
		return err
	})
	return *u
}

// storeVerdict lets a job go on to estimate.
func (f *fixture) storeVerdict(job int64, verdicts ...refresh.Verdict) {
	f.Helper()
	f.tx(func(tx *db.Tx) error {
		_, err := refresh.StoreValidation(tx, job, verdicts, nil)
		return err
	})
}

// claimBatch claims a batch, or nil.
func (f *fixture) claimBatch() (b *refresh.Batch) {
	f.Helper()
	f.tx(func(tx *db.Tx) (err error) {
		b, err = refresh.ClaimBatch(tx, "me")
		return err
	})
	return b
}

// estimate estimates a batch, pricing its items.
func (f *fixture) estimate(b *refresh.Batch, price money.Micro) {
	f.Helper()
	s := f.estimates(b, price)
	f.tx(func(tx *db.Tx) error {
		done, err := refresh.StoreEstimates(tx, *b, s)
		f.is("estimated", done, true)
		return err
	})
}

// estimates prices the items of a batch.
func (f *fixture) estimates(b *refresh.Batch, price money.Micro) refresh.Estimates {
	f.Helper()
	items, err := refresh.BatchItems(f.Context(), f.s, *b)
	f.must(err)
	s := refresh.Estimates{MissingRetry: time.Hour}
	for _, i := range items {
		out := refresh.EstimatedItem{
			Item: i, State: refresh.ItemUpdated, Answered: true, AsOf: f.now, QuotedAt: f.now,
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

// run prices all items in inventories in a job of one file, up to its apply.
func (f *fixture) run(price money.Micro) int64 {
	f.Helper()
	id := f.plan(refresh.Bulk, 1, unit("s", "f"))
	f.fetch("s")
	f.storeVerdict(id)
	if b := f.claimBatch(); b != nil {
		f.estimate(b, price)
	}
	f.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
	return id
}

// finish ends a job that applies its prices.
func (f *fixture) finish(id int64) (state refresh.State) {
	f.Helper()
	f.tx(func(tx *db.Tx) (err error) {
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
	j, err := refresh.ReadJob(f.Context(), f.s, id)
	f.must(err)
	return j
}

func (f *fixture) item(name string) view.StoredItem {
	f.Helper()
	i, err := view.ReadItem(f.Context(), f.s, key(name))
	f.must(err)
	if i == nil {
		f.Fatalf("there is no item %q", name)
	}
	return *i
}

// values returns the values of a user's rows in their order.
func (f *fixture) values(user int64) []money.Micro {
	f.Helper()
	rows, err := view.ReadInventory(f.Context(), f.s, user, 0, 0, 1<<20)
	f.must(err)
	var out []money.Micro
	for _, r := range rows {
		out = append(out, r.Value)
	}
	return out
}

// is holds a value against what is wanted.
func (f *fixture) is(what string, got, want any) {
	f.Helper()
	if !reflect.DeepEqual(got, want) {
		f.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Takes is dbtest.Takes.
func Takes(nth int) bool { return dbtest.Takes(nth) }
