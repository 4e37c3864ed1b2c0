package web

import (
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/access"
	"assay/internal/admission"
	"assay/internal/apikey"
	"assay/internal/catalog"
	"assay/internal/config"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/dispatch"
	"assay/internal/inventory"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
)

const (
	marketSecret = "market-secret-of-the-tests"
	adminToken   = "admin-token-of-the-tests"
)

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 10, 5, 14, 3, 22, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a page with all services of a server on an SQLite database.
type world struct {
	testing.TB
	clock     *clock
	sample    *sampleProviders
	providers []provider.Provider
	database  dbtest.Database
	store     *db.DB
	raw       *sql.DB // reads and changes rows directly
	gate      *admission.Gate
	engine    *refresh.Engine
	woken     atomic.Bool
	work      *dispatch.Local // nil before run
	secrets   string          // directory of the files with the secrets
	creds     *config.Credentials
	keys      *apikey.Service
	handler   http.Handler
}

// newWorld returns a world with the sample data, and with further providers.
func newWorld(t *testing.T, more ...provider.Provider) *world {
	t.Helper()
	w := &world{TB: t, clock: newClock(), database: dbtest.On(t, dbtest.SQLite)}
	must(t, os.WriteFile(w.database.Path, sampleData(t), 0o600))
	w.sample = newSampleProviders(w.clock)
	w.sample.clients = newSampleClients(t, w.clock)
	w.providers = append(w.sample.list(), more...)
	w.open()
	w.serve()
	return w
}

// newEmptyWorld returns a world without data and providers.
func newEmptyWorld(t *testing.T) *world {
	t.Helper()
	w := &world{TB: t, clock: newClock(), database: dbtest.On(t, dbtest.SQLite), sample: &sampleProviders{}}
	w.open()
	w.serve()
	return w
}

// open opens the database and creates the engine.
func (w *world) open() {
	w.Helper()
	w.store = w.database.Open(w, db.Options{Now: w.clock.Now})
	w.raw = w.database.Raw(w)
	w.Cleanup(func() { _ = w.raw.Close() })
	var err error
	w.engine, err = refresh.New(w.Context(), refresh.Options{
		Store: w.store, Providers: w.providers, Owner: "page test", Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler),
		Wake: func(kind string) {
			if w.woken.Store(true); w.work != nil {
				w.work.Wake(kind)
			}
		},
		Config: refresh.Config{
			TTL: 5 * time.Hour, MissingRetry: refresh.MaxMissingRetry, NoSalesRetry: 72 * time.Hour, FetchSlots: 1, EstimateSlots: 1,
			Retention: refresh.Retention{Age: 7 * 24 * time.Hour, MinJobs: 10},
			Policy:    pricing.Policy{Currency: "USD", Rates: pricing.Rates{"EUR": {Value: euro, Date: newClock().now.Truncate(24 * time.Hour)}}},
		},
	})
	must(w, err)
}

// serve creates the page.
func (w *world) serve() {
	w.Helper()
	w.secrets = w.TempDir()
	w.write(Read, marketSecret)
	w.write(Admin, adminToken)
	loaded, err := config.Load(config.Options{Environ: []string{
		"DATA_DIR=" + w.secrets, "PLATFORM_API_TOKEN=platform-token-of-the-tests",
		"MARKET_PRICE_SYNC_SECRET_FILE=" + w.secretFile(Read), "ADMIN_API_TOKEN_FILE=" + w.secretFile(Admin),
	}})
	must(w, err)
	w.creds, err = config.NewCredentials(loaded)
	must(w, err)
	w.gate = admission.New(1)
	next := newClock().now.Add(2*time.Hour + 11*time.Minute)
	w.keys = &apikey.Service{DB: w.store}
	w.handler = New(Deps{
		Readers: view.New(view.Options{
			Store: w.store, Gate: w.gate, Engine: w.engine, Providers: w.providers, Clients: w.sample.clients.byProvider,
			Currency: "USD", Owner: "page test", Version: "0.1.0-test", Now: w.clock.Now,
			Scheduled:    func() map[string]time.Time { return map[string]time.Time{scheduledRefresh: next} },
			Unconfigured: []view.Unconfigured{{Provider: "csfloat", Reason: "no key: set CSFLOAT_API_KEY"}, {Provider: "steam", Reason: "not named in MARKET_PRICE_PROVIDERS"}},
		}),
		Engine: w.engine, Credentials: w.creds, APIKeys: w.keys, Failures: access.NewFailures(w.clock.Now),
		Version: "0.1.0-test", Currency: "USD", Logger: slog.New(slog.DiscardHandler), Now: w.clock.Now,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
}

func (w *world) secretFile(role Role) string { return filepath.Join(w.secrets, role.credential()) }

func (w *world) write(role Role, secrets ...string) {
	w.Helper()
	must(w, os.WriteFile(w.secretFile(role), []byte(strings.Join(secrets, ",")), 0o600))
}

// rotate replaces the secrets of a role.
func (w *world) rotate(role Role, secrets ...string) {
	w.Helper()
	w.write(role, secrets...)
	_, err := w.creds.Reload()
	must(w, err)
}

// own pushes an inventory of the given items.
func (w *world) own(user string, keys ...catalog.Key) {
	w.Helper()
	s := inventory.Service{InTx: w.store.InTx, Queued: func() {}, Inspectable: func() {}}
	push := inventory.Push{AppID: catalog.CS2, ContextID: "2", SnapshotAt: w.clock.Now()}
	for i, k := range keys {
		push.Assets = append(push.Assets, inventory.Asset{AssetID: strconv.Itoa(i), Name: k.Name, Phase: k.Phase, Amount: 1, Tradable: true, Marketable: true})
	}
	_, err := s.Sync(w.Context(), user, push, inventory.Normal)
	must(w, err)
}

// start queues a bulk run.
func (w *world) start() {
	w.Helper()
	_, err := w.engine.Start(w.Context(), false, author)
	must(w, err)
}

// drain does all work of the engine.
func (w *world) drain() {
	w.Helper()
	for more := true; more; {
		w.woken.Store(false)
		more = false
		for _, worker := range w.engine.Workers() {
			again, err := worker.Work(w.Context())
			must(w, err)
			more = more || again
		}
		more = more || w.woken.Load()
	}
}

// plan plans the queued run.
func (w *world) plan() {
	w.Helper()
	for _, worker := range w.engine.Workers() {
		if worker.Kind == refresh.WorkPlan {
			_, err := worker.Work(w.Context())
			must(w, err)
		}
	}
}

// run does the work of the engine in the background until the test ends.
func (w *world) run() {
	w.Helper()
	w.work = dispatch.NewLocal(dispatch.LocalOptions{Workers: w.engine.Workers(), Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(w.Context())
	var running sync.WaitGroup
	running.Go(func() { w.work.Run(ctx) })
	w.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func (w *world) exec(query string, args ...any) {
	w.Helper()
	_, err := w.raw.ExecContext(w.Context(), query, args...)
	must(w, err)
}

// read returns the value that a query selects, as text.
func (w *world) read(query string, args ...any) (value string) {
	w.Helper()
	must(w, w.raw.QueryRowContext(w.Context(), query, args...).Scan(&value))
	return value
}

// version returns a number that changes with every write to the database.
func (w *world) version() int64 { return w.database.Version(w, w.raw) }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
