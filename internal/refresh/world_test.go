package refresh_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/inventory"
	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
)

// epoch is the start time of every test.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clock is a wall clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves the clock forward, or back if d is negative.
func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is an engine on a real database with fake providers. The test runs the engine's work
// step by step in one goroutine.
type world struct {
	tb        testing.TB
	database  dbtest.Database
	clock     *clock
	cfg       refresh.Config
	providers []*fakeProvider
	store     *db.DB
	engine    *refresh.Engine
	sync      *inventory.Service
	raw       *sql.DB // a connection outside the store, for reading rows
	faults    func(point string) error
	rates     func(context.Context) (pricing.Rates, error)
	elapsed   func() time.Duration // nil: the process's own clock
	woken     atomic.Bool
	starts    int
	// everyStep is called after each step of drain.
	everyStep func()
}

func defaults() refresh.Config {
	return refresh.Config{
		TTL: 6 * time.Hour, MissingRetry: time.Hour, NoSalesRetry: 72 * time.Hour,
		Retention:  refresh.Retention{Age: 7 * 24 * time.Hour, MinJobs: 3},
		Policy:     pricing.Policy{Currency: "USD", Rates: pricing.Rates{"EUR": {Value: 1_100_000_000_000, Date: epoch}}},
		FetchSlots: 1, EstimateSlots: 1,
	}
}

// newWorld returns a world with the given providers and the default configuration.
func newWorld(tb testing.TB, providers ...*fakeProvider) *world {
	tb.Helper()
	w := &world{
		tb: tb, database: dbtest.NewDatabase(tb),
		clock: &clock{now: epoch}, cfg: defaults(), providers: providers,
	}
	tb.Cleanup(w.stop)
	w.start()
	return w
}

// TestMain runs all tests on both databases.
func TestMain(m *testing.M) { os.Exit(dbtest.RunOnEngines(m)) }

// start opens the database and creates the engine, as a process does at its start.
func (w *world) start() {
	w.tb.Helper()
	var err error
	w.starts++
	w.store, err = db.Open(w.tb.Context(), db.Options{
		Path: w.database.Path, URL: w.database.URL, Now: w.clock.Now,
		Faults: func(point string) error {
			if w.faults == nil {
				return nil
			}
			return w.faults(point)
		},
	})
	must(w.tb, err)
	w.raw = w.database.Raw(w.tb)
	var list []provider.Provider
	for _, s := range w.providers {
		list = append(list, s)
	}
	w.engine, err = refresh.New(w.tb.Context(), refresh.Options{
		Store: w.store, Config: w.cfg, Providers: list, Rates: w.rates,
		Wake: func(string) { w.woken.Store(true) }, Owner: "process " + strconv.Itoa(w.starts),
		Now: w.clock.Now, Elapsed: w.elapsed, Logger: slog.New(slog.DiscardHandler),
	})
	must(w.tb, err)
	w.sync = &inventory.Service{
		InTx:        w.store.InTx,
		Queued:      func() { w.woken.Store(true) },
		Inspectable: func() {},
		Synced:      market.InventoryTouched,
	}
}

// stop closes the database and keeps all claims, as a kill does.
func (w *world) stop() {
	if w.raw != nil {
		_ = w.raw.Close()
		must(w.tb, w.store.Close())
		w.raw = nil
	}
}

// restart simulates a kill and a new start.
func (w *world) restart() {
	w.tb.Helper()
	w.stop()
	w.start()
}

// step does one piece of work of every kind and reports whether there was any.
func (w *world) step() (more bool, err error) {
	var errs []error
	for _, worker := range w.engine.Workers() {
		m, err := worker.Work(w.tb.Context())
		more = more || m
		errs = append(errs, err)
		if w.everyStep != nil {
			w.everyStep()
		}
	}
	return more, errors.Join(errs...)
}

// drain works until nothing is left to do.
func (w *world) drain() {
	w.tb.Helper()
	for range 100_000 {
		w.woken.Store(false)
		more, err := w.step()
		must(w.tb, err)
		if !more && !w.woken.Load() {
			return
		}
	}
	w.tb.Fatal("got more work after every step, want an end")
}

// drainThrough is like drain but continues after errors.
func (w *world) drainThrough() {
	w.tb.Helper()
	for range 100_000 {
		w.woken.Store(false)
		more, err := w.step()
		if !more && !w.woken.Load() && err == nil && w.count(`SELECT count(*) FROM refresh_job WHERE state IN ('queued', 'running')`) == 0 {
			return
		}
	}
	w.tb.Fatal("got more work after every step, want an end")
}

// run starts a bulk job and completes it.
func (w *world) run(forced bool) refresh.Job {
	w.tb.Helper()
	id := w.begin(forced)
	w.drain()
	return w.job(id)
}

