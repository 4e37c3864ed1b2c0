// Package auditlog records the changes through the API and the operator's page, with their actors. An entry is
// written in the transaction of the change, so that neither exists without the other.
package auditlog

import (
	"context"
	"time"

	"assay/internal/db"
)

// Entry is a request that changed something.
type Entry struct {
	ID        int64
	At        time.Time
	Actor     string // admin, market, platform, page, operator:NAME or key:NAME
	Address   string // IP address of the client
	Action    string // method and route, such as "DELETE /api/keys/{name}"
	Target    string // path and query of the request; for a form, with its choices; for a new webhook, API key or operator, its path
	RequestID string

	created string // ID of the new object; empty: none
}

type entryKey struct{}

// Limits of the stored entries.
const (
	maxAge     = 365 * 24 * time.Hour
	maxEntries = 2_000_000
	// maxTarget limits the stored target in bytes.
	maxTarget = 1024
)

// With returns a context that adds the entry to the first transaction that commits with it.
func With(ctx context.Context, e Entry) context.Context {
	return db.OnFirstCommit(context.WithValue(ctx, entryKey{}, &e), func(t *db.Tx) error { return add(t, e) })
}

// Created adds the ID of an object that the transaction creates to the target of its entry, if it has one.
func Created(t *db.Tx, id string) {
	if e, _ := t.Context().Value(entryKey{}).(*Entry); e != nil {
		e.created = id
	}
}

// DeleteOld deletes entries that are older than a year. If more than two million entries remain, it
// also deletes the oldest of them.
func DeleteOld(ctx context.Context, s *db.DB) error {
	for more := true; more; {
		err := s.InTx(ctx, func(t *db.Tx) (err error) {
			more, err = deleteOld(t, maxEntries, deleteBatch)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
