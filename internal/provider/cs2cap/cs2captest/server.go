// Package cs2captest is a fake of cs2cap's price endpoints with the same rules. It requires a
// key, accepts at most a hundred known names and markets, allows one stream at a time, and
// limits requests per minute, requests per month and streams.
package cs2captest

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"assay/internal/provider/cs2cap"
	"assay/internal/provider/providertest"
)

// Item is an item of the catalog with its quotes.
type Item struct {
	ID          int
	Name, Phase string
	Quotes      []Quote
	Sold        string // members of its summary in market/items; "": no row there
}

// Quote is the quote of one market.
type Quote struct {
	Provider string
	Ask      int    // in hundredths of the currency
	Decimal  string // "": omitted
	Quantity int
	Updated  time.Time
}

// Server is a fake of cs2cap. Set its fields before the first request.
type Server struct {
	Items       []Item
	Generated   time.Time
	Key         string
	Minute      int  // requests per minute; 0: unlimited
	Month       int  // requests per month; 0: unlimited
	Unavailable int  // number of requests to refuse because the price index is being rebuilt
	FromNow     bool // send resets in seconds from now, like the documented sample
	Bare        bool // omit the headers of a 429
	PageSize    int  // maximum rows of a page; default 100
	Quiet       bool // omit the queried markets from meta

	Streams  int           // stream starts per day; 0: unlimited
	Parallel bool          // allow several open streams
	Stop     int           // number of lines after which a stream ends; 0: unlimited
	Opened   chan struct{} // if set, a stream sends to it twice after its start, before the first line

	mu        sync.Mutex
	sent      int
	calls     *providertest.Window
	starts    *providertest.Window
	streaming bool
}

// ServeHTTP serves GET and POST /v1/prices, POST /v1/prices/batch and
// GET /v1/market/items.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("Authorization") != "Bearer "+s.Key:
		refuse(w, http.StatusUnauthorized, `{"code":"AUTH_INVALID_API_KEY","detail":"Invalid API key"}`)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/prices":
		if s.start(w) {
			s.stream(w, r)
		}
	case !s.allow(w):
	case r.Method == http.MethodPost && r.URL.Path == "/v1/prices/batch":
		s.batch(w, r)
	case r.Method == http.MethodGet && r.URL.Path == "/v1/prices":
		s.page(w, r)
	case r.Method == http.MethodGet && r.URL.Path == "/v1/market/items":
		s.sales(w)
	default:
		refuse(w, http.StatusNotFound, `{"code":"NOT_FOUND","detail":"Not Found"}`)
	}
}

func refuse(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	write(w, body)
}

func write(w io.Writer, body string) { _, _ = io.WriteString(w, body) }

// allow counts a request. If a limit is reached, it refuses the request and returns false.
func (s *Server) allow(w http.ResponseWriter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	if s.sent <= s.Unavailable {
		refuse(w, http.StatusServiceUnavailable, `{"code":"PRICES_INDEX_UNAVAILABLE","detail":"Prices index is being rebuilt"}`)
		return false
	}
	now := time.Now()
	if s.Month > 0 && s.sent > s.Month {
		end := time.Date(now.UTC().Year(), now.UTC().Month()+1, 1, 0, 0, 0, 0, time.UTC)
		s.report(w, s.Month, 0, end.Sub(now), `{"code":"`+cs2cap.QuotaExceededCode+`","detail":"Monthly quota exceeded"}`)
		return false
	}
	if s.calls == nil {
		s.calls = &providertest.Window{Calls: s.Minute, Per: time.Minute}
	}
	if wait, ok := s.calls.Take(now); s.Minute > 0 && !ok {
		s.report(w, s.Minute, 0, wait, `{"code":"RATE_LIMIT_EXCEEDED","detail":"Too Many Requests"}`)
		return false
	}
	return true
}

