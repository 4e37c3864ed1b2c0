package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// These are the targets and sizes of the measurements. The target of a refresh is the maximum ratio of
// its duration to the floor, which writes the same rows; see docs/contribute/performance.md.
const (
	targetPostgres  = 1.2
	targetSQLite    = 1.0
	targetUnchanged = 0.25
	targetPeak      = 128 << 20
	targetWidePeak  = 256 << 20
	wideNames       = 35_000
	wideMarkets     = 40
	wideRows        = 100_000
)

// measureRefresh measures refreshes in which every price changes (T1, T2), and their memory
// (T3). Every floor and the best peer run after each refresh.
func (b *bench) measureRefresh(ctx context.Context) (err error) {
	w, err := b.fullWorld(ctx)
	if err != nil {
		return err
	}
	work, err := loadWork(ctx, w.floor)
	if err != nil {
		return err
	}
	peers, err := b.startNodePeers(ctx, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, peers.close()) }()
	id := b.engine.refreshID()
	var took, wall, floor, best []time.Duration
	var ratios []float64
	var rows written
	for run := range b.runs + 1 {
		j, waited, n, err := w.changeCounted(ctx)
		if err != nil {
			return err
		}
		least, err := b.timeFloors(ctx, w.floor, work)
		if err != nil {
			return err
		}
		bested, err := peers.refreshBest(ctx)
		if err != nil {
			return err
		}
		b.note("%s: refresh %s (the job %s), floor %s; %s", id, short(waited), short(j.took()), short(least), n)
		if run == 0 {
			continue // now caches are warm
		}
		took, wall, floor, rows = append(took, j.took()), append(wall, waited), append(floor, least), n
		best = append(best, bested)
		ratios = append(ratios, quotient(waited, least))
	}
	peak, err := w.server.peak()
	if err != nil {
		return err
	}
	ratio, target := median(ratios), targetSQLite
	if _, ok := b.engine.(postgres); ok {
		target = targetPostgres
	}
	b.results = append(b.results,
		result{
			id: id, what: fmt.Sprintf("refresh of %s names x %d markets, %s; %s", count(w.names), w.markets, b.engine.name(), rows),
			ours: fmt.Sprintf("%s (the job %s)", short(median(wall)), short(median(took))), floor: short(median(floor)),
			ratio: times(ratio), target: fmt.Sprintf("<= %.1f", target), peak: peak, good: ratio <= target,
		},
		result{
			id: "T3", what: "memory of this refresh", ours: mebibytes(peak), target: "<= " + mebibytes(targetPeak), peak: peak, good: peak <= targetPeak,
		})
	return peers.report(ctx, wall, best)
}

// took returns the duration of the job from its plan to its end.
func (j job) took() time.Duration { return j.FinishedAt.Sub(*j.StartedAt) }

// written is the number of rows that a refresh changed.
type written struct{ snapshots, items, values int }

func (w written) String() string {
	return fmt.Sprintf("%s quotes, %s items, %s rows changed", count(w.snapshots), count(w.items), count(w.values))
}

