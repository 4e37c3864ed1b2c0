package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"assay/internal/view"
)

// TraderReader reads the leaderboard.
type TraderReader interface {
	// TopTraders ranks users by their trades within a period. The period is 7d, 30d or all.
	TopTraders(ctx context.Context, period, by string, limit int) (view.TopTraders, error)
}

// HealthReader checks the health of the server.
type HealthReader interface {
	Health(ctx context.Context, details bool) (view.Health, error)
}

// How long clients may cache public responses.
const (
	tradersAge  = 10 * time.Second
	documentAge = time.Hour
)

func (s *server) topTraders(c *call) (any, error) {
	top, err := s.Traders.TopTraders(c.Context(), c.values["period"], c.values["by"], c.limit())
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(top, encoding())
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Age", strconv.Itoa(int(max(0, s.Now().Sub(top.AsOf))/time.Second)))
	cache("application/json", body).serve(c.w, c.Request, tradersAge)
	return response{}, nil
}

// health responds with 503 if the server is unhealthy or the health check fails. The
// response contains details for an admin.
func (s *server) health(c *call) (any, error) {
	health, err := s.Health.Health(c.Context(), c.role == Admin)
	switch {
	case err != nil && left(c.Request, err):
		return nil, err
	case err != nil:
		s.Logger.ErrorContext(c.Context(), "health check failed", "request_id", c.id, "error", err)
		health = view.Health{Status: "failing", Version: s.Version}
	}
	status := http.StatusOK
	if health.Status != "ok" {
		status = http.StatusServiceUnavailable
	}
	return response{status: status, value: health}, nil
}

func (s *server) metrics(c *call) (any, error) {
	s.Metrics.ServeHTTP(c.w, c.Request)
	return response{}, nil
}

func (s *server) openapiDocument(c *call) (any, error) {
	s.openapi.serve(c.w, c.Request, documentAge)
	return response{}, nil
}

func (s *server) docs(c *call) (any, error) {
	c.w.Header().Set("Content-Security-Policy", s.docsCSP)
	s.docsPage.serve(c.w, c.Request, documentAge)
	return response{}, nil
}
