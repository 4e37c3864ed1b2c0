package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"assay/internal/db"
	"assay/internal/event"
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
