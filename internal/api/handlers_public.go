package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"assay/internal/view"
)

// How long clients may keep what is the same for all.
const (
	tradersAge  = 10 * time.Second
	documentAge = time.Hour
)

func (s *server) topTraders(w http.ResponseWriter, c *call) error {
	top, err := s.Reader.TopTraders(c.Context(), c.values["period"], c.values["by"], c.limit())
	if err != nil {
		return err
	}
	body, err := json.Marshal(top, encoding())
	if err != nil {
		return err
	}
	w.Header().Set("Age", strconv.Itoa(int(max(0, s.Now().Sub(top.AsOf))/time.Second)))
	cache("application/json", body).serve(w, c.Request, tradersAge)
	return nil
}

// health responds with 503 if the server is unhealthy or its health is unknown. An admin
// sees details.
func (s *server) health(w http.ResponseWriter, c *call) error {
	health, err := s.Reader.Health(c.Context(), c.role == Admin)
	switch {
	case err != nil && left(c.Request, err):
		return err
	case err != nil:
		s.Logger.ErrorContext(c.Context(), "health not known", "request_id", c.id, "error", err)
		health = view.Health{Status: "failing", Version: s.Version}
	}
	status := http.StatusOK
	if health.Status != "ok" {
		status = http.StatusServiceUnavailable
	}
	return writeJSON(w, status, health)
}

func (s *server) metrics(w http.ResponseWriter, c *call) error {
	s.Metrics.ServeHTTP(w, c.Request)
	return nil
}

func (s *server) openapiDocument(w http.ResponseWriter, c *call) error {
	s.openapi.serve(w, c.Request, documentAge)
	return nil
}

func (s *server) docs(w http.ResponseWriter, c *call) error {
	w.Header().Set("Content-Security-Policy", s.docsCSP)
	s.docsPage.serve(w, c.Request, documentAge)
	return nil
}
