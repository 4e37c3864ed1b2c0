package refresh_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/view"
)

// Commits fail at random. The state and the event must be stored together or not at all.
func TestFailJob_StoresEventAtomically(t *testing.T) {
	each(t, func(f *fixture) {
		job := func() (id int64) {
			f.Tx(func(tx *db.Tx) (err error) {
				id, _, err = refresh.InsertJob(tx, refresh.Job{Kind: refresh.Bulk, RequestedBy: "who"})
				return err
			})
			return id
		}
		id := job()
		fail := func(point string) {
			killed := errors.New("killed")
			f.Faults = func(p string) error {
				if p == point {
					return killed
				}
				return nil
			}
			err := f.DB.InTx(f.Context(), func(tx *db.Tx) error { return refresh.FailJob(tx, id, "why") })
			f.Faults = nil
			f.Is("transaction was killed "+point, errors.Is(err, killed), true)
		}
		fail("before commit")
		f.Is("state of the job and number of events before the commit", fmt.Sprint(f.job(id).State, len(f.events())), "queued0")
		fail("after commit")
		f.Is("state of the job and number of events after the commit", fmt.Sprint(f.job(id).State, len(f.events())), "failed1")
		f.Tx(func(tx *db.Tx) error { return refresh.FailJob(tx, id, "again") })
		f.Is("number of events after a second call", len(f.events()), 1)
		f.Is("number of event kinds with a count", len(event.Counts(f.DB)), 0)
	})
}

func TestFinishJob_StoresOneEventPerJob(t *testing.T) {
	each(t, func(f *fixture) {
		f.own("u", f.items("A", "B")...)
		id := f.run(10)
		f.Is("events while the job runs", len(f.events()), 0)
		f.finish(id)
		f.finish(id)
		want := []string{fmt.Sprintf(`job.finished {"jobId":"%d","jobKind":"bulk","forced":false,"requestedBy":"test","startedAt":%q,`+
			`"totalItems":2,"updatedItems":2,"changedItems":2,"noQuoteItems":0,"failedItems":0,"lastError":null,"outcome":"complete","gaps":{"items":[],"markets":[]}}`, id, f.Now.Format(time.RFC3339Nano))}
		f.Is("events of the finished job", fmt.Sprint(f.events()), fmt.Sprint(want))

		var failed int64
		f.Tx(func(tx *db.Tx) (err error) {
			if failed, _, err = refresh.InsertJob(tx, refresh.Job{Kind: refresh.Missing, Forced: true, RequestedBy: "queue"}); err != nil {
				return err
			}
			return refresh.FailJob(tx, failed, "no plan")
		})
		want = append([]string{fmt.Sprintf(`job.failed {"jobId":"%d","jobKind":"missing","forced":true,"requestedBy":"queue","startedAt":null,`+
			`"totalItems":0,"updatedItems":0,"changedItems":0,"noQuoteItems":0,"failedItems":0,"lastError":"no plan","outcome":"failed","gaps":{"items":[],"markets":[]}}`, failed)}, want...)
		f.Is("events of the failed job", fmt.Sprint(f.events()), fmt.Sprint(want))

		// A job that lacks a market is partial. It stores the market and the reason.
		f.Now = f.Now.Add(24 * time.Hour)
		partial := f.run(10)
		gaps := []event.MarketGap{{Provider: "s", Market: "m\"★", Reason: "failed", Share: 0.25, Detail: "why"}}
		f.Tx(func(tx *db.Tx) error {
			end, err := refresh.FinishJob(tx, partial, gaps)
			f.Is("outcome of the partial job", end.Outcome, refresh.JobPartial)
			return err
		})
		f.Is("stored outcome and gaps of the partial job", fmt.Sprint(f.job(partial).Outcome, f.job(partial).MarketGaps), fmt.Sprint(refresh.JobPartial, gaps))
		got := f.events()[0]
		f.Is("event begins with the kind job.partial", strings.HasPrefix(got, "job.partial "), true)
		f.Is("event ends with the gaps", strings.HasSuffix(got, `"gaps":{"items":[],"markets":[{"provider":"s","market":"m\"★","reason":"failed","share":0.25,"detail":"why"}]}}`), true)
		last, err := view.LastOutcome(f.Context(), f.DB, refresh.Bulk)
		f.Must(err)
		f.Is("outcome of the last job", last, refresh.JobPartial)
		want = append([]string{got}, want...)

		f.Now = f.Now.Add(24 * time.Hour)
		cancelled := f.run(10)
		f.Tx(func(tx *db.Tx) error { return refresh.CancelJob(tx, cancelled, time.Hour) })
		f.Is("state of the cancelled job", f.finish(cancelled), refresh.Cancelled)
		f.Is("outcome of the cancelled job", f.job(cancelled).Outcome, refresh.JobPartial)
		f.Is("events after the cancelled job", fmt.Sprint(f.events()), fmt.Sprint(want))
	})
}

