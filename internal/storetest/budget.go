package storetest

import (
	"sync"
	"sync/atomic"
	"time"

	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/randtest"
)

// allowance returns that of a host, as another process would have it.
func (f *fixture) allowance(host string, l provider.Limit, q provider.Quota) provider.Allowance {
	return allowance.New(f.s, "s", provider.Host{Key: host, Limit: l, Quota: q})
}

// take asks an allowance, and returns for how long it refuses.
func (f *fixture) take(a provider.Allowance) provider.Refusal {
	f.Helper()
	r, err := a.Take(f.Context())
	if err != nil {
		f.Error(err) // also of goroutines
	}
	return r
}

// hold gives an order to wait, and returns for how long it lasts now.
func (f *fixture) hold(a provider.Allowance, o provider.RetryAfter) time.Duration {
	f.Helper()
	wait, err := a.StoreRetryAfter(f.Context(), o)
	f.must(err)
	return wait
}

// takeAll has several processes ask at the same moment, and returns how many
// requests were let through.
func (f *fixture) takeAll(all []provider.Allowance, each int) int {
	f.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	for _, a := range all {
		wg.Go(func() {
			for range each {
				if f.take(a).Wait == 0 {
					n.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return int(n.Load())
}

const processes = 8

func (f *fixture) processes(host string, l provider.Limit, q provider.Quota) []provider.Allowance {
	all := make([]provider.Allowance, processes)
	for i := range all {
		all[i] = f.allowance(host, l, q)
	}
	return all
}

// limitsHold lets eight processes ask at random moments. In no stretch of the
// period is there ever more than the limit, and when all ask there is no less.
func limitsHold(f *fixture) {
	rng := randtest.New(f)
	for n := range randtest.Count(4, 60) {
		limit := provider.Limit{Requests: 1 + rng.IntN(12), Per: time.Duration(1+rng.IntN(300)) * time.Second}
		all := f.processes(string(rune('a'+n)), limit, provider.Quota{})
		var sent []time.Time
		for range 12 {
			f.now = f.now.Add(time.Duration(rng.Int64N(int64(limit.Per))))
			some := all[:1+rng.IntN(processes)]
			for range f.takeAll(some, 1+rng.IntN(2)) {
				sent = append(sent, f.now)
			}
		}
		for i := limit.Requests; i < len(sent); i++ {
			if span := sent[i].Sub(sent[i-limit.Requests]); span < limit.Stretch() {
				f.Fatalf("limit %v: %d requests within %v", limit, limit.Requests+1, span)
			}
		}
		f.now = f.now.Add(limit.Stretch())
		f.is("all that the limit allows", f.takeAll(all, 2), min(limit.Requests, 2*processes))
	}
}

// shares has two who share a host, one of whom leaves some of its limit to the
// other, whoever comes first.
func shares(f *fixture) {
	for host, few := range map[string]int{"few": 10, "many": 800} { // those of many share slots
		share := provider.Host{Key: host, Limit: provider.Limit{Requests: few, Per: time.Minute}, Others: few / 2}
		whole := provider.Host{Key: host, Limit: provider.Limit{Requests: few + few/2, Per: time.Minute}}
		some, all := allowance.New(f.s, "s", share), allowance.New(f.s, "s", whole)
		take := func(a provider.Allowance, most int) (sent int) {
			for sent < most && f.take(a).Wait == 0 {
				sent++
			}
			return sent
		}
		f.is("its share", take(some, 2*few), few)
		f.is("what it left", take(all, 2*few), few/2)
		f.now = f.now.Add(share.Limit.Stretch())
		f.is("all of it, while the other wants none", take(all, 2*few), few+few/2)
		f.is("what is left then", take(some, 1), 0)
		f.now = f.now.Add(share.Limit.Stretch())
		if host == "few" {
			f.is("what was kept", take(all, few/2), few/2)
			f.is("and the share", take(some, 2*few), few)
		}
	}
}

// largeLimits has more requests than slots: several share one.
func largeLimits(f *fixture) {
	limit := provider.Limit{Requests: 900, Per: time.Minute} // 225 slots of 4
	a := f.allowance("h", limit, provider.Quota{})
	take := func(n int) (sent int) {
		for range n {
			if f.take(a).Wait == 0 {
				sent++
			}
		}
		return sent
	}
	f.is("half of them", take(450), 450)
	f.now = f.now.Add(30 * time.Second)
	f.is("the rest", take(451), 450)
	f.now = f.now.Add(limit.Stretch() - 30*time.Second - time.Microsecond)
	f.is("while all count", take(1), 0)
	f.now = f.now.Add(time.Microsecond)
	// One slot may have requests of both halves.
	if n := take(460); n < 446 || n > 450 {
		f.Errorf("%d requests when the first half no longer counts", n)
	}
}

func lowersLimits(f *fixture) {
	limit := provider.Limit{Requests: 20, Per: time.Minute}
	f.is("at the old limit", f.takeAll([]provider.Allowance{f.allowance("h", limit, provider.Quota{})}, 25), 20)
	f.now = f.now.Add(limit.Per / 2)
	lower := f.allowance("h", provider.Limit{Requests: 3, Per: time.Minute}, provider.Quota{})
	f.is("at once", f.takeAll([]provider.Allowance{lower}, 5), 0)
	f.now = f.now.Add(limit.Stretch())
	f.is("at the new limit", f.takeAll([]provider.Allowance{lower}, 5), 3)
	higher := f.allowance("h", provider.Limit{Requests: 5, Per: time.Minute}, provider.Quota{})
	f.is("at a higher one", f.takeAll([]provider.Allowance{higher}, 5), 2)
}

func quotas(f *fixture) {
	f.now = time.Date(2026, 1, 30, 23, 59, 0, 0, time.UTC)
	quota := provider.Quota{Day: 10, Month: 25}
	all := f.processes("h", provider.Limit{}, quota)
	f.is("the first day", f.takeAll(all, 3), 10)
	r := f.take(all[0])
	f.is("refused until", r, provider.Refusal{
		Kind: provider.KindBudget, Wait: time.Minute, Quota: provider.Day, ResetsAt: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
	})
	f.now = f.now.Add(r.Wait - time.Microsecond)
	f.is("up to its end", f.takeAll(all, 1), 0)
	f.now = f.now.Add(time.Microsecond)
	f.is("the second day", f.takeAll(all, 3), 10)
	f.now = f.now.Add(24 * time.Hour)
	f.is("the next month", f.takeAll(all, 3), 10)
	f.now = f.now.Add(24 * time.Hour)
	f.is("its second day", f.takeAll(all, 3), 10)
	f.now = f.now.Add(24 * time.Hour)
	f.is("what the month leaves", f.takeAll(all, 3), 5)
	r = f.take(all[0])
	f.is("refused until", r.ResetsAt, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	f.is("for", r.Quota, provider.Month)

	b, _, err := allowance.New(f.s, "s", provider.Host{Key: "h", Quota: quota}).State(f.Context())
	f.must(err)
	f.is("quotas", len(b.Quotas), 2)
	for i := range b.Quotas {
		b.Quotas[i].Forecast = provider.Forecast{}
	}
	f.is("of the day", b.Quotas[0], provider.QuotaUsed{Period: provider.Day, Limit: 10, Used: 5, Left: 5, ResetsAt: f.now.Truncate(24 * time.Hour).Add(24 * time.Hour)})
	f.is("of the month", b.Quotas[1], provider.QuotaUsed{Period: provider.Month, Limit: 25, Used: 25, ResetsAt: r.ResetsAt})
}

// refusals takes from a limit and two quotas, of which any may be the one that
// refuses: the others must not have counted the request.
func refusals(f *fixture) {
	host := provider.Host{Key: "h", Limit: provider.Limit{Requests: 2, Per: time.Minute}, Quota: provider.Quota{Day: 3, Month: 100}}
	a := allowance.New(f.s, "s", host)
	state := func(used int, day, month int64) {
		f.Helper()
		b, _, err := a.State(f.Context())
		f.must(err)
		f.is("used of the limit", b.Used, used)
		f.is("left of the limit", b.Left, 2-used)
		f.is("used of the day", b.Quotas[0].Used, day)
		f.is("used of the month", b.Quotas[1].Used, month)
	}
	state(0, 0, 0)
	f.is("let through", f.takeAll([]provider.Allowance{a}, 10), 2)
	state(2, 2, 2)
	f.is("until a slot is free", f.take(a).Wait, host.Limit.Stretch())
	f.now = f.now.Add(2 * time.Minute)
	f.is("let through", f.takeAll([]provider.Allowance{a}, 10), 1)
	f.is("for its quota", f.take(a).Quota, provider.Day)
	state(1, 3, 3)
}

// budgetsLast asks by an allowance that is made anew each time, as by a process
// that restarts.
func budgetsLast(f *fixture) {
	sent := 0
	for range 10 {
		if f.take(f.allowance("h", provider.Limit{Requests: 4, Per: time.Hour}, provider.Quota{Day: 100})).Wait == 0 {
			sent++
		}
		f.now = f.now.Add(time.Minute)
	}
	f.is("sent", sent, 4)
}

func orders(f *fixture) {
	for _, limit := range []provider.Limit{{}, {Requests: 5, Per: time.Second}} {
		f.is("let through", f.take(f.allowance("a", limit, provider.Quota{})).Wait, time.Duration(0))
		f.is("followed", f.hold(f.allowance("a", limit, provider.Quota{}), provider.RetryAfter{Wait: time.Hour}), time.Hour)
		f.is("not shortened", f.hold(f.allowance("a", limit, provider.Quota{}), provider.RetryAfter{Wait: time.Minute}), time.Hour)
		other := f.allowance("a", limit, provider.Quota{})
		f.is("seen by others", f.take(other), provider.Refusal{Kind: provider.KindRateLimited, Wait: time.Hour})
		_, until, err := allowance.New(f.s, "s", provider.Host{Key: "a", Limit: limit}).State(f.Context())
		f.must(err)
		f.is("shown", until.Equal(f.now.Add(time.Hour)), true)
		f.is("not of another host", f.take(f.allowance("b", limit, provider.Quota{})).Wait, time.Duration(0))
		f.now = f.now.Add(time.Hour - time.Microsecond)
		f.is("up to its end", f.take(other).Wait, time.Microsecond)
		f.now = f.now.Add(time.Microsecond)
		f.is("and no longer", f.take(other).Wait, time.Duration(0))
	}
}

// ordersGrow asks by an allowance that is made anew each time, as by another
// process or after a restart.
func ordersGrow(f *fixture) {
	unstated := provider.RetryAfter{Wait: 10 * time.Minute, Most: time.Hour}
	hold := func() time.Duration {
		return f.hold(f.allowance("g", provider.Limit{Requests: 5, Per: time.Second}, provider.Quota{}), unstated)
	}
	for _, minutes := range []int{10, 20, 40, 60, 60} {
		want := time.Duration(minutes) * time.Minute
		f.is("refused again", hold(), want)
		f.is("and another request that was on its way", hold(), want)
		f.now = f.now.Add(want)
	}
	f.now = f.now.Add(time.Hour)
	f.is("long after", hold(), 10*time.Minute)
}

// setBack sets the clock back by more than anything lasts. What was sent counts
// for its period from when that is seen, and an order is followed in full.
func setBack(f *fixture) {
	limit := provider.Limit{Requests: 3, Per: time.Minute}
	for _, by := range []time.Duration{time.Hour, 400 * 24 * time.Hour} {
		a := f.allowance(by.String(), limit, provider.Quota{Day: 7})
		all := []provider.Allowance{a}
		f.is("sent", f.takeAll(all, 2), 2)
		f.now = f.now.Add(-by)
		f.is("what is left", f.takeAll(all, 5), 1)
		wait := f.take(a).Wait
		f.is("refused for a period", wait > 0 && wait <= limit.Stretch(), true)
		f.now = f.now.Add(wait)
		f.is("the next period", f.takeAll(all, 5), 3)

		f.hold(a, provider.RetryAfter{Wait: time.Minute})
		f.now = f.now.Add(-by)
		f.is("an order", f.take(a), provider.Refusal{Kind: provider.KindRateLimited, Wait: time.Minute})
		f.must(a.StoreReported(f.Context(), provider.Rate{Reset: time.Minute}))
		f.now = f.now.Add(-by)
		f.is("what the host said", f.take(a).Wait, time.Minute)
		f.now = f.now.Add(limit.Stretch())
		f.is("its end, and the rest of the quota", f.takeAll(all, 5), 1)
		r := f.take(a)
		f.is("a quota of the day that now is", r.Quota, provider.Day)
		f.is("which ends", r.Wait <= 24*time.Hour, true)
		f.now = f.now.Add(r.Wait + limit.Stretch())
		f.is("and then", f.takeAll(all, 5), 3)
	}
}
