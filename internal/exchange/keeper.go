// Package exchange provides the exchange rates of refreshes. It reads rates from a source, which
// is the European Central Bank or a file. Fixed rates of the operator override the rates of the
// source.
package exchange

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
)

// ErrPending means that another process is fetching the first rates. Callers should retry
// after some seconds instead of starting a refresh without rates.
var ErrPending = errors.New("exchange rates are being fetched")

// Source is a source of exchange rates.
type Source interface {
	// Name returns the name of the source, such as "ecb".
	Name() string
	// Schedule returns how often to query the source. The zero value means once per refresh.
	Schedule() Schedule
	// Rates returns all rates into a base currency. Its errors contain no path and no
	// host.
	Rates(ctx context.Context, base money.Currency) (pricing.Rates, error)
}

// Schedule defines the time between two queries of a source.
type Schedule struct {
	Every      time.Duration // after a success
	AfterError time.Duration // after an error
}

// State is the stored state of a source.
type State struct {
	Rates       pricing.Rates // the last valid rates; empty before the first ones
	ReadAt      time.Time     // time when the rates were read
	DueAt       time.Time     // time of the next query
	LastError   string        // error of the last query, or its rejected rates; empty after a success
	LastErrorAt time.Time
}

// Options configures a Keeper.
type Options struct {
	Base   money.Currency
	Fixed  pricing.Rates // rates set by the operator; they override the rates of Source
	Source Source        // nil if there are only fixed rates
	Store  *db.DB
	Now    func() time.Time
	Log    *slog.Logger
}

// Keeper returns the current rates. Its methods are safe for concurrent use.
type Keeper struct {
	o Options

	mu     sync.Mutex
	warned time.Time // day of the last warning about old rates
}

// New returns a Keeper.
func New(o Options) *Keeper { return &Keeper{o: o} }

// claimTimeout limits how long a process has to query a source. After that, another process
// can query it.
const claimTimeout = 20 * time.Second

// Current returns the rates for a refresh that starts now. It queries the source if that is
// due. If a query fails or its rates are invalid, the last valid rates stay in use.
func (k *Keeper) Current(ctx context.Context) (pricing.Rates, error) {
	rates := pricing.Rates{}
	if k.o.Source != nil {
		state, err := k.query(ctx)
		if err != nil {
			return nil, fmt.Errorf("read exchange rates: %w", err)
		}
		maps.Copy(rates, state.Rates)
	}
	maps.Copy(rates, k.o.Fixed)
	k.warn(rates)
	return rates, nil
}

// Known returns the stored rates and the state of the source. It does not query the source.
func (k *Keeper) Known(ctx context.Context) (pricing.Rates, State, error) {
	var state State
	rates := pricing.Rates{}
	if k.o.Source != nil {
		var err error
		if state, err = storedRates(ctx, k.o.Store, k.o.Source.Name()); err != nil {
			return nil, state, fmt.Errorf("read exchange rates: %w", err)
		}
		maps.Copy(rates, state.Rates)
	}
	maps.Copy(rates, k.o.Fixed)
	return rates, state, nil
}

// Origin returns the origin of the rates: "ecb", "file", "fixed" or "none".
func (k *Keeper) Origin() string {
	switch {
	case k.o.Source != nil:
		return k.o.Source.Name()
	case len(k.o.Fixed) > 0:
		return "fixed"
	}
	return "none"
}

// OriginOf returns the origin of the rate of a currency. It is "fixed" if the operator has fixed
// the rate.
func (k *Keeper) OriginOf(c money.Currency) string {
	if _, fixed := k.o.Fixed[c]; fixed {
		return "fixed"
	}
	return k.Origin()
}

