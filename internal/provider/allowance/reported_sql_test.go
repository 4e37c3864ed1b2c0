package allowance_test

import (
	"testing"
	"time"

	"assay/internal/provider"
	"assay/internal/provider/allowance"
)

// A host reports a smaller quota to one of eight processes.
func TestStoreReported_AppliesToAllProcesses(t *testing.T) {
	each(t, func(f *fixture) {
		for _, limit := range []provider.Limit{{}, {Requests: 20, Per: time.Minute}} {
			all := f.processes(limit.Per.String(), limit, provider.Quota{})
			f.Is("allowed requests before the report", f.takeAll(all[:1], 2), 2)
			f.Must(all[0].StoreReported(f.Context(), provider.Rate{Limit: 30, Left: 5, Reset: time.Hour}))
			f.Is("allowed requests after the report", f.takeAll(all, 3), 5)
			at := f.Now
			f.Is("refusal after the report", f.take(all[1]), provider.Refusal{Kind: provider.KindBudget, Wait: time.Hour, ResetsAt: at.Add(time.Hour)})

			b, blocked, err := allowance.New(f.DB, "s", provider.Host{Key: limit.Per.String(), Limit: limit}).State(f.Context())
			f.Must(err)
			f.Is("reported quota", *b.Reported, provider.ReportedQuota{Limit: 30, At: at, ResetsAt: at.Add(time.Hour)})
			f.Is("requests left of the limit", b.Left, max(0, limit.Requests-7))
			f.Is("there is no retry-after", blocked.IsZero(), true)

			f.Is("wait of another host", f.take(f.allowance("other", limit, provider.Quota{})).Wait, time.Duration(0))
			f.Now = f.Now.Add(time.Hour - time.Microsecond)
			f.Is("allowed requests before the reset", f.takeAll(all, 1), 0)
			f.Now = f.Now.Add(time.Microsecond)
			f.Is("allowed requests after the reset", f.takeAll(all, 1), processes)
		}
	})
}

func TestStoreReported_CannotExtendLimits(t *testing.T) {
	each(t, func(f *fixture) {
		a := f.allowance("h", provider.Limit{Requests: 3, Per: time.Minute}, provider.Quota{Day: 4})
		all := []provider.Allowance{a}
		f.Must(a.StoreReported(f.Context(), provider.Rate{Limit: 100, Left: 99, Reset: time.Hour}))
		f.Is("allowed requests within the limit", f.takeAll(all, 5), 3)
		f.Must(a.StoreReported(f.Context(), provider.Rate{Limit: 100, Left: 99, Reset: time.Hour}))
		f.Is("allowed requests after the limit is used up", f.takeAll(all, 5), 0)
		f.Now = f.Now.Add(2 * time.Minute)
		f.Is("allowed requests within the reported quota", f.takeAll(all, 5), 1)
		b, _, err := allowance.New(f.DB, "s", provider.Host{Key: "h"}).State(f.Context())
		f.Must(err)
		f.Is("reported quota, which refused requests do not reduce", b.Reported.Left, int64(95))
	})
}

// Responses of one window arrive in any order, followed by a response of the next window.
func TestStoreReported_KeepsSmallestOfWindow(t *testing.T) {
	each(t, func(f *fixture) {
		a := allowance.New(f.DB, "s", provider.Host{Key: "h"})
		left := func(what string, want int64) {
			f.Helper()
			b, _, err := a.State(f.Context())
			f.Must(err)
			f.Is(what, b.Reported.Left, want)
		}
		f.Must(a.StoreReported(f.Context(), provider.Rate{Limit: 10, Left: 6, Reset: time.Minute}))
		f.Is("sent requests", f.takeAll([]provider.Allowance{a}, 2), 2)
		f.Must(a.StoreReported(f.Context(), provider.Rate{Limit: 10, Left: 7, Reset: time.Minute + time.Second}))
		left("reported quota after a late response", 4)
		f.Must(a.StoreReported(f.Context(), provider.Rate{Limit: 10, Left: 1, Reset: time.Minute - time.Second}))
		left("reported quota after requests of others", 1)
		f.Must(a.StoreReported(f.Context(), provider.Rate{Limit: 10, Left: 9, Reset: 2 * time.Minute}))
		left("reported quota of the next window", 9)
		f.Now = f.Now.Add(2 * time.Minute)
		b, _, err := a.State(f.Context())
		f.Must(err)
		f.Is("there is no reported quota after the window", b.Reported == nil, true)
	})
}

func TestStoreReported_AppliesToQuota(t *testing.T) {
	each(t, func(f *fixture) {
		f.Now = time.Date(2026, 2, 10, 12, 0, 0, 0, time.UTC)
		host := provider.Host{Key: "h", Quota: provider.Quota{Month: 1000}, Headers: provider.HeadersOfMonth}
		a := allowance.New(f.DB, "s", host)
		reset := 18 * 24 * time.Hour
		f.Must(a.StoreReported(f.Context(), provider.Rate{Limit: 1000, Left: 2, Reset: reset}))
		f.Is("allowed requests of the reported quota", f.takeAll([]provider.Allowance{a}, 5), 2)
		f.Is("refusal after the reported quota", f.take(a), provider.Refusal{
			Kind: provider.KindBudget, Wait: reset, Quota: provider.Month, ResetsAt: f.Now.Add(reset),
		})
		ignoring := allowance.New(f.DB, "s", provider.Host{Key: "h", Headers: provider.HeadersIgnored})
		f.Is("wait of a host whose headers are ignored", f.take(ignoring).Wait, time.Duration(0))
	})
}
