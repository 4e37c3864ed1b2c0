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

// ErrConflict means that another job has estimated an item of a batch since the batch was read.
// The batch is then read and estimated again.
var ErrConflict = errors.New("another job has estimated an item of the batch")

// Config is the configuration of refreshes.
type Config struct {
	ScopeAll      bool
	TTL           time.Duration
	MissingRetry  time.Duration // first pause before a missing price is retried; doubles each time
	NoSalesRetry  time.Duration
	ProviderWait  time.Duration // how long a job waits for an unresponsive host; 0: DefaultProviderWait
	Retention     Retention
	Policy        pricing.Policy
	Level         string // market that sets the price level, as key or provider/key; "": consensus
	FetchSlots    int    // units that are fetched from one host in parallel
	EstimateSlots int    // batches or ranges that are processed in parallel
}

// MissingRetry returns the first pause before a missing price is retried.
func (e *Engine) MissingRetry() time.Duration { return e.cfg.MissingRetry }

// MaxMissingRetry is the longest pause before a missing price is retried.
const MaxMissingRetry = pricing.MaxMissingRetry

// maxMissingDoublings limits how often the pause doubles, so that the shift cannot overflow.
// Even the shortest pause, one second, reaches MaxMissingRetry after 18 doublings.
const maxMissingDoublings = 18

// Engine refreshes prices. It has one type for each stage. A worker does one piece of work
// and reports whether there may be more. Workers may run in several goroutines.
type Engine struct {
	*process
	planner    planner
	fetcher    *fetcher
	estimator  estimator
	applier    applier
	version    string
	modules    string
	started    time.Time
	heartbeats int64
	peers      peers
	report     func() string
}

// process is the state that all stages of one process share.
type process struct {
	store       *db.DB
	cfg         Config
	providers   map[string]provider.Provider
	order       []string // names of providers, sorted
	queues      []*hostQueue
	endpoints   []Endpoint
	markets     map[MarketName]int64
	marketsByID map[int64]marketOf
	shared      map[string]bool // keys of markets that several providers carry
	owner       string
	clustered   bool
	claims      claims
	priority    *admission.Priority
	wake        func(kind string)
	elapsed     func() time.Duration
	now         func() time.Time
	log         *slog.Logger
	responses   responseCache
	blobsRead   atomic.Int64 // number of blobs read, for tests
	foldedTo    atomic.Int64 // time before which this process has folded the history, in seconds
	garbage     garbage
}

// planner is the plan stage. It creates the batches and units of a job from the items that
// are due.
type planner struct {
	*process
	rates func(context.Context) (pricing.Rates, error)
}

// fetcher is the fetch stage. It requests units, stores the responses, and validates the
// responses of a job when all have arrived.
type fetcher struct {
	*process
	sinkBuffers sync.Pool
	waits       waits
	validating  sync.Mutex
}

// estimator is the estimate stage. It computes the prices of batches.
type estimator struct {
	*process
	fetcher         *fetcher
	cache           pricers
	batchEstimators sync.Pool
}

// applier is the apply stage. It writes prices to inventory rows and ends jobs.
type applier struct{ *process }

// marketOf is a market with its provider.
type marketOf struct {
	provider string
	byName   bool // the provider is requested by name
	provider.Market
}

// Options configure an Engine.
type Options struct {
	Store     *db.DB
	Config    Config
	Providers []provider.Provider
	Wake      func(kind string) // wakes the workers of a kind
	// Rates returns the current exchange rates, or ErrNoRatesYet. If it is nil, Config.Policy
	// has the rates.
	Rates   func(ctx context.Context) (pricing.Rates, error)
	Owner   string // id of this process in claims; never reused
	Version string // version of the program
	Modules string // setting MODULES
	// Shared means that other processes use the same database. Otherwise New releases all
	// claims, because their owners have ended.
	Shared bool
	// ReadOnly means that the database cannot be written. The engine is not registered, and
	// no worker may run.
	ReadOnly bool
	Now      func() time.Time
	Elapsed  func() time.Duration // monotonic clock; nil: the clock of this process
	// Report returns a description of this process for operators, which each heartbeat
	// stores. It must contain no secret. If it is nil, there is no report.
	Report func() string
	// Priority gives way to requests that write the same rows. If it is nil, no request has
	// priority.
	Priority *admission.Priority
	Logger   *slog.Logger
}

