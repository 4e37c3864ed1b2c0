package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/refresh"
	"assay/internal/view"
)

func oneJobLives(f *fixture) {
	insert := func(kind refresh.Kind) (id int64, made bool) {
		f.tx(func(tx *db.Tx) (err error) {
			id, made, err = refresh.InsertJob(tx, refresh.Job{Kind: kind, Forced: true, RequestedBy: "who ★", RetryOf: 7})
			return err
		})
		return id, made
	}
	a, made := insert(refresh.Bulk)
	f.is("made", made, true)
	want := refresh.Job{
		ID: a, Kind: refresh.Bulk, Forced: true, State: refresh.Queued, Stage: refresh.StagePlan,
		RequestedBy: "who ★", RetryOf: 7, CreatedAt: f.now,
	}
	f.is("job", f.job(a), want)
	again, made := insert(refresh.Bulk)
	f.is("made again", made, false)
	f.is("the live one", again, a)
	b, made := insert(refresh.Missing)
	f.is("another kind", made, true)
	queued, err := refresh.ReadQueuedJob(f.Context(), f.s)
	f.must(err)
	f.is("queued first", queued.ID, a)
	f.tx(func(tx *db.Tx) error { return refresh.FailJob(tx, a, "why") })
	j := f.job(a)
	f.is("failed", fmt.Sprint(j.State, j.Stage, j.FinishedAt.Equal(f.now), j.LastError), "faileddonetruewhy")
	queued, err = refresh.ReadQueuedJob(f.Context(), f.s)
	f.must(err)
	f.is("queued next", queued.ID, b)
	c, made := insert(refresh.Bulk)
	f.is("made after the end", made, true)

	_, err = refresh.ReadJob(f.Context(), f.s, 999)
	if e := fault.Of(err); e == nil || e.Kind != fault.NotFound {
		f.Errorf("a job that is not there: %v", err)
	}
	for _, p := range []struct {
		kind   refresh.Kind
		before int64
		limit  int
		want   []int64
	}{
		{"", 1 << 62, 10, []int64{c, b, a}},
		{"", 1 << 62, 2, []int64{c, b}},
		{"", b, 10, []int64{a}},
		{refresh.Bulk, 1 << 62, 10, []int64{c, a}},
	} {
		jobs, err := view.Jobs(f.Context(), f.s, p.kind, p.before, p.limit)
		f.must(err)
		var ids []int64
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		if !slices.Equal(ids, p.want) {
			f.Errorf("jobs %+v: got %v", p, ids)
		}
	}
}

