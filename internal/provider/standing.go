package provider

import (
	"context"
	"sync"
	"time"
)

// confirmEvery is how often it is said again that a host answers: another process,
// which has ended since, may have said that it is down.
const confirmEvery = time.Minute

// standing is what everybody was told last of whether the host can be asked.
type standing struct {
	mu   sync.Mutex
	down bool
	told bool          // or else nothing
	at   time.Duration // when
}

// tellStanding tells everybody where the breaker stands, if they do not know.
func (c *Client) tellStanding(ctx context.Context, answered bool, why Kind) {
	if c.o.Allowance == nil {
		return
	}
	s := &c.standing
	s.mu.Lock()
	defer s.mu.Unlock()
	now := c.clock()
	state, _ := c.breaker.state(now)
	down := state != BreakerClosed
	if !down && !answered || s.told && s.down == down && (down || now-s.at < confirmEvery) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdTime)
	defer cancel()
	var err error
	if down {
		err = c.o.Allowance.Down(ctx, "it keeps failing: "+string(why))
	} else {
		err = c.o.Allowance.Up(ctx)
	}
	if err != nil {
		c.o.Logger.Warn("whether the source can be asked not stored", "source", c.o.Source, "error", err)
		return
	}
	s.down, s.told, s.at = down, true, now
}
