// Package steamtest provides a fake server of the Steam Community Market. It enforces the
// real rate limit: requests over the limit get status 429 with the body null and without
// Retry-After. Each further request prolongs the block.
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

// Item is an item on the market. Amounts are in hundredths of the response's currency. The
// response omits amounts that are 0.
type Item struct {
	AppID       int32
	Name        string
	Lowest      int64  // lowest ask
	Median      int64  // median price of the sales in a day
	Highest     int64  // highest bid
	Volume      int    // number of sales in a day
	Sellers     int    // number of offers
	Buyers      int    // number of buy orders
	LowestText  string // replaces the formatted Lowest
	MedianText  string // replaces the formatted Median
	VolumeValue string // replaces Volume, as JSON
}

// Reply is a fixed response. The zero value means that there is none.
type Reply struct {
	Status int // default 200
	Body   string
}

// Page is the HTML error page of Steam.
const Page = "<!DOCTYPE html>\n<html><head><title>Steam Community :: Error</title></head><body>An error occurred</body></html>\n"

// Server is a fake of Steam's market. Set its fields before it serves requests.
type Server struct {
	Items    []Item
	Currency int   // Steam's number of the response's currency; default: the requested one
	Wrapped  bool  // whether orderbook wraps its response, as since August 2026
	Unknown  Reply // response for unknown names; default: the endpoint's own
	Always   Reply // response to all requests
	Empty    bool  // whether search/render returns no results, as when it is throttled

	Calls int              // limit of requests in five minutes; default 25
	Now   func() time.Time // default time.Now

	mu      sync.Mutex
	window  *providertest.Window
	penalty time.Duration
	blocked time.Time // end of the block
}

// firstPenalty is the duration of the first block. maxPenalty is the longest block.
const (
	firstPenalty = 10 * time.Minute
	maxPenalty   = time.Hour
)

// games are the apps with a market.
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
		reply(w, Reply{http.StatusBadRequest, "[]"}) // requires a signed-in user
	default:
		reply(w, Reply{http.StatusNotFound, Page})
	}
}

// allow counts a request and reports whether it is within the limit. If not, it starts or
// prolongs a block.
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
		s.penalty = min(2*s.penalty, maxPenalty)
	} else {
		s.penalty = firstPenalty
		if _, ok := s.window.Take(now); ok {
			return true
		}
	}
	s.blocked = now.Add(s.penalty)
	return false
}

// Blocked returns the remaining time of the block at now, or 0 if there is none.
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

// item returns the item with a name. If there is none, it writes the response for an
// unknown name and returns false.
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

// currency returns Steam's number of the response's currency.
func (s *Server) currency(requested string) int {
	n, err := strconv.Atoi(requested)
	if err != nil || n < 1 {
		n = 1
	}
	return cmp.Or(s.Currency, n)
}
