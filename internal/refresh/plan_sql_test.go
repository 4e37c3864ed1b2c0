package refresh_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/catalog/catalogtest"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/refresh"
	"assay/internal/view"
)

func TestReadPlan_KeepsNamesByteForByte(t *testing.T) {
	each(t, func(f *fixture) {
		names := catalogtest.Names()
		f.own("u", f.items(names...)...)
		f.plan(refresh.Bulk, 1, unit("s", ""))
		var planned []string
		f.Tx(func(tx *db.Tx) error {
			list, err := refresh.DueNamesOf(tx, 1, app)
			for _, n := range list {
				planned = append(planned, n.Name)
			}
			return err
		})
		want := slices.Clone(names)
		slices.SortFunc(want, func(a, b string) int {
			return cmp.Or(cmp.Compare(catalog.Bucket(a), catalog.Bucket(b)), cmp.Compare(a, b))
		})
		if !slices.Equal(planned, want) {
			f.Errorf("got the plan %q\n   want %q", planned, want)
		}
		u := unit("t", "")
		u.JobID, u.Names = 1, names
		f.Tx(func(tx *db.Tx) error { return refresh.InsertUnits(tx, []refresh.FetchUnit{u}) })
		if got := f.claim("t").Names; !slices.Equal(got, names) {
			f.Errorf("got a unit with %q\n   want %q", got, names)
		}
	})
}

func TestReadPlan_CountsWhatIsDue(t *testing.T) {
	each(t, func(f *fixture) {
		ids := f.items("fresh", "pause", "unknown", "old", "unowned", "future")
		f.own("u", ids[0], ids[1], ids[2], ids[3], ids[5])
		f.own("v", ids[0], ids[0], ids[3])
		id := f.plan(refresh.Bulk, 1)
		f.storeValidation(id)
		b := f.claimBatch()
		s := f.estimates(b, 10)
		for i := range s.Items {
			switch s.Items[i].Key.Name {
			case "pause":
				s.Items[i].RetryAt = f.Now.Add(72 * time.Hour)
				s.Items[i].NoSalesSince = f.Now
			case "unknown":
				s.Items[i].Estimate.Price, s.Items[i].RetryAt = 0, f.Now.Add(72*time.Hour)
			}
		}
		f.Tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
		f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
		f.finish(id)
		// All prices are now seven hours old. The item without a price is due at any age.
		f.Now = f.Now.Add(7 * time.Hour)
		f.Is("plan of the first run", dueOf(f, f.rules()), "due 4 ttl 0 noSales 1 names 4")

		r := f.rules()
		r.TTL = 8 * time.Hour // 95 % of the TTL is 7.6 hours
		f.Is("plan within the TTL", dueOf(f, r), "due 1 ttl 3 noSales 1 names 1")
		r.TTL = 7 * time.Hour * 100 / 95
		f.Is("plan at 95 % of the TTL", dueOf(f, r), "due 4 ttl 0 noSales 1 names 4")
		r.TTL += 2 * time.Microsecond
		f.Is("plan just below 95 % of the TTL", dueOf(f, r), "due 1 ttl 3 noSales 1 names 1")
		r.Forced = true
		f.Is("forced plan", dueOf(f, r), "due 5 ttl 0 noSales 0 names 5")
		r.ScopeAll = true
		f.Is("forced plan of all items", dueOf(f, r), "due 6 ttl 0 noSales 0 names 6")
		r = f.rules()
		r.Now = f.Now.Add(-400 * 24 * time.Hour)
		f.Is("plan by a clock that was set back", dueOf(f, r), "due 5 ttl 0 noSales 0 names 5")

		f.plan(refresh.Bulk, 8)
		j := f.job(id + 1)
		f.Is("counts of the job", j.Counts, refresh.Counts{Total: 5, Pending: 4, SkippedNoSales: 1})
		f.Is("start of the job", j.StartedAt, f.Now)
		f.Is("number of batches", j.Batches, 8)
		items, err := view.JobItems(f.Context(), f.DB, j.ID, "", -1, 0, 100)
		f.Must(err)
		f.Is("number of items", len(items), 5)
		seen := map[string]bool{}
		for _, i := range items {
			f.Is("batch of "+i.Key.Name, i.Batch, int64(catalog.Bucket(i.Key.Name)*8/catalog.Buckets))
			seen[i.Key.Name] = true
			if i.Key.Name == "pause" {
				f.Is("state and reason of the paused item", i.State+" "+i.Reason, "skipped noSales")
			} else {
				f.Is("state of the item", i.State, refresh.ItemPending)
			}
		}
		f.Is("number of names", len(seen), 5)
		page, err := view.JobItems(f.Context(), f.DB, j.ID, refresh.ItemPending, items[0].Batch, items[0].ItemID, 2)
		f.Must(err)
		f.Is("items of a page", len(page), 2)
		started := true
		f.Tx(func(tx *db.Tx) (err error) {
			started, err = refresh.StartJob(tx, j.ID, 8, 0)
			return err
		})
		f.Is("the job was started twice", started, false)
	})
}