func planCounts(f *fixture) {
	ids := f.items("fresh", "pause", "unknown", "old", "nobody's", "future")
	f.own("u", ids[0], ids[1], ids[2], ids[3], ids[5])
	f.own("v", ids[0], ids[0], ids[3])
	id := f.plan(refresh.Bulk, 1)
	f.storeVerdict(id)
	b := f.claimBatch()
	s := f.estimates(b, 10)
	for i := range s.Items {
		switch s.Items[i].Key.Name {
		case "pause":
			s.Items[i].RetryAt = f.now.Add(72 * time.Hour)
			s.Items[i].QuietSince = f.now
		case "unknown":
			s.Items[i].Estimate.Price, s.Items[i].RetryAt = 0, f.now.Add(72*time.Hour)
		}
	}
	f.tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
	f.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
	f.finish(id)
	// Now the prices are all of the same age; one of them is made older.
	f.now = f.now.Add(7 * time.Hour)
	f.is("all are due but for the pause", dueOf(f, f.rules()), "due 4 ttl 0 noSales 1 names 4")

	r := f.rules()
	r.TTL = 8 * time.Hour // 95 % of it are 7.6 hours
	f.is("within the TTL", dueOf(f, r), "due 1 ttl 3 noSales 1 names 1")
	r.TTL = 7 * time.Hour * 100 / 95
	f.is("at 95 % of the TTL", dueOf(f, r), "due 4 ttl 0 noSales 1 names 4")
	r.TTL += 2 * time.Microsecond
	f.is("just below", dueOf(f, r), "due 1 ttl 3 noSales 1 names 1")
	r.Forced = true
	f.is("forced", dueOf(f, r), "due 5 ttl 0 noSales 0 names 5")
	r.ScopeAll = true
	f.is("forced, of all", dueOf(f, r), "due 6 ttl 0 noSales 0 names 6")
	r = f.rules()
	r.Now = f.now.Add(-400 * 24 * time.Hour)
	f.is("by a clock set back", dueOf(f, r), "due 5 ttl 0 noSales 0 names 5")

	f.plan(refresh.Bulk, 8)
	j := f.job(id + 1)
	f.is("total", j.Counts, refresh.Counts{Total: 5, Pending: 4, SkippedNoSales: 1})
	f.is("started", j.StartedAt, f.now)
	f.is("batches", j.Batches, 8)
	items, err := view.JobItems(f.Context(), f.s, j.ID, "", -1, 0, 100)
	f.must(err)
	f.is("items", len(items), 5)
	seen := map[string]bool{}
	for _, i := range items {
		f.is("batch of "+i.Key.Name, i.Batch, int64(catalog.Bucket(i.Key.Name)*8/catalog.Buckets))
		seen[i.Key.Name] = true
		if i.Key.Name == "pause" {
			f.is("state", i.State+" "+i.Reason, "skipped noSales")
		} else {
			f.is("state", i.State, refresh.ItemPending)
		}
	}
	f.is("names", len(seen), 5)
	page, err := view.JobItems(f.Context(), f.s, j.ID, refresh.ItemPending, items[0].Batch, items[0].ItemID, 2)
	f.must(err)
	f.is("items of a page", len(page), 2)
	started := true
	f.tx(func(tx *db.Tx) (err error) {
		started, err = refresh.StartJob(tx, j.ID, 8, 0)
		return err
	})
	f.is("started twice", started, false)
}

// dueOf is what rules would plan, read both ways.
func dueOf(f *fixture, r refresh.Rules) string {
	f.Helper()
	outside, err := refresh.ReadDue(f.Context(), f.s, r)
	f.must(err)
	f.tx(func(tx *db.Tx) error {
		inside, err := refresh.DueInTx(tx, r)
		f.is("the same within a transaction", inside[app].Due, outside[app].Due)
		return err
	})
	d := outside[app]
	return fmt.Sprintf("due %d ttl %d noSales %d names %d", d.Due.Due, d.TTL, d.NoSales, d.Names)
}

func planRetries(f *fixture) {
	ids := f.items("A", "B", "C")
	f.own("u", ids...)
	id := f.plan(refresh.Bulk, 1)
	f.storeVerdict(id)
	b := f.claimBatch()
	s := f.estimates(b, 10)
	s.Items[1].State, s.Items[1].Answered, s.Items[1].Error = refresh.ItemFailed, false, "why"
	s.Counts = refresh.Counts{Updated: 2, Failed: 1, Changed: 2}
	f.tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
	f.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
	f.is("state", f.finish(id), refresh.Finished)
	r := f.rules()
	r.RetryOf = id
	f.is("due", dueOf(f, r), "due 1 ttl 0 noSales 0 names 1")
	causes, _, err := view.Causes(f.Context(), f.s, []int64{id}, 20)
	f.must(err)
	f.is("causes", fmt.Sprint(causes), fmt.Sprint([]view.Cause{{Error: "why", Count: 1, Items: []catalog.Key{s.Items[1].Key}}}))
	f.is("failures", f.item(s.Items[1].Key.Name).Failures, int64(1))
}

