// Package dispatch wakes workers. Work is rows in the database; a dispatcher only
// sends hints without payload, id or retry. A lost hint costs seconds, and a
// duplicate costs nothing.
package dispatch

import (
	"context"
	"time"
)

// Dispatcher runs workers and tasks. Every dispatcher passes the suite in
// dispatchtest.
type Dispatcher interface {
	// Wake wakes the workers of a kind in every process that shares the database.
	// It never blocks, and ignores kinds without a worker.
	Wake(kind string)
	// Scheduled returns when each task runs next.
	Scheduled() map[string]time.Time
	// Run works until ctx ends, and returns when every worker has stopped. It
	// may be called once.
	Run(ctx context.Context)
	// Close releases the resources of a dispatcher that never ran; after Run it does nothing.
	Close()
}

// Queues group kinds of work, for dispatchers that have queues and for monitoring.
const (
	QueueBulk      = "bulk"      // refreshing prices
	QueueMissing   = "missing"   // prices that a sync found unknown
	QueueInventory = "inventory" // inspection and other work after a sync
	QueueUpkeep    = "upkeep"    // cleaning up
)

// Worker does the work of one kind.
type Worker struct {
	Kind  string
	Queue string
	Slots int // goroutines per process
	// Work does one piece of work and reports whether there may be more. It
	// returns soon after ctx ends.
	Work func(ctx context.Context) (more bool, err error)
}

// Task is scheduled work that runs once per cluster.
type Task struct {
	Name  string
	Queue string
	// Next returns when to run after the given moment; the zero time: never. It
	// depends on the clock only, so it is the same in every process.
	Next func(after time.Time) time.Time
	Run  func(ctx context.Context) error
}
