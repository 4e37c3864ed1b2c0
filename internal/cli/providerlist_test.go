package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"assay/internal/provider"
	"assay/internal/view"
)

func TestProviderList_ShowsHealthAndFileErrors(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	debug := view.ProvidersDebug{Providers: []view.ProviderDebug{{
		Provider: "pricelist", Health: provider.HealthDegraded, Breaker: "closed", LastSuccess: &at,
		Files: []view.FileDebug{
			{File: "good", Health: provider.HealthHealthy, LastSuccess: &at, LastError: new("long ago"), LastErrorAt: &at},
			{File: "gone", Health: provider.HealthDown, Failures: 7, LastError: new("pricelist: gone: 404 Not Found"), LastErrorAt: &at},
		},
	}}}
	var out bytes.Buffer
	writeProviders(&out, &debug, at)
	text := out.String()
	for _, want := range []string{"HEALTH", "degraded", "pricelist/gone is down: 7 consecutive failures, the last at 2026-03-01 12:00:00 UTC: pricelist: gone: 404 Not Found"} {
		if !strings.Contains(text, want) {
			t.Errorf("output: got\n%s\nwant %q in it", text, want)
		}
	}
	if strings.Contains(text, "long ago") || strings.Contains(text, "ready") {
		t.Errorf("output: got\n%s\nwant neither an old error nor the state ready", text)
	}
}