// report sends the remaining budget and its reset as headers. If body is not empty, it also
// refuses the request.
func (s *Server) report(w http.ResponseWriter, limit, left int, reset time.Duration, body string) {
	if !s.Bare {
		seconds := providertest.Seconds(reset)
		if body != "" {
			w.Header().Set("Retry-After", seconds)
		}
		if !s.FromNow {
			seconds = strconv.FormatInt(time.Now().Add(reset).Unix()+1, 10)
		}
		w.Header().Set("X-RateLimit-Limit", strconv.Itoa(limit))
		w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(left))
		w.Header().Set("X-RateLimit-Reset", seconds)
		w.Header().Set("X-RateLimit-Tier", "starter")
	}
	if body != "" {
		refuse(w, http.StatusTooManyRequests, body)
	}
}

// start counts a stream and reports how many streams are left. If no stream is allowed, it
// refuses the request and returns false.
func (s *Server) start(w http.ResponseWriter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	const day = 24 * time.Hour
	if s.starts == nil {
		s.starts = &providertest.Window{Calls: s.Streams, Per: day}
	}
	switch wait, ok := s.starts.Take(time.Now()); {
	case s.streaming && !s.Parallel:
		refuse(w, http.StatusConflict, `{"code":"`+cs2cap.StreamActiveCode+`","detail":"Another stream is active for this key"}`)
		return false
	case s.Streams > 0 && !ok:
		s.report(w, s.Streams, 0, wait, `{"code":"`+cs2cap.StreamQuotaExceededCode+`","detail":"Stream quota exceeded"}`)
		return false
	case s.Streams > 0:
		s.report(w, s.Streams, s.starts.Left(), day-time.Second, "")
	}
	s.streaming = true
	return true
}

func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.streaming = false
	}()
	providers := r.URL.Query()["providers"]
	if !known(w, "query", providers) {
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if s.Opened != nil {
		_ = http.NewResponseController(w).Flush()
		s.Opened <- struct{}{}
		s.Opened <- struct{}{}
	}
	for i, it := range s.Items {
		if s.Stop > 0 && i == s.Stop {
			return
		}
		write(w, it.row(providers)+"\n")
	}
}

// row returns the row of the item in a batch or a stream.
func (it *Item) row(providers []string) string {
	return fmt.Sprintf(`{"item_id":%d,"market_hash_name":%s,"phase":%s,"quotes":[%s]}`,
		it.ID, providertest.Quote(it.Name), phase(it.Phase), strings.Join(it.quotes(providers), ","))
}

func (s *Server) sales(w http.ResponseWriter) {
	var rows []string
	for _, it := range s.Items {
		if it.Sold != "" {
			rows = append(rows, fmt.Sprintf(`{"item_id":%d,"market_hash_name":%s,"phase":%s,"summary":{"best_ask_usd":"1.50",%s}}`,
				it.ID, providertest.Quote(it.Name), phase(it.Phase), it.Sold))
		}
	}
	w.Header().Set("Content-Type", "application/json")
	write(w, fmt.Sprintf(`{"data":{"items":[%s]},"meta":{"generated_at":%q,"data_source":"index","freshness_sec":40}}`,
		strings.Join(rows, ","), s.Generated.Format(time.RFC3339)))
}

// known refuses a request with an unknown market and returns false.
func known(w http.ResponseWriter, where string, providers []string) bool {
	for i, p := range providers {
		if !slices.Contains(cs2cap.Markets(), p) {
			refuse(w, http.StatusUnprocessableEntity, fmt.Sprintf(
				`{"code":"VALIDATION_ERROR","detail":[{"type":"enum","loc":[%q,"providers",%d],"msg":"Input should be a provider key","input":%q,"ctx":{"expected":"a provider key"}}]}`,
				where, i, p))
			return false
		}
	}
	return true
}

