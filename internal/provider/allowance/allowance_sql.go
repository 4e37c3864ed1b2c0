// Package allowance counts, in the database, what providers allow all processes together:
// limits, quotas, and until when a host wants no requests.
package allowance

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"assay/internal/db"
	"assay/internal/provider"
)

// Allowance counts what a host of a provider allows all processes on the database
// together: see provider.Allowance. On PostgreSQL all of it goes by the
// database's clock, on SQLite by the store's.
type Allowance struct {
	s        *db.DB
	provider string
	host     provider.Host
	slots    int         // that the limit has
	all      int         // with those that are kept for others
	size     int         // requests that a slot takes
	made     atomic.Bool // the slots are there

	watched atomic.Int64 // when the budgets were last looked at, in microseconds
}

const (
	// maxSlots is how many slots a limit has at most. One that allows more requests
	// has several in a slot: it then frees them together, a period after the last.
	maxSlots = 256
	// setBack is how far ahead a moment may be that is past, before the clock
	// counts as set back since.
	setBack = time.Second
	// leastWait is how long to wait where a slot should be free and was not.
	leastWait = 10 * time.Millisecond
)

var (
	// errRefused rolls back what was counted of a request that may not be sent.
	errRefused = errors.New("request refused")
	// errSetBack means that something is noted as of a moment that has yet to come.
	errSetBack = errors.New("the clock was set back")
)

// New returns the allowance of a host.
func New(s *db.DB, p string, host provider.Host) *Allowance {
	a := &Allowance{s: s, provider: p, host: host}
	if !host.Limit.None() {
		all := host.Limit.Requests + host.Others
		a.size = (all + maxSlots - 1) / maxSlots
		a.slots, a.all = max(1, host.Limit.Requests/a.size), all/a.size
	}
	return a
}

// Take implements provider.Allowance.
func (a *Allowance) Take(ctx context.Context) (provider.Refusal, error) {
	r, err := a.ask(ctx)
	if !errors.Is(err, errSetBack) {
		return r, err
	}
	if err := a.s.InTx(ctx, a.catchUp); err != nil {
		return provider.Refusal{}, err
	}
	return a.ask(ctx)
}

func (a *Allowance) ask(ctx context.Context) (provider.Refusal, error) {
	if a.slots == 0 && a.host.Quota == (provider.Quota{}) {
		o, err := a.ordered(ctx, a.s.Read)
		if err != nil || o.refusal.Wait > 0 || o.reported == nil {
			return o.refusal, err
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
			a.watch(ctx)
		}
		return provider.Refusal{}, nil
	case !errors.Is(err, errRefused):
		return provider.Refusal{}, err
	case r.Quota == "" && r.Kind == provider.KindBudget:
		return a.untilFree(ctx)
	}
	return r, nil
}

// take counts a request with what the host leaves, the quotas and the limit, or
// returns why it is refused. What it counted by then must be rolled back. near
// reports that some budget which is forecast may be near its end.
func (a *Allowance) take(t *db.Tx) (r provider.Refusal, near bool, err error) {
	o, err := a.ordered(t.Context(), t)
	if err != nil || o.refusal.Wait > 0 {
		return o.refusal, false, err
	}
	// A slot comes last, since another process may have to be waited for: the moment
	// that it is given must be that of the request.
	if o.reported != nil {
		if n, err := t.Exec(countReported, a.provider, a.host.Key); err != nil || n == 0 {
			return provider.Refusal{Kind: provider.KindBudget, Wait: leastWait}, false, err
		}
		near = provider.NearEnd(o.reported.Left-1, o.reported.Limit)
	}
	for _, p := range a.host.Quota.Periods() {
		begin, end := p.Bounds(o.now)
		var used int64
		switch err := t.QueryRow(countQuota, a.provider, a.host.Key, string(p), db.Micros(begin), a.host.Quota.Of(p)).Scan(&used); {
		case errors.Is(err, sql.ErrNoRows):
			return provider.Refusal{Kind: provider.KindBudget, Wait: end.Sub(o.now), Quota: p, ResetsAt: end}, false, nil
		case err != nil:
			return r, false, err
		}
		near = near || provider.NearEnd(a.host.Quota.Of(p)-used, a.host.Quota.Of(p))
	}
	if a.forecasts(o.reported) {
		if err := a.countPace(t, o.now); err != nil {
			return r, false, err
		}
	}
	if a.slots == 0 {
		return r, near, nil
	}
	r, err = a.takeSlot(t)
	return r, near || provider.HasForecast(a.host.Limit.Per), err
}

// takeSlot counts a request with the limit.
func (a *Allowance) takeSlot(t *db.Tx) (provider.Refusal, error) {
	clock, order := t.Dialect.Clock(3), "slot DESC" // first those that not everybody may take
	if a.size > 1 {
		order = "at DESC, slot" // one is filled before the next
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
	return provider.Refusal{Kind: provider.KindBudget, Wait: leastWait}, nil
}

const countReported = `UPDATE reported_quota SET reported_left = reported_left - 1 WHERE provider = $1 AND host = $2 AND reported_left > 0`

// A clock that is set back to another day or month goes on with what is used:
// nothing more is let through, and the count ends with the period that now is.
const countQuota = `
INSERT INTO budget_quota (provider, host, period, starts_at, used) VALUES ($1, $2, $3, $4, 1)
ON CONFLICT (provider, host, period) DO UPDATE SET starts_at = excluded.starts_at,
	used = CASE WHEN budget_quota.starts_at < excluded.starts_at THEN 1 ELSE budget_quota.used + 1 END
WHERE budget_quota.starts_at < excluded.starts_at OR budget_quota.used < $5
RETURNING used`

// untilFree tells for how long no slot will be free, or the host wants to be left
// alone.
func (a *Allowance) untilFree(ctx context.Context) (provider.Refusal, error) {
	o, err := a.ordered(ctx, a.s.Read)
	if err != nil || o.refusal.Wait > 0 {
		return o.refusal, err
	}
	slots, err := a.standing(ctx, o.now)
	if err != nil {
		return o.refusal, err
	}
	if slots.newest.After(o.now.Add(setBack)) {
		return o.refusal, errSetBack
	}
	if slots.n != a.slots {
		a.made.Store(false) // another limit is in force, or they were removed
	}
	wait := slots.oldest.Add(a.host.Limit.Stretch()).Sub(o.now)
	return provider.Refusal{Kind: provider.KindBudget, Wait: min(max(wait, leastWait), a.host.Limit.Stretch())}, nil
}
