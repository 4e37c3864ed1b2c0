// Package app connects all packages to a complete server. Tests can start an App on port 0.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"assay/internal/access"
	"assay/internal/admission"
	"assay/internal/api"
	"assay/internal/apikey"
	"assay/internal/config"
	"assay/internal/db"
	"assay/internal/dispatch"
	"assay/internal/event"
	"assay/internal/exchange"
	"assay/internal/idempotency"
	"assay/internal/inventory"
	"assay/internal/inventory/syncs"
	"assay/internal/market"
	"assay/internal/operator"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/provider/steam"
	"assay/internal/refresh"
	"assay/internal/view"
	"assay/internal/view/metadata"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
	"assay/internal/wallet/ledger"
	"assay/internal/web"
	"assay/internal/webhook"
)

// Options are the dependencies of an App.
type Options struct {
	Config  *config.Config // New adds the secrets that it generates
	Version string
	Logger  *slog.Logger
	Now     func() time.Time // for tests; default time.Now; see db.Options
	// Faults is passed to the database; see db.Options.
	Faults func(point string) error
	// Client, which may be nil, changes the options of each provider's client. Tests
	// shorten its timeouts.
	Client func(*provider.Options)
	// Recheck is the interval at which a read-only App checks whether its database is
	// writable again. 0 disables the check.
	Recheck time.Duration
}

// ErrWritable is returned by Run of a read-only App when its database is writable again.
// The caller should then start a new App.
var ErrWritable = errors.New("the database is writable again")

// App is a server.
type App struct {
	cfg       *config.Config
	log       *slog.Logger
	now       func() time.Time
	version   string
	owner     string // unique name of this process
	store     *db.DB
	providers *ProviderSet
	ledger    *ledger.Service
	rates     *exchange.Keeper
	metadata  metadata.Items
	ecb       *provider.Client // nil: rates do not come from the European Central Bank
	steam     *provider.Client // for inventories

	fees      *fee.Service
	feeClient *provider.Client // nil: the rules do not come from a URL

	inventories *inventory.Service
	syncs       *syncs.Service

	feed     *event.Feed
	hooks    *webhook.Service
	engine   *refresh.Engine
	market   *market.Service
	readers  *view.Readers
	work     dispatch.Dispatcher
	creds    *config.Credentials
	listener net.Listener
	server   *http.Server
	created  []string
	readOnly bool // true if the database is open for reading only
	recheck  time.Duration
	ready    chan struct{}
}

const (
	fetchSlots = 2               // parallel fetches of one host
	shutdown   = 5 * time.Second // time limit for running requests when the process stops
)

// New opens the database and the providers, and begins to listen. The caller must call Run
// or Close. If an SQLite database is not writable, New returns a read-only App. Its health
// check fails with the reason, and writes fail with a fault.Unavailable. See
// Options.Recheck.
func New(ctx context.Context, o Options) (*App, error) {
	a, err := newApp(ctx, o, false)
	if !db.CannotWrite(err) {
		return a, err
	}
	reading, failed := newApp(ctx, o, true)
	if failed != nil {
		return nil, err
	}
	reading.log.Error("database open for reading only; make room or make it writable", "error", err)
	return reading, nil
}