func stages(f *fixture) {
	ids := f.items("A")
	f.own("u", ids...)
	market := f.market("s", "m")
	id := f.plan(refresh.Bulk, 1, unit("s", "f"), unit("t", ""))
	at := func(what string, job *refresh.Job, err error) bool {
		f.must(err)
		if job != nil {
			f.is(what, job.ID, id)
		}
		return job != nil
	}
	where := func() string {
		var found []string
		for name, read := range map[string]func() (*refresh.Job, error){
			"queued":    func() (*refresh.Job, error) { return refresh.ReadQueuedJob(f.Context(), f.s) },
			"fetched":   func() (*refresh.Job, error) { return refresh.ReadFetchedJob(f.Context(), f.s) },
			"estimated": func() (*refresh.Job, error) { return refresh.ReadEstimatedJob(f.Context(), f.s) },
			"applying":  func() (*refresh.Job, error) { return refresh.ReadApplyingJob(f.Context(), f.s) },
		} {
			if j, err := read(); at(name, j, err) {
				found = append(found, name)
			}
		}
		return strings.Join(found, " ")
	}
	f.is("its file is open", where(), "")
	u := f.fetch("s")
	u.BlobUnit = u.ID
	f.is("its file has come for the first time, names are open", where(), "")
	f.fetch("t")
	f.is("names have come, too", where(), "fetched")
	f.storeVerdict(id, refresh.Verdict{Unit: u, Fetch: refresh.MarketFetch{MarketID: market, Quotes: 1, Outcome: refresh.OutcomeOK}})
	f.estimate(f.claimBatch(), 10)
	f.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
	f.is("end", f.finish(id), refresh.Finished)
	f.now = f.now.Add(24 * time.Hour)

	id = f.plan(refresh.Bulk, 1, unit("s", "f"), unit("t", ""))
	f.fetch("s")
	f.is("its file has come, names are open", where(), "fetched")
	f.storeVerdict(id)
	f.is("judged", where(), "")
	f.is("a batch whose names are open", f.claimBatch() == nil, true)
	f.fetch("t")
	f.estimate(f.claimBatch(), 10)
	f.is("estimated", where(), "estimated")
	f.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
	f.is("applying", where(), "applying")
	f.is("end", f.finish(id), refresh.Finished)
	f.is("ended", where(), "")
	f.is("ended twice", f.finish(id), refresh.State(""))
	j := f.job(id)
	f.is("stage", j.Stage, refresh.StageDone)
	f.is("end", j.FinishedAt, f.now)
	again := false
	f.tx(func(tx *db.Tx) (err error) {
		again, err = refresh.StoreValidation(tx, id, nil, nil)
		return err
	})
	f.is("judged again", again, false)
}

func cancels(f *fixture) {
	names := []string{"A", "B", "C", "D", "E", "F", "G", "H"}
	f.own("u", f.items(names...)...)
	id := f.plan(refresh.Bulk, catalog.Buckets, unit("s", "f"))
	f.fetch("s")
	f.storeVerdict(id)
	f.estimate(f.claimBatch(), 10)
	b := f.claimBatch()
	f.tx(func(tx *db.Tx) error { return refresh.CancelJob(tx, id, time.Hour) })
	estimated := true
	f.tx(func(tx *db.Tx) (err error) {
		estimated, err = refresh.StoreEstimates(tx, *b, refresh.Estimates{})
		return err
	})
	f.is("a claimed batch estimates", estimated, false)
	c := f.job(id).Counts
	f.is("counts", c, refresh.Counts{Total: 8, Updated: c.Updated, Changed: c.Updated, Cancelled: 8 - c.Updated})
	f.is("estimated items", c.Updated > 0, true)
	f.is("stage", f.job(id).Stage, refresh.StageApply)
	f.is("state", f.finish(id), refresh.Cancelled)

	queued := int64(0)
	f.tx(func(tx *db.Tx) (err error) {
		queued, _, err = refresh.InsertJob(tx, refresh.Job{Kind: refresh.Bulk})
		return err
	})
	f.tx(func(tx *db.Tx) error { return refresh.CancelJob(tx, queued, time.Hour) })
	f.is("a job without a plan", f.job(queued).State, refresh.Cancelled)
	started := true
	f.tx(func(tx *db.Tx) (err error) {
		started, err = refresh.StartJob(tx, queued, 1, 0)
		return err
	})
	f.is("starts", started, false)
	f.tx(func(tx *db.Tx) error { return refresh.CancelJob(tx, id, time.Hour) })
	f.is("an ended job", f.job(id).State, refresh.Cancelled)
}

