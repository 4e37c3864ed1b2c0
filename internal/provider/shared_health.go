package provider

import (
	"context"
	"sync"
	"time"
)

// confirmEvery is the interval at which a process stores again that a host responds. Another
// process may have stored that the host is down and then stopped.
const confirmEvery = time.Minute

// storedHealth is the state that this process last stored for all processes.
type storedHealth struct {
	mu     sync.Mutex
	down   bool
	stored bool          // false until the first state is stored
	at     time.Duration // time of the last store
}

// shareHealth stores a change of the breaker's state for all processes.
func (c *Client) shareHealth(ctx context.Context, responded bool, why Kind) {
	if c.o.Allowance == nil {
		return
	}
	s := &c.health
	s.mu.Lock()
	defer s.mu.Unlock()
	now := c.clock()
	state, _ := c.breaker.state(now)
	down := state != BreakerClosed
	if !down && !responded || s.stored && s.down == down && (down || now-s.at < confirmEvery) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	var err error
	if down {
		err = c.o.Allowance.Down(ctx, "repeated failures: "+string(why))
	} else {
		err = c.o.Allowance.Up(ctx)
	}
	if err != nil {
		c.o.Logger.Warn("provider health not stored", "provider", c.o.Provider, "error", err)
		return
	}
	s.down, s.stored, s.at = down, true, now
}
