package refresh_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/fault"
	"assay/internal/refresh"
	"assay/internal/view"
)

func TestInsertJob_AllowsOneLiveJobOfAKind(t *testing.T) {
	each(t, func(f *fixture) {
		insert := func(kind refresh.Kind) (id int64, made bool) {
			f.Tx(func(tx *db.Tx) (err error) {
				id, made, err = refresh.InsertJob(tx, refresh.Job{Kind: kind, Forced: true, RequestedBy: "who ★", RetryOf: 7})
				return err
			})
			return id, made
		}
		a, made := insert(refresh.Bulk)
		f.Is("a first job was created", made, true)
		want := refresh.Job{
			ID: a, Kind: refresh.Bulk, Forced: true, State: refresh.Queued, Stage: refresh.StagePlan,
			RequestedBy: "who ★", RetryOf: 7, CreatedAt: f.Now,
		}
		f.Is("stored job", f.job(a), want)
		again, made := insert(refresh.Bulk)
		f.Is("a second job of the kind was created", made, false)
		f.Is("id returned for the live job", again, a)
		b, made := insert(refresh.Missing)
		f.Is("a job of another kind was created", made, true)
		queued, err := refresh.ReadQueuedJob(f.Context(), f.DB)
		f.Must(err)
		f.Is("id of the first queued job", queued.ID, a)
		f.Tx(func(tx *db.Tx) error { return refresh.FailJob(tx, a, "why") })
		j := f.job(a)
		f.Is("failed job", fmt.Sprint(j.State, j.Stage, j.FinishedAt.Equal(f.Now), j.LastError), "faileddonetruewhy")
		queued, err = refresh.ReadQueuedJob(f.Context(), f.DB)
		f.Must(err)
		f.Is("id of the next queued job", queued.ID, b)
		c, made := insert(refresh.Bulk)
		f.Is("a job was created after the end of the first", made, true)

		_, err = refresh.ReadJob(f.Context(), f.DB, 999)
		if e := fault.Of(err); e == nil || e.Kind != fault.NotFound {
			f.Errorf("unknown job: got error %v, want a not-found fault", err)
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
			jobs, err := view.Jobs(f.Context(), f.DB, p.kind, p.before, p.limit)
			f.Must(err)
			var ids []int64
			for _, j := range jobs {
				ids = append(ids, j.ID)
			}
			if !slices.Equal(ids, p.want) {
				f.Errorf("page %+v: got the jobs %v, want %v", p, ids, p.want)
			}
		}
	})
}

func TestJob_GoesThroughItsStages(t *testing.T) {
	each(t, func(f *fixture) {
		ids := f.items("A")
		f.own("u", ids...)
		market := f.market("s", "m")
		id := f.plan(refresh.Bulk, 1, unit("s", "f"), unit("t", ""))
		at := func(what string, job *refresh.Job, err error) bool {
			f.Must(err)
			if job != nil {
				f.Is(what, job.ID, id)
			}
			return job != nil
		}
		where := func() string {
			var found []string
			for name, read := range map[string]func() (*refresh.Job, error){
				"queued":    func() (*refresh.Job, error) { return refresh.ReadQueuedJob(f.Context(), f.DB) },
				"fetched":   func() (*refresh.Job, error) { return refresh.ReadFetchedJob(f.Context(), f.DB, "me") },
				"estimated": func() (*refresh.Job, error) { return refresh.ReadEstimatedJob(f.Context(), f.DB) },
				"applying":  func() (*refresh.Job, error) { return refresh.ReadApplyingJob(f.Context(), f.DB) },
			} {
				if j, err := read(); at(name, j, err) {
					found = append(found, name)
				}
			}
			return strings.Join(found, " ")
		}
		f.Is("phase while the file is not fetched", where(), "")
		u := f.fetch("s")
		u.ResponseUnitID = u.ID
		f.Is("phase after the file is fetched, but not the names", where(), "")
		f.fetch("t")
		f.Is("phase after the file and the names are fetched", where(), "fetched")
		f.storeValidation(id, refresh.ValidationResult{Unit: u, Fetch: refresh.MarketFetch{MarketID: market, Quotes: 1, Outcome: refresh.OutcomeOK}})
		f.estimate(f.claimBatch(), 10)
		f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
		f.Is("state of the ended job", f.finish(id), refresh.Finished)
		f.Now = f.Now.Add(24 * time.Hour)

		id = f.plan(refresh.Bulk, 1, unit("s", "f"), unit("t", ""))
		f.fetch("s")
		f.Is("phase while the file is fetched and names are not", where(), "fetched")
		f.storeValidation(id)
		f.Is("phase after the validation", where(), "")
		f.Is("no batch can be claimed while its names are not fetched", f.claimBatch() == nil, true)
		f.fetch("t")
		f.estimate(f.claimBatch(), 10)
		f.Is("phase after the estimates", where(), "estimated")
		f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
		f.Is("phase while prices are applied", where(), "applying")
		f.Is("state of the ended job", f.finish(id), refresh.Finished)
		f.Is("phase after the end", where(), "")
		f.Is("state returned when the job is finished again", f.finish(id), refresh.State(""))
		j := f.job(id)
		f.Is("stage of the ended job", j.Stage, refresh.StageDone)
		f.Is("time of the end", j.FinishedAt, f.Now)
		again := false
		f.Tx(func(tx *db.Tx) (err error) {
			again, err = refresh.StoreValidation(tx, id, nil, nil)
			return err
		})
		f.Is("the unit was validated twice", again, false)
	})
}

