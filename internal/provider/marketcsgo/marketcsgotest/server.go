// Package marketcsgotest is a fake of the price files of market.csgo.com. Like the site, it
// refuses the sixth request within a second.
package marketcsgotest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"assay/internal/provider/providertest"
)

// Row is an item of both files. Numbers are strings; "" is null.
type Row struct {
	Name          string
	Price, Volume string
	Unlisted      bool       // missing from the price file
	Instances     []Instance // empty: missing from the instance file
}

// Instance is a class and instance of an item.
type Instance struct {
	Price, BuyOrder, Sold string // Sold is popularity_7d
}

// Server is a fake of market.csgo.com. Set its fields before the first request.
type Server struct {
	Rows    []Row
	Time    time.Time // time of both files; default now. An old time simulates a file that is no longer updated
	Numbers bool      // send JSON numbers instead of strings
	Last    bool      // send time and currency after the items
	Half    bool      // omit the second half of the rows
	Refuse  string    // if set, every request is refused with this error
	Status  int       // status of refused requests; default 200
	Calls   int       // maximum requests per second; default 5

	mu    sync.Mutex
	calls *providertest.Window
}

var currencies = []string{"USD", "EUR", "RUB"}

// ServeHTTP serves /api/v2/prices/{USD,EUR,RUB}.json and the same files under class_instance.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, isFile := strings.CutPrefix(r.URL.Path, "/api/v2/prices/")
	path, byInstance := strings.CutPrefix(path, "class_instance/")
	currency := slices.IndexFunc(currencies, func(c string) bool { return path == c+".json" })
	switch {
	case strings.HasPrefix(cmp.Or(r.UserAgent(), "Go-http-client"), "Go-http-client"):
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, "<!DOCTYPE html><title>Just a moment...</title>")
	case !s.allow():
		refuse(w, http.StatusTooManyRequests, "too_many_requests")
	case s.Refuse != "":
		refuse(w, cmp.Or(s.Status, http.StatusOK), s.Refuse)
	case !isFile || currency < 0:
		refuse(w, http.StatusBadRequest, "bad_request")
	default:
		s.serve(w, currencies[currency], byInstance)
	}
}

func (s *Server) allow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = &providertest.Window{Calls: cmp.Or(s.Calls, 5), Per: time.Second}
	}
	_, ok := s.calls.Take(time.Now())
	return ok
}

func refuse(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"success":false,"error":%q}`, reason)
}

func (s *Server) serve(w http.ResponseWriter, currency string, byInstance bool) {
	rows := s.Rows
	if s.Half {
		rows = rows[:len(rows)/2]
	}
	var items string
	if byInstance {
		items = "{" + strings.Join(s.instances(rows), ",\n") + "}"
	} else {
		items = "[" + strings.Join(s.prices(rows), ",\n") + "]"
	}
	at := s.Time
	if at.IsZero() {
		at = time.Now()
	}
	head := fmt.Sprintf(`"time":%d,"currency":%q`, at.Unix(), currency)
	w.Header().Set("Content-Type", "application/json")
	if s.Last {
		_, _ = fmt.Fprintf(w, `{"success":true,"items":%s,%s}`, items, head)
	} else {
		_, _ = fmt.Fprintf(w, `{"success":true,%s,"items":%s}`, head, items)
	}
}

func (s *Server) prices(rows []Row) (out []string) {
	for i := range rows {
		if r := &rows[i]; !r.Unlisted {
			out = append(out, fmt.Sprintf(`{"market_hash_name":%s,"volume":%s,"price":%s}`,
				providertest.Quote(r.Name), s.number(r.Volume), s.number(r.Price)))
		}
	}
	return out
}

func (s *Server) instances(rows []Row) (out []string) {
	for i := range rows {
		for j, in := range rows[i].Instances {
			out = append(out, fmt.Sprintf(`"%d_%d":{"price":%s,"buy_order":%s,"avg_price":%s,"popularity_7d":%s,"market_hash_name":%s,"ru_name":null}`,
				3_000_000_000+i, j, s.number(in.Price), s.number(in.BuyOrder), s.number(in.Price), s.number(in.Sold), providertest.Quote(rows[i].Name)))
		}
	}
	return out
}

// number returns a number as a JSON string, like the site, or as a JSON number.
func (s *Server) number(text string) string {
	switch {
	case text == "":
		return "null"
	case s.Numbers:
		return text
	default:
		return strconv.Quote(text)
	}
}