// changeCounted changes the prices, refreshes, and counts the changed rows.
func (w *world) changeCounted(ctx context.Context) (j job, took time.Duration, n written, err error) {
	db, err := w.engine.open(w.server)
	if err != nil {
		return j, 0, n, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	h := newHasher()
	queries := []string{snapshotContents, itemContents, valueContents}
	before, err := h.all(ctx, db, queries)
	if err != nil {
		return j, 0, n, err
	}
	if j, took, err = w.change(ctx); err != nil {
		return j, 0, n, err
	}
	after, err := h.all(ctx, db, queries)
	if err != nil {
		return j, 0, n, err
	}
	return j, took, written{before[0].changed(after[0]), before[1].changed(after[1]), before[2].changed(after[2])}, nil
}

func (h *hasher) all(ctx context.Context, db *sql.DB, queries []string) (all []contents, err error) {
	for _, q := range queries {
		c, err := h.contents(ctx, db, q)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// timeFloors writes work with every floor and changes every row before each of them. It returns the
// duration of the fastest floor.
func (b *bench) timeFloors(ctx context.Context, db *sql.DB, work *refreshWork) (least time.Duration, err error) {
	for i, f := range b.engine.refreshFloors() {
		work.next()
		if err := b.engine.rest(ctx, db); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := f.write(ctx, db, work); err != nil {
			return 0, fmt.Errorf("floor of %s: %w", f.name, err)
		}
		took := time.Since(began)
		b.note("floor: %s: %s", f.name, short(took))
		if i == 0 || took < least {
			least = took
		}
	}
	return least, nil
}

// measureUnchanged measures refreshes without changed prices (T4). Each follows a refresh in
// which all prices changed. It compares the stored rows before and after.
func (b *bench) measureUnchanged(ctx context.Context) (err error) {
	w, err := b.fullWorld(ctx)
	if err != nil {
		return err
	}
	var full, unchanged []time.Duration
	var ratios []float64
	var fullBytes, unchangedBytes int64
	for range b.runs {
		changing, bytes, err := w.timeWriting(ctx, w.change)
		if err != nil {
			return err
		}
		fullBytes = bytes
		// A second run accepts a suspicious price that it sees again, and writes it.
		if _, _, err := w.again(ctx); err != nil {
			return err
		}
		took, bytes, err := w.timeWriting(ctx, w.again)
		if err != nil {
			return err
		}
		unchangedBytes = bytes
		full, unchanged = append(full, changing), append(unchanged, took)
		ratios = append(ratios, quotient(took, changing))
		b.note("T4: changed %s, unchanged %s", short(changing), short(took))
	}
	differing, err := b.countRewritten(ctx, w.world)
	if err != nil {
		return err
	}
	ratio := median(ratios)
	b.results = append(b.results, result{
		id: "T4", what: fmt.Sprintf("refresh without changes; %d rows differ afterwards; wrote %s instead of %s",
			differing, mebibytes(unchangedBytes), mebibytes(fullBytes)),
		ours: short(median(unchanged)), floor: short(median(full)) + " (ours, all changed)", ratio: times(ratio),
		target: fmt.Sprintf("<= %.2f", targetUnchanged), good: ratio <= targetUnchanged && differing == 0,
	})
	return nil
}

// timeWriting returns the duration of a refresh and the number of bytes written to files.
func (w *world) timeWriting(ctx context.Context, refresh func(context.Context) (job, time.Duration, error)) (time.Duration, int64, error) {
	before, err := w.engine.written(ctx, w.server)
	if err != nil {
		return 0, 0, err
	}
	_, took, err := refresh(ctx)
	if err != nil {
		return 0, 0, err
	}
	after, err := w.engine.written(ctx, w.server)
	return took, after - before, err
}

// countRewritten refreshes without changing prices, and counts the rows that differ
// afterwards.
func (b *bench) countRewritten(ctx context.Context, w *world) (n int, err error) {
	db, err := b.engine.open(w.server)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	h := newHasher()
	queries := []string{snapshotContents, itemContents, inventoryContents}
	before, err := h.all(ctx, db, queries)
	if err != nil {
		return 0, err
	}
	if _, _, err := w.server.refresh(ctx); err != nil {
		return 0, err
	}
	after, err := h.all(ctx, db, queries)
	if err != nil {
		return 0, err
	}
	for i, table := range []string{"snapshot", "item", "inventory"} {
		differ := before[i].changed(after[i])
		b.note("T4: %s: %d of %s rows differ", table, differ, count(len(after[i])))
		n += differ
	}
	return n, nil
}

// measureWide measures the memory of a refresh of more names on more markets (T3). The markets
// are price lists.
func (b *bench) measureWide(ctx context.Context) (err error) {
	b.note("T3: filling %s names, %d markets", count(wideNames), wideMarkets)
	w, err := b.newWorld(ctx, size{wideNames, wideMarkets, wideRows})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.restart(ctx, nil); err != nil { // the peak must include only refreshes
		return err
	}
	var took []time.Duration
	for range 2 {
		_, d, err := w.change(ctx)
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	peak, err := w.server.peak()
	if err != nil {
		return err
	}
	b.results = append(b.results, result{
		id: "T3", what: fmt.Sprintf("memory of %s names x %d markets (price lists; a refresh took %s)", count(wideNames), wideMarkets, short(median(took))),
		ours: mebibytes(peak), target: "<= " + mebibytes(targetWidePeak), peak: peak, good: peak <= targetWidePeak,
	})
	return nil
}
