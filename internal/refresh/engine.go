package refresh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"assay/internal/admission"
	"assay/internal/db"
	"assay/internal/dispatch"
	"assay/internal/fault"
	"assay/internal/pricing"
	"assay/internal/provider"
)

// ErrConflict means that another job estimated an item of a batch at the same time. The batch
// is read and estimated again.
var ErrConflict = errors.New("an item changed meanwhile")

// Config holds an operator's settings for refreshes.
type Config struct {
	ScopeAll      bool
	TTL           time.Duration
	MissingRetry  time.Duration // first pause before a missing price is retried; it doubles
	NoSalesRetry  time.Duration
	ProviderWait  time.Duration // a job goes on without a host that has not responded for so long; 0: DefaultProviderWait
	Retention     Retention
	Policy        pricing.Policy
	Level         string // the market whose level prices are stated at, as key or provider/key; "": the consensus
	FetchSlots    int    // units of one host that are fetched at once
	EstimateSlots int    // batches that are estimated, and ranges that are applied, at once
}

// MaxMissingRetry is the longest pause before a missing price is retried.
const MaxMissingRetry = 72 * time.Hour

// Engine refreshes prices. It has a type for each stage, over what the stages share. Each
// worker does one piece of work, reports whether there may be more, and may run in many
// goroutines.
type Engine struct {
	*process
	planner    planner
	fetcher    *fetcher
	estimator  estimator
	applier    applier
	version    string
	started    time.Time
	heartbeats int64
	peers      peers
	report     func() string
}

// process is what the stages of one process share: the database, the configuration, the
// providers, and the claims.
type process struct {
	store     *db.DB
	cfg       Config
	providers map[string]provider.Provider
	order     []string // names of providers, sorted
	queues    []*hostQueue
	endpoints []Endpoint
	markets   map[MarketName]int64
	known     map[int64]marketOf
	shared    map[string]bool // keys of markets that several providers offer
	owner     string
	clustered bool
	claims    claims
	priority  *admission.Priority
	wake      func(kind string)
	elapsed   func() time.Duration
	now       func() time.Time
	log       *slog.Logger
	blobsRead atomic.Int64 // parts of stored responses, for tests
}

// planner is the first stage: it makes a job of the items that are due, with its batches
// and the units to fetch for them.
type planner struct {
	*process
	rates func(context.Context) (pricing.Rates, error)
}

// fetcher is the second stage: it requests units, stores the responses, and validates
// them when a job has all of them.
type fetcher struct {
	*process
	encoders   sync.Pool
	waits      waits
	validating sync.Mutex
}

// estimator is the third stage: it computes the prices of batches.
type estimator struct {
	*process
	fetcher         *fetcher
	cache           pricers
	batchEstimators sync.Pool
}

// applier is the last stage: it writes prices to inventory rows, and ends jobs.
type applier struct{ *process }

// marketOf is a market with its provider.
type marketOf struct {
	provider string
	byName   bool // the provider is queried by name
	provider.Market
}

// blobs calls fn for stored responses, ordered by bucket and unit. fn must not keep the
// data.
func (p *process) blobs(ctx context.Context, units, buckets []int64, fn func(Blob) error) error {
	return readBlobs(ctx, p.store, units, buckets, func(b Blob) error {
		p.blobsRead.Add(1)
		return fn(b)
	})
}

// Options configure an Engine.
type Options struct {
	Store     *db.DB
	Config    Config
	Providers []provider.Provider
	Wake      func(kind string) // wakes the dispatcher's workers of this kind
	// Rates returns the exchange rates of a job that begins now, or ErrNoRatesYet; nil: those
	// of Config.Policy.
	Rates   func(ctx context.Context) (pricing.Rates, error)
	Owner   string // this process in claims; unique among all processes ever
	Version string // of the program
	// Shared says that other processes use the same database. Without it all former owners
	// count as dead.
	Shared bool
	// ReadOnly says that the database cannot be written: nothing is registered, and no worker
	// may run.
	ReadOnly bool
	Now      func() time.Time
	Elapsed  func() time.Duration // a monotonic clock; nil: that of this process
	// Report describes this process for operators, with each heartbeat: some kilobytes
	// without a secret; nil: nothing.
	Report func() string
	// Priority lets requests go first that write the same rows; nil: none do.
	Priority *admission.Priority
	Logger   *slog.Logger
}

