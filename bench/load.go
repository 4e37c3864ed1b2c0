package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

const loadTarget = "none"

// loadRun is a long run in which refreshes, pushes and lookups have fixed rates (T13).
type loadRun struct {
	*world
	duration, every time.Duration // every is the interval of refreshes and of progress messages
	users, items    int           // inventories that are pushed in turn, and their size
	pushes, lookups *paced
	note            func(format string, args ...any)

	took                      []time.Duration // of finished refreshes
	due, skipped, failedItems int
	failed                    []error       // of refreshes
	missed                    time.Duration // time of the first skipped or failed refresh; 0 means none
	oldest                    time.Duration // greatest age of a price that is not held, measured at each interval
}

func (b *bench) measureLoad(ctx context.Context) (err error) {
	b.note("T13: filling %s names, %d markets", count(wideNames), wideMarkets)
	w, err := b.newWorld(ctx, size{wideNames, wideMarkets, wideRows})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.restart(ctx, nil); err != nil { // the peak must include only the load
		return err
	}
	l := newLoad(w, b.load, time.Minute, 50, 1000)
	l.note = b.note
	if err := l.run(ctx); err != nil {
		return err
	}
	rows, err := l.report(ctx)
	b.results = append(b.results, rows...)
	return err
}

func newLoad(w *world, duration, every time.Duration, pushRate, lookupRate int) *loadRun {
	l := &loadRun{world: w, duration: duration, every: every, users: 500, items: 100}
	l.pushes = &paced{name: "pushes", rate: pushRate, limit: 100, send: l.push}
	l.lookups = &paced{name: "lookups", rate: lookupRate, limit: 200, send: l.lookup}
	return l
}

// push pushes the n-th inventory. Each time, a tenth of the user's items are new.
func (l *loadRun) push(ctx context.Context, n int) (int, error) {
	user, turn := n%l.users, n/l.users
	items := make([]asset, l.items)
	for i := range items {
		id := user*1_000_000 + turn*l.items/10 + i
		items[i] = newAsset(10_000_000_000+id, l.sim.names[scatter(id, l.names)])
	}
	body, err := pushBody(time.Now(), items)
	if err != nil {
		return 0, err
	}
	return l.server.post(ctx, fmt.Sprintf("/api/inventory/load-%d/sync", user), body)
}

func (l *loadRun) lookup(ctx context.Context, n int) (int, error) {
	body, err := lookupBody([]string{l.sim.names[scatter(n, l.names)]})
	if err != nil {
		return 0, err
	}
	return l.server.post(ctx, lookupPath, body)
}

// run applies the load, and waits for the last refresh and for missing prices.
func (l *loadRun) run(ctx context.Context) error {
	load, stop := context.WithTimeout(ctx, l.duration) // requests may take longer
	defer stop()
	done := load.Done()
	var wg sync.WaitGroup
	for _, p := range []*paced{l.pushes, l.lookups} {
		wg.Go(func() { p.run(ctx, done) })
	}
	err := l.refreshes(ctx, done)
	wg.Wait()
	return errors.Join(err, l.server.awaitPrices(ctx))
}

// refreshes changes the prices and requests a refresh at each interval. It skips a refresh that is
// due while another one runs.
func (l *loadRun) refreshes(ctx context.Context, done <-chan struct{}) error {
	start := time.Now()
	t := time.NewTicker(l.every)
	defer t.Stop()
	finished := make(chan error, 1)
	running := false
	var pushed, looked int
	for {
		l.due++
		if running {
			l.skipped++
			l.miss(start)
		} else {
			running = true
			go func() { finished <- l.refreshOnce(ctx) }()
		}
	wait:
		for {
			select {
			case err := <-finished:
				running = false
				if err != nil {
					l.failed = append(l.failed, err)
					l.miss(start)
				}
			case <-t.C:
				break wait
			case <-done:
				if running {
					return <-finished
				}
				return nil
			}
		}
		age, err := l.age(ctx)
		if err != nil {
			return err
		}
		l.oldest = max(l.oldest, age)
		var pushText, lookupText string
		pushText, pushed = l.pushes.summary(pushed)
		lookupText, looked = l.lookups.summary(looked)
		l.note("T13: %s; %s; %s; %s", time.Since(start).Round(time.Second), l.refreshSummary(), pushText, lookupText)
	}
}

