// Package dispatch wakes workers. What must be done is rows in the database;
// a dispatcher only says "look": it carries no payload, no id and no retry, so
// that a lost wake costs seconds and a doubled one nothing.
package dispatch

import (
	"context"
	"time"
)

// Worker does the work of one kind.
type Worker struct {
	Kind  string
	Slots int // how many goroutines do it at once
	// Work does one piece and reports whether there may be more. It returns
	// soon after ctx ends.
	Work func(ctx context.Context) (more bool, err error)
}

// Task is something that runs by itself, once per cluster.
type Task struct {
	Name string
	// Next returns when to run after the given moment; the zero time: never.
	Next func(after time.Time) time.Time
	Run  func(ctx context.Context) error
}
