package api

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"assay/internal/money"
	"assay/internal/view"
)

// How long clients may keep what is the same for all.
const (
	tradersAge  = time.Minute
	documentAge = time.Hour
)

// topTraders is a page of the leaderboard.
type topTraders struct {
	Items      []topTrader `json:"items"`
	NextCursor *string     `json:"nextCursor"` // always null: limit is all there is
}

// topTrader is one rank. It tells nothing by which a trader could be found.
type topTrader struct {
	Rank           int64       `json:"rank"`
	DisplayName    string      `json:"displayName"` // anonymous: opted out
	Trades         int64       `json:"trades"`
	Volume         money.Micro `json:"volume"`
	Counterparties int64       `json:"counterparties"`
	CompletedShare float64     `json:"completedShare"`
}

// topTraders lists nobody as long as nobody can trade here.
func (s *server) topTraders(w http.ResponseWriter, c *call) error {
	body, err := json.Marshal(topTraders{}, encoding())
	if err != nil {
		return err
	}
	cache("application/json", body).serve(w, c.Request, tradersAge)
	return nil
}

// health answers 503 where the server is not well, and more to an admin. That
// it cannot be told is not well either.
func (s *server) health(w http.ResponseWriter, c *call) error {
	health, err := s.Reader.Health(c.Context(), c.role == Admin)
	if err != nil {
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
