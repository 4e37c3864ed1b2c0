package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"assay/internal/fault"
)

// guard makes a panic a failure like any other: what nobody foresaw in one piece
// of work must not end a server that has other work, and answers to give.
func guard(fn func() error) (err error) {
	defer func() {
		if panicked := fault.Recovered(recover()); panicked != nil {
			err = panicked
		}
	}()
	return fn()
}

// blame returns the logger for an error; of a panic it tells where it was.
func blame(log *slog.Logger, err error) *slog.Logger {
	if p, ok := errors.AsType[*fault.Panic](err); ok {
		return log.With("stack", p.Stack)
	}
	return log
}

// Try runs the task once and logs that it failed, be it by a panic, unless ctx
// has ended: the task runs again at its next time. The error is for those who
// keep a record of it.
func (t *Task) Try(ctx context.Context, log *slog.Logger) error {
	err := guard(func() error { return t.Run(ctx) })
	if err != nil && ctx.Err() == nil {
		blame(log, err).Error("scheduled task failed", "task", t.Name, "error", err)
	}
	return err
}

// Wait waits for d and reports whether ctx still goes on.
func Wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
