package store

import (
	"maps"
	"sync"
)

// kindCounts counts what this process has committed, by kind.
type kindCounts[K comparable] struct {
	mu     sync.Mutex
	counts map[K]int64
}

func (c *kindCounts[K]) add(kind K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[K]int64{}
	}
	c.counts[kind]++
}

func (c *kindCounts[K]) get() map[K]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}