// All processes look for work at the same time. One of them plans a job.
func TestClaimQueued_LocksTheJob(t *testing.T) {
	each(t, func(f *fixture) {
		var id int64
		f.Tx(func(tx *db.Tx) (err error) {
			id, _, err = refresh.InsertJob(tx, refresh.Job{Kind: refresh.Bulk})
			return err
		})
		claim := func(tx *db.Tx) (claimed bool) {
			claimed, err := refresh.ClaimQueued(tx, id)
			f.Must(err)
			return claimed
		}
		f.Tx(func(tx *db.Tx) error {
			f.Is("the job is claimed", claim(tx), true)
			if f.DB.Dialect == db.PostgreSQL { // SQLite has one writer
				f.Tx(func(other *db.Tx) error {
					f.Is("it is claimed twice", claim(other), false)
					return nil
				})
			}
			return nil
		})
		f.Tx(func(tx *db.Tx) error {
			f.Is("it is claimed again, because it was not started", claim(tx), true)
			_, err := refresh.StartJob(tx, id, 1, 0)
			f.Must(err)
			f.Is("it is claimed after its start", claim(tx), false)
			return refresh.FailJob(tx, id, "no provider in this process")
		})
		f.Is("state after another process could not plan it", f.job(id).State, refresh.Running)
	})
}

func TestClaimValidation_LastsWhileTheInstanceIsRegistered(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		id := f.plan(refresh.Bulk, 1, unit("s", "f"))
		f.fetch("s")
		for _, owner := range []string{"first", "second"} {
			f.Tx(func(tx *db.Tx) error { return refresh.Register(tx, refresh.Instance{Owner: owner}) })
		}
		canClaim := func(owner string) (claimed bool) {
			found, err := refresh.ReadFetchedJob(f.Context(), f.DB, owner)
			f.Must(err)
			f.Tx(func(tx *db.Tx) (err error) {
				claimed, err = refresh.ClaimValidation(tx, id, owner)
				return err
			})
			f.Is(owner+" finds the job if it can claim it", found != nil, claimed)
			return claimed
		}
		f.Is("the first process claims", canClaim("first"), true)
		f.Is("the second process claims too", canClaim("second"), false)
		f.Is("the first process claims again", canClaim("first"), true)
		f.Tx(func(tx *db.Tx) error { return refresh.ReleaseValidation(tx, id, "second") })
		f.Is("the second process claims after releasing what it does not hold", canClaim("second"), false)
		f.Tx(func(tx *db.Tx) error { return refresh.ReleaseValidation(tx, id, "first") })
		f.Is("the second process claims after the release", canClaim("second"), true)
		f.Tx(func(tx *db.Tx) error {
			_, err := refresh.RemoveInstance(tx, refresh.Heartbeat{Owner: "second"})
			return err
		})
		f.Is("the first process claims after the second is gone", canClaim("first"), true)
		f.storeValidation(id)
		f.Is("it claims after the validation", canClaim("first"), false)
	})
}

// Only the end of the last file unblocks the validation.
func TestEndsFiles_ForTheLastFile(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		f.plan(refresh.Bulk, 1, unit("s", "f"), unit("s", "g"), unit("t", ""))
		for i, want := range []bool{false, true} {
			got, err := refresh.EndsFiles(f.Context(), f.DB, f.fetch("s"))
			f.Must(err)
			f.Is(fmt.Sprint("file ", i, " is the last one"), got, want)
		}
	})
}

