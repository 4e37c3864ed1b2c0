package allowance_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"assay/internal/provider"
	"assay/internal/provider/allowance"
)

func TestStoreRetryAfter_StopsAllProcesses(t *testing.T) {
	each(t, func(f *fixture) {
		for _, limit := range []provider.Limit{{}, {Requests: 5, Per: time.Second}} {
			f.Is("wait before the refusal", f.take(f.allowance("a", limit, provider.Quota{})).Wait, time.Duration(0))
			f.Is("stored wait", f.storeRetryAfter(f.allowance("a", limit, provider.Quota{}), provider.RetryAfter{Wait: time.Hour}), time.Hour)
			f.Is("stored wait after a shorter retry-after", f.storeRetryAfter(f.allowance("a", limit, provider.Quota{}), provider.RetryAfter{Wait: time.Minute}), time.Hour)
			other := f.allowance("a", limit, provider.Quota{})
			f.Is("refusal in another process", f.take(other), provider.Refusal{Kind: provider.KindRateLimited, Wait: time.Hour})
			_, until, err := allowance.New(f.DB, "s", provider.Host{Key: "a", Limit: limit}).State(f.Context())
			f.Must(err)
			f.Is("State returns the end of the wait", until.Equal(f.Now.Add(time.Hour)), true)
			f.Is("wait of another host", f.take(f.allowance("b", limit, provider.Quota{})).Wait, time.Duration(0))
			f.Now = f.Now.Add(time.Hour - time.Microsecond)
			f.Is("wait just before the end", f.take(other).Wait, time.Microsecond)
			f.Now = f.Now.Add(time.Microsecond)
			f.Is("wait after the end", f.take(other).Wait, time.Duration(0))
		}
	})
}

// A new allowance stores each wait, as another process or after a restart.
func TestStoreRetryAfter_DoublesAfterEachRefusal(t *testing.T) {
	each(t, func(f *fixture) {
		withoutHeader := provider.RetryAfter{Wait: 10 * time.Minute, Most: time.Hour}
		store := func() time.Duration {
			return f.storeRetryAfter(f.allowance("g", provider.Limit{Requests: 5, Per: time.Second}, provider.Quota{}), withoutHeader)
		}
		for _, minutes := range []int{10, 20, 40, 60, 60} {
			want := time.Duration(minutes) * time.Minute
			f.Is("wait after the next refusal", store(), want)
			f.Is("wait after the refusal of a concurrent request", store(), want)
			f.Now = f.Now.Add(want)
		}
		f.Now = f.Now.Add(time.Hour)
		f.Is("wait after a refusal an hour later", store(), 10*time.Minute)
	})
}

// Several processes store that a host is down and then that it responds again.
func TestDown_WritesOneEventForManyProcesses(t *testing.T) {
	each(t, func(f *fixture) {
		all := f.processes("h", provider.Limit{}, provider.Quota{})
		together := func(do func(a provider.Allowance) error) {
			var wg sync.WaitGroup
			for _, a := range all {
				wg.Go(func() {
					if err := do(a); err != nil {
						f.Errorf("got error %v, want none", err)
					}
				})
			}
			wg.Wait()
		}
		up := func(a provider.Allowance) error { return a.Up(f.Context()) }
		together(up)
		f.Is("events before the host is down", len(f.events()), 0)
		together(func(a provider.Allowance) error { return a.Down(f.Context(), "timeout") })
		want := `provider.down {"provider":"s","why":"breaker","host":"h","detail":"timeout"}`
		f.Is("events after the host is down", fmt.Sprint(f.events()), "["+want+"]")
		together(up)
		f.Is("events after the host is up again", fmt.Sprint(f.events()), `[provider.up {"provider":"s","why":"breaker","host":"h","detail":"the host responds again"} `+want+"]")
		f.Must(all[0].Down(f.Context(), "again"))
		f.Is("number of events after the host is down again", len(f.events()), 3)
	})
}
