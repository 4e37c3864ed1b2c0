// Package skinporttest is a fake of Skinport's public feeds with the same strict rules. It
// responds 406 to a client without brotli, and 429 to the ninth call in five minutes.
package skinporttest

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/andybalholm/brotli"

	"assay/internal/provider/providertest"
)

// Row is an item of both feeds. Amounts are JSON decimals; "" is null.
type Row struct {
	Name, Version string
	Ask           string
	Quantity      int
	Sales         [4]Sales // sales in 1, 7, 30 and 90 days
	Unsold        bool     // missing from sales/history
	Unlisted      bool     // missing from items
}

// Sales holds the sales in one period.
type Sales struct {
	Median string
	Volume int
}

// Server is a fake of Skinport. Set its fields before the first request.
type Server struct {
	Rows    []Row
	Updated time.Time // time of the rows; default now
	Plain   bool      // also accept clients without brotli, and send uncompressed responses
	Calls   int       // maximum calls of each feed in five minutes; default 8
	NoRetry bool      // omit Retry-After from a 429

	mu    sync.Mutex
	calls map[string]*providertest.Window
}

// currencies are the supported currencies. The real Skinport supports a dozen more.
var currencies = []string{"USD", "EUR", "GBP"}

var games = []string{"730", "570", "440", "252490"}

// ServeHTTP serves /v1/items and /v1/sales/history.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	feed := strings.TrimPrefix(r.URL.Path, "/v1/")
	q := r.URL.Query()
	acceptsBrotli := strings.Contains(r.Header.Get("Accept-Encoding"), "br")
	switch {
	case feed != "items" && feed != "sales/history":
		refuse(w, http.StatusNotFound, "not_found", "no such endpoint")
	case r.Method != http.MethodGet:
		refuse(w, http.StatusNotFound, "not_found", "no such endpoint")
	case !s.Plain && !acceptsBrotli:
		refuse(w, http.StatusNotAcceptable, "not_acceptable", "Accept-Encoding must include br")
	case !slices.Contains(games, q.Get("app_id")):
		refuse(w, http.StatusBadRequest, "bad_request", "app_id is unknown")
	case !slices.Contains(currencies, q.Get("currency")):
		refuse(w, http.StatusBadRequest, "bad_request", "currency is unknown")
	case !s.allow(w, feed):
	default:
		s.serve(w, feed, q.Get("currency"), q.Get("market_hash_name"), acceptsBrotli)
	}
}

// allow counts a call of a feed. If the limit is reached, it responds 429 and returns false.
func (s *Server) allow(w http.ResponseWriter, feed string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]*providertest.Window{}
	}
	if s.calls[feed] == nil {
		s.calls[feed] = &providertest.Window{Calls: cmp.Or(s.Calls, 8), Per: 5 * time.Minute}
	}
	wait, ok := s.calls[feed].Take(time.Now())
	if ok {
		return true
	}
	if !s.NoRetry {
		w.Header().Set("Retry-After", providertest.Seconds(wait))
	}
	refuse(w, http.StatusTooManyRequests, "rate_limit_exceeded", "too many requests")
	return false
}

func refuse(w http.ResponseWriter, status int, id, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"errors":[{"id":%q,"message":%q}]}`, id, message)
}

func (s *Server) serve(w http.ResponseWriter, feed, currency, names string, compress bool) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	var out io.Writer = w
	if compress && !s.Plain {
		w.Header().Set("Content-Encoding", "br")
		b := brotli.NewWriterLevel(w, brotli.BestSpeed)
		defer func() { _ = b.Close() }() // a client may close the connection
		out = b
	}
	updated := s.Updated
	if updated.IsZero() {
		updated = time.Now()
	}
	separator := "["
	for i := range s.Rows {
		row := &s.Rows[i]
		var text string
		if feed == "items" && !row.Unlisted {
			text = row.item(currency, updated)
		}
		wanted := names == "" || slices.Contains(strings.Split(names, ","), row.Name)
		if feed != "items" && !row.Unsold && wanted {
			text = row.history(currency)
		}
		if text != "" {
			_, _ = io.WriteString(out, separator+text)
			separator = ",\n"
		}
	}
	if separator == "[" {
		_, _ = io.WriteString(out, "[")
	}
	_, _ = io.WriteString(out, "]")
}

const itemRow = `{"market_hash_name":%s,"version":%s,"currency":%q,"suggested_price":31.4,"item_page":"https://example.invalid/item",` +
	`"market_page":"https://example.invalid/market?cat=Rifle&item=A","min_price":%s,"max_price":%s,"mean_price":%s,"median_price":%s,` +
	`"quantity":%d,"created_at":1535988253,"updated_at":%d}`

func (r *Row) item(currency string, updated time.Time) string {
	ask := orNull(r.Ask)
	high := ask // mean and median are far off, because Skinport computes them from all offers
	if ask != "null" {
		high = "98765.43"
	}
	return fmt.Sprintf(itemRow, providertest.Quote(r.Name), r.version(), currency, ask, high, high, high, r.Quantity, updated.Unix())
}

const historyRow = `{"market_hash_name":%s,"version":%s,"currency":%q,"item_page":"https://example.invalid/item","market_page":"https://example.invalid/market",` +
	`"last_24_hours":%s,"last_7_days":%s,"last_30_days":%s,"last_90_days":%s}`

func (r *Row) history(currency string) string {
	return fmt.Sprintf(historyRow, providertest.Quote(r.Name), r.version(), currency,
		r.Sales[0].text(), r.Sales[1].text(), r.Sales[2].text(), r.Sales[3].text())
}

func (r *Row) version() string {
	if r.Version == "" {
		return "null"
	}
	return providertest.Quote(r.Version)
}

func (s Sales) text() string {
	m := orNull(s.Median)
	return fmt.Sprintf(`{"min":%s,"max":%s,"avg":%s,"median":%s,"volume":%d}`, m, m, m, m, s.Volume)
}

func orNull(number string) string {
	if number == "" {
		return "null"
	}
	return number
}
