package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

const (
	starts       = 5
	targetStart  = 300 * time.Millisecond
	targetBinary = 40_000_000 // in bytes
)

// measureStart measures the time from the start of the process to its first successful health
// check, with full inventories and with an empty directory (T11). It also measures the size of
// the program.
func (b *bench) measureStart(ctx context.Context) error {
	w, err := b.fullWorld(ctx)
	if err != nil {
		return err
	}
	var full, empty []time.Duration
	for range starts {
		if err := w.server.stop(); err != nil {
			return err
		}
		took, err := w.server.start(ctx)
		if err != nil {
			return err
		}
		full = append(full, took)
		if took, err = b.startEmpty(ctx); err != nil {
			return err
		}
		empty = append(empty, took)
	}
	info, err := os.Stat(b.binary)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		what string
		took []time.Duration
	}{
		{fmt.Sprintf("start with %s rows", count(w.rows)), full},
		{"start in an empty directory: creates the database and the secrets", empty},
	} {
		best := quantile(r.took, 0)
		b.results = append(b.results, result{
			id: "T11", what: fmt.Sprintf("%s, best of %d (median %s)", r.what, starts, short(median(r.took))),
			ours: short(best), target: "<= " + short(targetStart), good: best <= targetStart,
		})
	}
	b.results = append(b.results, result{
		id: "T11", what: "size of the program", ours: fmt.Sprintf("%.1f MB", float64(info.Size())/1e6),
		target: fmt.Sprintf("<= %d MB", targetBinary/1_000_000), good: info.Size() <= targetBinary,
	})
	return nil
}

// startEmpty starts a server in an empty directory.
func (b *bench) startEmpty(ctx context.Context) (time.Duration, error) {
	dir, err := os.MkdirTemp(b.temp, "empty-")
	if err != nil {
		return 0, err
	}
	env, err := b.engine.prepare(ctx, dir)
	if err != nil {
		return 0, err
	}
	s, err := newServer(ctx, b.binary, dir, env)
	if err != nil {
		return 0, err
	}
	defer s.kill()
	took, err := s.start(ctx)
	if err != nil {
		return 0, err
	}
	return took, s.stop()
}
