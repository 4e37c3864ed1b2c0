// Package pricempiretest is a fake of Pricempire's price feed with the same rules. The key
// must be a UUID and the game must be known. Unknown markets are omitted without an error.
package pricempiretest

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"assay/internal/provider/providertest"
)

// Row is an item. Members holds its raw JSON members except name and prices.
type Row struct {
	Name, Members string
	Prices        []Price
}

// Price is the price of one market. Members holds its raw JSON members except the key.
type Price struct{ Key, Members string }

// Server is a fake of Pricempire. Set its fields before the first request.
type Server struct {
	Rows  []Row
	Calls int // calls until the quota of the plan is exhausted; 0: unlimited

	mu   sync.Mutex
	sent int
}

var key = regexp.MustCompile(`^Bearer [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// ServeHTTP serves /v4/paid/items/prices.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	q := r.URL.Query()
	switch {
	case r.URL.Path != "/v4/paid/items/prices" || r.Method != http.MethodGet:
		refuse(w, http.StatusNotFound, `{"message":"Cannot GET","error":"Not Found","statusCode":404}`)
	case !key.MatchString(r.Header.Get("Authorization")):
		refuse(w, http.StatusUnauthorized, `{"message":"Invalid API key","error":"Unauthorized","statusCode":401}`)
	case !slices.Contains([]string{"730", "570", "440", "252490"}, q.Get("app_id")):
		refuse(w, http.StatusBadRequest, `{"message":["app_id must be 730, 570, 440 or 252490"],"error":"Bad Request","statusCode":400}`)
	case !s.allow():
		refuse(w, http.StatusTooManyRequests, `{"message":"Too many requests","error":"Too Many Requests","statusCode":429}`)
	default:
		s.serve(w, strings.Split(q.Get("sources"), ","))
	}
}

func refuse(w http.ResponseWriter, status int, body string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func (s *Server) allow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	return s.Calls == 0 || s.sent <= s.Calls
}

func (s *Server) serve(out io.Writer, markets []string) {
	var rows []string
	for _, row := range s.Rows {
		var prices []string
		for _, p := range row.Prices {
			if slices.Contains(markets, p.Key) {
				prices = append(prices, `{"provider_key":`+providertest.Quote(p.Key)+`,`+p.Members+`}`)
			}
		}
		rows = append(rows, `{"market_hash_name":`+providertest.Quote(row.Name)+`,"image":"https://example.invalid/i.png",`+row.Members+
			`,"prices":[`+strings.Join(prices, ",")+`]}`)
	}
	_, _ = io.WriteString(out, "["+strings.Join(rows, ",\n")+"]")
}
