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

// fixture is an empty database for several processes.
type fixture struct{ *dbtest.Fixture }

func each(t *testing.T, test func(f *fixture)) {
	t.Helper()
	dbtest.Each(t, func(f *dbtest.Fixture) { test(&fixture{f}) })
}

// allowance returns the allowance of a host, as in a new process.
func (f *fixture) allowance(host string, l provider.Limit, q provider.Quota) provider.Allowance {
	return allowance.New(f.DB, "s", provider.Host{Key: host, Limit: l, Quota: q})
}

// take calls Take and returns the refusal.
func (f *fixture) take(a provider.Allowance) provider.Refusal {
	f.Helper()
	r, err := a.Take(f.Context())
	if err != nil {
		f.Errorf("got error %v, want none", err) // unlike Fatalf, Errorf may be called from other goroutines
	}
	return r
}

// storeRetryAfter stores a wait of a host and returns the remaining wait.
func (f *fixture) storeRetryAfter(a provider.Allowance, r provider.RetryAfter) time.Duration {
	f.Helper()
	wait, err := a.StoreRetryAfter(f.Context(), r)
	f.Must(err)
	return wait
}

// takeAll sends requests from several processes concurrently. It returns the number of allowed
// requests.
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

// Eight processes send requests at random times. Every interval of one period has at most as
// many requests as the limit. When all processes send, the whole limit is used.
func TestTake_KeepsLimitInEveryInterval(t *testing.T) {
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
					f.Fatalf("limit %v: got %d requests within %v, want more than the period of the limit", limit, limit.Requests+1, span)
				}
			}
			f.Now = f.Now.Add(limit.Stretch())
			f.Is("allowed requests up to the limit", f.takeAll(all, 2), min(limit.Requests, 2*processes))
		}
	})
}

// The limit has more requests than slots, so several requests share a slot.
func TestTake_KeepsLimitOfManyRequests(t *testing.T) {
	each(t, func(f *fixture) {
		limit := provider.Limit{Requests: 900, Per: time.Minute} // 225 slots of 4 requests
		a := f.allowance("h", limit, provider.Quota{})
		take := func(n int) (sent int) {
			for range n {
				if f.take(a).Wait == 0 {
					sent++
				}
			}
			return sent
		}
		f.Is("allowed requests of the first half", take(450), 450)
		f.Now = f.Now.Add(30 * time.Second)
		f.Is("allowed requests of the second half", take(451), 450)
		f.Now = f.Now.Add(limit.Stretch() - 30*time.Second - time.Microsecond)
		f.Is("allowed requests while all count", take(1), 0)
		f.Now = f.Now.Add(time.Microsecond)
		// One slot may have requests from both halves.
		if n := take(460); n < 446 || n > 450 {
			f.Errorf("first half no longer counts: got %d requests, want 446 to 450", n)
		}
	})
}

// Two users share one host. The first user leaves a part of the limit to the second, in any
// order of requests.
func TestTake_LeavesPartOfLimitToOthers(t *testing.T) {
	each(t, func(f *fixture) {
		for host, few := range map[string]int{"few": 10, "many": 800} { // the requests of "many" share slots
			share := provider.Host{Key: host, Limit: provider.Limit{Requests: few, Per: time.Minute}, Reserved: few / 2}
			whole := provider.Host{Key: host, Limit: provider.Limit{Requests: few + few/2, Per: time.Minute}}
			some, all := allowance.New(f.DB, "s", share), allowance.New(f.DB, "s", whole)
			take := func(a provider.Allowance, limit int) (sent int) {
				for sent < limit && f.take(a).Wait == 0 {
					sent++
				}
				return sent
			}
			f.Is("allowed requests of the first user", take(some, 2*few), few)
			f.Is("allowed requests of the second user", take(all, 2*few), few/2)
			f.Now = f.Now.Add(share.Limit.Stretch())
			f.Is("allowed requests of the second user alone", take(all, 2*few), few+few/2)
			f.Is("allowed requests of the first user after that", take(some, 1), 0)
			f.Now = f.Now.Add(share.Limit.Stretch())
			if host == "few" {
				f.Is("allowed requests of the second user, reserved part", take(all, few/2), few/2)
				f.Is("allowed requests of the first user, own part", take(some, 2*few), few)
			}
		}
	})
}

func TestTake_AppliesLoweredLimitImmediately(t *testing.T) {
	each(t, func(f *fixture) {
		limit := provider.Limit{Requests: 20, Per: time.Minute}
		f.Is("allowed requests with the old limit", f.takeAll([]provider.Allowance{f.allowance("h", limit, provider.Quota{})}, 25), 20)
		f.Now = f.Now.Add(limit.Per / 2)
		lower := f.allowance("h", provider.Limit{Requests: 3, Per: time.Minute}, provider.Quota{})
		f.Is("allowed requests immediately after the change", f.takeAll([]provider.Allowance{lower}, 5), 0)
		f.Now = f.Now.Add(limit.Stretch())
		f.Is("allowed requests with the new limit", f.takeAll([]provider.Allowance{lower}, 5), 3)
		higher := f.allowance("h", provider.Limit{Requests: 5, Per: time.Minute}, provider.Quota{})
		f.Is("allowed requests with a higher limit", f.takeAll([]provider.Allowance{higher}, 5), 2)
	})
}

