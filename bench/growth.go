package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const targetGrowth = 1.3

// measureGrowth measures refreshes with increasing numbers of names and rows (T5). Time per
// name and memory should stay constant. The flags -names and -rows set the second size, with at
// least one row per name.
func (b *bench) measureGrowth(ctx context.Context) error {
	sizes := []size{{3_000, b.size.markets, 100_000}, b.size}
	if b.long {
		sizes = append(sizes, size{300_000, b.size.markets, 10_000_000})
	}
	var each []time.Duration
	for _, z := range sizes {
		took, peak, err := b.grow(ctx, z)
		if err != nil {
			return err
		}
		each = append(each, took/time.Duration(z.names))
		b.results = append(b.results, result{
			id: "T5", what: fmt.Sprintf("refresh of %s names, %s rows: %d us per name", count(z.names), count(z.rows), each[len(each)-1].Microseconds()),
			ours: short(took), target: "memory flat", peak: peak, good: peak <= targetPeak,
		})
	}
	ratio := quotient(slices.Max(each), slices.Min(each))
	b.results = append(b.results, result{
		id: "T5", what: "time per name, slowest / fastest", ratio: times(ratio),
		target: fmt.Sprintf("<= %.1f", targetGrowth), good: ratio <= targetGrowth,
	})
	return nil
}

// grow measures the duration of a refresh in a world of the given size, and its peak memory.
func (b *bench) grow(ctx context.Context, z size) (took time.Duration, peak int64, err error) {
	var w *world
	if z == b.size {
		shared, err := b.fullWorld(ctx)
		if err != nil {
			return 0, 0, err
		}
		w = shared.world
	} else {
		b.note("T5: filling %s rows of %s names", count(z.rows), count(z.names))
		if w, err = b.newWorld(ctx, z); err != nil {
			return 0, 0, err
		}
		defer func() { err = errors.Join(err, w.close()) }()
		if err := w.restart(ctx, nil); err != nil {
			return 0, 0, err
		}
	}
	var all []time.Duration
	for run := range b.runs + 1 {
		_, d, err := w.change(ctx)
		if err != nil {
			return 0, 0, err
		}
		if run > 0 {
			all = append(all, d)
		}
	}
	peak, err = w.server.peak()
	return median(all), peak, err
}
