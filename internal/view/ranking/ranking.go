// Package ranking keeps the top traders in memory. It updates them in the background from the
// changes since the last update. A request gets the result of the last update and its time.
package ranking

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/market"
)

const (
	// Ranks is the maximum length of a ranking.
	Ranks = 100

	every       = time.Second      // how often to check for changes
	idle        = 10               // pause after a check, as a multiple of its duration
	mostIdle    = 10 * time.Second // maximum pause after a check
	patience    = 5 * time.Minute  // timeout of one update
	firstWait   = 10 * time.Second // how long a request waits for the first update
	mostChanged = 5_000            // maximum number of changed users; if there are more, all lists are rebuilt
)

// Options configure a Ranking.
type Options struct {
	Store  *db.DB
	Now    func() time.Time
	Logger *slog.Logger
}

// Key identifies a list. Period is 7d, 30d or all. By is volume, trades or counterparties.
type Key struct{ Period, By string }

// Ranking holds the result of the last update. Its methods may be called concurrently.
type Ranking struct {
	o        Options
	each     func(context.Context, *db.DB, Days, func(Trader)) error // eachTrader; tests replace it
	last     atomic.Pointer[made]
	first    chan struct{} // closed after the first update
	renewing sync.Mutex    // serializes updates
}

// made is the result of an update. It is immutable.
type made struct {
	asOf     time.Time
	versions TraderVersions // versions of the figures used
	day      int64          // day of the update
	lists    map[Key]*list
}

// New returns an empty Ranking. Refresh and Run fill it.
func New(o Options) *Ranking { return &Ranking{o: o, each: eachTrader, first: make(chan struct{})} }

// Top returns the first ranks of a list and the time of the update. The caller must not change
// the ranks. Top waits up to firstWait for the first update, then returns a fault.Unavailable.
func (r *Ranking) Top(ctx context.Context, key Key) (top []Trader, asOf time.Time, err error) {
	if r.last.Load() == nil {
		timer := time.NewTimer(firstWait)
		defer timer.Stop()
		select {
		case <-r.first:
		case <-ctx.Done():
			return nil, time.Time{}, ctx.Err()
		case <-timer.C:
			return nil, time.Time{}, fault.New(fault.Unavailable, "ranking_not_ready", "The ranking is not ready yet. Retry soon.")
		}
	}
	m := r.last.Load()
	top = m.lists[key].top
	return top[:min(Ranks, len(top))], m.asOf, nil
}

// Run updates the ranking until ctx ends. A failed update keeps the last result and is
// retried.
func (r *Ranking) Run(ctx context.Context) {
	failing := false
	for {
		start := r.o.Now()
		err := r.Refresh(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			r.o.Logger.Warn("top traders update failed", "error", err)
		case err == nil && failing:
			r.o.Logger.Info("top traders updated again")
		}
		failing = err != nil
		t := time.NewTimer(min(max(every, idle*r.o.Now().Sub(start)), mostIdle))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// Refresh updates the ranking once.
func (r *Ranking) Refresh(ctx context.Context) error {
	r.renewing.Lock()
	defer r.renewing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	next, err := r.next(ctx)
	if err != nil {
		return err
	}
	if r.last.Swap(next) == nil {
		close(r.first)
	}
	return nil
}

// next computes the next result. If possible, it reads only the changed users.
func (r *Ranking) next(ctx context.Context) (*made, error) {
	now, last := r.o.Now(), r.last.Load()
	versions, err := traderVersions(ctx, r.o.Store) // read before the figures, so that a later change is not missed
	if err != nil {
		return nil, err
	}
	next := &made{asOf: now, versions: versions, day: market.Day(now)}
	if last == nil || last.day != next.day || versions.Before(last.versions) {
		return next, r.makeAll(ctx, next)
	}
	next.lists = last.lists
	if versions == last.versions {
		return next, nil
	}
	changed, err := changedTraders(ctx, r.o.Store, last.versions, mostChanged+1)
	if err != nil {
		return nil, err
	}
	if len(changed) > mostChanged {
		return next, r.makeAll(ctx, next)
	}
	return next, r.change(ctx, next, changed)
}

// makeAll computes all lists from all traders.
func (r *Ranking) makeAll(ctx context.Context, m *made) error {
	m.lists = map[Key]*list{}
	for period, days := range periods(m.day) {
		var lists []*list
		for by, figure := range figures() {
			l := &list{figure: figure}
			m.lists[Key{period, by}] = l
			lists = append(lists, l)
		}
		if err := r.each(ctx, r.o.Store, days, func(t Trader) {
			for _, l := range lists {
				l.add(t)
			}
		}); err != nil {
			return err
		}
		for _, l := range lists {
			l.sort()
		}
	}
	return nil
}

// change computes the lists from the last lists and the changed users. It rebuilds all lists
// if one of them gets too short.
func (r *Ranking) change(ctx context.Context, m *made, users []int64) error {
	gone := make(map[int64]bool, len(users))
	for _, user := range users {
		gone[user] = true
	}
	lists := map[Key]*list{}
	for period, days := range periods(m.day) {
		traders, err := traders(ctx, r.o.Store, days, users)
		if err != nil {
			return err
		}
		for by := range figures() {
			key := Key{period, by}
			l := m.lists[key].without(gone)
			for _, t := range traders {
				l.add(t)
			}
			l.sort()
			if l.floor != nil && len(l.top) < Ranks {
				return r.makeAll(ctx, m)
			}
			lists[key] = l
		}
	}
	m.lists = lists
	return nil
}

// periods returns the periods as calendar days in UTC, including today.
func periods(day int64) map[string]Days {
	return map[string]Days{"7d": {First: day - 6, Last: day}, "30d": {First: day - 29, Last: day}, "all": {}}
}
