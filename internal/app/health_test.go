package app

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"assay/internal/provider"
	"assay/internal/view"
)

// collectorFunc is one part of a collector.
type collectorFunc func(ch chan<- prometheus.Metric)

func (f collectorFunc) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(f, ch) }

func (f collectorFunc) Collect(ch chan<- prometheus.Metric) { f(ch) }

// checkLines compares the metrics of one part of a collector with lines that it must contain.
func checkLines(t *testing.T, part collectorFunc, want ...string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(part)
	response := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	lines := strings.Split(response.Body.String(), "\n")
	for _, want := range want {
		if !slices.Contains(lines, want) {
			t.Errorf("got no line %s, want one in\n%s", want, response.Body)
		}
	}
}

func TestMetrics_IncludeAProviderWithoutResponses(t *testing.T) {
	c := &collector{descs: describe()}
	dead := view.ProviderDebug{Provider: "dead", Health: provider.HealthDown, Files: []view.FileDebug{{File: "list", Failures: 3}}}
	checkLines(t, func(ch chan<- prometheus.Metric) { c.collectProvider(ch, dead) },
		`assay_provider_last_success_timestamp_seconds{provider="dead"} 0`,
		`assay_provider_health{health="down",provider="dead"} 1`,
		`assay_provider_health{health="healthy",provider="dead"} 0`,
		`assay_provider_file_failures{file="list",provider="dead"} 3`,
	)
}

func TestMetrics_IncludeEachHealthCheck(t *testing.T) {
	c := &collector{descs: describe()}
	h := view.Health{Checks: map[string]string{"database": "readOnly", "schema": "ok", "queue": "failing"}}
	checkLines(t, func(ch chan<- prometheus.Metric) { c.collectHealth(ch, h) },
		`assay_health{check="database"} 0`,
		`assay_health{check="queue"} 0`,
		`assay_health{check="schema"} 1`,
	)
}