func TestReadDue_CountsNamesWithPhasesOnce(t *testing.T) {
	each(t, func(f *fixture) {
		f.items("plain", "both")
		f.Tx(func(tx *db.Tx) error {
			_, err := catalog.EnsureItems(tx, app, []catalog.Key{
				{AppID: app, Name: "both", Phase: "Ruby"}, {AppID: app, Name: "phased", Phase: "Ruby"}, {AppID: app, Name: "phased", Phase: "Sapphire"},
			})
			return err
		})
		r := f.rules()
		r.ScopeAll = true
		f.Is("plan", dueOf(f, r), "due 5 ttl 0 noSales 0 names 3")
	})
}

// dueOf returns the items that a plan would include, counted in and outside a transaction.
func dueOf(f *fixture, r refresh.Rules) string {
	f.Helper()
	outside, err := refresh.ReadDue(f.Context(), f.DB, r)
	f.Must(err)
	f.Tx(func(tx *db.Tx) error {
		inside, err := refresh.ReadPlan(tx, r)
		f.Is("counts of the plan in the transaction and before", refresh.Due{Due: inside.Due[app], TTL: inside.TTL, NoSales: inside.NoSales}, outside[app].Due)
		return err
	})
	d := outside[app]
	return fmt.Sprintf("due %d ttl %d noSales %d names %d", d.Due.Due, d.TTL, d.NoSales, d.Names)
}

func TestReadPlan_RetriesTheFailedItemsOfAJob(t *testing.T) {
	each(t, func(f *fixture) {
		ids := f.items("A", "B", "C")
		f.own("u", ids...)
		id := f.plan(refresh.Bulk, 1)
		f.storeValidation(id)
		b := f.claimBatch()
		s := f.estimates(b, 10)
		s.Items[1].State, s.Items[1].Responded, s.Items[1].Error = refresh.ItemFailed, false, "why"
		s.Counts = refresh.Counts{Updated: 2, Failed: 1, Changed: 2}
		f.Tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
		f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
		f.Is("state of the job", f.finish(id), refresh.Finished)
		r := f.rules()
		r.RetryOf = id
		f.Is("plan of the next run", dueOf(f, r), "due 1 ttl 0 noSales 0 names 1")
		causes, _, err := view.Causes(f.Context(), f.DB, []int64{id}, 0, 20)
		f.Must(err)
		f.Is("causes of the failures", fmt.Sprint(causes), fmt.Sprint([]view.FailureReason{{Cause: "why", Count: 1, SampleNames: []string{s.Items[1].Key.Name}, Items: []catalog.Key{s.Items[1].Key}}}))
		f.Is("failures of the item", f.item(s.Items[1].Key.Name).Failures, int64(1))
	})
}

