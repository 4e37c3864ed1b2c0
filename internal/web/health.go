package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"assay/internal/view"
)

// These are the longest times for which a cached verdict is shown. A new verdict needs a scan of
// all items, which would delay a page. The script renews the dot of an open page, so that few
// pages have to.
const (
	healthMaxAge     = 15 * time.Second // by the script
	healthMaxAgePage = time.Minute      // by a page
)

// healthCache caches the verdict of the overview, which all pages show as a dot.
type healthCache struct {
	reading sync.Mutex // held while the verdict is read

	mu   sync.Mutex
	at   time.Time // zero: not read yet
	last view.Verdict
}

// unknownHealth returns the verdict that pages show while the state is not known: before the
// first read, and after a failed read.
func unknownHealth() view.Verdict {
	return view.Verdict{Level: "calm", Text: "The state is not known yet."}
}

// verdict returns a verdict that is younger than kept. While one request reads it, the other
// requests return the last verdict.
func (s *pages) verdict(ctx context.Context, kept time.Duration) view.Verdict {
	c := s.health
	if !c.reading.TryLock() {
		return c.get()
	}
	defer c.reading.Unlock()
	c.mu.Lock()
	age := s.Now().Sub(c.at)
	known := !c.at.IsZero() && age >= 0 && age < kept
	c.mu.Unlock()
	if known {
		return c.get()
	}
	verdict := unknownHealth()
	if read, err := s.Overview.Overview(ctx); err == nil {
		verdict = read.Verdicts[0]
	} else if ctx.Err() != nil {
		return c.get()
	}
	c.set(s.Now(), verdict)
	return verdict
}

// set stores a verdict that was read now.
func (c *healthCache) set(now time.Time, v view.Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.last = now, v
}

// expire makes the next page read the verdict again. Until then, requests get the last one.
func (c *healthCache) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() {
		c.at = time.Unix(0, 0)
	}
}

func (c *healthCache) get() view.Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return unknownHealth()
	}
	return c.last
}

// showHealth responds with the status dot only. The script of an open page requests it.
func (s *pages) showHealth(w http.ResponseWriter, r *http.Request, _ session) error {
	s.execute(w, r, http.StatusOK, "refusal", "health", s.verdict(r.Context(), healthMaxAge))
	return nil
}