func TestStoreValidation_QuarantineAddsOneEvent(t *testing.T) {
	each(t, func(f *fixture) {
		m := f.market("s", "m")
		validate := func(quarantine string) {
			f.Helper()
			outcome := refresh.OutcomeOK
			if quarantine != "" {
				outcome = refresh.OutcomeQuarantined
			}
			id := f.plan(refresh.Bulk, 1, unit("s", "f"))
			u := f.fetch("s")
			u.ResponseUnitID = u.ID
			f.storeValidation(id, refresh.ValidationResult{Unit: u, Quarantine: quarantine, Fetch: refresh.MarketFetch{MarketID: m, Quotes: 1, Outcome: outcome}})
			f.Tx(func(tx *db.Tx) error { return refresh.CancelJob(tx, id, 0) })
			f.finish(id)
		}
		of := `"provider":"s","why":"quarantine","host":"","market":"m","appId":730,"file":"f","detail":`
		newest := func(what string, n int, want string) {
			f.Helper()
			f.Is(what+": number of events", len(f.events()), n)
			if n > 0 {
				f.Is(what, f.events()[0], want)
			}
		}
		validate("")
		newest("first good response", 0, "")
		validate("half a catalog")
		newest("first quarantined response", 1, "provider.quarantined {"+of+`"half a catalog"}`)
		validate("less than that")
		newest("second quarantined response", 1, "provider.quarantined {"+of+`"half a catalog"}`)
		validate("")
		newest("good response after a quarantine", 2, "provider.up {"+of+`"the response is accepted again"}`)
		validate("")
		newest("second good response after a quarantine", 2, "provider.up {"+of+`"the response is accepted again"}`)
		validate("cents for dollars")
		accept := func() (n int64) {
			f.Tx(func(tx *db.Tx) (err error) {
				n, err = refresh.AcceptProvider(tx, "s", "")
				return err
			})
			return n
		}
		f.Is("number of accepted markets", accept(), int64(1))
		newest("event of the acceptance", 4, "provider.up {"+of+`"accepted by an operator"}`)
		f.Is("number of markets in a second acceptance", accept(), int64(0))
		newest("newest event after the second acceptance", 4, "provider.up {"+of+`"accepted by an operator"}`)
	})
}

func TestNoteProvider_ReportsAFileThatFailsTwice(t *testing.T) {
	each(t, func(f *fixture) {
		note := func(file, failure string) {
			f.Helper()
			f.Tx(func(tx *db.Tx) error { return refresh.NoteProvider(tx, "s", file, failure) })
		}
		count := func(what string, want int) {
			f.Helper()
			f.Is(what+": number of events", len(f.events()), want)
		}
		note("f", "timeout")
		count("one failure", 0)
		note("f", "")
		count("success after one failure", 0)
		for range 3 {
			note("f", "timeout")
			note("g", "")
			note("", "requests for names fail")
		}
		count("three failures", 1)
		f.Is("event", f.events()[0], `provider.degraded {"provider":"s","why":"fetch","host":"","file":"f","detail":"timeout"}`)
		note("f", "")
		note("f", "")
		note("", "")
		count("recovery", 2)
		f.Is("event of the recovery", f.events()[0], `provider.up {"provider":"s","why":"fetch","host":"","file":"f","detail":"the file can be fetched again"}`)
	})
}