func newApp(ctx context.Context, o Options, readOnly bool) (_ *App, err error) {
	a := &App{
		cfg: o.Config, log: o.Logger, now: o.Now, version: o.Version, owner: newOwner(), ready: make(chan struct{}), readOnly: readOnly, recheck: o.Recheck,
	}
	if a.now == nil {
		a.now = time.Now
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	// Run all checks before creating anything.
	if a.metadata, err = check(ctx, a.cfg); err != nil {
		return nil, err
	}
	if a.cfg.Database.Engine != config.SQLite {
		if _, err := config.CreateSecrets(a.cfg, true); err != nil {
			return nil, err // checked before the database is opened and migrated
		}
	}
	if err := a.openDatabase(ctx, o); err != nil {
		return nil, err
	}
	if err := refresh.SetCurrency(ctx, a.store, a.cfg.Currency); err != nil {
		return nil, err
	}
	used, err := wallet.LedgerUsed(ctx, a.store)
	if err != nil {
		return nil, err
	}
	if a.created, err = config.CreateSecrets(a.cfg, !used); err != nil {
		return nil, err
	}
	if err := a.openLedger(ctx, used); err != nil {
		return nil, err
	}
	if a.creds, err = config.NewCredentials(a.cfg); err != nil {
		return nil, err
	}
	if err := a.openProviders(ctx, o.Client); err != nil {
		return nil, err
	}
	a.openRates(o.Client)
	if !a.cfg.PricesOnly {
		if err := a.openFees(ctx, used, o.Client); err != nil {
			return nil, err
		}
	}
	a.market = a.buildMarket()
	if err := a.buildEngine(ctx); err != nil {
		return nil, err
	}
	a.server = a.buildServer()
	a.listener, err = listen(ctx, a.cfg.ListenAddr)
	return a, err
}

// openDatabase opens the database. It creates or migrates the dispatcher's tables in
// parallel, because creating them takes as long as creating all other tables.
func (a *App) openDatabase(ctx context.Context, o Options) (err error) {
	if err := Await(ctx, a.cfg.Database, a.cfg.DatabaseWait, a.log); err != nil {
		return err
	}
	prepared := make(chan error, 1)
	go func() { prepared <- a.prepareDispatcher(ctx) }()
	a.store, err = db.Open(ctx, db.Options{
		Path: a.cfg.Database.Path, URL: a.cfg.Database.URL.Reveal(), Direct: a.cfg.Database.Direct.Reveal(),
		Owner: a.owner, ReadOnly: a.readOnly, KeepSchema: !a.cfg.Migrate && a.cfg.Database.Engine != config.SQLite, Now: o.Now, Logger: a.log, Faults: o.Faults,
	})
	if failed := <-prepared; err == nil {
		err = failed
	}
	return err
}

// openProviders opens the providers. Their budgets are counted in the database, which all
// processes share.
func (a *App) openProviders(ctx context.Context, client func(*provider.Options)) (err error) {
	so := ProviderOptions{
		Config: a.cfg, Secret: a.creds.Secret, Client: client, Now: a.now, Logger: a.log,
		Allowance: func(p string, host provider.Host) provider.Allowance {
			return allowance.New(a.store, p, host)
		},
	}
	a.buildInventories(so)
	a.providers, err = OpenProviders(ctx, so)
	return err
}

// buildEngine creates the engine and the dispatcher, which refer to each other.
func (a *App) buildEngine(ctx context.Context) (err error) {
	cfg := a.cfg
	a.engine, err = refresh.New(ctx, refresh.Options{
		Store: a.store, Providers: a.providers.List,
		Owner: a.owner, Version: a.version, Modules: cfg.Modules(), ReadOnly: a.readOnly, Shared: cfg.Database.Engine != config.SQLite,
		Report:   func() string { return view.Report(a.providers.Clients) },
		Priority: a.syncs.Priority,
		Wake:     func(kind string) { a.work.Wake(kind) },
		Rates:    a.currentRates,
		Now:      a.now,
		Logger:   a.log,
		Config: refresh.Config{
			ScopeAll: cfg.Scope == config.ScopeAll, TTL: cfg.TTL,
			MissingRetry: cfg.MissingRetry, NoSalesRetry: cfg.NoSalesRetry, ProviderWait: cfg.ProviderWait,
			Retention:  refresh.Retention{Age: cfg.JobRetention, MinJobs: cfg.MinJobs, History: cfg.History},
			FetchSlots: fetchSlots, EstimateSlots: cfg.Workers, Level: cfg.Level,
			Policy: pricing.Policy{
				Method: cfg.Estimate, Guard: cfg.Guard, Currency: cfg.Currency,
				NoSalesWindow: cfg.NoSalesWindow,
			},
		},
	})
	if err != nil {
		return err
	}
	if err := a.warnOfModules(ctx); err != nil {
		return err
	}
	return a.buildDispatcher(ctx)
}

func (a *App) buildServer() *http.Server {
	gate := admission.NewWithLists(admission.Slots(), admission.ListSlots())
	a.feed = event.NewFeed(a.store, a.log)
	a.readers = view.New(view.Options{
		Store: a.store, Feed: a.feed, Gate: gate, Providers: a.providers.List, Clients: a.providers.Clients, Unconfigured: a.providers.Unconfigured,
		ScopeAll: a.cfg.Scope == config.ScopeAll, PricesOnly: a.cfg.PricesOnly, Currency: a.cfg.Currency, Ledger: a.ledger.Keys, Rates: a.rates, RatesClient: a.ecb, MarketFees: a.cfg.MarketFees, Metadata: a.metadata,
		Inventories: a.steam, SteamHost: hostOf(a.cfg, steam.Name, steam.BaseURL, steam.Host()).host,
		Scheduled: a.work.Scheduled, Engine: a.engine, Owner: a.owner, Version: a.version, Started: a.now(), Now: a.now, Logger: a.log,
	})
	a.hooks = webhook.New(webhook.Options{
		Store: a.store, Feed: a.feed, Changes: a.readers.Feeds.ChangeData, Currency: string(a.cfg.Currency), Owner: a.owner,
		Dialer: provider.NewDialer(a.cfg.WebhookHosts), Logger: a.log,
	})
	read := a.readers
	failures, keys, operators := access.NewFailures(a.now), &apikey.Service{DB: a.store}, &operator.Service{DB: a.store}
	page := web.New(web.Deps{
		Readers: read, Feed: a.feed, Engine: a.engine, Credentials: a.creds, APIKeys: keys, Operators: operators, Webhooks: a.hooks, Settings: a.cfg.Effective(), Failures: failures,
		Gate: gate, Syncs: a.syncs, Trades: a.market, Ledger: a.ledger, Fees: a.fees,
		Version: a.version, Currency: a.cfg.Currency, PricesOnly: a.cfg.PricesOnly, Logger: a.log, Now: a.now, TrustedProxies: a.cfg.TrustedProxies,
	})
	return api.NewServer(api.New(api.Deps{
		Readers: read, Gate: gate, Engine: a.engine, Inventories: a.inventories, Syncs: a.syncs, Market: a.market, Ledger: a.ledger, Fees: a.fees, Webhooks: a.hooks,
		Responses: &idempotency.Responses{DB: a.store, Keys: a.ledger.Keys}, Keys: keys, Operators: operators, Credentials: a.creds, Failures: failures,
		Registry: newRegistry(read, a.store, a.syncs, a.cfg.PricesOnly), Page: page, PricesOnly: a.cfg.PricesOnly, Currency: a.cfg.Currency,
		Version: a.version, Logger: a.log, Now: a.now, Host: a.cfg.ListenHost(), TrustedProxies: a.cfg.TrustedProxies,
	}), a.log)
}

// URL returns the address of the server.
func (a *App) URL() string { return "http://" + a.listener.Addr().String() }

// Ready returns a channel that is closed when the server accepts requests.
func (a *App) Ready() <-chan struct{} { return a.ready }

// Run serves requests and runs jobs until ctx ends. Then it waits for running requests,
// releases its claims and closes the database. It must be called at most once.
func (a *App) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for _, l := range a.loops() {
		wg.Go(func() { l.run(ctx) })
	}
	serving := make(chan error, 1)
	wg.Go(func() { serving <- a.server.Serve(api.LimitConnections(a.server, a.listener, a.cfg.MaxConnections)) })
	if len(a.providers.List) == 0 {
		a.log.Warn("no price provider configured: set MARKET_PRICE_PROVIDERS")
	}
	for _, warning := range a.cfg.Warnings {
		a.log.Warn("configuration warning", "warning", warning)
	}
	for _, path := range a.created {
		a.logCreated(path)
	}
	a.log.Info("serving", "url", a.URL())
	close(a.ready)

	writable := make(chan struct{})
	if a.readOnly && a.recheck > 0 {
		wg.Go(func() { a.awaitWritable(ctx, writable) })
	}
	var failed error
	select {
	case <-ctx.Done():
	case <-writable:
		a.log.Info("database is writable again; restarting")
		failed = ErrWritable
	case failed = <-serving:
		failed = fmt.Errorf("serve: %w", failed)
	}
	cancel()
	stopping, done := context.WithTimeout(context.WithoutCancel(ctx), shutdown)
	defer done()
	a.syncs.Close() // also ends requests that wait for a pull
	if err := a.server.Shutdown(stopping); err != nil {
		failed = errors.Join(failed, a.server.Close())
	}
	wg.Wait()
	if !a.readOnly {
		_ = allowance.StoreSamples(stopping, a.store, a.sampled()) // losing the counts of a few seconds is acceptable
	}
	if !a.readOnly && !a.cfg.PricesOnly {
		a.lastCheckpoint(ctx)
	}
	return errors.Join(failed, a.Close())
}

