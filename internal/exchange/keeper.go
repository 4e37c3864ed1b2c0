// Package exchange keeps the exchange rates that runs convert with: those that an
// operator fixed, and those of a place that tells new ones every day.
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

	"assay/internal/money"
	"assay/internal/pricing"
)

// ErrPending means that another process is just asking for the first rates:
// better to wait some seconds than to begin a run without any.
var ErrPending = errors.New("exchange rates are being fetched")

// Place is where rates come from.
type Place interface {
	Name() string // "ecb"; constant
	// Pace says how often the place is asked; zero: each time, as it costs nothing.
	Pace() Pace
	// Rates asks for all rates into a base currency. Its errors name no path and
	// no host.
	Rates(ctx context.Context, base money.Currency) (pricing.Rates, error)
}

// Pace says how often a place is asked.
type Pace struct {
	Every time.Duration // after it answered
	Again time.Duration // after it did not
}

// State is what a place told last.
type State struct {
	Rates       pricing.Rates // the last good ones; empty: none yet
	ReadAt      time.Time     // when it told them
	DueAt       time.Time     // it is not asked again before
	LastError   string        // why what it told since does not count; empty: it does
	LastErrorAt time.Time
}

// Store keeps what places told, for all processes and over restarts.
type Store interface {
	// RatePlace returns the state of a place; zero: it was never asked.
	RatePlace(ctx context.Context, place string) (State, error)
	// ClaimRatePlace moves on when a place is due. It returns false where another
	// process did so first.
	ClaimRatePlace(ctx context.Context, place string, was, next time.Time) (bool, error)
	PutRatePlace(ctx context.Context, place string, s State) error
}

// Options are what a Keeper is made of.
type Options struct {
	Base  money.Currency
	Fixed pricing.Rates // an operator's word: they count before those of Place
	Place Place         // nil: there are only fixed ones
	Store Store
	Now   func() time.Time
	Log   *slog.Logger
}

// Keeper tells the rates. Its methods may be used concurrently.
type Keeper struct {
	o Options

	mu     sync.Mutex
	warned time.Time // the day of the last warning of old rates
}

// New makes a Keeper.
func New(o Options) *Keeper { return &Keeper{o: o} }

// patience is how long a process that asks a place is given before another one
// does so instead.
const patience = 20 * time.Second

// Current returns the rates of a run that begins now. It asks the place if that
// is due. What the place told last serves as long as it tells nothing new that
// can be believed; a currency of which nobody told a rate has none.
func (k *Keeper) Current(ctx context.Context) (pricing.Rates, error) {
	rates := pricing.Rates{}
	if k.o.Place != nil {
		state, err := k.ask(ctx)
		if err != nil {
			return nil, fmt.Errorf("exchange rates: %w", err)
		}
		maps.Copy(rates, state.Rates)
	}
	maps.Copy(rates, k.o.Fixed)
	k.warn(rates)
	return rates, nil
}

// Known returns what Current would without asking anybody, and the state of the
// place, if there is one.
func (k *Keeper) Known(ctx context.Context) (pricing.Rates, State, error) {
	var state State
	rates := pricing.Rates{}
	if k.o.Place != nil {
		var err error
		if state, err = k.o.Store.RatePlace(ctx, k.o.Place.Name()); err != nil {
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

func (k *Keeper) ask(ctx context.Context) (State, error) {
	place, pace, now := k.o.Place.Name(), k.o.Place.Pace(), k.o.Now()
	state, err := k.o.Store.RatePlace(ctx, place)
	if err != nil {
		return state, err
	}
	if pace.Every > 0 {
		if !due(state, pace, now) {
			return state, state.pending()
		}
		claimed, err := k.o.Store.ClaimRatePlace(ctx, place, state.DueAt, now.Add(patience))
		if err != nil {
			return state, err
		}
		if !claimed {
			return state, state.pending()
		}
	}
	told, err := k.o.Place.Rates(ctx, k.o.Base)
	if ctx.Err() != nil {
		return state, ctx.Err()
	}
	next := k.take(state, told, err)
	if pace.Every == 0 && maps.Equal(next.Rates, state.Rates) && next.LastError == state.LastError {
		return state, nil
	}
	if next.LastError != "" && next.LastError != state.LastError {
		k.o.Log.Warn("exchange rates are not taken as they are told; the last good ones serve", "place", place, "reason", next.LastError)
	}
	return next, k.o.Store.PutRatePlace(ctx, place, next)
}

// due reports whether a place is to be asked. A moment further ahead than any
// pause is of a clock that was set back since.
func due(s State, p Pace, now time.Time) bool {
	return !s.DueAt.After(now) || s.DueAt.After(now.Add(max(p.Every, p.Again, patience)))
}

// pending is ErrPending while the place is asked for the first time.
func (s State) pending() error {
	if len(s.Rates) == 0 && s.LastError == "" {
		return ErrPending
	}
	return nil
}

// take returns the state after a place has told rates, or failed to.
func (k *Keeper) take(was State, told pricing.Rates, err error) State {
	now, pace := k.o.Now(), k.o.Place.Pace()
	next := was
	if err != nil {
		next.LastError, next.LastErrorAt, next.DueAt = err.Error(), now, now.Add(pace.Again)
		return next
	}
	next = State{Rates: maps.Clone(told), ReadAt: now, DueAt: now.Add(pace.Every)}
	if refused := believe(next.Rates, was.Rates); len(refused) > 0 {
		next.LastError, next.LastErrorAt = strings.Join(refused, "; "), now
	}
	return next
}

// memory is for how long a rate is a measure for the next one.
const memory = 30 * 24 * time.Hour

// believe puts the former rate back in the place of each one that lies more than
// half above or below it, and says so of the first few: a unit slipped, or a
// finger. A currency that has really lost so much can be fixed by an operator.
func believe(rates, before pricing.Rates) (refused []string) {
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

// warn tells once a day that rates are old.
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