func TestCancelJob_KeepsEstimatedItems(t *testing.T) {
	each(t, func(f *fixture) {
		names := []string{"A", "B", "C", "D", "E", "F", "G", "H"}
		f.own("u", f.items(names...)...)
		id := f.plan(refresh.Bulk, catalog.Buckets, unit("s", "f"))
		f.fetch("s")
		f.storeValidation(id)
		f.estimate(f.claimBatch(), 10)
		b := f.claimBatch()
		f.Tx(func(tx *db.Tx) error { return refresh.CancelJob(tx, id, time.Hour) })
		estimated := true
		f.Tx(func(tx *db.Tx) (err error) {
			estimated, err = refresh.StoreEstimates(tx, *b, refresh.Estimates{})
			return err
		})
		f.Is("the batch of a cancelled job was estimated", estimated, false)
		c := f.job(id).Counts
		f.Is("counts of the cancelled job", c, refresh.Counts{Total: 8, Updated: c.Updated, Changed: c.Updated, Cancelled: 8 - c.Updated})
		f.Is("the job has estimated items", c.Updated > 0, true)
		f.Is("stage of the cancelled job", f.job(id).Stage, refresh.StageApply)
		f.Is("state of the cancelled job", f.finish(id), refresh.Cancelled)

		queued := int64(0)
		f.Tx(func(tx *db.Tx) (err error) {
			queued, _, err = refresh.InsertJob(tx, refresh.Job{Kind: refresh.Bulk})
			return err
		})
		f.Tx(func(tx *db.Tx) error { return refresh.CancelJob(tx, queued, time.Hour) })
		f.Is("state of a cancelled job without a plan", f.job(queued).State, refresh.Cancelled)
		started := true
		f.Tx(func(tx *db.Tx) (err error) {
			started, err = refresh.StartJob(tx, queued, 1, 0)
			return err
		})
		f.Is("the cancelled job was started", started, false)
	})
}

// The job ends after a request to cancel it was checked. A unit is still open, because the job did
// not wait for it.
func TestCancelJob_ChangesNothingAfterTheEnd(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		id := f.plan(refresh.Bulk, 1, unit("s", "f"), unit("t", "g"))
		f.inBackground("g")
		f.fetch("s")
		f.storeValidation(id)
		f.estimate(f.claimBatch(), 10)
		f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
		f.Is("state of the ended job", f.finish(id), refresh.Finished)
		err := f.DB.InTx(f.Context(), func(tx *db.Tx) error { return refresh.CancelJob(tx, id, time.Hour) })
		if e := fault.Of(err); e == nil || e.Kind != fault.Conflict || e.Code != "job_ended" {
			f.Errorf("cancelling an ended job: got error %v, want job_ended", err)
		}
		f.Is("state of the job", f.job(id).State, refresh.Finished)
		units, err := refresh.JobUnits(f.Context(), f.DB, id)
		f.Must(err)
		for _, u := range units {
			if u.Provider == "t" {
				f.Is("state of the open unit", u.State, refresh.UnitPending)
			}
		}
		f.Is("number of units", len(units), 2)
	})
}

func TestRetain_DeletesEndedJobs(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A")...)
		var ids []int64
		for range 4 {
			ids = append(ids, f.run(10))
			f.finish(ids[len(ids)-1])
			f.Now = f.Now.Add(24 * time.Hour)
		}
		live := f.plan(refresh.Bulk, 1)
		retain := func(age time.Duration, jobs, most int) (n int) {
			f.Tx(func(tx *db.Tx) (err error) {
				n, err = refresh.Retain(tx, refresh.Retention{Age: age, MinJobs: jobs}, most)
				return err
			})
			return n
		}
		f.Is("removed jobs when none is older than the age", retain(4*24*time.Hour, 0, 10), 0)
		f.Is("removed jobs when the minimum covers all", retain(0, 4, 10), 0)
		f.Is("removed jobs when one has exactly the age", retain(4*24*time.Hour, 3, 10), 0)
		f.Now = f.Now.Add(time.Microsecond)
		f.Is("removed jobs when one is older than the age", retain(4*24*time.Hour, 3, 10), 1)
		f.Is("removed jobs with limit 1", retain(0, 0, 1), 1)
		f.Is("removed jobs without a minimum", retain(0, 0, 10), 2)
		f.Is("removed jobs when none is left", retain(0, 0, 10), 0)
		for _, id := range ids {
			units, err := refresh.JobUnits(f.Context(), f.DB, id)
			f.Must(err)
			items, err := view.JobItems(f.Context(), f.DB, id, "", -1, 0, 10)
			f.Must(err)
			f.Is("units and items of a removed job", len(units)+len(items), 0)
		}
		f.Is("state of the live job", f.job(live).State, refresh.Running)
	})
}

