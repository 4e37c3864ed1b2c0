package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"assay/internal/view"
)

// How long clients may cache public responses.
const (
	tradersAge  = 10 * time.Second
	documentAge = time.Hour
)

func (s *server) topTraders(c *call) (any, error) {
	top, err := s.Readers.Traders.TopTraders(c.Context(), c.values["period"], c.values["by"], c.limit())
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

// health responds with 503 if the server is unhealthy or the health check fails. For an admin,
// the response contains details.
func (s *server) health(c *call) (any, error) {
	health, err := s.Readers.Health.Health(c.Context(), c.role == Admin)
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

func (s *server) openapiDocument(c *call) (any, error) {
	s.openapi.serve(c.w, c.Request, documentAge)
	return response{}, nil
}

// docs responds with the API documentation. With a session of the operator's page, it has the
// navigation of the page.
func (s *server) docs(c *call) (any, error) {
	c.w.Header().Set("Vary", "Cookie")
	if f, ok := s.Page.(framer); ok && f.Frame(c.w, c.Request, "API", "api", s.docsPage.content) {
		return response{}, nil
	}
	c.w.Header().Set("Content-Security-Policy", s.docsPage.policy)
	s.docsPage.page.serve(c.w, c.Request, documentAge)
	return response{}, nil
}
