package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"assay/internal/app"
	"assay/internal/provider/sim"
)

const (
	historyNames  = 1_000
	historyDays   = 7  // as long as the server keeps jobs
	longDays      = 28 // with -long
	targetHistory = 12 // bytes
)

// historyTables are the tables of the price history and of the jobs with their items.
var historyTables = []string{"price_point", "price_day", "event", "refresh_batch_items", "refresh_batch", "refresh_job"}

// measureHistory measures the size of the price history on disk (T12). The simulator and the server
// share a clock, which jumps to the next run.
func (b *bench) measureHistory(ctx context.Context) error {
	for _, perDay := range []int{144, 4} {
		days := historyDays
		if b.long || perDay == 4 {
			days = longDays
		}
		if err := b.growHistory(ctx, perDay, days); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) growHistory(ctx context.Context, perDay, days int) (err error) {
	b.note("T12: %s names, %d runs a day, %d days", count(historyNames), perDay, days)
	var offset atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	w, end, err := b.worldOnClock(ctx, size{historyNames, sim.DefaultMarkets, historyNames}, now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	db, err := b.engine.open(w.server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	before, err := b.engine.sizes(ctx, db, historyTables)
	if err != nil {
		return err
	}
	var each []time.Duration
	var h historySize
	for day := range days {
		for range perDay {
			offset.Add(int64(24 * time.Hour / time.Duration(perDay)))
			_, took, err := w.server.refresh(ctx)
			if err != nil {
				return err
			}
			each = append(each, took)
		}
		if h, err = b.historySize(ctx, db, before, len(each)); err != nil {
			return err
		}
		b.note("T12: day %d: %.2f bytes per quote: %s", day+1, h.bytes, h.parts)
	}
	b.note("T12: %s quotes seen, %s points, %.1f points per item and day; a run took %s",
		count(int(h.seen)), count(int(h.points)), float64(h.points)/float64(historyNames*days), short(median(each)))
	r := result{
		id: "T12", what: fmt.Sprintf("history and jobs on disk per quote seen, %d runs a day for %d days, %s names x %d markets, %s",
			perDay, days, count(historyNames), sim.DefaultMarkets, h.parts),
		ours: fmt.Sprintf("%.1f bytes", h.bytes), target: "none", good: true,
	}
	if perDay == 144 {
		r.target, r.good = fmt.Sprintf("<= %d bytes", targetHistory), h.bytes <= targetHistory
	}
	b.results = append(b.results, r)
	return nil
}

// historySize is the size of the price history after some runs.
type historySize struct {
	seen, points int64
	bytes        float64 // per quote seen
	parts        string  // bytes per quote seen, by table
}

// historySize reads how much the tables of the history have grown since their sizes were before.
func (b *bench) historySize(ctx context.Context, db *sql.DB, before []int64, runs int) (h historySize, err error) {
	after, err := b.engine.sizes(ctx, db, historyTables)
	if err != nil {
		return h, err
	}
	var quotes int64
	if err := db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM market_snapshot WHERE ask > 0 OR sale > 0), (SELECT count(*) FROM price_point)`).
		Scan(&quotes, &h.points); err != nil {
		return h, err
	}
	h.seen = quotes * int64(runs)
	var total int64
	var parts []string
	for i, table := range historyTables {
		grown := after[i] - before[i]
		total += grown
		parts = append(parts, fmt.Sprintf("%s %.2f", table, float64(grown)/float64(h.seen)))
	}
	h.bytes, h.parts = float64(total)/float64(h.seen), strings.Join(parts, ", ")
	return h, nil
}

// worldOnClock is like newWorld, but the simulator and the server run in this process and use
// the clock now.
func (b *bench) worldOnClock(ctx context.Context, z size, now func() time.Time) (w *world, end func() error, err error) {
	w = &world{size: z, engine: b.engine}
	if w.dir, err = os.MkdirTemp(b.temp, "world-"); err != nil {
		return nil, nil, err
	}
	h, err := sim.NewHandler(sim.Options{
		Seed: 1, Names: z.names, Markets: z.markets, Now: now, Tick: 7 * 24 * time.Hour / sim.TicksPerWeek,
	})
	if err != nil {
		return nil, nil, err
	}
	s, err := sim.Start(ctx, "127.0.0.1:0", h)
	if err != nil {
		return nil, nil, err
	}
	end = s.Close
	w.sim = &simulator{url: s.URL(), names: h.Names()}
	if w.database, err = b.engine.prepare(ctx, w.dir); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	env := slices.Concat(w.database, []string{"MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL=" + s.URL()})
	if w.server, err = newServer(ctx, "", w.dir, env); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	stop, err := w.server.runInProcess(app.Options{Now: now})
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	end = func() error { return errors.Join(stop(), s.Close()) }
	if err := w.fill(ctx); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return w, end, nil
}

// tableSizes reads the size of each table with a query.
func tableSizes(ctx context.Context, db *sql.DB, tables []string, query string) (all []int64, err error) {
	for _, table := range tables {
		var bytes int64
		if err := db.QueryRowContext(ctx, query, table).Scan(&bytes); err != nil {
			return nil, fmt.Errorf("size of %s: %w", table, err)
		}
		all = append(all, bytes)
	}
	return all, nil
}
