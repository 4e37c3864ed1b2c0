package view

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"assay/internal/admission"
	"assay/internal/event"
	"assay/internal/provider"
	"assay/internal/refresh"
)

// Overview is the content of the overview page, except the live run.
type Overview struct {
	Verdicts  []Verdict // most important first
	Tiles     []Tile    // age of quotes, updated items, failed items, budget left
	Providers ProvidersDebug
	Hours     map[string][]HalfHour // last 48 half hours, by provider; a provider without requests is missing
	Runs      []RunBar              // last 30 runs of all kinds, newest first
	Events    []EventLine           // newest first
	Failures  []FailureReason       // of the last runs
	Next      *time.Time            // next scheduled run; nil: none
}

// RunBar counts the items of a run for a stacked bar.
type RunBar struct {
	ID, Kind, State, Outcome string // Outcome is empty while the run is live
	StartedAt                time.Time
	FinishedAt               *time.Time // nil: not ended
	Updated, NoQuote, Failed int64
	Skipped, Cancelled       int64
	Pending, Total, Changed  int64
	LastError                string
}

// failed reports whether the run failed. A nil run did not.
func (r *RunBar) failed() bool { return r != nil && (r.State == "failed" || r.Outcome == "failed") }

// Tile is a figure with its values over the last seven days.
type Tile struct {
	Key    string // quoteAge (seconds), updated (items), failed (items), budgetLeft (millionths)
	Now    *int64 // nil: unknown, or no budget
	Run    string // id of the run that Now counts; empty: none
	Kind   string // kind of the run
	Points []TilePoint
}

// TilePoint is the value of a tile at a time.
type TilePoint struct {
	At    time.Time
	Value int64
}

const (
	barsShown  = 30
	runsRead   = 200 // maximum number of runs in the tiles
	tilePeriod = 7 * 24 * time.Hour
	eventsRead = 20
	// stateCheck is how often KeepState looks for results to renew.
	stateCheck = time.Second
)

// OverviewReader reads the content of the overview page.
type OverviewReader struct {
	o        *Options
	all      *Readers
	state    priceState
	headline headline
}

// priceState caches the state of all prices.
type priceState struct {
	reading sync.Mutex // held during a scan
	kept[refresh.PriceState]
}

// PriceState returns the state of all prices in scope, at most 15 seconds old.
func (r *OverviewReader) PriceState(ctx context.Context) (refresh.PriceState, error) {
	if s, _, ok := r.state.use(r.o.Now()); ok {
		return s, nil
	}
	return r.readState(ctx, resultKept)
}

// readState scans all items, unless a concurrent call has read a state that is younger than an age.
func (r *OverviewReader) readState(ctx context.Context, than time.Duration) (refresh.PriceState, error) {
	r.state.reading.Lock()
	defer r.state.reading.Unlock()
	now := r.o.Now()
	if s, _, ok := r.state.younger(now, than); ok {
		return s, nil
	}
	s, err := refresh.ReadPriceState(ctx, r.o.Store, r.o.ScopeAll, now)
	if err == nil {
		r.state.set(now, s)
	}
	return s, err
}

// KeepState renews the results of PriceState, Headline and RecentDryRun, and the freshness of a
// Status, until ctx ends, while they are in use.
func (r *OverviewReader) KeepState(ctx context.Context) {
	keep(ctx, stateCheck, func(ctx context.Context) error {
		return errors.Join(r.all.Jobs.renewFreshness(ctx), r.renewState(ctx), r.renewHeadline(ctx), r.all.Jobs.renewDryRuns(ctx))
	})
}

// renewState renews the state if it is in use and soon too old.
func (r *OverviewReader) renewState(ctx context.Context) error {
	if !r.state.isDue(r.o.Now()) {
		return nil
	}
	_, err := r.readState(ctx, resultRenew)
	return err
}

// Overview returns the content of the overview page. It sends no requests to providers.
func (r *OverviewReader) Overview(ctx context.Context) (out Overview, err error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return out, err
	}
	defer leave()
	actions := r.headline.begin()
	var jobs []refresh.Job
	var state refresh.PriceState
	var events []event.Stored
	var situation Situation
	err = Together(ctx,
		into(&out.Providers, r.all.Providers.ReadProviders),
		into(&out.Hours, r.all.Providers.ProviderHours),
		into(&jobs, func(ctx context.Context) ([]refresh.Job, error) { return Jobs(ctx, r.o.Store, "", 1<<62, runsRead) }),
		into(&state, r.PriceState),
		into(&events, func(ctx context.Context) ([]event.Stored, error) { return event.List(ctx, r.o.Store, eventsRead) }),
	)
	if err != nil {
		return out, err
	}
	err = Together(ctx,
		into(&out.Tiles, func(ctx context.Context) ([]Tile, error) { return r.tiles(ctx, jobs, state) }),
		into(&out.Failures, func(ctx context.Context) ([]FailureReason, error) {
			return r.all.Jobs.lastFailures(ctx, jobs[:min(debugJobs, len(jobs))])
		}),
		into(&situation, func(ctx context.Context) (Situation, error) { return r.situation(ctx, out.Providers, state, jobs) }),
	)
	if err != nil {
		return out, err
	}
	for i := range jobs[:min(barsShown, len(jobs))] {
		out.Runs = append(out.Runs, runBar(&jobs[i]))
	}
	for _, e := range events {
		out.Events = append(out.Events, EventLineOf(e))
	}
	if at, scheduled := r.o.Scheduled()["refresh"]; scheduled {
		out.Next = &at
	}
	out.Verdicts = VerdictsOf(&situation)
	r.headline.set(r.o.Now(), out.Verdicts[0], actions) // pages agree with the overview
	return out, nil
}

