// Package dispatch wakes workers. What must be done is rows in the database;
// a dispatcher only says "look": it carries no payload, no id and no retry, so
// that a lost wake costs seconds and a doubled one nothing.
package dispatch

import (
	"context"
	"time"
)

// Dispatcher runs workers and tasks. Every dispatcher passes the suite in
// dispatchtest.
type Dispatcher interface {
	// Wake tells the workers of a kind, in every process that shares the
	// database, that there may be work. It never blocks; kinds that nobody works
	// on are ignored.
	Wake(kind string)
	// Scheduled returns when each task runs next.
	Scheduled() map[string]time.Time
	// Run works until ctx ends, and returns when every worker has stopped. It
	// may be called once.
	Run(ctx context.Context)
	// Close releases what the dispatcher holds; after Run it does nothing.
	Close()
}

// Queues group kinds of work, where a dispatcher has queues and for those who
// watch them.
const (
	QueueBulk      = "bulk"      // refreshing prices
	QueueMissing   = "missing"   // prices that a sync found unknown
	QueueInventory = "inventory" // what syncs leave to be done with rows
	QueueUpkeep    = "upkeep"    // cleaning up
)

// Worker does the work of one kind.
type Worker struct {
	Kind  string
	Queue string
	Slots int // how many goroutines of a process do it at once
	// Work does one piece and reports whether there may be more. It returns
	// soon after ctx ends.
	Work func(ctx context.Context) (more bool, err error)
}

// Task is something that runs by itself, once per cluster.
type Task struct {
	Name  string
	Queue string
	// Next returns when to run after the given moment; the zero time: never. It
	// is the same in every process: a matter of the clock, not of the start.
	Next func(after time.Time) time.Time
	Run  func(ctx context.Context) error
}
