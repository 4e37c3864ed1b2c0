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

// OnFirstCommit returns a context for write transactions. The first of them that commits calls
// the function before as its last step. If before returns an error, that transaction rolls back.
// If transactions of the context run concurrently, or the outcome of a commit is unknown, more
// than one transaction may call that function. If before is nil, the transactions call no function.
func OnFirstCommit(ctx context.Context, before func(*Tx) error) context.Context {
	return context.WithValue(ctx, firstCommitKey{}, &firstCommit{before: before})
}

// beforeCommit runs the function of OnFirstCommit, unless a committed transaction already
// ran it.
func (t *Tx) beforeCommit() error {
	h, _ := t.ctx.Value(firstCommitKey{}).(*firstCommit)
	if h == nil || h.before == nil || h.done.Load() {
		return nil
	}
	t.AfterCommit(func() { h.done.Store(true) })
	return h.before(t)
}