func TestWork_IsCountedByKindAndState(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A", "B")...)
		id := f.plan(refresh.Bulk, 1, unit("s", "f"), unit("s", "g"))
		u := f.claim("s")
		depths, oldest, err := view.Depths(f.Context(), f.DB, f.Now)
		f.Must(err)
		f.Is("time of the oldest unit", oldest, f.Now)
		got := map[string]int64{}
		for _, d := range depths {
			got[d.Kind+" "+d.State] = d.Count
		}
		for what, want := range map[string]int64{"plan pending": 0, "fetch pending": 1, "fetch running": 1, "estimate pending": 1} {
			f.Is(what, got[what], want)
		}
		claims, err := view.Claims(f.Context(), f.DB)
		f.Must(err)
		f.Is("claims of the instance", fmt.Sprint(claims), fmt.Sprint([]view.Claim{{Owner: "me", Kind: "fetch", Work: "s " + u.File, Provider: "s", Since: f.Now, Token: u.Token}}))
		u.State, u.Requests = refresh.UnitDeferred, 3
		f.Tx(func(tx *db.Tx) error { _, _, err := refresh.EndUnit(tx, *u, nil, nil); return err })
		use, err := view.RequestCounts(f.Context(), f.DB, []int64{id, 999})
		f.Must(err)
		f.Is("requests by provider", fmt.Sprint(use), fmt.Sprint([]view.ProviderUse{{JobID: id, Provider: "s", Requests: 3}}))
		deferred, err := view.Deferred(f.Context(), f.DB, []int64{id})
		f.Must(err)
		f.Is("deferred units", fmt.Sprint(deferred), fmt.Sprint([]view.DeferredUnit{{JobID: id, Provider: "s", File: u.File}}))

		f.fetch("s")
		f.storeValidation(id)
		f.estimate(f.claimBatch(), 10)
		f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
		f.finish(id)
		fresh, err := view.ReadFreshness(f.Context(), f.DB, true, f.Now)
		f.Must(err)
		f.Is("freshness after the job", fresh, view.Freshness{Fresh: 2})
		f.items("in no inventory")
		fresh, err = view.ReadFreshness(f.Context(), f.DB, true, f.Now.Add(24*time.Hour+time.Microsecond))
		f.Must(err)
		f.Is("freshness a day later", fresh, view.Freshness{Stale: 2, Unknown: 1, OldestSeconds: 24 * 3600})
		fresh, err = view.ReadFreshness(f.Context(), f.DB, false, f.Now)
		f.Must(err)
		f.Is("freshness of the items in scope", fresh, view.Freshness{Fresh: 2})
	})
}

// Frequent queries must not search the units of all earlier jobs, of which there are many.
func TestQueries_ReadOnlyUnitsOfRunningJobs(t *testing.T) {
	for _, engine := range []string{dbtest.SQLite, dbtest.PostgreSQL} {
		t.Run(engine, func(t *testing.T) {
			d := dbtest.On(t, engine)
			raw := d.Filled(t,
				`INSERT INTO refresh_job (id, kind, forced, state, stage, requested_by, created_at)
					WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
					SELECT i, 'bulk', false, CASE WHEN i = 1000 THEN 'running' ELSE 'finished' END, 'apply', '', 0 FROM n`,
				`INSERT INTO fetch_unit (id, job_id, provider, app_id, file, batch_from, batch_to, state, blob_unit)
					WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
					SELECT i + 1, i / 10 + 1, 'p', 730, 'm' || i % 10, 0, 1, 'done', i + 1 FROM n`,
				`INSERT INTO fetch_blob (unit_id, bucket, data)
					WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1999)
					SELECT 9981 + i / 100, i % 100, '' FROM n`,
				`ANALYZE`,
			)
			for _, q := range []struct {
				query, index string
				args         []any
			}{{refresh.DropBlobsSQL, "fetch_unit_job", nil}, {refresh.JobsToEstimateSQL, "fetch_unit_", []any{"me"}}, {refresh.IsFetchedSQL, "fetch_unit_job", []any{1000}}} {
				if plan := d.Explain(t, raw, q.query, q.args...); !strings.Contains(plan, q.index) || strings.Contains(plan, "SCAN u") || strings.Contains(plan, "Seq Scan on fetch_unit u") {
					t.Errorf("plan of %s: got\n%s, want the index %s and no scan of all units", q.query, plan, q.index)
				}
			}
		})
	}
}
