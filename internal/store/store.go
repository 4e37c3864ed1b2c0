// Package store holds the SQL of the subjects that do not hold their own yet.
package store

import (
	"context"

	"assay/internal/db"
)

// Store is an open database.
type Store struct{ *db.DB }

// Tx is a write transaction.
type Tx struct{ *db.Tx }

// Open opens a database: see db.Open.
func Open(ctx context.Context, o db.Options) (*Store, error) {
	d, err := db.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Store{d}, nil
}

// InTx is that of db.DB.
func (s *Store) InTx(ctx context.Context, fn func(*Tx) error) error {
	return s.DB.InTx(ctx, func(t *db.Tx) error { return fn(&Tx{t}) })
}

// InUrgentTx is that of db.DB.
func (s *Store) InUrgentTx(ctx context.Context, fn func(*Tx) error) error {
	return s.DB.InUrgentTx(ctx, func(t *db.Tx) error { return fn(&Tx{t}) })
}

// InSmallTx is that of db.DB.
func (s *Store) InSmallTx(ctx context.Context, fn func(*Tx) error) error {
	return s.DB.InSmallTx(ctx, func(t *db.Tx) error { return fn(&Tx{t}) })
}
