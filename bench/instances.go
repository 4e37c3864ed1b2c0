package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"assay/internal/provider/sim"
)

// With this many names, the start and the end of a run hardly affect its duration. All processes
// wait for responses with the same latency.
const (
	instanceNames   = 12_000
	instanceBatch   = 100 // names per request; few, so that the processes mostly wait for responses
	responseLatency = 200 * time.Millisecond
	targetInstance  = 0.85
)

// measureInstances measures refreshes with 1, 2 and 4 processes on one database (T10). The
// provider is requested by name and responds slowly.
func (b *bench) measureInstances(ctx context.Context) (err error) {
	b.note("T10: filling %s names", count(instanceNames))
	w, err := b.newWorld(ctx, size{instanceNames, sim.DefaultMarkets, instanceNames}, "SIM_SHAPE=batch", fmt.Sprint("SIM_BATCH_SIZE=", instanceBatch))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.sim.delay(ctx, responseLatency); err != nil {
		return err
	}
	var alone time.Duration
	for _, processes := range []int{1, 2, 4} {
		took, err := b.refreshTogether(ctx, w, processes)
		if err != nil {
			return err
		}
		if processes == 1 {
			alone = took
		}
		share := quotient(alone, took) / float64(processes)
		b.results = append(b.results, result{
			id: "T10", what: fmt.Sprintf("refresh of %s names by %d processes, %d names per request, latency %s",
				count(instanceNames), processes, instanceBatch, short(responseLatency)),
			ours: short(took), floor: short(alone/time.Duration(processes)) + " (linear)", ratio: times(share),
			target: fmt.Sprintf(">= %.2f", targetInstance), good: share >= targetInstance,
		})
	}
	return nil
}

// refreshTogether returns the median duration of a refresh with the given number of processes
// on the world's database.
func (b *bench) refreshTogether(ctx context.Context, w *world, processes int) (_ time.Duration, err error) {
	var more []*server
	defer func() {
		for _, s := range more {
			if err != nil {
				s.kill() // fails if the process has already ended
			} else {
				err = s.stop()
			}
		}
	}()
	for range processes - 1 {
		dir, err := os.MkdirTemp(b.temp, "instance-")
		if err != nil {
			return 0, err
		}
		s, err := newServer(ctx, b.binary, dir, slices.Clone(w.server.env))
		if err != nil {
			return 0, err
		}
		more = append(more, s)
		if _, err := s.start(ctx); err != nil {
			return 0, err
		}
	}
	var took []time.Duration
	for range b.runs {
		_, d, err := w.change(ctx)
		if err != nil {
			return 0, err
		}
		b.note("T10: %d processes: %s", processes, short(d))
		took = append(took, d)
	}
	return median(took), nil
}
