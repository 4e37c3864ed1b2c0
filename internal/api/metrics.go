package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"assay/internal/access"
)

// requestMetrics count HTTP requests.
type requestMetrics struct {
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	streams  *prometheus.CounterVec
}

// Reasons why a stream of events ended.
const (
	endedByClient   = "client"   // it disconnected
	endedSlow       = "slow"     // the client did not read
	endedExpired    = "expired"  // the next event was deleted
	endedByStopping = "stopping" // the server stops
	endedByError    = "error"
)

func newRequestMetrics(registry *prometheus.Registry) requestMetrics {
	m := requestMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_http_requests_total", Help: "HTTP requests by method, route and status. The route is a pattern such as /api/inventory/{userId}, page, or unknown.",
		}, []string{"method", "route", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "assay_http_request_duration_seconds", Help: "Duration of HTTP requests, by method and route pattern.",
			Buckets: []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30},
		}, []string{"method", "route"}),
		streams: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_streams_ended_total", Help: "Streams that ended, by reason: client, slow (the client did not read), expired, stopping, error.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{endedByClient, endedSlow, endedExpired, endedByStopping, endedByError} {
		m.streams.WithLabelValues(reason) // export a zero
	}
	registry.MustRegister(m.requests, m.took, m.streams)
	return m
}

// countWrongSecrets exports the count of wrong secrets. The count of statuses cannot replace it:
// requests without a secret also get 401, and API keys above their limit get 429.
func countWrongSecrets(registry *prometheus.Registry, failures *access.Failures) {
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "assay_wrong_secrets_total", Help: "Wrong secrets, tokens, API keys and passwords that the API and the page have refused since this process started.",
	}, func() float64 { return float64(failures.Total()) }))
}

// observe counts a request. The method must be a standard method or "other". The route must
// be a pattern of the route table, "page" or "unknown". This limits the number of time
// series.
func (m *requestMetrics) observe(method, route string, status int, took time.Duration) {
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.took.WithLabelValues(method, route).Observe(took.Seconds())
}

// serveMetrics returns a handler that serves all metrics to Prometheus.
func serveMetrics(registry *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2, Timeout: 10 * time.Second})
}

func (s *server) metrics(c *call) (any, error) {
	s.scrape.ServeHTTP(c.w, c.Request)
	return response{}, nil
}
