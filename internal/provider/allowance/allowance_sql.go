// Package allowance stores the budget of each provider host in the database. All processes
// share the budget, which consists of limits, quotas and retry-after.
package allowance

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"assay/internal/db"
	"assay/internal/provider"
)

// Allowance implements provider.Allowance for one host of a provider. It uses the clock of the
// database on PostgreSQL, and the clock of the process on SQLite.
type Allowance struct {
	s         *db.DB
	provider  string
	host      provider.Host
	slots     int         // number of slots for the limit
	all       int         // number of slots including those reserved for others
	size      int         // number of requests per slot
	slotsMade atomic.Bool // the slots exist in the database

	lastCheck atomic.Int64 // time of the last low-budget check, in microseconds
}

const (
	// maxSlots is the maximum number of slots of a limit. With a larger limit, several
	// requests share a slot. A shared slot becomes free one period after its last request.
	maxSlots = 256
	// maxAhead is how far a stored time may be in the future. A larger difference means that
	// the clock was set back.
	maxAhead = time.Second
	// minWait is the wait when a slot should be free but is not.
	minWait = 10 * time.Millisecond
)

var (
	// errRefused rolls back the counts of a refused request.
	errRefused = errors.New("request refused")
	// errSetBack means that a stored time is in the future.
	errSetBack = errors.New("clock was set back")
)

// New returns the allowance of a host.
func New(s *db.DB, p string, host provider.Host) *Allowance {
	a := &Allowance{s: s, provider: p, host: host}
	if !host.Limit.None() {
		all := host.Limit.Requests + host.Reserved
		a.size = (all + maxSlots - 1) / maxSlots
		a.slots, a.all = max(1, host.Limit.Requests/a.size), all/a.size
	}
	return a
}

// Take implements provider.Allowance.
func (a *Allowance) Take(ctx context.Context) (provider.Refusal, error) {
	r, err := a.tryTake(ctx)
	if !errors.Is(err, errSetBack) {
		return r, err
	}
	if err := a.s.InTx(ctx, a.resetFutureTimes); err != nil {
		return provider.Refusal{}, err
	}
	return a.tryTake(ctx)
}

func (a *Allowance) tryTake(ctx context.Context) (provider.Refusal, error) {
	if a.slots == 0 && a.host.Quota == (provider.Quota{}) {
		d, err := a.readHostState(ctx, a.s.Read)
		if err != nil || d.refusal.Wait > 0 || d.reported == nil {
			return d.refusal, err
		}
	}
	if err := a.makeSlots(ctx); err != nil {
		return provider.Refusal{}, err
	}
	var r provider.Refusal
	var near bool
	err := a.s.InTx(ctx, func(t *db.Tx) (err error) {
		if r, near, err = a.take(t); err == nil && r.Wait > 0 {
			err = errRefused
		}
		return err
	})
	switch {
	case err == nil:
		if near {
			a.warnIfLow(ctx)
		}
		return provider.Refusal{}, nil
	case !errors.Is(err, errRefused):
		return provider.Refusal{}, err
	case r.Quota == "" && r.Kind == provider.KindBudget:
		return a.untilFree(ctx)
	}
	return r, nil
}