func TestQueueMissing_QueuesAnUnknownPriceOnce(t *testing.T) {
	each(t, func(f *fixture) {
		ids := f.items("A", "B", "C")
		f.own("u", ids[0])
		f.finish(f.run(10))
		queue := func(items ...int64) (n int64) {
			f.Tx(func(tx *db.Tx) (err error) {
				n, _, err = catalog.QueueMissing(tx, items)
				return err
			})
			return n
		}
		f.Is("entries queued first", queue(ids[1:]...), int64(2))
		f.Is("entries queued again", queue(ids[1:]...), int64(0))
		due, err := refresh.HasDueMissing(f.Context(), f.DB, f.rules())
		f.Must(err)
		f.Is("an entry is due", due, true)
		q, err := view.ReadMissingQueue(f.Context(), f.DB, f.Now)
		f.Must(err)
		f.Is("state of the queue", q, view.MissingStatus{PendingItems: 2})
		i := f.item("B")
		f.Is("item is queued", i.Queued, true)

		f.Now = f.Now.Add(time.Second)
		f.plan(refresh.Missing, 1)
		q, err = view.ReadMissingQueue(f.Context(), f.DB, f.Now)
		f.Must(err)
		f.Is("state of the queue while a job runs", q, view.MissingStatus{Running: true, PendingItems: 2, OldestSeconds: 1})
		f.Is("entries queued while a job runs", queue(ids[1:]...), int64(0))
		due, err = refresh.HasDueMissing(f.Context(), f.DB, f.rules())
		f.Must(err)
		f.Is("an entry is due while a job runs", due, false)
	})
}

func TestStoreEstimates_MissingPriceDoublesItsPause(t *testing.T) {
	each(t, func(f *fixture) {
		ids := f.items("found", "not found", "failed")
		f.Tx(func(tx *db.Tx) error { _, _, err := catalog.QueueMissing(tx, ids); return err })
		waits := []int{1, 2, 4, 8, 16, 32, 64, 72, 72}
		for round, hours := range waits {
			id := f.plan(refresh.Missing, 1)
			f.storeValidation(id)
			b := f.claimBatch()
			s := f.estimates(b, 0)
			for i := range s.Items {
				switch s.Items[i].Key.Name {
				case "found":
					s.Items[i].Estimate.Price = 10
				case "not found":
					s.Items[i].State = refresh.ItemNoQuote
				default:
					s.Items[i].State, s.Items[i].Responded = refresh.ItemFailed, false
				}
			}
			f.Tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
			f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
			f.finish(id)
			f.Is("the item with a price is queued", f.item("found").Queued, false)
			f.Now = f.Now.Add(time.Hour)
			q, err := view.ReadMissingQueue(f.Context(), f.DB, f.Now)
			f.Must(err)
			want := int64(1) // a name that failed is due after the first pause
			if round == 0 {
				want = 2
			}
			f.Is(fmt.Sprint("due after an hour of round ", round), q.PendingItems, want)
			f.Now = f.Now.Add(time.Duration(hours-1) * time.Hour)
			q, err = view.ReadMissingQueue(f.Context(), f.DB, f.Now)
			f.Must(err)
			f.Is(fmt.Sprint("due after the pause of round ", round), q.PendingItems, int64(2))
		}
	})
}

// SQLite must not read the items of a job again for each item of the game.
func TestDueNames_AreLookedUpByID(t *testing.T) {
	d := dbtest.On(t, dbtest.SQLite)
	raw := d.Filled(t)
	for _, c := range []struct {
		query string
		args  []any
	}{{refresh.DueNamesSQL, []any{1, 730}}, {refresh.CandidatesSQL, []any{1, "steam", true}}} {
		const byID = "SEARCH i USING INTEGER PRIMARY KEY (rowid=?)"
		if plan := d.Explain(t, raw, c.query, c.args...); !strings.Contains(plan, byID) {
			t.Errorf("plan of %s: got\n%s, want %s", c.query, plan, byID)
		}
	}
}
