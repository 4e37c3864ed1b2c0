// Package waxpeertest is a fake of Waxpeer's public lists. It refuses the 61st call of a list
// within a minute.
package waxpeertest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/internal/provider/providertest"
)

// Row is a row of prices. Numbers are raw JSON; "" omits the member.
type Row struct {
	Name, Min, Count string
}

// Doppler is a listing of a knife.
type Doppler struct {
	Name, Phase, Price string
}

// Server is a fake of Waxpeer. Set its fields before the first request.
type Server struct {
	Rows     []Row // the same rows for every game
	Dopplers []Doppler
	Refuse   string // if set, every call is refused with this reason
	Status   int    // status of refused calls; default 200
	Calls    int    // maximum calls of each list per minute; default 60

	mu    sync.Mutex
	calls map[string]*providertest.Window
}

var games = []string{"csgo", "dota2", "tf2", "rust"}

// ServeHTTP serves /v1/prices and /v1/prices/dopplers.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	minified := q.Get("minified") == "1"
	switch {
	case !s.allow(r.URL.Path):
		refuse(w, http.StatusTooManyRequests, "Too many requests")
	case s.Refuse != "":
		refuse(w, cmp.Or(s.Status, http.StatusOK), s.Refuse)
	case r.URL.Path == "/v1/prices" && slices.Contains(games, q.Get("game")):
		serve(w, s.prices(minified))
	case r.URL.Path == "/v1/prices/dopplers" && q.Get("phase") == "any":
		serve(w, s.dopplers(minified))
	default:
		refuse(w, cmp.Or(s.Status, http.StatusOK), "Wrong input")
	}
}

func (s *Server) allow(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]*providertest.Window{}
	}
	if s.calls[path] == nil {
		s.calls[path] = &providertest.Window{Calls: cmp.Or(s.Calls, 60), Per: time.Minute}
	}
	_, ok := s.calls[path].Take(time.Now())
	return ok
}

func refuse(w http.ResponseWriter, status int, msg string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"success":false,"msg":%q}`, msg)
}

func serve(w http.ResponseWriter, rows []string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"success":true,"items":[%s]}`, strings.Join(rows, ",\n"))
}

func (s *Server) prices(minified bool) (out []string) {
	for _, r := range s.Rows {
		row := `{"name":` + providertest.Quote(r.Name) + member("count", r.Count) + member("min", r.Min)
		if !minified {
			row += `,"img":"https://example.invalid/a.png","steam_price":"33100","rarity_color":"#D32CE6","type":"Rifle"`
		}
		out = append(out, row+"}")
	}
	return out
}

func (s *Server) dopplers(minified bool) (out []string) {
	for i, d := range s.Dopplers {
		row := fmt.Sprintf(`{"name":%s,"item_id":"%d"%s,"phase":%s`, providertest.Quote(d.Name), 40_000_000_101+i, member("price", d.Price), providertest.Quote(d.Phase))
		if !minified {
			row += `,"steam_price":1401000,"img":"","weapon":"Karambit","paint_index":420,"float":0.031`
		}
		out = append(out, row+"}")
	}
	return out
}

func member(name, value string) string {
	if value == "" {
		return ""
	}
	return `,"` + name + `":` + value
}
