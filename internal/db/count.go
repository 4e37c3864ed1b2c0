package db

import (
	"maps"
	"sync"
)

// Counts counts committed operations of this process by kind.
type Counts[K comparable] struct {
	mu     sync.Mutex
	counts map[K]int64
}

// Add increments the count of kind.
func (c *Counts[K]) Add(kind K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[K]int64{}
	}
	c.counts[kind]++
}

// Get returns a copy of the counts.
func (c *Counts[K]) Get() map[K]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}