// take counts a request against the reported quota, the quotas and the limit. If one of them
// refuses it, take returns the reason, and the caller must roll back. near reports whether a
// budget with a forecast may be near its end.
func (a *Allowance) take(t *db.Tx) (r provider.Refusal, near bool, err error) {
	d, err := a.readHostState(t.Context(), t)
	if err != nil || d.refusal.Wait > 0 {
		return d.refusal, false, err
	}
	// Take the slot last. Earlier statements may wait for another process, and the time of the
	// slot must be the time of the request.
	if d.reported != nil {
		if n, err := t.Exec(countReported, a.provider, a.host.Key); err != nil || n == 0 {
			return provider.Refusal{Kind: provider.KindBudget, Wait: minWait}, false, err
		}
		near = provider.NearEnd(d.reported.Left-1, d.reported.Limit)
	}
	for _, p := range a.host.Quota.Periods() {
		begin, end := p.Bounds(d.now)
		var used int64
		left, err := db.Found(t.QueryRow(countQuota, a.provider, a.host.Key, string(p), db.Micros(begin), a.host.Quota.Of(p)).Scan(&used))
		if err != nil {
			return r, false, err
		}
		if !left {
			return provider.Refusal{Kind: provider.KindBudget, Wait: end.Sub(d.now), Quota: p, ResetsAt: end}, false, nil
		}
		near = near || provider.NearEnd(a.host.Quota.Of(p)-used, a.host.Quota.Of(p))
	}
	if a.forecasts(d.reported) {
		if err := a.countPace(t, d.now); err != nil {
			return r, false, err
		}
	}
	if a.slots == 0 {
		return r, near, nil
	}
	r, err = a.takeSlot(t)
	return r, near || provider.HasForecast(a.host.Limit.Per), err
}

// takeSlot counts a request against the limit.
func (a *Allowance) takeSlot(t *db.Tx) (provider.Refusal, error) {
	clock, order := t.Dialect.Clock(3), "slot DESC" // use the reserved slots first
	if a.size > 1 {
		order = "at DESC, slot" // fill one slot before the next one
	}
	n, err := t.Exec(`
		UPDATE budget_slot SET used = CASE WHEN at > `+clock+` - $4 THEN used + 1 ELSE 1 END, at = `+clock+`
		WHERE provider = $1 AND host = $2 AND slot = (
			SELECT slot FROM budget_slot
			WHERE provider = $1 AND host = $2 AND slot < $5 AND (used < $6 OR at <= `+clock+` - $4)
			ORDER BY `+order+` LIMIT 1`+t.Dialect.SkipLocked("budget_slot")+`)
		AND NOT EXISTS (SELECT 1 FROM provider_host h WHERE h.provider = $1 AND h.host = $2 AND h.blocked_until > `+clock+`)`,
		a.provider, a.host.Key, a.s.ClockArg(), a.host.Limit.Stretch().Microseconds(), a.slots, a.size)
	if err != nil || n == 1 {
		return provider.Refusal{}, err
	}
	return provider.Refusal{Kind: provider.KindBudget, Wait: minWait}, nil
}

const countReported = `UPDATE reported_quota SET reported_left = reported_left - 1 WHERE provider = $1 AND host = $2 AND reported_left > 0`

// If the clock is set back to an earlier day or month, the count does not restart at zero.
// This allows no extra requests.
const countQuota = `
INSERT INTO budget_quota (provider, host, period, starts_at, used) VALUES ($1, $2, $3, $4, 1)
ON CONFLICT (provider, host, period) DO UPDATE SET starts_at = excluded.starts_at,
	used = CASE WHEN budget_quota.starts_at < excluded.starts_at THEN 1 ELSE budget_quota.used + 1 END
WHERE budget_quota.starts_at < excluded.starts_at OR budget_quota.used < $5
RETURNING used`

// untilFree returns the wait until a slot is free, or the retry-after of the host.
func (a *Allowance) untilFree(ctx context.Context) (provider.Refusal, error) {
	d, err := a.readHostState(ctx, a.s.Read)
	if err != nil || d.refusal.Wait > 0 {
		return d.refusal, err
	}
	slots, err := a.readSlots(ctx, d.now)
	if err != nil {
		return d.refusal, err
	}
	if slots.newest.After(d.now.Add(maxAhead)) {
		return d.refusal, errSetBack
	}
	if slots.n != a.slots {
		a.slotsMade.Store(false) // the limit has changed, or the slots were removed
	}
	wait := slots.oldest.Add(a.host.Limit.Stretch()).Sub(d.now)
	return provider.Refusal{Kind: provider.KindBudget, Wait: min(max(wait, minWait), a.host.Limit.Stretch())}, nil
}