func retains(f *fixture) {
	f.own("u", f.items("A")...)
	var ids []int64
	for range 4 {
		ids = append(ids, f.run(10))
		f.finish(ids[len(ids)-1])
		f.now = f.now.Add(24 * time.Hour)
	}
	live := f.plan(refresh.Bulk, 1)
	retain := func(age time.Duration, jobs, most int) (n int) {
		f.tx(func(tx *db.Tx) (err error) {
			n, err = refresh.Retain(tx, refresh.Retention{Age: age, MinJobs: jobs}, most)
			return err
		})
		return n
	}
	f.is("none is older", retain(4*24*time.Hour, 0, 10), 0)
	f.is("the newest stay", retain(0, 4, 10), 0)
	f.is("as old is not older", retain(4*24*time.Hour, 3, 10), 0)
	f.now = f.now.Add(time.Microsecond)
	f.is("one is older", retain(4*24*time.Hour, 3, 10), 1)
	f.is("at most", retain(0, 0, 1), 1)
	f.is("all", retain(0, 0, 10), 2)
	f.is("none is left", retain(0, 0, 10), 0)
	for _, id := range ids {
		units, err := refresh.JobUnits(f.Context(), f.s, id)
		f.must(err)
		items, err := view.JobItems(f.Context(), f.s, id, "", -1, 0, 10)
		f.must(err)
		f.is("what belonged to it", len(units)+len(items), 0)
	}
	f.is("a live one", f.job(live).State, refresh.Running)
}

func workIsCounted(f *fixture) {
	f.own("u", f.items("A", "B")...)
	id := f.plan(refresh.Bulk, 1, unit("s", "f"), unit("s", "g"))
	u := f.claim("s")
	depths, oldest, err := view.Depths(f.Context(), f.s, f.now)
	f.must(err)
	f.is("oldest", oldest, f.now)
	got := map[string]int64{}
	for _, d := range depths {
		got[d.Kind+" "+d.State] = d.Count
	}
	for what, want := range map[string]int64{"plan pending": 0, "fetch pending": 1, "fetch running": 1, "estimate pending": 1} {
		f.is(what, got[what], want)
	}
	claims, err := view.Claims(f.Context(), f.s)
	f.must(err)
	f.is("claims", fmt.Sprint(claims), fmt.Sprint([]view.Claim{{Owner: "me", Kind: "fetch", Work: "s " + u.File, Provider: "s", Since: f.now, Token: u.Token}}))
	u.State, u.Requests = refresh.UnitDeferred, 3
	f.tx(func(tx *db.Tx) error { _, _, err := refresh.EndUnit(tx, *u, nil, nil); return err })
	use, err := view.Use(f.Context(), f.s, []int64{id, 999})
	f.must(err)
	f.is("use", fmt.Sprint(use), fmt.Sprint([]view.ProviderUse{{JobID: id, Provider: "s", Requests: 3}}))
	deferred, err := view.Deferred(f.Context(), f.s, []int64{id})
	f.must(err)
	f.is("deferred", fmt.Sprint(deferred), fmt.Sprint([]view.DeferredUnit{{JobID: id, Provider: "s", File: u.File}}))

	f.fetch("s")
	f.storeVerdict(id)
	f.estimate(f.claimBatch(), 10)
	f.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
	f.finish(id)
	fresh, err := view.ReadFreshness(f.Context(), f.s, true, f.now)
	f.must(err)
	f.is("fresh", fresh, view.FreshItems{Fresh: 2, Oldest: f.now})
	f.items("in no inventory")
	fresh, err = view.ReadFreshness(f.Context(), f.s, true, f.now.Add(time.Microsecond))
	f.must(err)
	f.is("stale", fresh, view.FreshItems{Stale: 2, Unknown: 1, Oldest: f.now})
	fresh, err = view.ReadFreshness(f.Context(), f.s, false, f.now)
	f.must(err)
	f.is("in scope", fresh, view.FreshItems{Fresh: 2, Oldest: f.now})
}