// begin starts a bulk job.
func (w *world) begin(forced bool) int64 {
	w.tb.Helper()
	s, err := w.engine.Start(w.tb.Context(), forced, "test")
	must(w.tb, err)
	if !s.Started {
		w.tb.Fatalf("got the live job %d, want a new one", s.JobID)
	}
	return s.JobID
}

func (w *world) job(id int64) refresh.Job {
	w.tb.Helper()
	j, err := refresh.ReadJob(w.tb.Context(), w.store, id)
	must(w.tb, err)
	return j
}

// last returns the newest job of a kind.
func (w *world) last(kind refresh.Kind) refresh.Job {
	w.tb.Helper()
	jobs, err := view.Jobs(w.tb.Context(), w.store, kind, 1<<62, 1)
	must(w.tb, err)
	if len(jobs) == 0 {
		w.tb.Fatalf("got no %s job, want one", kind)
	}
	return jobs[0]
}

// push replaces a user's inventory of a game with one asset of each name.
func (w *world) push(user string, app int32, names ...string) inventory.Result {
	w.tb.Helper()
	p := inventory.Push{AppID: app, ContextID: "2", SnapshotAt: w.clock.Now()}
	for i, n := range names {
		p.Assets = append(p.Assets, inventory.Asset{AssetID: strconv.Itoa(i), Name: n, Amount: 1, Tradable: true, Marketable: true})
	}
	return w.pushed(user, p)
}

func (w *world) pushed(user string, p inventory.Push) inventory.Result {
	w.tb.Helper()
	r, err := w.sync.Sync(w.tb.Context(), user, p, inventory.Normal)
	must(w.tb, err)
	return r
}

// clearMissing empties the missing-price queue, so that only bulk jobs run.
func (w *world) clearMissing() { w.exec(`DELETE FROM missing_price`) }

func (w *world) item(key catalog.Key) *view.StoredItem {
	w.tb.Helper()
	i, err := view.ReadItem(w.tb.Context(), w.store, key)
	must(w.tb, err)
	if i == nil {
		w.tb.Fatalf("got no item %+v, want one", key)
	}
	return i
}

// named returns the CS2 item with a name.
func (w *world) named(name string) *view.StoredItem {
	w.tb.Helper()
	return w.item(catalog.Key{AppID: catalog.CS2, Name: name})
}

// states returns the state of every item of a job, by name.
func (w *world) states(job int64) map[string]string {
	w.tb.Helper()
	items, err := view.JobItems(w.tb.Context(), w.store, job, "", -1, 0, 1<<30)
	must(w.tb, err)
	out := map[string]string{}
	for _, i := range items {
		name := i.Key.Name
		if i.Key.Phase != "" {
			name += " (" + i.Key.Phase + ")"
		}
		if _, twice := out[name]; twice {
			w.tb.Errorf("job %d: got %q twice, want once", job, name)
		}
		out[name] = i.State
		if i.Reason != "" {
			out[name] += " " + i.Reason
		}
	}
	return out
}

// count returns the number that a query selects.
func (w *world) count(query string, args ...any) int64 {
	w.tb.Helper()
	var n int64
	must(w.tb, w.raw.QueryRowContext(w.tb.Context(), query, args...).Scan(&n))
	return n
}

func (w *world) exec(query string, args ...any) {
	w.tb.Helper()
	_, err := w.raw.ExecContext(w.tb.Context(), query, args...)
	must(w.tb, err)
}

// version returns a number that changes with every write.
func (w *world) version() int64 { return w.database.Version(w.tb, w.raw) }

// checkCounts compares the counts of every job with its items.
func (w *world) checkCounts() {
	w.tb.Helper()
	jobs, err := view.Jobs(w.tb.Context(), w.store, "", 1<<62, 1000)
	must(w.tb, err)
	for _, j := range jobs {
		c := j.Counts
		sum := c.Pending + c.Updated + c.NoQuote + c.Failed + c.Cancelled + c.SkippedTTL + c.SkippedNoSales + c.SkippedBudget + c.SkippedPaused + c.SkippedBackoff
		if sum != c.Total {
			w.tb.Fatalf("job %d: the counts add up to %d, want %d: %+v", j.ID, sum, c.Total, c)
		}
		for _, part := range []struct {
			where string
			want  int64
		}{
			{"1 = 1", c.Total},
			{"state = 'pending'", c.Pending},
			{"state = 'updated'", c.Updated},
			{"state = 'noQuote'", c.NoQuote},
			{"state = 'failed'", c.Failed},
			{"state = 'cancelled'", c.Cancelled},
			{"state = 'skipped' AND reason = 'budget'", c.SkippedBudget},
			{"state = 'skipped' AND reason = 'paused'", c.SkippedPaused},
			{"state = 'skipped' AND reason = 'backoff'", c.SkippedBackoff},
			{"state = 'skipped' AND reason = 'ttl'", c.SkippedTTL},
			{"state = 'skipped' AND reason = 'noSales'", c.SkippedNoSales},
		} {
			if got := w.count(`SELECT count(*) FROM refresh_item WHERE job_id = $1 AND `+part.where, j.ID); got != part.want {
				w.tb.Fatalf("job %d: got %d items where %s, want the number in the counts %+v", j.ID, got, part.where, c)
			}
		}
		if twice := w.count(`SELECT count(*) - count(DISTINCT item_id) FROM refresh_item WHERE job_id = $1`, j.ID); twice != 0 {
			w.tb.Fatalf("job %d: got %d duplicate items, want none", j.ID, twice)
		}
	}
}