func (l *loadRun) miss(start time.Time) {
	if l.missed == 0 {
		l.missed = time.Since(start)
	}
}

// age returns the age of the oldest price that is not held. A held price waits for evidence.
func (l *loadRun) age(ctx context.Context) (age time.Duration, err error) {
	db, err := l.engine.open(l.server)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var at int64
	err = db.QueryRowContext(ctx, `SELECT min(price_checked_at) FROM item WHERE price > 0 AND candidate = 0`).Scan(&at)
	return time.Since(time.UnixMicro(at)), err
}

// refreshOnce changes the prices and refreshes.
func (l *loadRun) refreshOnce(ctx context.Context) error {
	if err := l.sim.advance(ctx); err != nil {
		return err
	}
	j, took, err := l.server.refresh(ctx)
	if err != nil {
		return err
	}
	l.pushes.mu.Lock() // also protects the results of refreshes
	defer l.pushes.mu.Unlock()
	l.took = append(l.took, took)
	l.failedItems += j.FailedItems
	return nil
}

func (l *loadRun) refreshSummary() string {
	l.pushes.mu.Lock()
	defer l.pushes.mu.Unlock()
	text := fmt.Sprintf("refreshes p50 %s, longest %s, %d due, %d finished, %d skipped because one was running, %d failed, %d failed items",
		short(median(l.took)), short(quantile(l.took, 100)), l.due, len(l.took), l.skipped, len(l.failed), l.failedItems)
	if len(l.failed) > 0 {
		text += fmt.Sprintf(" (%v)", l.failed[0])
	}
	return text
}

// report checks the stored prices and returns the rows of the result table.
func (l *loadRun) report(ctx context.Context) (rows results, err error) {
	db, err := l.engine.open(l.server)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	wrong, bytes, err := l.stored(ctx, db)
	if err != nil {
		return nil, err
	}
	peak, err := l.server.peak()
	if err != nil {
		return nil, err
	}
	pushes, _ := l.pushes.summary(0)
	lookups, _ := l.lookups.summary(0)
	line := func(what string, good bool) {
		rows = append(rows, result{id: "T13", what: what, ours: fmt.Sprint(l.duration), target: loadTarget, good: good})
	}
	line("under load: "+l.refreshSummary(), l.missed == 0)
	line(pushes, l.pushes.missed == 0)
	line(lookups, l.lookups.missed == 0)
	line(fmt.Sprintf("%d inventory rows differ from the price of their item; database %s, oldest price at any time %s; %s",
		wrong, mebibytes(bytes), short(l.oldest), l.givesWay()), wrong == 0)
	rows[len(rows)-1].peak = peak
	return rows, nil
}

// stored returns the number of inventory rows with a wrong value and the size of the
// database.
func (l *loadRun) stored(ctx context.Context, db *sql.DB) (wrong int, bytes int64, err error) {
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM inventory i JOIN item t ON t.id = i.item_id
		WHERE coalesce(i.value, 0) <> coalesce(t.price, 0)`).Scan(&wrong)
	if err != nil {
		return 0, 0, err
	}
	pages := `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`
	if _, ok := l.engine.(postgres); ok {
		pages = `SELECT pg_database_size(current_database())`
	}
	err = db.QueryRowContext(ctx, pages).Scan(&bytes)
	return wrong, bytes, err
}

// givesWay names the rates that were not met, with the time of the first miss.
func (l *loadRun) givesWay() string {
	var missed []string
	for _, r := range []struct {
		name string
		at   time.Duration
	}{{"refreshes", l.missed}, {l.pushes.name, l.pushes.missed}, {l.lookups.name, l.lookups.missed}} {
		if r.at > 0 {
			missed = append(missed, fmt.Sprintf("%s after %s", r.name, short(r.at)))
		}
	}
	if missed == nil {
		return "all rates were met"
	}
	return "not met: " + strings.Join(missed, ", ")
}

// after returns a channel that is closed after d.
func after(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	return done
}
