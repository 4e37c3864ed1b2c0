// Package steaminvtest serves public inventories as Steam does, as strictly and
// as oddly: pages that know their successor, 400 for a count that is too large,
// the bare word null with every refusal, and a block for clients over the rate limit.
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

// Answers of Steam that are no page.
const (
	Null      = "null"
	Transient = `{"error":"EYldRefreshAppIfNecessary failed with EResult 20"}`
	Final     = `{"error":"Failed to find what was asked for (42)"}`
	Empty     = `{"total_inventory_count":0,"success":1,"rwgrsn":-2}`
)

// Reply is an answer as it is.
type Reply struct {
	Status     int // default 200
	Body       string
	RetryAfter string // header; empty: none, as Steam does
}

// Server is a fake of Steam's inventories. Its fields may be set before it serves,
// and by Set afterwards.
type Server struct {
	Inventories map[string]*Inventory // by "steamid/appid/contextid"; others are private
	MaxCount    int                   // a larger count is refused; default 2000
	PageSize    int                   // most assets on a page, whatever the count; 0: the count
	Repeat      bool                  // each page begins with the last asset of the one before
	Script      map[int]Reply         // by number of the request, from 1
	Gap         time.Duration         // a request sooner after the last one is blocked; 0: none is
	Now         func() time.Time      // default time.Now
	// Arrived, when set, is called with each request and its number before it is
	// answered.
	Arrived func(n int, r *http.Request)

	mu      sync.Mutex
	paths   []string
	last    time.Time
	penalty time.Duration
	blocked time.Time
}

// The penalty for a call too soon, and what it grows to.
const (
	firstPenalty = 10 * time.Minute
	mostPenalty  = time.Hour
)

// Set changes a server that serves.
func (s *Server) Set(change func(*Server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// Paths lists the requested paths with their queries.
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
	reply := s.answer(n, r)
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

// answer decides what request number n gets.
func (s *Server) answer(n int, r *http.Request) Reply {
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

// allow admits a request, or blocks the client, for longer each time.
func (s *Server) allow() bool {
	now := time.Now()
	if s.Now != nil {
		now = s.Now()
	}
	soon := s.Gap > 0 && !s.last.IsZero() && now.Sub(s.last) < s.Gap
	s.last = now
	switch {
	case now.Before(s.blocked):
		s.penalty = min(2*s.penalty, mostPenalty)
	case soon:
		s.penalty = firstPenalty
	default:
		return true
	}
	s.blocked = now.Add(s.penalty)
	return false
}

// page writes the page of at most count assets that follows an asset.
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