// New returns an Engine, and registers it and the providers' markets in the database. If no
// other process shares the database, it releases the claims of former owners. It ends units
// that no configured provider can serve.
func New(ctx context.Context, o Options) (*Engine, error) {
	p := &process{
		store: o.Store, cfg: o.Config, wake: o.Wake, now: o.Now, log: o.Logger, owner: o.Owner, clustered: o.Shared, elapsed: o.Elapsed,
		providers: map[string]provider.Provider{}, known: map[int64]marketOf{}, shared: map[string]bool{}, priority: o.Priority,
		claims: claims{units: map[unitKey]call{}, batches: map[batchKey]struct{}{}},
	}
	e := &Engine{
		process: p, planner: planner{p, o.Rates}, fetcher: &fetcher{process: p}, applier: applier{p},
		version: o.Version, started: o.Now(), report: o.Report,
	}
	e.estimator = estimator{process: p, fetcher: e.fetcher, cache: pricers{jobs: map[int64]map[int32]*gamePricer{}}}
	if e.priority == nil {
		e.priority = admission.NewPriority()
	}
	if e.planner.rates == nil {
		e.planner.rates = func(context.Context) (pricing.Rates, error) { return e.cfg.Policy.Rates, nil }
	}
	if e.report == nil {
		e.report = func() string { return "" }
	}
	if e.cfg.ProviderWait <= 0 {
		e.cfg.ProviderWait = DefaultProviderWait
	}
	if e.elapsed == nil {
		start := time.Now()
		e.elapsed = func() time.Duration { return time.Since(start) }
	}
	var names []MarketName
	byName := map[MarketName]marketOf{}
	for _, s := range o.Providers {
		d := s.Describe()
		e.providers[d.Name] = s
		e.order = append(e.order, d.Name)
		e.queues = append(e.queues, queuesOf(d)...)
		e.endpoints = append(e.endpoints, endpointsOf(d)...)
		for _, m := range d.Markets {
			n := MarketName{Provider: d.Name, Key: m.Key, Title: m.Title}
			names = append(names, n)
			byName[n] = marketOf{provider: d.Name, byName: d.Shape != provider.Bulk, Market: m}
		}
	}
	slices.Sort(e.order)
	if !o.Shared && !o.ReadOnly {
		if err := recoverClaims(ctx, o.Store); err != nil {
			return nil, fmt.Errorf("recover work: %w", err)
		}
	}
	err := o.Store.InTx(ctx, func(tx *db.Tx) (err error) {
		if e.markets, err = MarketIDs(tx, names); err != nil {
			return err
		}
		if o.ReadOnly {
			return nil
		}
		if err := Register(tx, e.instance()); err != nil {
			return err
		}
		return abandonUnits(tx)
	})
	if err != nil {
		return nil, fmt.Errorf("note providers: %w", err)
	}
	offers := map[string]int{}
	for n, id := range e.markets {
		e.known[id] = byName[n]
		offers[n.Key]++
		e.shared[n.Key] = offers[n.Key] > 1
	}
	level, err := LevelMarket(o.Config.Level, o.Providers)
	if err != nil {
		return nil, err
	}
	e.cfg.Policy.Level = e.markets[level] // 0: the consensus
	return e, nil
}

// LevelMarket finds the market that a level names, as key or provider/key; the zero
// MarketName for "". An error is a [fault.Invalid].
func LevelMarket(level string, providers []provider.Provider) (MarketName, error) {
	if level == "" {
		return MarketName{}, nil
	}
	var found []MarketName
	var all, of []string
	for _, s := range providers {
		d := s.Describe()
		for _, m := range d.Markets {
			full := d.Name + "/" + m.Key
			if all = append(all, full); level == m.Key || level == full {
				found, of = append(found, MarketName{Provider: d.Name, Key: m.Key, Title: m.Title}), append(of, full)
			}
		}
	}
	slices.Sort(all)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return MarketName{}, fault.New(fault.Invalid, "invalid_configuration", "MARKET_PRICE_LEVEL: several providers carry the market %q: name the provider, as in %s", level, slices.Min(of))
	case len(all) == 0:
		return MarketName{}, fault.New(fault.Invalid, "invalid_configuration", "MARKET_PRICE_LEVEL names the market %q, which no configured provider carries. Use consensus, or set MARKET_PRICE_PROVIDERS.", level)
	}
	return MarketName{}, fault.New(fault.Invalid, "invalid_configuration", "MARKET_PRICE_LEVEL: no configured provider carries the market %q: use consensus or one of %s", level, strings.Join(all, ", "))
}

// The kinds of work. Fetching has a kind for each host of a provider: see FetchKind.
const (
	WorkPlan     = "plan"
	WorkEstimate = "estimate"
	WorkApply    = "apply"
	WorkMissing  = "missing"
)

// Workers returns the work of this engine for a dispatcher.
func (e *Engine) Workers() []dispatch.Worker {
	out := []dispatch.Worker{
		{Kind: WorkPlan, Queue: dispatch.QueueBulk, Slots: 1, Work: e.planner.Plan},
		{Kind: WorkEstimate, Queue: dispatch.QueueBulk, Slots: e.cfg.EstimateSlots, Work: e.estimator.Estimate},
		{Kind: WorkApply, Queue: dispatch.QueueBulk, Slots: e.applier.applySlots(), Work: e.applier.Apply},
		{Kind: WorkMissing, Queue: dispatch.QueueMissing, Slots: 1, Work: e.planner.Missing},
	}
	for _, l := range e.queues {
		slots := e.cfg.FetchSlots
		if l.background {
			slots = 1
		}
		out = append(out, dispatch.Worker{
			Kind: FetchKind(l.provider, l.host), Queue: dispatch.QueueBulk, Slots: slots,
			Work: func(ctx context.Context) (bool, error) { return e.fetcher.fetch(ctx, l) },
		})
	}
	return out
}

// wakeFetch wakes the workers of all providers.
func (p *process) wakeFetch() {
	for _, l := range p.queues {
		p.wake(FetchKind(l.provider, l.host))
	}
}

// wakeAll wakes all workers.
func (e *Engine) wakeAll() {
	for _, w := range e.Workers() {
		e.wake(w.Kind)
	}
}

// rules returns the rules by which items are due.
func (p *process) rules(now time.Time, forced bool) Rules {
	return Rules{
		Now: now, Forced: forced, ScopeAll: p.cfg.ScopeAll,
		TTL: p.cfg.TTL, NoSalesRetry: p.cfg.NoSalesRetry,
	}
}