// events returns the newest events as "kind data", the newest first.
func (f *fixture) events() []string {
	f.Helper()
	events, err := event.List(f.Context(), f.DB, 1000)
	f.Must(err)
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = fmt.Sprintf("%s %s", e.Kind, e.Data)
	}
	return out
}

// An estimate that changes only figures writes a point and a change, but no price change. An estimate
// that changes nothing writes neither.
func TestStoreEstimates_NewFiguresAreAChange(t *testing.T) {
	each(t, func(f *fixture) {
		ids := f.items("A", "B")
		name := "A" // the first item by id
		if slices.Sort(ids); f.item("B").ID == ids[0] {
			name = "B"
		}
		f.own("u", ids...)
		m := f.market("s", "m")
		ask := money.Micro(10)
		run := func(change func(*pricing.Priced)) {
			f.Now = f.Now.Add(24 * time.Hour)
			id := f.plan(refresh.Bulk, 1, unit("s", "f"))
			f.fetch("s")
			f.storeValidation(id)
			b := f.claimBatch()
			s := f.estimates(b, 10)
			change(&s.Items[0].Estimate)
			s.Items[0].NewQuotes = []refresh.MarketSnapshot{{MarketID: m, Currency: "USD", Ask: ask, Listings: -1, Sales: -1}}
			f.Tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
			f.Tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
			f.finish(id)
		}
		var last int64
		check := func(what, items, withFigures string) {
			f.Helper()
			f.Must(event.NewFeed(f.DB, slog.New(slog.DiscardHandler)).Number(f.Context()))
			for figures, want := range map[bool]string{false: items, true: withFigures} {
				batches, err := event.Changes(f.Context(), f.DB.Read, last, 10, figures)
				f.Must(err)
				got := []int64{}
				for _, b := range batches {
					got = append(got, b.Items...)
				}
				f.Is(fmt.Sprintf("%s, with figures %t: changes", what, figures), fmt.Sprint(got), want)
			}
			var err error
			last, err = event.LastChange(f.Context(), f.DB.Read)
			f.Must(err)
		}
		first, both := fmt.Sprint(ids[:1]), fmt.Sprint(ids)
		run(func(*pricing.Priced) {})
		check("first prices", both, both)
		run(func(*pricing.Priced) {})
		check("nothing changed", "[]", "[]")
		for what, change := range map[string]func(*pricing.Priced){
			"average":      func(e *pricing.Priced) { e.Average = 11 },
			"interval":     func(e *pricing.Priced) { e.Interval = pricing.Interval{Low: 9, High: 12} },
			"used markets": func(e *pricing.Priced) { e.UsedMarkets = 2 },
		} {
			run(change)
			check(what, "[]", first)
			run(change)
			check(what+" unchanged", "[]", "[]")
			run(func(*pricing.Priced) {})
			check(what+" back", "[]", first)
		}
		// An interval that moves by less than a quarter of its width is not published, not even in the item.
		wide := func(low money.Micro) func(*pricing.Priced) {
			return func(e *pricing.Priced) {
				e.Consensus, e.Interval = low+5000, pricing.Interval{Low: low, High: low + 10_000}
			}
		}
		run(wide(100_000))
		check("wide interval", "[]", first)
		run(wide(102_499))
		check("interval moved by less than a quarter", "[]", "[]")
		item := f.item(name)
		f.Is("interval and consensus of the item", fmt.Sprint(int64(item.Interval.Low), int64(item.Interval.High), int64(item.Consensus)), "100000 110000 105000")
		run(wide(102_500))
		check("interval moved by a quarter since the last change", "[]", first)
		ask = 11
		run(wide(102_501))
		check("interval moved, and a quote changed", "[]", first)
		run(func(e *pricing.Priced) { e.Price, e.Average = 20, 20 })
		check("price and average", first, first)
	})
}