// awaitWritable closes the channel when the database is writable again.
func (a *App) awaitWritable(ctx context.Context, writable chan<- struct{}) {
	t := time.NewTicker(a.recheck)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if a.store.WritableAgain() {
				close(writable)
				return
			}
		}
	}
}

// logCreated logs how to handle a new secret. API clients must not get the key of the ledger.
// Without this key, no entry can be verified.
func (a *App) logCreated(path string) {
	if filepath.Base(path) == "WALLET_LEDGER_KEY" {
		a.log.Info("secret created; back it up and do not share it", "file", path)
		return
	}
	a.log.Info("secret created; share it with API clients only", "file", path)
}

func (a *App) watchSecrets(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	t := time.NewTicker(time.Second)
	defer t.Stop()
	a.creds.Watch(ctx, t.C, hangup, a.log)
}

// Close releases all resources of the App.
func (a *App) Close() error {
	var errs []error
	if a.listener != nil {
		if err := a.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if a.syncs != nil {
		a.syncs.Close()
		a.steam.Close()
	}
	if a.work != nil {
		a.work.Close()
	}
	errs = append(errs, a.providers.Close())
	if a.ecb != nil {
		a.ecb.Close()
	}
	if a.feeClient != nil {
		a.feeClient.Close()
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	return errors.Join(errs...)
}
