// Package allowance stores, in the database, the budget that all processes share per host
// of a provider: limits, quotas and retry-after.
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

// Allowance implements provider.Allowance for one host of a provider. On PostgreSQL it uses
// the database's clock, on SQLite the process's.
type Allowance struct {
	s        *db.DB
	provider string
	host     provider.Host
	slots    int         // slots of the limit
	all      int         // with the slots reserved for others
	size     int         // requests per slot
	made     atomic.Bool // the slots exist

	watched atomic.Int64 // time of the last forecast, in microseconds
}

const (
	// maxSlots is the maximum number of slots of a limit. With a larger limit several
	// requests share a slot, which becomes free a period after the last of them.
	maxSlots = 256
	// setBack is how far in the future a stored time may lie before the clock counts as set
	// back.
	setBack = time.Second
	// leastWait is the wait when a slot was expected to be free and was not.
	leastWait = 10 * time.Millisecond
)

var (
	// errRefused rolls back the counts of a request that must not be sent.
	errRefused = errors.New("request refused")
	// errSetBack means that a stored time lies in the future.
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
		o, err := a.demanded(ctx, a.s.Read)
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

// take counts a request against the reported quota, the quotas and the limit, or returns
// why it is refused. The caller must then roll back. near reports whether a budget with a
// forecast may be near its end.
func (a *Allowance) take(t *db.Tx) (r provider.Refusal, near bool, err error) {
	o, err := a.demanded(t.Context(), t)
	if err != nil || o.refusal.Wait > 0 {
		return o.refusal, false, err
	}
	// The slot comes last, because taking it may wait for another process, and its time
	// must be that of the request.
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

// takeSlot counts a request against the limit.
func (a *Allowance) takeSlot(t *db.Tx) (provider.Refusal, error) {
	clock, order := t.Dialect.Clock(3), "slot DESC" // the reserved slots first
	if a.size > 1 {
		order = "at DESC, slot" // fill one slot before the next
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

// If the clock is set back to another day or month, the count continues: no extra request
// is allowed, and the count ends with the current period.
const countQuota = `
INSERT INTO budget_quota (provider, host, period, starts_at, used) VALUES ($1, $2, $3, $4, 1)
ON CONFLICT (provider, host, period) DO UPDATE SET starts_at = excluded.starts_at,
	used = CASE WHEN budget_quota.starts_at < excluded.starts_at THEN 1 ELSE budget_quota.used + 1 END
WHERE budget_quota.starts_at < excluded.starts_at OR budget_quota.used < $5
RETURNING used`

// untilFree returns how long all slots stay used, or the retry-after of the host.
func (a *Allowance) untilFree(ctx context.Context) (provider.Refusal, error) {
	o, err := a.demanded(ctx, a.s.Read)
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
		a.made.Store(false) // the limit has changed, or the slots were removed
	}
	wait := slots.oldest.Add(a.host.Limit.Stretch()).Sub(o.now)
	return provider.Refusal{Kind: provider.KindBudget, Wait: min(max(wait, leastWait), a.host.Limit.Stretch())}, nil
}