func TestTake_ResetsQuotasEveryDayAndMonth(t *testing.T) {
	each(t, func(f *fixture) {
		f.Now = time.Date(2026, 1, 30, 23, 59, 0, 0, time.UTC)
		quota := provider.Quota{Day: 10, Month: 25}
		all := f.processes("h", provider.Limit{}, quota)
		f.Is("allowed requests of the first day", f.takeAll(all, 3), 10)
		r := f.take(all[0])
		f.Is("refusal by the day quota", r, provider.Refusal{
			Kind: provider.KindBudget, Wait: time.Minute, Quota: provider.Day, ResetsAt: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
		})
		f.Now = f.Now.Add(r.Wait - time.Microsecond)
		f.Is("allowed requests at the end of the first day", f.takeAll(all, 1), 0)
		f.Now = f.Now.Add(time.Microsecond)
		f.Is("allowed requests of the second day", f.takeAll(all, 3), 10)
		f.Now = f.Now.Add(24 * time.Hour)
		f.Is("allowed requests of the first day of the next month", f.takeAll(all, 3), 10)
		f.Now = f.Now.Add(24 * time.Hour)
		f.Is("allowed requests of the second day of the month", f.takeAll(all, 3), 10)
		f.Now = f.Now.Add(24 * time.Hour)
		f.Is("allowed requests of the rest of the month", f.takeAll(all, 3), 5)
		r = f.take(all[0])
		f.Is("renewal after the refusal by the month quota", r.ResetsAt, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
		f.Is("quota that refused the request", r.Quota, provider.Month)

		b, _, err := allowance.New(f.DB, "s", provider.Host{Key: "h", Quota: quota}).State(f.Context())
		f.Must(err)
		f.Is("number of quotas", len(b.Quotas), 2)
		for i := range b.Quotas {
			b.Quotas[i].Forecast = provider.Forecast{}
		}
		f.Is("quota of the day", b.Quotas[0], provider.QuotaUsed{Period: provider.Day, Limit: 10, Used: 5, Left: 5, ResetsAt: f.Now.Truncate(24 * time.Hour).Add(24 * time.Hour)})
		f.Is("quota of the month", b.Quotas[1], provider.QuotaUsed{Period: provider.Month, Limit: 25, Used: 25, ResetsAt: r.ResetsAt})
	})
}

// First the rate limit and then the daily quota refuse a request. A refused request must not
// count towards the limit or any quota.
func TestTake_DoesNotCountRefusedRequests(t *testing.T) {
	each(t, func(f *fixture) {
		host := provider.Host{Key: "h", Limit: provider.Limit{Requests: 2, Per: time.Minute}, Quota: provider.Quota{Day: 3, Month: 100}}
		a := allowance.New(f.DB, "s", host)
		state := func(used int, day, month int64) {
			f.Helper()
			b, _, err := a.State(f.Context())
			f.Must(err)
			f.Is("limit used", b.Used, used)
			f.Is("limit left", b.Left, 2-used)
			f.Is("day quota used", b.Quotas[0].Used, day)
			f.Is("month quota used", b.Quotas[1].Used, month)
		}
		state(0, 0, 0)
		f.Is("allowed requests within the limit", f.takeAll([]provider.Allowance{a}, 10), 2)
		state(2, 2, 2)
		f.Is("wait until a slot is free", f.take(a).Wait, host.Limit.Stretch())
		f.Now = f.Now.Add(2 * time.Minute)
		f.Is("allowed requests within the day quota", f.takeAll([]provider.Allowance{a}, 10), 1)
		f.Is("quota that refused the request", f.take(a).Quota, provider.Day)
		state(1, 3, 3)
	})
}

// A new allowance sends each request, as after a restart.
func TestTake_CountsAcrossRestarts(t *testing.T) {
	each(t, func(f *fixture) {
		sent := 0
		for range 10 {
			if f.take(f.allowance("h", provider.Limit{Requests: 4, Per: time.Hour}, provider.Quota{Day: 100})).Wait == 0 {
				sent++
			}
			f.Now = f.Now.Add(time.Minute)
		}
		f.Is("sent requests", sent, 4)
	})
}

// The clock is set back further than any period. Earlier requests count for one period from
// the moment of detection. A retry-after lasts its full time.
func TestTake_HandlesClockSetBack(t *testing.T) {
	each(t, func(f *fixture) {
		limit := provider.Limit{Requests: 3, Per: time.Minute}
		for _, by := range []time.Duration{time.Hour, 400 * 24 * time.Hour} {
			a := f.allowance(by.String(), limit, provider.Quota{Day: 7})
			all := []provider.Allowance{a}
			f.Is("sent requests before the clock is set back", f.takeAll(all, 2), 2)
			f.Now = f.Now.Add(-by)
			f.Is("allowed requests of the rest of the limit", f.takeAll(all, 5), 1)
			wait := f.take(a).Wait
			f.Is("the wait is at most a period", wait > 0 && wait <= limit.Stretch(), true)
			f.Now = f.Now.Add(wait)
			f.Is("allowed requests of the next period", f.takeAll(all, 5), 3)

			f.storeRetryAfter(a, provider.RetryAfter{Wait: time.Minute})
			f.Now = f.Now.Add(-by)
			f.Is("refusal by the retry-after", f.take(a), provider.Refusal{Kind: provider.KindRateLimited, Wait: time.Minute})
			f.Must(a.StoreReported(f.Context(), provider.Rate{Reset: time.Minute}))
			f.Now = f.Now.Add(-by)
			f.Is("wait for the reported quota", f.take(a).Wait, time.Minute)
			f.Now = f.Now.Add(limit.Stretch())
			f.Is("allowed requests of the rest of the day quota", f.takeAll(all, 5), 1)
			r := f.take(a)
			f.Is("quota that refused the request", r.Quota, provider.Day)
			f.Is("the wait is at most a day", r.Wait <= 24*time.Hour, true)
			f.Now = f.Now.Add(r.Wait + limit.Stretch())
			f.Is("allowed requests of the next day", f.takeAll(all, 5), 3)
		}
	})
}
