package main

import (
	"context"
	"errors"
	"fmt"

	"assay/internal/provider"
	"assay/internal/provider/sim"
)

// requestNames is the number of names for providers that are requested by name.
const requestNames = 3_000

// measureRequests counts the requests of a refresh for providers of each shape (T6).
func (b *bench) measureRequests(ctx context.Context) error {
	for _, s := range []struct {
		shape provider.Shape
		want  int
	}{
		{provider.Bulk, sim.DefaultMarkets},
		{provider.Batch, (requestNames + sim.BatchSize - 1) / sim.BatchSize},
		{provider.Single, requestNames},
	} {
		got, counted, err := b.countRequests(ctx, s.shape)
		if err != nil {
			return fmt.Errorf("shape %s: %w", s.shape, err)
		}
		b.results = append(b.results, result{
			id: "T6", what: fmt.Sprintf("requests of a refresh of %s names, shape %s; the job counted %s", count(requestNames), s.shape, count(counted)),
			ours: count(got), floor: count(s.want), target: "exactly", good: got == s.want && counted == s.want,
		})
	}
	return nil
}

// countRequests returns the number of requests that a refresh sent, and the number in the
// job's usage.
func (b *bench) countRequests(ctx context.Context, shape provider.Shape) (got, counted int, err error) {
	w, err := b.newWorld(ctx, size{requestNames, sim.DefaultMarkets, requestNames}, "SIM_SHAPE="+string(shape))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	before, err := w.sim.requests(ctx)
	if err != nil {
		return 0, 0, err
	}
	j, _, err := w.change(ctx)
	if err != nil {
		return 0, 0, err
	}
	after, err := w.sim.requests(ctx)
	return after - before, j.Usage.RequestCount, err
}
