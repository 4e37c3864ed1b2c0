// Package steaminvtest provides a fake server of Steam's public inventories. Like Steam, it
// returns pages with the id for the next page, status 400 for a count that is too large, the
// body null with errors, and status 429 for clients over the rate limit.
package steaminvtest

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bodies of responses without assets.
const (
	Null      = "null"
	Transient = `{"error":"EYldRefreshAppIfNecessary failed with EResult 20"}`
	Final     = `{"error":"No inventory found (42)"}`
	Empty     = `{"total_inventory_count":0,"success":1,"rwgrsn":-2}`
)

// Reply is a fixed response.
type Reply struct {
	Status     int // default 200
	Body       string
	RetryAfter string // Retry-After header; Steam does not send it
}

// Server is a fake of Steam's inventories. Set its fields before it serves requests, or later
// with Set.
type Server struct {
	Inventories map[string]*Inventory // by "steamid/appid/contextid"; others are private
	MaxCount    int                   // maximum count of a request; default 2000
	PageSize    int                   // maximum number of assets on a page; default: the count
	Repeat      bool                  // whether a page starts with the last asset of the previous one
	Script      map[int]Reply         // responses by number of the request, from 1
	Gap         time.Duration         // minimum time between requests; 0: no limit
	Now         func() time.Time      // default time.Now
	// Arrived is called before each response with the number of the request. It may be nil.
	Arrived func(n int, r *http.Request)

	mu      sync.Mutex
	paths   []string
	last    time.Time
	penalty time.Duration
	blocked time.Time
}

// Duration of the first block, and the maximum to which it grows.
const (
	firstPenalty = 10 * time.Minute
	maxPenalty   = time.Hour
)

// Set changes the fields of a running server.
func (s *Server) Set(change func(*Server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// Paths returns the requested paths with their queries.
func (s *Server) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.paths)
}

// ServeHTTP serves /inventory/{steamid}/{appid}/{contextid}.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.paths = append(s.paths, r.URL.RequestURI())
	n, arrived := len(s.paths), s.Arrived
	s.mu.Unlock()
	if arrived != nil {
		arrived(n, r)
	}
	reply := s.reply(n, r)
	if reply.RetryAfter != "" {
		w.Header().Set("Retry-After", reply.RetryAfter)
	}
	kind := "application/json; charset=utf-8"
	if strings.HasPrefix(reply.Body, "<") {
		kind = "text/html; charset=UTF-8"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(cmp.Or(reply.Status, http.StatusOK))
	_, _ = io.WriteString(w, reply.Body)
}

// reply returns the response to request number n.
func (s *Server) reply(n int, r *http.Request) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if scripted, ok := s.Script[n]; ok {
		return scripted
	}
	if !s.allow() {
		return Reply{Status: http.StatusTooManyRequests, Body: Null}
	}
	place, ok := strings.CutPrefix(r.URL.Path, "/inventory/")
	if !ok || r.Method != http.MethodGet {
		return Reply{Status: http.StatusNotFound, Body: "<html><body>An error occurred</body></html>"}
	}
	steamID, _, _ := strings.Cut(place, "/")
	if !strings.HasSuffix(r.Referer(), "/profiles/"+steamID+"/inventory") {
		return Reply{Status: http.StatusForbidden, Body: Null}
	}
	q := r.URL.Query()
	count, err := strconv.Atoi(q.Get("count"))
	if err != nil || count < 1 || count > cmp.Or(s.MaxCount, 2000) || q.Get("l") != "english" {
		return Reply{Status: http.StatusBadRequest, Body: Null}
	}
	inventory, ok := s.Inventories[place]
	if !ok {
		return Reply{Status: http.StatusForbidden, Body: Null}
	}
	if s.PageSize > 0 {
		count = min(count, s.PageSize)
	}
	return Reply{Body: inventory.page(q.Get("start_assetid"), count, s.Repeat)}
}

// allow reports whether a request is within the rate limit. If not, it starts or prolongs a
// block.
func (s *Server) allow() bool {
	now := time.Now()
	if s.Now != nil {
		now = s.Now()
	}
	soon := s.Gap > 0 && !s.last.IsZero() && now.Sub(s.last) < s.Gap
	s.last = now
	switch {
	case now.Before(s.blocked):
		s.penalty = min(2*s.penalty, maxPenalty)
	case soon:
		s.penalty = firstPenalty
	default:
		return true
	}
	s.blocked = now.Add(s.penalty)
	return false
}

// page returns the page with at most count assets after the asset start.
func (i *Inventory) page(start string, count int, repeat bool) string {
	total := len(i.Assets)
	if total == 0 || i.Hidden {
		return `{"total_inventory_count":` + strconv.Itoa(total) + `,"success":1,"rwgrsn":-2}`
	}
	from := 0
	if start != "" {
		from = 1 + slices.IndexFunc(i.Assets, func(a Asset) bool { return a.ID == start })
	}
	to := min(from+count, total)
	shown := i.Assets[from:to]
	if repeat && from > 0 {
		shown = i.Assets[from-1 : to]
	}
	var b bytes.Buffer
	b.WriteString(`{"assets":[`)
	described := map[[2]string]bool{}
	var descriptions, properties []string
	for n := range shown {
		a := &shown[n]
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString(a.Row)
		if class := a.class(); !described[class] {
			described[class] = true
			descriptions = append(descriptions, i.Descriptions[class])
		}
		if row, ok := i.Properties[a.ID]; ok {
			properties = append(properties, row)
		}
	}
	b.WriteString(`],"descriptions":[` + strings.Join(descriptions, ",") + `]`)
	if len(properties) > 0 {
		b.WriteString(`,"asset_properties":[` + strings.Join(properties, ",") + `]`)
	}
	if to < total {
		b.WriteString(`,"more_items":1,"last_assetid":"` + i.Assets[to-1].ID + `"`)
	}
	b.WriteString(`,"total_inventory_count":` + strconv.Itoa(total+i.Concealed) + `,"success":1,"rwgrsn":-2}`)
	return b.String()
}