// New returns an Engine. It registers the process and the providers' markets in the database.
// If no other process shares the database, it releases the claims of former processes. It
// ends the units that no configured provider can serve.
func New(ctx context.Context, o Options) (*Engine, error) {
	p := &process{
		store: o.Store, cfg: o.Config, wake: o.Wake, now: o.Now, log: o.Logger, owner: o.Owner, clustered: o.Shared, elapsed: o.Elapsed,
		providers: map[string]provider.Provider{}, marketsByID: map[int64]marketOf{}, shared: map[string]bool{}, priority: o.Priority,
		claims: claims{units: map[unitKey]call{}, batches: map[batchKey]struct{}{}},
	}
	e := &Engine{
		process: p, planner: planner{p, o.Rates}, fetcher: &fetcher{process: p}, applier: applier{p},
		version: o.Version, modules: o.Modules, started: o.Now(), report: o.Report,
	}
	e.estimator = estimator{process: p, fetcher: e.fetcher, cache: pricers{jobs: map[int64]map[int32]*gamePricer{}}}
	if e.priority == nil {
		e.priority = admission.NewPriority()
	}
	e.priority.TakeTurns(o.Store.Turn)
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
			return nil, fmt.Errorf("release claims of former processes: %w", err)
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
		return nil, fmt.Errorf("register providers: %w", err)
	}
	offers := map[string]int{}
	for n, id := range e.markets {
		e.marketsByID[id] = byName[n]
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

// LevelMarket returns the market that a level names, as key or provider/key. For "" it
// returns the zero MarketName. Errors are of the kind [fault.Invalid].
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
	choices := "use consensus or one of " + strings.Join(all, ", ")
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return MarketName{}, fault.New(fault.Invalid, "invalid_configuration", "MARKET_PRICE_LEVEL: several providers carry the market %q: name the provider, as in %s", level, slices.Min(of))
	case len(all) == 0:
		choices = "use consensus, or set MARKET_PRICE_PROVIDERS"
	}
	return MarketName{}, fault.New(fault.Invalid, "invalid_configuration", "MARKET_PRICE_LEVEL: no configured provider carries the market %q: %s", level, choices)
}

// The kinds of work. FetchKind returns the kind for fetching from a host.
const (
	WorkPlan     = "plan"
	WorkEstimate = "estimate"
	WorkApply    = "apply"
	WorkMissing  = "missing"
)

// Workers returns the workers of this engine for a dispatcher.
func (e *Engine) Workers() []dispatch.Worker {
	out := []dispatch.Worker{
		{Kind: WorkPlan, Queue: dispatch.QueueBulk, Slots: 1, Work: e.planner.Plan},
		{Kind: WorkEstimate, Queue: dispatch.QueueBulk, Slots: e.cfg.EstimateSlots, Work: e.estimator.Estimate},
		{Kind: WorkApply, Queue: dispatch.QueueBulk, Slots: e.applier.applySlots(), Work: e.applier.Apply},
		{Kind: WorkMissing, Queue: dispatch.QueueMissing, Slots: 1, Work: e.planner.Missing},
	}
	for _, q := range e.queues {
		slots := e.cfg.FetchSlots
		if q.background {
			slots = 1
		}
		out = append(out, dispatch.Worker{
			Kind: FetchKind(q.provider, q.host), Queue: dispatch.QueueBulk, Slots: slots,
			Work: func(ctx context.Context) (bool, error) { return e.fetcher.fetch(ctx, q) },
		})
	}
	return out
}

// wakeFetch wakes the fetch workers of all hosts.
func (p *process) wakeFetch() {
	for _, q := range p.queues {
		p.wake(FetchKind(q.provider, q.host))
	}
}

// wakeAll wakes all workers.
func (e *Engine) wakeAll() {
	for _, w := range e.Workers() {
		e.wake(w.Kind)
	}
}

// rules returns the rules that select the items that are due.
func (p *process) rules(now time.Time, forced bool) Rules {
	return Rules{
		Now: now, Forced: forced, ScopeAll: p.cfg.ScopeAll,
		TTL: p.cfg.TTL, NoSalesRetry: p.cfg.NoSalesRetry,
	}
}
