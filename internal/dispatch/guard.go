package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"assay/internal/fault"
)

// guard converts a panic to an error, so that a bug in one kind of work does not stop the
// server.
func guard(fn func() error) (err error) {
	defer func() {
		if panicked := fault.Recovered(recover()); panicked != nil {
			err = panicked
		}
	}()
	return fn()
}

// withStack adds the stack of a panic to the logger.
func withStack(log *slog.Logger, err error) *slog.Logger {
	if p, ok := errors.AsType[*fault.Panic](err); ok {
		return log.With("stack", p.Stack)
	}
	return log
}

// Try runs the task once. It logs an error or panic, unless ctx has ended. The returned
// error is informational: the task runs again at its next time.
func (t *Task) Try(ctx context.Context, log *slog.Logger) error {
	err := guard(func() error { return t.Run(ctx) })
	if err != nil && ctx.Err() == nil {
		withStack(log, err).Error("scheduled task failed", "task", t.Name, "error", err)
	}
	return err
}

// Wait waits for d. It returns false if ctx ends first.
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
