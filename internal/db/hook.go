package db

import (
	"context"
	"sync/atomic"
)

// firstCommit is a function that the first transaction of a context runs before its commit.
type firstCommit struct {
	before func(*Tx) error
	done   atomic.Bool
}

type firstCommitKey struct{}

// OnFirstCommit returns a context whose first committed transaction also runs before, as its last
// step. An error of before rolls the transaction back. If transactions of the context run at the
// same time, or the outcome of a commit is unknown, before can run in more than one of them.
func OnFirstCommit(ctx context.Context, before func(*Tx) error) context.Context {
	return context.WithValue(ctx, firstCommitKey{}, &firstCommit{before: before})
}

// beforeCommit runs the function of OnFirstCommit, if it is still due.
func (t *Tx) beforeCommit() error {
	h, _ := t.ctx.Value(firstCommitKey{}).(*firstCommit)
	if h == nil || h.done.Load() {
		return nil
	}
	t.AfterCommit(func() { h.done.Store(true) })
	return h.before(t)
}