func runBar(j *refresh.Job) RunBar {
	c := &j.Counts
	return RunBar{
		ID: strconv.FormatInt(j.ID, 10), Kind: string(j.Kind), State: string(j.State), Outcome: string(j.Outcome), StartedAt: j.CreatedAt, FinishedAt: when(j.FinishedAt),
		Updated: c.Updated, NoQuote: c.NoQuote, Failed: c.Failed, Cancelled: c.Cancelled, Pending: c.Pending, Total: c.Total, Changed: c.Changed,
		Skipped:   c.SkippedTTL + c.SkippedNoSales + c.SkippedBudget + c.SkippedPaused + c.SkippedBackoff,
		LastError: j.LastError,
	}
}

// tiles returns the four tiles. The jobs are ordered from the newest to the oldest.
func (r *OverviewReader) tiles(ctx context.Context, jobs []refresh.Job, state refresh.PriceState) ([]Tile, error) {
	begin := r.o.Now().Add(-tilePeriod)
	samples, err := readPriceSamples(ctx, r.o.Store, begin)
	if err != nil {
		return nil, err
	}
	age, updated, failed, left := Tile{Key: "quoteAge"}, Tile{Key: "updated"}, Tile{Key: "failed"}, Tile{Key: "budgetLeft"}
	for _, s := range samples {
		if s.QuoteAge >= 0 {
			age.Points = append(age.Points, TilePoint{s.At, seconds(s.QuoteAge)})
		}
		if s.BudgetLeft >= 0 {
			left.Points = append(left.Points, TilePoint{s.At, int64(s.BudgetLeft)})
		}
	}
	if state.QuoteAge >= 0 {
		now := seconds(state.QuoteAge)
		age.Now = &now
	}
	for _, j := range slices.Backward(jobs) {
		if j.State.Live() || j.FinishedAt.Before(begin) {
			continue
		}
		updated.Points = append(updated.Points, TilePoint{j.FinishedAt, j.Counts.Updated})
		failed.Points = append(failed.Points, TilePoint{j.FinishedAt, j.Counts.Failed})
		updated.Run, updated.Kind = strconv.FormatInt(j.ID, 10), string(j.Kind)
		failed.Run, failed.Kind = updated.Run, updated.Kind
	}
	for _, t := range []*Tile{&updated, &failed, &left} {
		if n := len(t.Points); n > 0 {
			t.Now = &t.Points[n-1].Value
		}
	}
	now, err := r.o.budgetLeft(ctx)
	if left.Now = nil; now >= 0 {
		left.Now = &now
	}
	return []Tile{age, updated, failed, left}, err
}

// situation returns the input of VerdictsOf.
func (r *OverviewReader) situation(ctx context.Context, providers ProvidersDebug, state refresh.PriceState, jobs []refresh.Job) (Situation, error) {
	s := Situation{Configured: len(providers.Providers), Prices: state.Fresh + state.Stale, QuoteAge: state.QuoteAge}
	for i := range providers.Providers {
		s.addProvider(&providers.Providers[i])
	}
	for i := range jobs {
		bar := runBar(&jobs[i])
		switch kind, live := jobs[i].Kind, jobs[i].State.Live(); {
		case kind == refresh.Bulk && live:
			s.Running = &bar
		case kind == refresh.Bulk:
			s.Last = &bar
		case kind == refresh.Missing && !live && s.Missing == nil:
			s.Missing = &bar
		}
		if s.Last != nil {
			break
		}
	}
	var err error
	if s.Held, err = r.all.Items.HeldCount(ctx); err != nil {
		return s, err
	}
	health, err := r.all.Health.Health(ctx, false)
	if err != nil {
		return s, err
	}
	for _, check := range slices.Sorted(maps.Keys(health.Checks)) {
		if health.Checks[check] != "ok" {
			s.Failing = append(s.Failing, check)
		}
	}
	if !r.o.PricesOnly {
		s.Ledger, err = r.all.Health.LedgerVerification(ctx)
	}
	return s, err
}

func (s *Situation) addProvider(p *ProviderDebug) {
	switch {
	case p.Paused:
		s.Paused = append(s.Paused, p.Provider)
		return
	case p.Health == provider.HealthDown || p.Breaker == string(provider.BreakerOpen):
		s.Down = append(s.Down, p.Provider)
	case p.Health == provider.HealthDegraded && !slices.ContainsFunc(p.Markets, func(m MarketDebug) bool { return m.Quarantine != nil }):
		s.Degraded = append(s.Degraded, p.Provider)
	case p.Health == provider.HealthUnknown:
		s.Unrequested++
	}
	if p.Budget.Low {
		s.LowBudget = append(s.LowBudget, p.Provider)
	}
	for _, m := range p.Markets {
		if m.Quarantine != nil {
			s.Quarantined = append(s.Quarantined, MarketTrouble{p.Provider, m.Market, quarantineReason(p.Provider, m.Market, *m.Quarantine)})
		}
	}
}

// budgetLeft returns the smallest remaining share of any host's budget, in millionths. It returns
// -1 if there is no budget.
func (o *Options) budgetLeft(ctx context.Context) (int64, error) {
	if o.Engine == nil {
		return -1, nil
	}
	left, err := o.Engine.BudgetLeft(ctx)
	return int64(left), err
}
