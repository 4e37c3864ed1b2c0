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

// source collects the metrics of one provider.
type source struct {
	c     *collector
	state view.SourceDebug
}

func (s source) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, ch) }

func (s source) Collect(ch chan<- prometheus.Metric) { s.c.collectSource(ch, s.state) }

func TestMetrics_ShowAProviderThatHasNeverAnswered(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(source{&collector{descs: describe()}, view.SourceDebug{
		Source: "dead", Health: provider.HealthDown, Files: []view.FileDebug{{File: "list", Failures: 3}},
	}})
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	lines := strings.Split(answer.Body.String(), "\n")
	for _, want := range []string{
		`assay_source_last_success_timestamp_seconds{source="dead"} 0`,
		`assay_provider_health{health="down",provider="dead"} 1`,
		`assay_provider_health{health="healthy",provider="dead"} 0`,
		`assay_provider_file_failures{file="list",provider="dead"} 3`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("%s is missing", want)
		}
	}
}
