package web

import (
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"net/http/httptest"
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
	"assay/internal/event"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/inventory/syncs"
	"assay/internal/market"
	"assay/internal/operator"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
	"assay/internal/wallet/ledger"
	"assay/internal/wallet/wallettest"
	"assay/internal/webhook"
)

const (
	marketSecret = "market-secret-of-the-tests"
	adminToken   = "admin-token-of-the-tests"
)

// clock is a clock that tests set.
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

// world is the web page with all services of a server.
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
	receiver  *httptest.Server // of webhooks; it rejects messages while refuse is set
	refuse    atomic.Bool
	market    *market.Service
	ledger    *ledger.Service
	fees      *fee.Service
	feeRules  string // path of the file with the fee rules
	handler   http.Handler
}

// newWorld returns a world with the sample data on SQLite, and with further providers.
func newWorld(t *testing.T, more ...provider.Provider) *world {
	t.Helper()
	return newWorldOn(t, dbtest.SQLite, more...)
}

func newWorldOn(t *testing.T, engine string, more ...provider.Provider) *world {
	t.Helper()
	w := &world{TB: t, clock: newClock(), database: dbtest.On(t, engine)}
	w.insertSampleData(t)
	w.sample = newSampleProviders(w.clock)
	w.sample.clients = newSampleClients(t, w.clock)
	w.providers = append(w.sample.list(), more...)
	w.open()
	w.serve()
	return w
}

// newEmptyWorld returns a world without data or providers.
func newEmptyWorld(t *testing.T) *world {
	t.Helper()
	return newEmptyWorldOn(t, dbtest.SQLite)
}