func (k *Keeper) query(ctx context.Context) (State, error) {
	source, schedule, now := k.o.Source.Name(), k.o.Source.Schedule(), k.o.Now()
	state, err := storedRates(ctx, k.o.Store, source)
	if err != nil {
		return state, err
	}
	if schedule.Every > 0 {
		if !due(state, schedule, now) {
			return state, state.pending()
		}
		claimed, err := claimRateSource(ctx, k.o.Store, source, state.DueAt, now.Add(claimTimeout))
		if err != nil {
			return state, err
		}
		if !claimed {
			return state, state.pending()
		}
	}
	rates, err := k.o.Source.Rates(ctx, k.o.Base)
	if ctx.Err() != nil {
		return state, ctx.Err()
	}
	next := k.next(state, rates, err)
	if schedule.Every == 0 && maps.Equal(next.Rates, state.Rates) && next.LastError == state.LastError {
		return state, nil
	}
	if next.LastError != "" && next.LastError != state.LastError {
		k.o.Log.Warn("exchange rates unavailable or rejected; using the last valid rates", "source", source, "reason", next.LastError)
	}
	return next, putRateSource(ctx, k.o.Store, source, next)
}

// due reports whether to query a source. If DueAt is further away than any schedule, the
// clock was set back, so the source is due.
func due(s State, p Schedule, now time.Time) bool {
	return !s.DueAt.After(now) || s.DueAt.After(now.Add(max(p.Every, p.AfterError, claimTimeout)))
}

// pending returns ErrPending until the first query has completed, and nil afterwards.
func (s State) pending() error {
	if len(s.Rates) == 0 && s.LastError == "" {
		return ErrPending
	}
	return nil
}

// next returns the state after a query that returned the rates read or an error.
func (k *Keeper) next(was State, read pricing.Rates, err error) State {
	now, schedule := k.o.Now(), k.o.Source.Schedule()
	next := was
	if err != nil {
		next.LastError, next.LastErrorAt, next.DueAt = err.Error(), now, now.Add(schedule.AfterError)
		return next
	}
	next = State{Rates: maps.Clone(read), ReadAt: now, DueAt: now.Add(schedule.Every)}
	if rejected := rejectJumps(next.Rates, was.Rates); len(rejected) > 0 {
		next.LastError, next.LastErrorAt = strings.Join(rejected, "; "), now
	}
	return next
}

// maxComparedAge is the maximum time between two rates that are compared.
const maxComparedAge = 30 * 24 * time.Hour

// rejectJumps compares rates with the previous ones. If a rate changed by a factor of more than
// 1.5, rejectJumps restores the previous rate, because the change is usually a wrong unit or a
// typing error. If the change is real, the operator can set a fixed rate. rejectJumps returns
// descriptions of the first five rejected rates.
func rejectJumps(rates, before pricing.Rates) (rejected []string) {
	const most = 5
	for _, c := range rates.Currencies() {
		was, known := before[c]
		rate := rates[c]
		if !known || rate.Date.Sub(was.Date) > maxComparedAge || near(rate.Value, was.Value) {
			continue
		}
		rates[c] = was
		rejected = append(rejected, fmt.Sprintf("%s: %s of %s differs too much from %s of %s",
			c, rate.Value, rate.Date.Format(time.DateOnly), was.Value, was.Date.Format(time.DateOnly)))
	}
	if more := len(rejected) - most; more > 0 {
		rejected = append(rejected[:most], fmt.Sprintf("and %d more", more))
	}
	return rejected
}

// near reports whether two rates differ by a factor of at most 1.5.
func near(a, b money.Rate) bool {
	ratio, ok := money.CrossRate(max(a, b), min(a, b))
	return ok && ratio <= money.RateScale+money.RateScale/2
}

// warn logs a warning about old rates, at most once a day.
func (k *Keeper) warn(rates pricing.Rates) {
	now := k.o.Now().UTC()
	old := rates.Old(now)
	day := now.Truncate(24 * time.Hour)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(old) == 0 || k.warned.Equal(day) {
		return
	}
	k.warned = day
	oldest := slices.MinFunc(old, func(a, b money.Currency) int { return rates[a].Date.Compare(rates[b].Date) })
	k.o.Log.Warn("exchange rates are more than three days old", "source", k.Origin(),
		"currencies", len(old), "oldest", oldest, "date", rates[oldest].Date.Format(time.DateOnly))
}
