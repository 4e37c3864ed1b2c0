package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/refresh"
	"assay/internal/view"
)

// told returns the newest events, the newest first, as "kind data".
func (f *fixture) told() []string {
	f.Helper()
	events, err := event.List(f.Context(), f.s, 1000)
	f.must(err)
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = fmt.Sprintf("%s %s", e.Kind, e.Data)
	}
	return out
}

// eventsAreKept writes events and reads them again.
func eventsAreKept(f *fixture) {
	f.tx(func(tx *db.Tx) error {
		return errors.Join(
			event.Add(tx, event.LedgerProblem{UserID: "u★", Status: "failed", Checks: []string{"cached_balance"}, FailureCount: 1}),
			event.Add(tx, event.ProviderUp{Provider: "s", Why: event.WhyBreaker, Detail: "\"'\n"}),
		)
	})
	events, err := event.List(f.Context(), f.s, 10)
	f.must(err)
	f.is("events", len(events), 2)
	f.is("the newest first", string(events[0].Data), `{"provider":"s","why":"breaker","host":"","detail":"\"'\n"}`)
	f.is("kind", events[1].Kind, event.LedgerHasProblem)
	f.is("data", string(events[1].Data), `{"userId":"u★","status":"failed","checks":["cached_balance"],"failureCount":1}`)
	f.is("at", events[1].At, f.now.Truncate(time.Microsecond))
	f.is("counted", event.Counts(f.s)[event.LedgerHasProblem], int64(1))
	events, err = event.List(f.Context(), f.s, 1)
	f.must(err)
	f.is("at most", len(events), 1)
}

// eventsAreWhole fails commits of what makes an event: either both are there, or
// none of the two.
func eventsAreWhole(f *fixture) {
	job := func() (id int64) {
		f.tx(func(tx *db.Tx) (err error) {
			id, _, err = refresh.InsertJob(tx, refresh.Job{Kind: refresh.Bulk, RequestedBy: "who"})
			return err
		})
		return id
	}
	id := job()
	fail := func(point string) {
		killed := errors.New("killed")
		f.faults = func(p string) error {
			if p == point {
				return killed
			}
			return nil
		}
		err := f.s.InTx(f.Context(), func(tx *db.Tx) error { return refresh.FailJob(tx, id, "why") })
		f.faults = nil
		f.is("killed "+point, errors.Is(err, killed), true)
	}
	fail("before commit")
	f.is("neither", fmt.Sprint(f.job(id).State, len(f.told())), "queued0")
	fail("after commit")
	f.is("both", fmt.Sprint(f.job(id).State, len(f.told())), "failed1")
	f.tx(func(tx *db.Tx) error { return refresh.FailJob(tx, id, "again") })
	f.is("once", len(f.told()), 1)
	f.is("counted are those that are known to be kept", len(event.Counts(f.s)), 0)
}

