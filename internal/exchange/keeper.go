// Package exchange keeps the exchange rates that runs convert with: rates fixed by an
// operator, and rates of a place that publishes new ones every day.
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

// ErrPending means that another process is fetching the first rates. Callers wait some
// seconds instead of starting a run without rates.
var ErrPending = errors.New("exchange rates are being fetched")

// Place is where rates come from.
type Place interface {
	Name() string // "ecb"; constant
	// Pace returns how often to query the place; zero: each time, since it is cheap.
	Pace() Pace
	// Rates requests all rates into a base currency. Its errors name no path and
	// no host.
	Rates(ctx context.Context, base money.Currency) (pricing.Rates, error)
}

// Pace is how often a place is queried.
type Pace struct {
	Every time.Duration // after a success
	Again time.Duration // after a failure
}

// State is what was last read from a place.
type State struct {
	Rates       pricing.Rates // the last good ones; empty: none yet
	ReadAt      time.Time     // when they were read
	DueAt       time.Time     // the next query
	LastError   string        // why newer rates were rejected; empty: they were not
	LastErrorAt time.Time
}

// Options are what a Keeper is made of.
type Options struct {
	Base  money.Currency
	Fixed pricing.Rates // set by an operator; they override those of Place
	Place Place         // nil: there are only fixed ones
	Store *db.DB
	Now   func() time.Time
	Log   *slog.Logger
}

// Keeper returns the current rates. Its methods may be used concurrently.
type Keeper struct {
	o Options

	mu     sync.Mutex
	warned time.Time // the day of the last warning of old rates
}

// New makes a Keeper.
func New(o Options) *Keeper { return &Keeper{o: o} }

// patience is how long a process may take to query a place. After that another process
// may query it.
const patience = 20 * time.Second

// Current returns the rates of a run that begins now. It queries the place if that is
// due. The last good rates stay in use until newer ones pass the check. A currency that
// was never quoted has no rate.
func (k *Keeper) Current(ctx context.Context) (pricing.Rates, error) {
	rates := pricing.Rates{}
	if k.o.Place != nil {
		state, err := k.query(ctx)
		if err != nil {
			return nil, fmt.Errorf("exchange rates: %w", err)
		}
		maps.Copy(rates, state.Rates)
	}
	maps.Copy(rates, k.o.Fixed)
	k.warn(rates)
	return rates, nil
}

// Known returns the stored rates without a query, and the state of the place, if there
// is one.
func (k *Keeper) Known(ctx context.Context) (pricing.Rates, State, error) {
	var state State
	rates := pricing.Rates{}
	if k.o.Place != nil {
		var err error
		if state, err = ratePlace(ctx, k.o.Store, k.o.Place.Name()); err != nil {
			return nil, state, fmt.Errorf("exchange rates: %w", err)
		}
		maps.Copy(rates, state.Rates)
	}
	maps.Copy(rates, k.o.Fixed)
	return rates, state, nil
}

// Place names where rates come from: "ecb", "file", "fixed", or "none".
func (k *Keeper) Place() string {
	switch {
	case k.o.Place != nil:
		return k.o.Place.Name()
	case len(k.o.Fixed) > 0:
		return "fixed"
	}
	return "none"
}

func (k *Keeper) query(ctx context.Context) (State, error) {
	place, pace, now := k.o.Place.Name(), k.o.Place.Pace(), k.o.Now()
	state, err := ratePlace(ctx, k.o.Store, place)
	if err != nil {
		return state, err
	}
	if pace.Every > 0 {
		if !due(state, pace, now) {
			return state, state.pending()
		}
		claimed, err := claimRatePlace(ctx, k.o.Store, place, state.DueAt, now.Add(patience))
		if err != nil {
			return state, err
		}
		if !claimed {
			return state, state.pending()
		}
	}
	rates, err := k.o.Place.Rates(ctx, k.o.Base)
	if ctx.Err() != nil {
		return state, ctx.Err()
	}
	next := k.take(state, rates, err)
	if pace.Every == 0 && maps.Equal(next.Rates, state.Rates) && next.LastError == state.LastError {
		return state, nil
	}
	if next.LastError != "" && next.LastError != state.LastError {
		k.o.Log.Warn("exchange rates rejected; using the last good ones", "place", place, "reason", next.LastError)
	}
	return next, putRatePlace(ctx, k.o.Store, place, next)
}

// due reports whether to query a place. A time further ahead than any pause was stored
// before the clock was set back.
func due(s State, p Pace, now time.Time) bool {
	return !s.DueAt.After(now) || s.DueAt.After(now.Add(max(p.Every, p.Again, patience)))
}

// pending is ErrPending while the place is requested the first time.
func (s State) pending() error {
	if len(s.Rates) == 0 && s.LastError == "" {
		return ErrPending
	}
	return nil
}

// take returns the state after a query.
func (k *Keeper) take(was State, read pricing.Rates, err error) State {
	now, pace := k.o.Now(), k.o.Place.Pace()
	next := was
	if err != nil {
		next.LastError, next.LastErrorAt, next.DueAt = err.Error(), now, now.Add(pace.Again)
		return next
	}
	next = State{Rates: maps.Clone(read), ReadAt: now, DueAt: now.Add(pace.Every)}
	if refused := rejectJumps(next.Rates, was.Rates); len(refused) > 0 {
		next.LastError, next.LastErrorAt = strings.Join(refused, "; "), now
	}
	return next
}

// memory is how long a rate is compared with newer ones.
const memory = 30 * 24 * time.Hour

// rejectJumps replaces each rate that differs from the former one by a factor of more than
// 1.5 with the former one, and describes the first few. Such a change is usually an
// error of units or a typing error. An operator can fix the rate of a currency that
// really changed so much.
func rejectJumps(rates, before pricing.Rates) (refused []string) {
	const most = 5
	for _, c := range rates.Currencies() {
		was, known := before[c]
		rate := rates[c]
		if !known || rate.Date.Sub(was.Date) > memory || near(rate.Value, was.Value) {
			continue
		}
		rates[c] = was
		refused = append(refused, fmt.Sprintf("%s: %s of %s is too far from %s of %s",
			c, rate.Value, rate.Date.Format(time.DateOnly), was.Value, was.Date.Format(time.DateOnly)))
	}
	if more := len(refused) - most; more > 0 {
		refused = append(refused[:most], fmt.Sprintf("and %d more", more))
	}
	return refused
}

// near reports whether two rates differ by a factor of at most 1.5.
func near(a, b money.Rate) bool {
	ratio, ok := money.CrossRate(max(a, b), min(a, b))
	return ok && ratio <= money.RateScale+money.RateScale/2
}

// warn logs once a day that rates are old.
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
	k.o.Log.Warn("exchange rates are more than three days old", "place", k.Place(),
		"currencies", len(old), "oldest", oldest, "date", rates[oldest].Date.Format(time.DateOnly))
}