func (s *Server) batch(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Names     []string `json:"market_hash_names"`
		Providers []string `json:"providers"`
		Currency  string   `json:"currency"`
	}
	if err := json.UnmarshalRead(r.Body, &q); err != nil {
		refuse(w, http.StatusUnprocessableEntity, `{"code":"VALIDATION_ERROR","detail":[{"type":"json_invalid","loc":["body",0],"msg":"JSON decode error"}]}`)
		return
	}
	if len(q.Names) > 100 {
		refuse(w, http.StatusBadRequest, `{"code":"BAD_REQUEST","detail":"At most 100 items per request"}`)
		return
	}
	if !known(w, "body", q.Providers) {
		return
	}
	var items, empty, unknown []string
	for _, name := range q.Names {
		i := slices.IndexFunc(s.Items, func(i Item) bool { return i.Name == name })
		switch {
		case i < 0:
			unknown = append(unknown, providertest.Quote(name))
		case len(s.Items[i].quotes(q.Providers)) == 0 && i%2 == 0:
			empty = append(empty, strconv.Itoa(s.Items[i].ID))
		default: // an item without quotes may be in either list
			items = append(items, s.Items[i].row(q.Providers))
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"meta":{"currency":%q,"requested_item_count":%d,"found_item_count":%d,%s"generated_at":%q},"items":[%s],"items_not_found":[%s],"names_not_found":[%s]}`,
		q.Currency, len(q.Names), len(items), s.queried(q.Providers), s.Generated.Format(time.RFC3339),
		strings.Join(items, ","), strings.Join(empty, ","), strings.Join(unknown, ","))
}

func (s *Server) queried(providers []string) string {
	if s.Quiet {
		return ""
	}
	var list []string
	for _, p := range providers {
		list = append(list, providertest.Quote(p))
	}
	return `"providers_queried":[` + strings.Join(list, ",") + `],`
}

// quotes returns the item's quotes on these markets, in the format of a batch.
func (it *Item) quotes(providers []string) []string {
	var all []string
	for _, q := range it.Quotes {
		if slices.Contains(providers, q.Provider) {
			all = append(all, "{"+q.members()+"}")
		}
	}
	return all
}

func (q *Quote) members() string {
	text := fmt.Sprintf(`"provider":%q,"lowest_ask":%d,`, q.Provider, q.Ask)
	if q.Decimal != "" {
		text += fmt.Sprintf(`"lowest_ask_decimal":%q,`, q.Decimal)
	}
	return text + fmt.Sprintf(`"quantity":%d,"timestamp":%q,"last_updated":%q`,
		q.Quantity, q.Updated.Add(-time.Hour).Format(time.RFC3339), q.Updated.Format(time.RFC3339))
}

func phase(p string) string {
	if p == "" {
		return "null"
	}
	return providertest.Quote(p)
}

func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !known(w, "query", q["providers"]) {
		return
	}
	var rows []string
	for _, it := range s.Items {
		if it.Name != q.Get("market_hash_name") {
			continue
		}
		for _, quote := range it.Quotes {
			if slices.Contains(q["providers"], quote.Provider) {
				rows = append(rows, fmt.Sprintf(`{%s,"item_id":%d,"market_hash_name":%s,"phase":%s,"link":"https://example.invalid/r/%d"}`,
					quote.members(), it.ID, providertest.Quote(it.Name), phase(it.Phase), it.ID))
			}
		}
	}
	offset, _ := strconv.Atoi(q.Get("offset"))
	limit, _ := strconv.Atoi(q.Get("limit"))
	if s.PageSize > 0 {
		limit = s.PageSize
	}
	total := len(rows)
	rows = rows[min(offset, total):min(offset+limit, total)]
	w.Header().Set("Content-Type", "application/json")
	write(w, fmt.Sprintf(`{"meta":{"currency":%q,"filters":{"requested_providers":[]},%s"unused":null},"items":[%s],"pagination":{"limit":%d,"offset":%d,"total":%d,"has_next":%t,"has_prev":%t,"next_cursor":null}}`,
		q.Get("currency"), s.queried(q["providers"]), strings.Join(rows, ","), limit, offset, total, offset+limit < total, offset > 0))
}
