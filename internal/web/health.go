package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"assay/internal/view"
)

// standingKept is how long a verdict is cached.
const standingKept = 15 * time.Second

// standing caches the verdict of the overview, which all pages show as a dot.
type standing struct {
	reading sync.Mutex // held while the verdict is read

	mu   sync.Mutex
	at   time.Time // zero: not read yet
	last view.Verdict
}

// unknownStanding returns the verdict that pages show while the state is not known: before the
// first read, and after a failed read.
func unknownStanding() view.Verdict {
	return view.Verdict{Level: "calm", Text: "The state is not known yet."}
}

// verdict returns a recent verdict. While one request reads it, the other requests return the
// last verdict.
func (s *pages) verdict(ctx context.Context) view.Verdict {
	c := s.standing
	if !c.reading.TryLock() {
		return c.get()
	}
	defer c.reading.Unlock()
	c.mu.Lock()
	age := s.Now().Sub(c.at)
	known := !c.at.IsZero() && age >= 0 && age < standingKept
	c.mu.Unlock()
	if known {
		return c.get()
	}
	verdict := unknownStanding()
	if read, err := s.Overview.Overview(ctx); err == nil {
		verdict = read.Verdicts[0]
	} else if ctx.Err() != nil {
		return c.get()
	}
	c.mu.Lock()
	c.at, c.last = s.Now(), verdict
	c.mu.Unlock()
	return verdict
}

func (c *standing) get() view.Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return unknownStanding()
	}
	return c.last
}

// showStanding responds with only the dot. The script requests it.
func (s *pages) showStanding(w http.ResponseWriter, r *http.Request, _ session) error {
	s.execute(w, r, http.StatusOK, "refusal", "standing", s.verdict(r.Context()))
	return nil
}
