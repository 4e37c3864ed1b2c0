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

// What several processes share: names enough that starting and ending a run does
// not count, and answers of which every process waits for the same.
const (
	instanceNames  = 12_000
	instanceBatch  = 100 // names in a request: so few that two cores have time to wait
	answerLatency  = 200 * time.Millisecond
	targetInstance = 0.85
)

// measureInstances measures refreshes by 1, 2 and 4 processes on one database
// (T10), of a provider that is asked by name and takes its time to answer.
func (b *bench) measureInstances(ctx context.Context) (err error) {
	b.say("T10: filling %s names", count(instanceNames))
	w, err := b.newWorld(ctx, size{instanceNames, sim.DefaultMarkets, instanceNames}, "SIM_SHAPE=batch", fmt.Sprint("SIM_BATCH_SIZE=", instanceBatch))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.sim.delay(ctx, answerLatency); err != nil {
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
			id: "T10", what: fmt.Sprintf("refresh of %s names by %d processes, %d names a request, each answered in %s",
				count(instanceNames), processes, instanceBatch, short(answerLatency)),
			ours: short(took), floor: short(alone/time.Duration(processes)) + " (linear)", ratio: times(share),
			target: fmt.Sprintf(">= %.2f", targetInstance), good: share >= targetInstance,
		})
	}
	return nil
}

// refreshTogether returns how long a refresh takes when so many processes share
// the world's database, the median of some.
func (b *bench) refreshTogether(ctx context.Context, w *world, processes int) (_ time.Duration, err error) {
	var more []*server
	defer func() {
		for _, s := range more {
			if err != nil {
				s.kill() // it may have ended with us
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
		b.say("T10: %d processes: %s", processes, short(d))
		took = append(took, d)
	}
	return median(took), nil
}
