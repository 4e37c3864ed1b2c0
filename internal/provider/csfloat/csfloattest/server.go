// Package csfloattest is a fake of CSFloat's public price lists. It sends rate-limit headers
// with every response.
package csfloattest

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"assay/internal/provider/providertest"
)

// Row is a row of the price list. Numbers are raw JSON; "" omits the member.
type Row struct {
	Name, MinPrice, Quantity string
}

// Doppler is a row of the list of phases.
type Doppler struct {
	Name, PaintIndex, Phase, MinPrice string
}

// Server is a fake of CSFloat. Set its fields before the first request.
type Server struct {
	Rows      []Row
	Dopplers  []Doppler
	Exchanged bool          // exchange the forms of the two lists, array and object
	Key       string        // if set, requests without this key get 401
	Calls     int           // maximum calls per period; default 200
	Reset     time.Duration // time until the reset in the headers; default: the real reset; negative: a reset in the past

	mu    sync.Mutex
	calls *providertest.Window
}

// period is the period in which calls are counted.
const period = 5 * time.Minute

// ServeHTTP serves /api/v1/listings/price-list and its subpaths.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	allowed := s.count(w.Header())
	w.Header().Set("Content-Type", "application/json")
	switch list, ok := strings.CutPrefix(r.URL.Path, "/api/v1/listings/price-list"); {
	case !ok, list != "" && list != "/doppler":
		refuse(w, http.StatusNotFound, 4, "not found")
	case s.Key != "" && r.Header.Get("Authorization") != s.Key:
		refuse(w, http.StatusUnauthorized, 1, "You need to be logged in to search listings")
	case !allowed:
		refuse(w, http.StatusTooManyRequests, 20, "too many requests, please try again later")
	case list == "":
		serve(w, s.prices(), s.Exchanged)
	default:
		serve(w, s.dopplers(), !s.Exchanged)
	}
}

// count counts a call and reports the remaining calls in the header.
func (s *Server) count(h http.Header) (allowed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = &providertest.Window{Calls: cmp.Or(s.Calls, 200), Per: period}
	}
	now := time.Now()
	wait, ok := s.calls.Take(now)
	if ok {
		wait = period
	}
	h.Set("X-Ratelimit-Limit", strconv.Itoa(s.calls.Calls))
	h.Set("X-Ratelimit-Remaining", strconv.Itoa(s.calls.Left()))
	h.Set("X-Ratelimit-Reset", strconv.FormatInt(now.Add(cmp.Or(s.Reset, wait)).Unix(), 10))
	return ok
}

func refuse(w http.ResponseWriter, status, code int, message string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"code":%d,"message":%q}`, code, message)
}

func serve(w http.ResponseWriter, rows []string, wrapped bool) {
	body := "[" + strings.Join(rows, ",\n") + "]"
	if wrapped {
		body = `{"data":` + body + "}"
	}
	_, _ = w.Write([]byte(body))
}

func (s *Server) prices() (out []string) {
	for _, r := range s.Rows {
		out = append(out, "{"+`"market_hash_name":`+providertest.Quote(r.Name)+member("min_price", r.MinPrice)+member("quantity", r.Quantity)+"}")
	}
	return out
}

func (s *Server) dopplers() (out []string) {
	for _, d := range s.Dopplers {
		row := `{"market_hash_name":` + providertest.Quote(d.Name) + member("paint_index", d.PaintIndex)
		if d.Phase != "" {
			row += member("phase_name", providertest.Quote(d.Phase))
		}
		out = append(out, row+member("min_price", d.MinPrice)+"}")
	}
	return out
}

func member(name, value string) string {
	if value == "" {
		return ""
	}
	return `,"` + name + `":` + value
}
