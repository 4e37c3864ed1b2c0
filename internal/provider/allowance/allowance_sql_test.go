package allowance_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/db/dbtest"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/randtest"
)

// fixture is an empty database that several processes share.
type fixture struct{ *dbtest.Fixture }

func each(t *testing.T, test func(f *fixture)) {
	t.Helper()
	dbtest.Each(t, func(f *dbtest.Fixture) { test(&fixture{f}) })
}

// allowance returns that of a host, as another process would have it.
func (f *fixture) allowance(host string, l provider.Limit, q provider.Quota) provider.Allowance {
	return allowance.New(f.DB, "s", provider.Host{Key: host, Limit: l, Quota: q})
}

// take requests an allowance, and returns for how long it is refused.
func (f *fixture) take(a provider.Allowance) provider.Refusal {
	f.Helper()
	r, err := a.Take(f.Context())
	if err != nil {
		f.Error(err) // also of goroutines
	}
	return r
}

// hold stores a wait that a host demands, and returns for how long it lasts now.
func (f *fixture) hold(a provider.Allowance, o provider.RetryAfter) time.Duration {
	f.Helper()
	wait, err := a.StoreRetryAfter(f.Context(), o)
	f.Must(err)
	return wait
}

// takeAll has several processes send at the same moment, and returns how many requests
// were allowed.
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

// Eight processes send at random moments. In no stretch of the period are there more
// requests than the limit, and when all send there are no fewer.
func TestTake_HoldsALimitInAnyStretch(t *testing.T) {
	each(t, func(f *fixture) {
		rng := randtest.New(f)
		for n := range randtest.Count(4, 60) {
			limit := provider.Limit{Requests: 1 + rng.IntN(12), Per: time.Duration(1+rng.IntN(300)) * time.Second}
			all := f.processes(string(rune('a'+n)), limit, provider.Quota{})
			var sent []time.Time
			for range 12 {
				f.Now = f.Now.Add(time.Duration(rng.Int64N(int64(limit.Per))))
				some := all[:1+rng.IntN(processes)]
				for range f.takeAll(some, 1+rng.IntN(2)) {
					sent = append(sent, f.Now)
				}
			}
			for i := limit.Requests; i < len(sent); i++ {
				if span := sent[i].Sub(sent[i-limit.Requests]); span < limit.Stretch() {
					f.Fatalf("limit %v: %d requests within %v", limit, limit.Requests+1, span)
				}
			}
			f.Now = f.Now.Add(limit.Stretch())
			f.Is("all that the limit allows", f.takeAll(all, 2), min(limit.Requests, 2*processes))
		}
	})
}

// There are more requests than slots: several share one.
func TestTake_HoldsALimitOfManyRequests(t *testing.T) {
	each(t, func(f *fixture) {
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
		f.Is("half of them", take(450), 450)
		f.Now = f.Now.Add(30 * time.Second)
		f.Is("the rest", take(451), 450)
		f.Now = f.Now.Add(limit.Stretch() - 30*time.Second - time.Microsecond)
		f.Is("while all count", take(1), 0)
		f.Now = f.Now.Add(time.Microsecond)
		// One slot may have requests of both halves.
		if n := take(460); n < 446 || n > 450 {
			f.Errorf("%d requests when the first half no longer counts", n)
		}
	})
}

// Two users of one host: one leaves a part of its limit to the other, whichever sends
// first.
func TestTake_LeavesAShareOfALimitToOthers(t *testing.T) {
	each(t, func(f *fixture) {
		for host, few := range map[string]int{"few": 10, "many": 800} { // those of many share slots
			share := provider.Host{Key: host, Limit: provider.Limit{Requests: few, Per: time.Minute}, Others: few / 2}
			whole := provider.Host{Key: host, Limit: provider.Limit{Requests: few + few/2, Per: time.Minute}}
			some, all := allowance.New(f.DB, "s", share), allowance.New(f.DB, "s", whole)
			take := func(a provider.Allowance, most int) (sent int) {
				for sent < most && f.take(a).Wait == 0 {
					sent++
				}
				return sent
			}
			f.Is("its share", take(some, 2*few), few)
			f.Is("what it left", take(all, 2*few), few/2)
			f.Now = f.Now.Add(share.Limit.Stretch())
			f.Is("all of it, while the other sends nothing", take(all, 2*few), few+few/2)
			f.Is("what is left then", take(some, 1), 0)
			f.Now = f.Now.Add(share.Limit.Stretch())
			if host == "few" {
				f.Is("what was kept", take(all, few/2), few/2)
				f.Is("and the share", take(some, 2*few), few)
			}
		}
	})
}

func TestTake_HoldsALoweredLimitAtOnce(t *testing.T) {
	each(t, func(f *fixture) {
		limit := provider.Limit{Requests: 20, Per: time.Minute}
		f.Is("at the old limit", f.takeAll([]provider.Allowance{f.allowance("h", limit, provider.Quota{})}, 25), 20)
		f.Now = f.Now.Add(limit.Per / 2)
		lower := f.allowance("h", provider.Limit{Requests: 3, Per: time.Minute}, provider.Quota{})
		f.Is("at once", f.takeAll([]provider.Allowance{lower}, 5), 0)
		f.Now = f.Now.Add(limit.Stretch())
		f.Is("at the new limit", f.takeAll([]provider.Allowance{lower}, 5), 3)
		higher := f.allowance("h", provider.Limit{Requests: 5, Per: time.Minute}, provider.Quota{})
		f.Is("at a higher one", f.takeAll([]provider.Allowance{higher}, 5), 2)
	})
}