// jobsTellOfTheirEnd ends jobs in every way.
func jobsTellOfTheirEnd(f *fixture) {
	f.own("u", f.items("A", "B")...)
	id := f.run(10)
	f.is("while it runs", len(f.told()), 0)
	f.finish(id)
	f.finish(id)
	want := []string{fmt.Sprintf(`job.finished {"jobId":"%d","jobKind":"bulk","forced":false,"requestedBy":"test","startedAt":%q,`+
		`"totalItems":2,"updatedItems":2,"changedItems":2,"noQuoteItems":0,"failedItems":0,"lastError":null,"outcome":"complete","gaps":{"items":[],"markets":[]}}`, id, f.now.Format(time.RFC3339Nano))}
	f.is("finished", fmt.Sprint(f.told()), fmt.Sprint(want))

	var failed int64
	f.tx(func(tx *db.Tx) (err error) {
		if failed, _, err = refresh.InsertJob(tx, refresh.Job{Kind: refresh.Missing, Forced: true, RequestedBy: "queue"}); err != nil {
			return err
		}
		return refresh.FailJob(tx, failed, "no plan")
	})
	want = append([]string{fmt.Sprintf(`job.failed {"jobId":"%d","jobKind":"missing","forced":true,"requestedBy":"queue","startedAt":null,`+
		`"totalItems":0,"updatedItems":0,"changedItems":0,"noQuoteItems":0,"failedItems":0,"lastError":"no plan","outcome":"failed","gaps":{"items":[],"markets":[]}}`, failed)}, want...)
	f.is("failed", fmt.Sprint(f.told()), fmt.Sprint(want))

	// A job that lacks a market is partial, and keeps which one and why.
	f.now = f.now.Add(24 * time.Hour)
	partial := f.run(10)
	gaps := []event.MarketGap{{Provider: "s", Market: "m\"★", Reason: "failed", Share: 0.25, Detail: "why"}}
	f.tx(func(tx *db.Tx) error {
		end, err := refresh.FinishJob(tx, partial, gaps)
		f.is("partial", end.Outcome, refresh.JobPartial)
		return err
	})
	f.is("kept", fmt.Sprint(f.job(partial).Outcome, f.job(partial).MarketGaps), fmt.Sprint(refresh.JobPartial, gaps))
	got := f.told()[0]
	f.is("kind", strings.HasPrefix(got, "job.partial "), true)
	f.is("gaps", strings.HasSuffix(got, `"gaps":{"items":[],"markets":[{"provider":"s","market":"m\"★","reason":"failed","share":0.25,"detail":"why"}]}}`), true)
	last, err := view.LastOutcome(f.Context(), f.s, refresh.Bulk)
	f.must(err)
	f.is("the last one", last, refresh.JobPartial)
	want = append([]string{got}, want...)

	f.now = f.now.Add(24 * time.Hour)
	cancelled := f.run(10)
	f.tx(func(tx *db.Tx) error { return refresh.CancelJob(tx, cancelled, time.Hour) })
	f.is("cancelled", f.finish(cancelled), refresh.Cancelled)
	f.is("its outcome", f.job(cancelled).Outcome, refresh.JobPartial)
	f.is("nothing is told of it", fmt.Sprint(f.told()), fmt.Sprint(want))
}

// lowBudgetsMakeOneEvent has many processes find the same budget low at once.
func lowBudgetsMakeOneEvent(f *fixture) {
	f.now = time.Date(2026, 3, 10, 6, 0, 0, 0, time.UTC)
	host := provider.Host{Key: "h", Quota: provider.Quota{Day: 100}}
	f.is("sent", f.takeAll([]provider.Allowance{allowance.New(f.s, "s", host)}, 90), 90)
	f.is("quiet", len(f.told()), 0)
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			if _, err := allowance.New(f.s, "s", host).Take(f.Context()); err != nil {
				f.Error(err)
			}
		})
	}
	wg.Wait()
	f.take(allowance.New(f.s, "s", host))
	told := f.told()
	f.is("once", len(told), 1)
	renewed := time.Date(2026, 3, 11, 0, 0, 0, 0, time.UTC)
	events, err := event.List(f.Context(), f.s, 1)
	f.must(err)
	f.is("kind", events[0].Kind, event.BudgetIsLow)
	for _, part := range []string{`"provider":"s","host":"h","budget":"day"`, `"limit":100`, fmt.Sprintf(`"renewedAt":%q`, renewed.Format(time.RFC3339))} {
		f.is(part, strings.Contains(told[0], part), true)
	}
}

