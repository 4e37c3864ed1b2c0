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

// provider collects the metrics of one provider.
type providerName struct {
	c     *collector
	state view.ProviderDebug
}

func (s providerName) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, ch) }

func (s providerName) Collect(ch chan<- prometheus.Metric) { s.c.collectProvider(ch, s.state) }

func TestMetrics_IncludeAProviderWithoutResponses(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(providerName{&collector{descs: describe()}, view.ProviderDebug{
		Provider: "dead", Health: provider.HealthDown, Files: []view.FileDebug{{File: "list", Failures: 3}},
	}})
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	lines := strings.Split(answer.Body.String(), "\n")
	for _, want := range []string{
		`assay_provider_last_success_timestamp_seconds{provider="dead"} 0`,
		`assay_provider_health{health="down",provider="dead"} 1`,
		`assay_provider_health{health="healthy",provider="dead"} 0`,
		`assay_provider_file_failures{file="list",provider="dead"} 3`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("%s is missing", want)
		}
	}
}
