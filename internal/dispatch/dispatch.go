// Package dispatch wakes workers. Work is stored as rows in the database. A dispatcher
// only sends hints that there may be work. A lost hint delays the work by seconds. A
// duplicate hint has no effect.
package dispatch

import (
	"context"
	"time"
)

// Dispatcher runs workers and tasks. The package dispatchtest contains tests for all
// implementations.
type Dispatcher interface {
	// Wake wakes the workers of a kind in all processes that share the database. It never
	// blocks. It ignores kinds without a worker.
	Wake(kind string)
	// Scheduled returns the next run time of each task.
	Scheduled() map[string]time.Time
	// Run runs workers and tasks until ctx ends. It returns when all workers have
	// stopped. It may be called only once.
	Run(ctx context.Context)
	// Close releases the resources of a dispatcher that was never run. After Run it does
	// nothing.
	Close()
}

// Queues group kinds of work for monitoring, and for dispatchers that have queues.
const (
	QueueBulk      = "bulk"      // price refreshes
	QueueMissing   = "missing"   // prices that an inventory sync found missing
	QueueInventory = "inventory" // inspections and other work after a sync
	QueueUpkeep    = "upkeep"    // cleanup
)

// Worker processes one kind of work.
type Worker struct {
	Kind  string
	Queue string
	Slots int // number of goroutines per process
	// Work processes one piece of work and reports whether there may be more. It must
	// return soon after ctx ends.
	Work func(ctx context.Context) (more bool, err error)
}

// Task is scheduled work that runs once per cluster.
type Task struct {
	Name  string
	Queue string
	// Next returns the first run time after the given time. The zero time means never.
	// The result must depend only on the argument, so that all processes compute the same
	// times.
	Next func(after time.Time) time.Time
	Run  func(ctx context.Context) error
}