func TestTake_RenewsQuotasWithTheirDayAndMonth(t *testing.T) {
	each(t, func(f *fixture) {
		f.Now = time.Date(2026, 1, 30, 23, 59, 0, 0, time.UTC)
		quota := provider.Quota{Day: 10, Month: 25}
		all := f.processes("h", provider.Limit{}, quota)
		f.Is("the first day", f.takeAll(all, 3), 10)
		r := f.take(all[0])
		f.Is("refused until", r, provider.Refusal{
			Kind: provider.KindBudget, Wait: time.Minute, Quota: provider.Day, ResetsAt: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
		})
		f.Now = f.Now.Add(r.Wait - time.Microsecond)
		f.Is("up to its end", f.takeAll(all, 1), 0)
		f.Now = f.Now.Add(time.Microsecond)
		f.Is("the second day", f.takeAll(all, 3), 10)
		f.Now = f.Now.Add(24 * time.Hour)
		f.Is("the next month", f.takeAll(all, 3), 10)
		f.Now = f.Now.Add(24 * time.Hour)
		f.Is("its second day", f.takeAll(all, 3), 10)
		f.Now = f.Now.Add(24 * time.Hour)
		f.Is("what the month leaves", f.takeAll(all, 3), 5)
		r = f.take(all[0])
		f.Is("refused until", r.ResetsAt, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
		f.Is("for", r.Quota, provider.Month)

		b, _, err := allowance.New(f.DB, "s", provider.Host{Key: "h", Quota: quota}).State(f.Context())
		f.Must(err)
		f.Is("quotas", len(b.Quotas), 2)
		for i := range b.Quotas {
			b.Quotas[i].Forecast = provider.Forecast{}
		}
		f.Is("of the day", b.Quotas[0], provider.QuotaUsed{Period: provider.Day, Limit: 10, Used: 5, Left: 5, ResetsAt: f.Now.Truncate(24 * time.Hour).Add(24 * time.Hour)})
		f.Is("of the month", b.Quotas[1], provider.QuotaUsed{Period: provider.Month, Limit: 25, Used: 25, ResetsAt: r.ResetsAt})
	})
}

// Each of a limit and two quotas refuses in turn: the others must not have counted the
// request.
func TestTake_DoesNotCountRefusedRequests(t *testing.T) {
	each(t, func(f *fixture) {
		host := provider.Host{Key: "h", Limit: provider.Limit{Requests: 2, Per: time.Minute}, Quota: provider.Quota{Day: 3, Month: 100}}
		a := allowance.New(f.DB, "s", host)
		state := func(used int, day, month int64) {
			f.Helper()
			b, _, err := a.State(f.Context())
			f.Must(err)
			f.Is("used of the limit", b.Used, used)
			f.Is("left of the limit", b.Left, 2-used)
			f.Is("used of the day", b.Quotas[0].Used, day)
			f.Is("used of the month", b.Quotas[1].Used, month)
		}
		state(0, 0, 0)
		f.Is("let through", f.takeAll([]provider.Allowance{a}, 10), 2)
		state(2, 2, 2)
		f.Is("until a slot is free", f.take(a).Wait, host.Limit.Stretch())
		f.Now = f.Now.Add(2 * time.Minute)
		f.Is("let through", f.takeAll([]provider.Allowance{a}, 10), 1)
		f.Is("for its quota", f.take(a).Quota, provider.Day)
		state(1, 3, 3)
	})
}

// Each request is sent by a new allowance, as by a process that restarts.
func TestTake_CountsAcrossRestarts(t *testing.T) {
	each(t, func(f *fixture) {
		sent := 0
		for range 10 {
			if f.take(f.allowance("h", provider.Limit{Requests: 4, Per: time.Hour}, provider.Quota{Day: 100})).Wait == 0 {
				sent++
			}
			f.Now = f.Now.Add(time.Minute)
		}
		f.Is("sent", sent, 4)
	})
}

// The clock is set back by more than anything lasts. What was sent counts for its period
// from the moment when that is seen, and a retry-after is kept in full.
func TestTake_AClockSetBackNeitherBlocksNorAllowsMore(t *testing.T) {
	each(t, func(f *fixture) {
		limit := provider.Limit{Requests: 3, Per: time.Minute}
		for _, by := range []time.Duration{time.Hour, 400 * 24 * time.Hour} {
			a := f.allowance(by.String(), limit, provider.Quota{Day: 7})
			all := []provider.Allowance{a}
			f.Is("sent", f.takeAll(all, 2), 2)
			f.Now = f.Now.Add(-by)
			f.Is("what is left", f.takeAll(all, 5), 1)
			wait := f.take(a).Wait
			f.Is("refused for a period", wait > 0 && wait <= limit.Stretch(), true)
			f.Now = f.Now.Add(wait)
			f.Is("the next period", f.takeAll(all, 5), 3)

			f.hold(a, provider.RetryAfter{Wait: time.Minute})
			f.Now = f.Now.Add(-by)
			f.Is("a retry-after", f.take(a), provider.Refusal{Kind: provider.KindRateLimited, Wait: time.Minute})
			f.Must(a.StoreReported(f.Context(), provider.Rate{Reset: time.Minute}))
			f.Now = f.Now.Add(-by)
			f.Is("a reported quota", f.take(a).Wait, time.Minute)
			f.Now = f.Now.Add(limit.Stretch())
			f.Is("its end, and the rest of the quota", f.takeAll(all, 5), 1)
			r := f.take(a)
			f.Is("a quota of the day that now is", r.Quota, provider.Day)
			f.Is("which ends", r.Wait <= 24*time.Hour, true)
			f.Now = f.Now.Add(r.Wait + limit.Stretch())
			f.Is("and then", f.takeAll(all, 5), 3)
		}
	})
}
