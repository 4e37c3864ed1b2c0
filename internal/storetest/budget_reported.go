package storetest

import (
	"time"

	"assay/internal/db"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/refresh"
)

// A host reports, by mistake, that nothing is left.
func aResumedHostIsBelievedNoMore(f *fixture) {
	all := make([]*allowance.Allowance, 8)
	for i := range all {
		all[i] = allowance.New(f.s, "s", provider.Host{Key: "h", Limit: provider.Limit{Requests: 20, Per: time.Minute}, Quota: provider.Quota{Day: 3}})
	}
	take := func(a *allowance.Allowance) time.Duration {
		r, err := a.Take(f.Context())
		f.must(err)
		return r.Wait
	}
	allowed := func() (n int) {
		for _, a := range all {
			if take(a) == 0 {
				n++
			}
		}
		return n
	}
	f.must(all[0].StoreReported(f.Context(), provider.Rate{Limit: 30, Left: 0, Reset: time.Hour}))
	f.must(allowance.New(f.s, "other", provider.Host{Key: "h"}).StoreReported(f.Context(), provider.Rate{Left: 0, Reset: time.Hour}))
	f.is("refused", allowed(), 0)
	f.tx(func(tx *db.Tx) error { return refresh.PauseProvider(tx, "s", true) })
	f.is("paused", allowed(), 0)
	f.tx(func(tx *db.Tx) error { return refresh.PauseProvider(tx, "s", false) })
	f.is("resumed, up to its quota", allowed(), 3)
	f.is("not of another provider", take(allowance.New(f.s, "other", provider.Host{Key: "h"})), time.Hour)
	f.must(all[0].StoreReported(f.Context(), provider.Rate{Limit: 30, Left: 0, Reset: time.Hour}))
	f.is("reported again", take(all[1]), time.Hour)
}
