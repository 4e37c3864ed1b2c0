package api

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/internal/access"
	"assay/internal/admission"
	"assay/internal/apikey"
	"assay/internal/config"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/event"
	"assay/internal/fault"
	"assay/internal/idempotency"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/inventory/syncs"
	"assay/internal/market"
	"assay/internal/operator"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/user"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
	"assay/internal/wallet/ledger"
	"assay/internal/wallet/wallettest"
	"assay/internal/webhook"
)

// Secrets of the tests. Logs and responses must not contain them.
const (
	marketSecret  = "canary-market-7f3a9c"
	platformToken = "canary-platform-51be02"
	adminToken    = "canary-admin-d8e64f"
	wrongSecret   = "canary-wrong-0b77aa"
)

var allSecrets = []string{marketSecret, platformToken, adminToken, wrongSecret}

const steamID = "76561198000000001"

// noon is the time of the last job of the sample.
var noon = time.Date(2026, 10, 1, 14, 0, 0, 123456000, time.FixedZone("", 2*3600))

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now returns the time of the clock.
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

// logBuffer collects log output. It is safe for concurrent use.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// harness is a server with all services on an SQLite database.
type harness struct {
	t        *testing.T
	deps     Deps
	clock    *clock
	database dbtest.Database
	store    *db.DB
	raw      *sql.DB                     // reads and changes rows directly
	faults   atomic.Pointer[fault.Error] // error of every commit; nil: none
	woken    atomic.Bool
	feeRules string // path of the file with the fee rules
	log      *logBuffer
	url      string // empty: requests are passed to the handler without a connection
	api      *server
}

// startServer starts a server on the sample. The parameter change may be nil.
func startServer(t *testing.T, change func(*Deps)) *harness {
	t.Helper()
	h := newHarness(t, change)
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = NewServer(h.api, h.api.Logger)
	ts.Start()
	t.Cleanup(ts.Close)
	h.url = ts.URL
	return h
}

// newHarness returns a server on the sample. It does not listen yet.
func newHarness(t *testing.T, change func(*Deps)) *harness {
	t.Helper()
	h := openHarness(t, sampleData(t))
	h.must(h.deps.Readers.Traders.RefreshRanking(t.Context()))
	h.clock.set(h.clock.Now().Add(3 * time.Second))
	if change != nil {
		change(&h.deps)
	}
	h.api = newServer(h.deps)
	t.Cleanup(func() {
		for _, secret := range allSecrets {
			if strings.Contains(h.log.String(), secret) {
				t.Errorf("the log contains the secret %s", secret)
			}
		}
	})
	return h
}

// openHarness creates all services on a copy of a database file. If file is nil, the
// database is empty.
func openHarness(t *testing.T, file []byte) *harness {
	t.Helper()
	h := &harness{t: t, clock: &clock{now: noon.Add(2 * time.Minute)}, database: dbtest.On(t, dbtest.SQLite), log: &logBuffer{}}
	if file != nil {
		h.must(os.WriteFile(h.database.Path, file, 0o600))
	}
	logger := slog.New(slog.NewJSONHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	h.store, err = db.Open(t.Context(), db.Options{Path: h.database.Path, Now: h.clock.Now, KeepSchema: file != nil, Faults: h.injectFault})
	h.must(err)
	t.Cleanup(func() { _ = h.store.Close() })
	h.raw = h.database.Raw(t)
	t.Cleanup(func() { _ = h.raw.Close() })
	keys := wallettest.NewRing(t, "k1")
	h.must(h.store.InTx(t.Context(), func(tx *db.Tx) error { return wallet.SetLedgerKey(tx, keys.Marks()[0]) }))
	inventories := &inventory.Service{InTx: h.store.InTx, Queued: func() { h.woken.Store(true) }, Inspectable: func() {}, Synced: market.InventoryTouched}
	pulls := syncs.New(inventories, steaminv.Options{SteamID: h.steamIDOf, Pull: h.pull, Logger: logger})
	t.Cleanup(pulls.Close)
	providers := h.sampleProviders()
	engine, err := refresh.New(t.Context(), refresh.Options{
		Store: h.store, Providers: providers, Owner: "api test", Now: h.clock.Now, Logger: logger,
		Wake: func(string) { h.woken.Store(true) },
		Config: refresh.Config{
			TTL: time.Minute, MissingRetry: refresh.MaxMissingRetry, NoSalesRetry: 72 * time.Hour, FetchSlots: 1, EstimateSlots: 1,
			Retention: refresh.Retention{Age: 7 * 24 * time.Hour, MinJobs: 10}, Policy: pricing.Policy{Currency: "USD"},
		},
	})
	h.must(err)
	book := &ledger.Service{Ledger: &wallet.Ledger{Keys: keys}, Store: h.store, Checkpoints: wallet.CheckpointDir{Dir: t.TempDir()}, Scopes: WalletScopes, Now: h.clock.Now, Used: func() {}}
	gate := admission.New(1)
	h.feeRules = filepath.Join(t.TempDir(), "fees.json")
	h.writeFeeRules(520)
	h.deps = Deps{
		Readers: view.New(view.Options{
			Store: h.store, Gate: gate, Engine: engine, Providers: providers, Currency: "USD", Ledger: keys, Owner: "api test", Version: "1.2.3", Started: noon, Now: h.clock.Now,
			Scheduled: func() map[string]time.Time { return map[string]time.Time{"refresh": noon.Add(time.Hour)} },
		}),
		Gate: gate, Engine: engine, Inventories: inventories, Syncs: pulls, Ledger: book,
		Market: market.New(market.Options{
			Store: h.store, Ledger: book.Ledger, Syncs: pulls, Base: "USD", Hold: 7 * 24 * time.Hour, MaxAge: 15 * time.Minute, Now: h.clock.Now,
			Rates: func(context.Context) (pricing.Rates, error) { return nil, nil },
		}),
		Fees: &fee.Service{Store: h.store, Keys: keys, Source: fee.File{Path: h.feeRules}, Now: h.clock.Now, Logger: logger},
		Webhooks: webhook.New(webhook.Options{
			Store: h.store, Feed: event.NewFeed(h.store, logger), Currency: "USD", Owner: "api test", Logger: logger,
			Dialer: provider.NewDialer([]string{strings.TrimSuffix(strings.TrimPrefix(deadHook, "http://"), "/hook")}),
		}),
		Responses: &idempotency.Responses{DB: h.store, Keys: keys}, Keys: &apikey.Service{DB: h.store}, Operators: &operator.Service{DB: h.store},
		Credentials: testCredentials(t), Failures: access.NewFailures(h.clock.Now), Registry: prometheus.NewRegistry(),
		Page:     http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "page "+r.URL.Path) }),
		Currency: "USD", Version: "1.2.3", Logger: logger, Now: h.clock.Now,
	}
	return h
}

