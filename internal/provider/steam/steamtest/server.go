// Package steamtest serves what the Steam Community Market does, as strictly: too
// many requests get 429 with the body null and without Retry-After, and each further
// request prolongs the refusal.
package steamtest

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"assay/internal/provider/providertest"
)

// Item is a name on the market. Amounts are in hundredths of whatever currency is
// of the response; 0 is none, and left out of a response.
type Item struct {
	AppID       int32
	Name        string
	Lowest      int64 // ask
	Median      int64 // of the sales of a day
	Highest     int64 // bid
	Volume      int   // sales of a day
	Sellers     int   // offers
	Buyers      int
	LowestText  string // instead of Lowest, as it is
	MedianText  string // instead of Median
	VolumeValue string // instead of Volume, as JSON has it
}

// Reply is a response as it is. The zero value is none.
type Reply struct {
	Status int // default 200
	Body   string
}

// Page is what Steam serves where it serves no data.
const Page = "<!DOCTYPE html>\n<html><head><title>Steam Community :: Error</title></head><body>An error occurred</body></html>\n"

// Server is a fake of Steam's market. Its fields may be set before it serves.
type Server struct {
	Items    []Item
	Currency int   // number of the one in the response, whatever is requested
	Wrapped  bool  // orderbook uses its form of August 2026
	Unknown  Reply // to a name that is not there; default {"success":true}, or what orderbook says
	Always   Reply // to everything
	Empty    bool  // search/render is throttled: a success without results

	Calls int              // allowed in five minutes; default 25
	Now   func() time.Time // default time.Now

	mu      sync.Mutex
	window  *providertest.Window
	penalty time.Duration
	blocked time.Time
}

// The penalty for a call too many, and what it grows to.
const (
	firstPenalty = 10 * time.Minute
	mostPenalty  = time.Hour
)

// games are those that have a market.
var games = []string{"730", "570", "440", "252490", "753"}

// ServeHTTP serves the endpoints below /market/. All share one limit.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/market/"), "/")
	q := r.URL.Query()
	switch {
	case !s.allow():
		reply(w, Reply{http.StatusTooManyRequests, "null"})
	case s.Always != (Reply{}):
		reply(w, s.Always)
	case r.Method != http.MethodGet:
		reply(w, Reply{http.StatusMethodNotAllowed, Page})
	case path == "priceoverview":
		s.overview(w, q.Get("appid"), q.Get("market_hash_name"), q.Get("currency"))
	case path == "orderbook" && q.Get("q") == "Load" && r.Header.Get("X-Valve-Request-Type") == "queryAction":
		s.book(w, q.Get("qp"))
	case path == "search/render" && q.Get("norender") == "1":
		s.search(w, q.Get("appid"), q.Get("start"))
	case path == "itemordershistogram":
		reply(w, Reply{Body: `{"success":104}`})
	case path == "pricehistory":
		reply(w, Reply{http.StatusBadRequest, "[]"}) // not signed in
	default:
		reply(w, Reply{http.StatusNotFound, Page})
	}
}

// allow counts a call, or refuses it and prolongs the penalty.
func (s *Server) allow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.Now != nil {
		now = s.Now()
	}
	if s.window == nil {
		s.window = &providertest.Window{Calls: cmp.Or(s.Calls, 25), Per: 5 * time.Minute}
	}
	if now.Before(s.blocked) {
		s.penalty = min(2*s.penalty, mostPenalty)
	} else {
		s.penalty = firstPenalty
		if _, ok := s.window.Take(now); ok {
			return true
		}
	}
	s.blocked = now.Add(s.penalty)
	return false
}

// Blocked returns for how long from now every call will be refused.
func (s *Server) Blocked(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.blocked.Sub(now))
}

func reply(w http.ResponseWriter, r Reply) {
	kind := "application/json; charset=utf-8"
	if strings.HasPrefix(r.Body, "<") {
		kind = "text/html; charset=UTF-8"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(cmp.Or(r.Status, http.StatusOK))
	_, _ = io.WriteString(w, r.Body)
}

// item finds a name, or responds that it is unknown.
func (s *Server) item(w http.ResponseWriter, app, name, unknown string) (Item, bool) {
	i := slices.IndexFunc(s.Items, func(i Item) bool { return strconv.Itoa(int(i.AppID)) == app && i.Name == name })
	switch {
	case !slices.Contains(games, app), name == "":
		reply(w, Reply{http.StatusBadRequest, "null"})
	case i >= 0:
		return s.Items[i], true
	case s.Unknown != (Reply{}):
		reply(w, s.Unknown)
	default:
		reply(w, Reply{Body: unknown})
	}
	return Item{}, false
}

// currency returns the number of the currency of the response.
func (s *Server) currency(asked string) int {
	n, err := strconv.Atoi(asked)
	if err != nil || n < 1 {
		n = 1
	}
	return cmp.Or(s.Currency, n)
}
