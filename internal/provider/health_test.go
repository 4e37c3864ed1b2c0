package provider_test

import (
	"testing"

	"assay/internal/provider"
)

func TestHealthOf_UsesRecentRecords(t *testing.T) {
	var (
		never    = provider.Record{}
		good     = provider.Record{Succeeded: true}
		failed   = provider.Record{Failures: 1, Succeeded: true}
		failing  = provider.Record{Failures: 2, Succeeded: true}
		unproven = provider.Record{Failures: 1}
	)
	for name, c := range map[string]struct {
		records     []provider.Record
		breaker     provider.BreakerState
		quarantined bool
		want        provider.Health
	}{
		"nothing fetched":     {[]provider.Record{never, never}, provider.BreakerClosed, false, provider.HealthUnknown},
		"no record":           {nil, provider.BreakerClosed, false, provider.HealthUnknown},
		"all succeeded":       {[]provider.Record{good, good}, provider.BreakerClosed, false, provider.HealthHealthy},
		"one not fetched yet": {[]provider.Record{good, never}, provider.BreakerClosed, false, provider.HealthHealthy},
		"one failed once":     {[]provider.Record{failed}, provider.BreakerClosed, false, provider.HealthDegraded},
		"one of two fails":    {[]provider.Record{failing, good}, provider.BreakerClosed, false, provider.HealthDegraded},
		"both fail":           {[]provider.Record{failing, failing}, provider.BreakerClosed, false, provider.HealthDown},
		"only fetch failed":   {[]provider.Record{unproven}, provider.BreakerClosed, false, provider.HealthDown},
		"first fetch failed, other file not fetched": {[]provider.Record{unproven, never}, provider.BreakerClosed, false, provider.HealthDown},
		"one failed once, one fails repeatedly":      {[]provider.Record{failed, failing}, provider.BreakerClosed, false, provider.HealthDegraded},
		"breaker open":                               {[]provider.Record{good}, provider.BreakerOpen, false, provider.HealthDown},
		"breaker half-open":                          {[]provider.Record{good}, provider.BreakerHalfOpen, false, provider.HealthDegraded},
		"market quarantined":                         {[]provider.Record{good}, provider.BreakerClosed, true, provider.HealthDegraded},
		"market quarantined, fetches fail":           {[]provider.Record{failing}, provider.BreakerClosed, true, provider.HealthDown},
		"breaker open before any success":            {[]provider.Record{never}, provider.BreakerOpen, false, provider.HealthDown},
	} {
		if got := provider.HealthOf(c.records, c.breaker, c.quarantined); got != c.want {
			t.Errorf("%s: got health %s, want %s", name, got, c.want)
		}
	}
}