func testCredentials(t *testing.T) *config.Credentials {
	t.Helper()
	loaded, err := config.Load(config.Options{Environ: []string{
		"DATA_DIR=" + t.TempDir(), "MARKET_PRICE_SYNC_SECRET=" + marketSecret, "PLATFORM_API_TOKEN=" + platformToken, "ADMIN_API_TOKEN=" + adminToken,
	}})
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := config.NewCredentials(loaded)
	if err != nil {
		t.Fatal(err)
	}
	return credentials
}

func (h *harness) steamIDOf(ctx context.Context, userID string) (string, error) {
	u, err := user.Read(ctx, h.store, userID)
	return u.SteamID, err
}

// pull returns an inventory as Steam would.
func (h *harness) pull(context.Context, string, steaminv.Place) (inventory.Push, error) {
	place := steaminv.Default()
	return inventory.Push{AppID: place.AppID, ContextID: place.ContextID, SnapshotAt: h.clock.Now(), Assets: assets(redline)}, nil
}

// injectFault makes every commit fail with the fault that a test has set.
func (h *harness) injectFault(point string) error {
	if f := h.faults.Load(); f != nil && point == "before commit" {
		return f
	}
	return nil
}

// loseDatabase removes the directory of the database, as if its disk were unmounted.
func (h *harness) loseDatabase() {
	h.t.Helper()
	h.read(`SELECT count(*) FROM platform_user`) // opens the connection of raw
	for _, pool := range []db.Reader{h.store.Read, h.store.Reserved} {
		h.dropConnections(pool)
	}
	dir := filepath.Dir(h.database.Path)
	h.must(os.Rename(dir, dir+".lost"))
	h.t.Cleanup(func() { _ = os.RemoveAll(dir + ".lost") })
}

// dropConnections closes all connections of a pool.
func (h *harness) dropConnections(pool db.Reader) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 10*time.Millisecond)
	defer cancel()
	for {
		conn, err := pool.Conn(ctx)
		if err != nil {
			return // the pool has no more connections
		}
		defer func() { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }()
	}
}

func (h *harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) exec(query string, args ...any) {
	h.t.Helper()
	_, err := h.raw.ExecContext(h.t.Context(), query, args...)
	h.must(err)
}

// read returns the value that a query selects, as text.
func (h *harness) read(query string, args ...any) (value string) {
	h.t.Helper()
	h.must(h.raw.QueryRowContext(h.t.Context(), query, args...).Scan(&value))
	return value
}

// occupyGate takes the only slot of the gate until leave is called.
func (h *harness) occupyGate() (leave func()) {
	h.t.Helper()
	leave, err := h.deps.Gate.Enter(h.t.Context(), admission.Search)
	h.must(err)
	return leave
}

// trustLoopback lets tests use any client address.
func trustLoopback(d *Deps) {
	d.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}