// checkIdle checks the conditions that hold when no work is left.
func (w *world) checkIdle() {
	w.tb.Helper()
	w.checkCounts()
	for what, query := range map[string]string{
		"live jobs": `SELECT count(*) FROM refresh_job WHERE state IN ('queued', 'running')`,
		"rows whose value is not the price of their item": `SELECT count(*) FROM inventory v LEFT JOIN item i ON i.id = v.item_id
			WHERE v.value IS DISTINCT FROM nullif(i.price, 0)`,
		"items whose level set is not from the job that estimated them": `SELECT count(*) FROM item
			WHERE id IN (SELECT item_id FROM refresh_item WHERE state = 'updated')
			AND id NOT IN (SELECT i.id FROM refresh_item r JOIN item i ON i.id = r.item_id
				LEFT JOIN refresh_level l ON l.job_id = r.job_id AND l.app_id = i.app_id
				WHERE r.state IN ('updated', 'noQuote') AND coalesce(l.level_set, 0) = i.level_set)`,
		"level sets that are referenced but not stored": `SELECT count(*) FROM (SELECT level_set FROM item UNION SELECT level_set FROM price_point
			UNION SELECT level_set FROM refresh_level) n WHERE level_set <> 0 AND level_set NOT IN (SELECT id FROM level_set)`,
		"open units":                        `SELECT count(*) FROM fetch_unit WHERE state IN ('pending', 'running')`,
		"open batches":                      `SELECT count(*) FROM refresh_batch WHERE state IN ('pending', 'running')`,
		"queued items with a price":         `SELECT count(*) FROM missing_price m JOIN item i ON i.id = m.item_id WHERE i.price > 0`,
		"queued items in an ended job":      `SELECT count(*) FROM missing_price WHERE job_id <> 0`,
		"prices out of range":               `SELECT count(*) FROM item WHERE price < 0 OR price > 10000000000000 OR candidate < 0`,
		"stored responses without a market": `SELECT count(*) FROM fetch_blob b WHERE NOT EXISTS (SELECT 1 FROM market_file f WHERE f.unit_id = b.unit_id)`,
		"good responses without data": `SELECT count(*) FROM market_file f WHERE f.unit_id <> 0 AND f.quotes > 0
			AND NOT EXISTS (SELECT 1 FROM fetch_blob b WHERE b.unit_id = f.unit_id)`,
	} {
		if n := w.count(query); n != 0 {
			w.tb.Errorf("got %d %s, want none", n, what)
		}
	}
}

// valueOf returns the value of a user's asset, or 0.
func (w *world) valueOf(user string, asset int) money.Micro {
	w.tb.Helper()
	return money.Micro(w.count(`SELECT coalesce(value, 0) FROM inventory v JOIN platform_user u ON u.id = v.user_key
		WHERE u.user_id = $1 AND v.asset_id = $2`, user, strconv.Itoa(asset)))
}

// around returns a condition that a column is amount or up to 0.05 % higher, as varied makes
// it.
func around(column string, amount money.Micro) string {
	return fmt.Sprintf("%s BETWEEN %d AND %d", column, amount, amount+amount/2000)
}

func units(n int64) money.Micro { return money.Micro(n * money.Scale) }

// names returns n names with a prefix.
func names(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s %d | Test (Factory New)", prefix, i)
	}
	return out
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: got %v, want %v", what, got, want)
	}
}

var errTest = errors.New("scripted failure")

// pushOf returns a push of one asset for each name and phase.
func pushOf(w *world, items ...[2]string) inventory.Push {
	p := inventory.Push{AppID: catalog.CS2, ContextID: "2", SnapshotAt: w.clock.Now()}
	for i, n := range items {
		p.Assets = append(p.Assets, inventory.Asset{
			AssetID: strconv.Itoa(i), Name: n[0], Phase: n[1], Amount: 1, Tradable: true, Marketable: true,
		})
	}
	return p
}
