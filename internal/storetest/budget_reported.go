package storetest

import (
	"time"

	"assay/internal/db"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/refresh"
)

// hostsSay has a host say that it leaves fewer requests than are counted, to one of
// eight processes.
func hostsSay(f *fixture) {
	for _, limit := range []provider.Limit{{}, {Requests: 20, Per: time.Minute}} {
		all := f.processes(limit.Per.String(), limit, provider.Quota{})
		f.is("before", f.takeAll(all[:1], 2), 2)
		f.must(all[0].StoreReported(f.Context(), provider.Rate{Limit: 30, Left: 5, Reset: time.Hour}))
		f.is("after", f.takeAll(all, 3), 5)
		at := f.now
		f.is("refused", f.take(all[1]), provider.Refusal{Kind: provider.KindBudget, Wait: time.Hour, ResetsAt: at.Add(time.Hour)})

		b, blocked, err := allowance.New(f.s, "s", provider.Host{Key: limit.Per.String(), Limit: limit}).State(f.Context())
		f.must(err)
		f.is("told", *b.Reported, provider.ReportedQuota{Limit: 30, At: at, ResetsAt: at.Add(time.Hour)})
		f.is("our own count", b.Left, max(0, limit.Requests-7))
		f.is("no order to wait", blocked.IsZero(), true)

		f.is("not of another host", f.take(f.allowance("other", limit, provider.Quota{})).Wait, time.Duration(0))
		f.now = f.now.Add(time.Hour - time.Microsecond)
		f.is("up to its reset", f.takeAll(all, 1), 0)
		f.now = f.now.Add(time.Microsecond)
		f.is("and no longer", f.takeAll(all, 1), processes)
	}
}

func hostsNeverAdd(f *fixture) {
	a := f.allowance("h", provider.Limit{Requests: 3, Per: time.Minute}, provider.Quota{Day: 4})
	all := []provider.Allowance{a}
	f.must(a.StoreReported(f.Context(), provider.Rate{Limit: 100, Left: 99, Reset: time.Hour}))
	f.is("within the limit", f.takeAll(all, 5), 3)
	f.must(a.StoreReported(f.Context(), provider.Rate{Limit: 100, Left: 99, Reset: time.Hour}))
	f.is("the limit is used up", f.takeAll(all, 5), 0)
	f.now = f.now.Add(2 * time.Minute)
	f.is("within the quota", f.takeAll(all, 5), 1)
	b, _, err := allowance.New(f.s, "s", provider.Host{Key: "h"}).State(f.Context())
	f.must(err)
	f.is("what is refused does not count with the host", b.Reported.Left, int64(95))
}

// hostsSayLess tells of one window in any order, and then of the next.
func hostsSayLess(f *fixture) {
	a := allowance.New(f.s, "s", provider.Host{Key: "h"})
	left := func(what string, want int64) {
		f.Helper()
		b, _, err := a.State(f.Context())
		f.must(err)
		f.is(what, b.Reported.Left, want)
	}
	f.must(a.StoreReported(f.Context(), provider.Rate{Limit: 10, Left: 6, Reset: time.Minute}))
	f.is("sent", f.takeAll([]provider.Allowance{a}, 2), 2)
	f.must(a.StoreReported(f.Context(), provider.Rate{Limit: 10, Left: 7, Reset: time.Minute + time.Second}))
	left("an answer that was late", 4)
	f.must(a.StoreReported(f.Context(), provider.Rate{Limit: 10, Left: 1, Reset: time.Minute - time.Second}))
	left("others ask, too", 1)
	f.must(a.StoreReported(f.Context(), provider.Rate{Limit: 10, Left: 9, Reset: 2 * time.Minute}))
	left("another window", 9)
	f.now = f.now.Add(2 * time.Minute)
	b, _, err := a.State(f.Context())
	f.must(err)
	f.is("after it", b.Reported == nil, true)
}

func hostsSayQuotas(f *fixture) {
	f.now = time.Date(2026, 2, 10, 12, 0, 0, 0, time.UTC)
	host := provider.Host{Key: "h", Quota: provider.Quota{Month: 1000}, Headers: provider.HeadersOfMonth}
	a := allowance.New(f.s, "s", host)
	reset := 18 * 24 * time.Hour
	f.must(a.StoreReported(f.Context(), provider.Rate{Limit: 1000, Left: 2, Reset: reset}))
	f.is("left", f.takeAll([]provider.Allowance{a}, 5), 2)
	f.is("refused", f.take(a), provider.Refusal{
		Kind: provider.KindBudget, Wait: reset, Quota: provider.Month, ResetsAt: f.now.Add(reset),
	})
	ignoring := allowance.New(f.s, "s", provider.Host{Key: "h", Headers: provider.HeadersIgnored})
	f.is("where it is not believed", f.take(ignoring).Wait, time.Duration(0))
}

// aResumedHostIsBelievedNoMore has a host leave nothing, by mistake.
func aResumedHostIsBelievedNoMore(f *fixture) {
	all := f.processes("h", provider.Limit{Requests: 20, Per: time.Minute}, provider.Quota{Day: 3})
	f.must(all[0].StoreReported(f.Context(), provider.Rate{Limit: 30, Left: 0, Reset: time.Hour}))
	f.must(allowance.New(f.s, "other", provider.Host{Key: "h"}).StoreReported(f.Context(), provider.Rate{Left: 0, Reset: time.Hour}))
	f.is("refused", f.takeAll(all, 1), 0)
	f.tx(func(tx *db.Tx) error { return refresh.PauseProvider(tx, "s", true) })
	f.is("paused", f.takeAll(all, 1), 0)
	f.tx(func(tx *db.Tx) error { return refresh.PauseProvider(tx, "s", false) })
	f.is("resumed, up to its quota", f.takeAll(all, 1), 3)
	f.is("not of another provider", f.take(allowance.New(f.s, "other", provider.Host{Key: "h"})).Wait, time.Hour)
	f.must(all[0].StoreReported(f.Context(), provider.Rate{Limit: 30, Left: 0, Reset: time.Hour}))
	f.is("told again", f.take(all[1]).Wait, time.Hour)
}
