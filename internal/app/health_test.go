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

// providerCollector collects the metrics of one provider.
type providerCollector struct {
	c     *collector
	state view.ProviderDebug
}

func (s providerCollector) Describe(ch chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(s, ch)
}

func (s providerCollector) Collect(ch chan<- prometheus.Metric) { s.c.collectProvider(ch, s.state) }

func TestMetrics_IncludeAProviderWithoutResponses(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(providerCollector{&collector{descs: describe()}, view.ProviderDebug{
		Provider: "dead", Health: provider.HealthDown, Files: []view.FileDebug{{File: "list", Failures: 3}},
	}})
	response := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	lines := strings.Split(response.Body.String(), "\n")
	for _, want := range []string{
		`assay_provider_last_success_timestamp_seconds{provider="dead"} 0`,
		`assay_provider_health{health="down",provider="dead"} 1`,
		`assay_provider_health{health="healthy",provider="dead"} 0`,
		`assay_provider_file_failures{file="list",provider="dead"} 3`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("got no line %s", want)
		}
	}
}
