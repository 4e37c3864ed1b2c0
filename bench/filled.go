package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// filled is a world of full size with a copy of its database for the floor.
type filled struct {
	*world
	floor *sql.DB
}

// fullWorld returns the world that several measurements share. Its server has just started.
func (b *bench) fullWorld(ctx context.Context) (*filled, error) {
	if b.shared != nil {
		return b.shared, b.shared.restart(ctx, nil)
	}
	b.note("filling: %s rows of %s names, %d markets", count(b.size.rows), count(b.size.names), b.size.markets)
	w, err := b.newWorld(ctx, b.size)
	if err != nil {
		return nil, err
	}
	f := &filled{world: w}
	b.shared = f
	return f, f.restart(ctx, func() (err error) {
		f.floor, err = b.engine.clone(ctx, w.server)
		return err
	})
}

func (b *bench) closeShared() error {
	if b.shared == nil {
		return nil
	}
	err := b.shared.close()
	if b.shared.floor != nil {
		err = errors.Join(err, b.shared.floor.Close())
	}
	b.shared = nil
	return err
}

// change changes all prices of the simulator and refreshes.
func (w *world) change(ctx context.Context) (job, time.Duration, error) {
	if err := w.sim.advance(ctx); err != nil {
		return job{}, 0, err
	}
	j, took, err := w.again(ctx)
	if err == nil && j.TotalItems < w.names {
		err = fmt.Errorf("%d items were planned, want %d", j.TotalItems, w.names)
	}
	return j, took, err
}

// again refreshes without changing the prices. Before that, it runs the background work of the
// database.
func (w *world) again(ctx context.Context) (j job, took time.Duration, err error) {
	db, err := w.engine.open(w.server)
	if err != nil {
		return j, 0, err
	}
	if err := errors.Join(w.engine.rest(ctx, db), db.Close()); err != nil {
		return j, 0, fmt.Errorf("run the background work of the database: %w", err)
	}
	return w.server.refresh(ctx)
}