// eventsEnd removes events by age and by number.
func eventsEnd(f *fixture) {
	add := func(n int) {
		f.tx(func(tx *db.Tx) error {
			for range n {
				if err := event.Add(tx, event.ProviderUp{Provider: "s"}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	retain := func(age time.Duration) int {
		f.tx(func(tx *db.Tx) error { return event.Retain(tx, age) })
		return len(f.told())
	}
	add(30)
	f.now = f.now.Add(48 * time.Hour)
	f.is("the newest stay, however old", retain(time.Hour), 30)
	add(40)
	f.is("as old is not older", retain(48*time.Hour), 70)
	f.is("the old go", retain(47*time.Hour), 50)
	f.is("and the rest stays", retain(47*time.Hour), 50)
	add(10_000)
	events, err := event.List(f.Context(), f.s, 20_000)
	f.must(err)
	f.is("before", len(events), 10_050)
	f.tx(func(tx *db.Tx) error { return event.Retain(tx, 48*time.Hour) })
	events, err = event.List(f.Context(), f.s, 20_000)
	f.must(err)
	f.is("at most", len(events), 10_000)
	f.is("in their order", slices.IsSortedFunc(events, func(a, b event.Stored) int { return int(b.ID - a.ID) }), true)
}

// downHostsTellOnce has several processes find a host down, and up again.
func downHostsTellOnce(f *fixture) {
	all := f.processes("h", provider.Limit{}, provider.Quota{})
	together := func(do func(a provider.Allowance) error) {
		var wg sync.WaitGroup
		for _, a := range all {
			wg.Go(func() {
				if err := do(a); err != nil {
					f.Error(err)
				}
			})
		}
		wg.Wait()
	}
	up := func(a provider.Allowance) error { return a.Up(f.Context()) }
	together(up)
	f.is("it was never down", len(f.told()), 0)
	together(func(a provider.Allowance) error { return a.Down(f.Context(), "timeout") })
	want := `provider.down {"provider":"s","why":"breaker","host":"h","detail":"timeout"}`
	f.is("down", fmt.Sprint(f.told()), "["+want+"]")
	together(up)
	f.is("up", fmt.Sprint(f.told()), `[provider.up {"provider":"s","why":"breaker","host":"h","detail":"it answers again"} `+want+"]")
	f.must(all[0].Down(f.Context(), "again"))
	f.is("down again", len(f.told()), 3)
}

// quarantinesTellOnce judges the answers of a file.
func quarantinesTellOnce(f *fixture) {
	m := f.market("s", "m")
	judge := func(quarantine string) {
		f.Helper()
		outcome := refresh.OutcomeOK
		if quarantine != "" {
			outcome = refresh.OutcomeQuarantined
		}
		id := f.plan(refresh.Bulk, 1, unit("s", "f"))
		u := f.fetch("s")
		u.BlobUnit = u.ID
		f.storeVerdict(id, refresh.Verdict{Unit: u, Quarantine: quarantine, Fetch: refresh.MarketFetch{MarketID: m, Quotes: 1, Outcome: outcome}})
		f.tx(func(tx *db.Tx) error { return refresh.CancelJob(tx, id, 0) })
		f.finish(id)
	}
	of := `"provider":"s","why":"quarantine","host":"","market":"m","appId":730,"file":"f","detail":`
	newest := func(what string, n int, want string) {
		f.Helper()
		f.is(what+": number", len(f.told()), n)
		if n > 0 {
			f.is(what, f.told()[0], want)
		}
	}
	judge("")
	newest("good", 0, "")
	judge("half a catalogue")
	newest("refused", 1, "provider.quarantined {"+of+`"half a catalogue"}`)
	judge("less than that")
	newest("refused again", 1, "provider.quarantined {"+of+`"half a catalogue"}`)
	judge("")
	newest("good again", 2, "provider.up {"+of+`"its answer is to be believed again"}`)
	judge("")
	newest("and again", 2, "provider.up {"+of+`"its answer is to be believed again"}`)
	judge("cents for dollars")
	accept := func() (n int64) {
		f.tx(func(tx *db.Tx) (err error) {
			n, err = refresh.AcceptProvider(tx, "s", "")
			return err
		})
		return n
	}
	f.is("accepted", accept(), int64(1))
	newest("accepted", 4, "provider.up {"+of+`"accepted by an operator"}`)
	f.is("accepted twice", accept(), int64(0))
	newest("once", 4, "provider.up {"+of+`"accepted by an operator"}`)
}