// newEmptyWorldOn returns a world without data.
func newEmptyWorldOn(t *testing.T, engine string, providers ...provider.Provider) *world {
	t.Helper()
	w := &world{TB: t, clock: newClock(), database: dbtest.On(t, engine), sample: &sampleProviders{}, providers: providers}
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

// serve creates the page and its services, as a new process does.
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
	w.receiver = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if w.refuse.Load() {
			http.Error(rw, "out of order", http.StatusServiceUnavailable)
		}
	}))
	w.Cleanup(w.receiver.Close)
	feed := event.NewFeed(w.store, slog.New(slog.DiscardHandler))
	keys := wallettest.NewRing(w, "k1")
	must(w, w.store.InTx(w.Context(), func(tx *db.Tx) error { return wallet.SetLedgerKey(tx, keys.Marks()[0]) }))
	w.ledger = &ledger.Service{Ledger: &wallet.Ledger{Keys: keys}, Store: w.store, Checkpoints: wallet.CheckpointDir{Dir: w.TempDir()}, Now: w.clock.Now, Used: func() {}}
	w.feeRules = filepath.Join(w.TempDir(), "fees.json")
	w.writeFees(500)
	w.fees = &fee.Service{Store: w.store, Keys: keys, Source: fee.File{Path: w.feeRules}, Unused: true, Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler)}
	must(w, w.fees.Begin(w.Context()))
	pulls := syncs.New(&inventory.Service{InTx: w.store.InTx, Queued: func() {}, Inspectable: func() {}, Synced: market.InventoryTouched}, steaminv.Options{
		SteamID: func(context.Context, string) (string, error) { return "76561197960287930", nil },
		Pull: func(_ context.Context, _ string, place steaminv.Place) (inventory.Push, error) {
			return inventory.Push{AppID: place.AppID, ContextID: place.ContextID, SnapshotAt: w.clock.Now(), Assets: []inventory.Asset{{AssetID: "9", Name: redline, Amount: 1, Tradable: true, Marketable: true}}}, nil
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	w.Cleanup(pulls.Close)
	w.market = market.New(market.Options{
		Store: w.store, Ledger: w.ledger.Ledger, Syncs: pulls, Base: "USD", Hold: 7 * 24 * time.Hour, MaxAge: 15 * time.Minute, Now: w.clock.Now,
		Rates: func(context.Context) (pricing.Rates, error) { return nil, nil },
	})
	readers := view.New(view.Options{
		Ledger: keys,
		Store:  w.store, Feed: feed, Gate: w.gate, Engine: w.engine, Providers: w.providers, Clients: w.sample.clients.byProvider,
		Currency: "USD", Owner: "page test", Version: "0.1.0-test", Now: w.clock.Now,
		Scheduled:    func() map[string]time.Time { return map[string]time.Time{"refresh": next} },
		Unconfigured: []view.Unconfigured{{Provider: "csfloat", Reason: "no key: set CSFLOAT_API_KEY"}, {Provider: "steam", Reason: "not named in MARKET_PRICE_PROVIDERS"}},
	})
	hooks := webhook.New(webhook.Options{
		Store: w.store, Feed: feed, Changes: readers.Feeds.ChangeData, Currency: "USD", Owner: "page test", Logger: slog.New(slog.DiscardHandler),
		Dialer: provider.NewDialer([]string{strings.TrimPrefix(w.receiver.URL, "http://")}),
	})
	w.handler = New(Deps{
		Readers: readers, Feed: feed, Gate: w.gate, Syncs: pulls, Trades: w.market, Ledger: w.ledger, Fees: w.fees,
		Engine: w.engine, Credentials: w.creds, APIKeys: w.keys, Operators: &operator.Service{DB: w.store}, Webhooks: hooks, Settings: loaded.Effective(), Failures: access.NewFailures(w.clock.Now),
		Version: "0.1.0-test", Currency: "USD", Logger: slog.New(slog.DiscardHandler), Now: w.clock.Now,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
}

func (w *world) secretFile(role Role) string { return filepath.Join(w.secrets, credential(role)) }

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

// own pushes an inventory of the given items of one game.
func (w *world) own(user string, keys ...catalog.Key) {
	w.Helper()
	s := inventory.Service{InTx: w.store.InTx, Queued: func() {}, Inspectable: func() {}}
	push := inventory.Push{AppID: catalog.CS2, ContextID: "2", SnapshotAt: w.clock.Now()}
	for i, k := range keys {
		push.AppID = k.AppID
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

// writeFees writes a file of fee rules with one rule for sales.
func (w *world) writeFees(basisPoints int) {
	w.Helper()
	must(w, os.WriteFile(w.feeRules, []byte(`{"rules":[{"id":"sales","priority":10,"conditions":{"kind":["sale"]},"basisPoints":`+strconv.Itoa(basisPoints)+`}],"fallback":{"basisPoints":0}}`), 0o600))
}

// trade makes anna sell two assets to ben: trade 1 is completed, trade 2 is pending. Listing 3 is active.
func (w *world) trade() {
	w.Helper()
	key := catalog.Key{AppID: catalog.CS2, Name: redline}
	w.own("anna", key, key, key)
	w.own("ben")
	must(w, w.ledger.Post(w.Context(), wallet.Posting{
		Account: wallet.Account{User: "ben", Currency: "USD"}, Kind: wallet.KindDeposit, Amount: 1_000_000, Request: wallet.Request{Note: "first deposit"},
	}, func(*db.Tx, *wallet.Posted) error { return nil }))
	for i, price := range []int64{3100, 3250, 123_456} {
		var made market.Created
		must(w, w.market.Create(w.Context(), market.Offers{
			UserID: "anna", AppID: catalog.CS2, ContextID: "2", Offers: []market.Offer{{AssetID: strconv.Itoa(i), Price: price, Currency: "USD"}},
		}, func(_ *db.Tx, c []market.Created) error {
			made = c[0]
			return nil
		}))
		if made.Refused != nil {
			w.Fatalf("listing of asset %d: got the error %v, want none", i, made.Refused)
		}
		if i < 2 {
			must(w, w.market.Purchase(w.Context(), market.Purchase{ListingID: made.Listing.ID, Buyer: "ben"}, func(*db.Tx, market.Trade) error { return nil }))
		}
	}
	_, err := w.market.Complete(w.Context(), 1)
	must(w, err)
}
