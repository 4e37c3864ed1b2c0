package allowance

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"assay/internal/db"
	"assay/internal/provider"
)

// StoreRetryAfter implements provider.Allowance. It never shortens a wait. The transaction is
// urgent. A crash before the commit would lose the wait, and requests after a restart would be
// too early.
func (a *Allowance) StoreRetryAfter(ctx context.Context, r provider.RetryAfter) (wait time.Duration, err error) {
	err = a.s.InUrgentTx(ctx, func(t *db.Tx) error {
		if err := a.resetFutureTimes(t); err != nil {
			return err
		}
		clock := t.Dialect.Clock(3)
		var now, at, until int64
		err := t.QueryRow(`
			SELECT `+clock+`, coalesce(max(blocked_at), 0), coalesce(max(blocked_until), 0)
			FROM provider_host WHERE provider = $1 AND host = $2`, a.provider, a.host.Key, a.s.ClockArg()).Scan(&now, &at, &until)
		if err != nil {
			return err
		}
		wait = r.After(time.Duration(until-at)*time.Microsecond, time.Duration(now-until)*time.Microsecond)
		_, err = t.Exec(`
			INSERT INTO provider_host (provider, host, blocked_at, blocked_until) VALUES ($1, $2, `+clock+`, `+clock+` + $4)
			ON CONFLICT (provider, host) DO UPDATE SET blocked_at = excluded.blocked_at, blocked_until = excluded.blocked_until
			WHERE excluded.blocked_until > provider_host.blocked_until`, a.provider, a.host.Key, a.s.ClockArg(), wait.Microseconds())
		wait = max(wait, time.Duration(until-now)*time.Microsecond)
		return err
	})
	return wait, err
}

// resetFutureTimes sets stored times in the future to now. Such times exist after the clock
// is set back, and they would count for too long. Their real age is unknown. Counting them
// from now on allows no extra requests.
func (a *Allowance) resetFutureTimes(t *db.Tx) error {
	clock := t.Dialect.Clock(3)
	for _, query := range []string{
		`UPDATE budget_slot SET at = ` + clock + ` WHERE provider = $1 AND host = $2 AND at > ` + clock + ` + $4`,
		`UPDATE reported_quota SET reported_at = ` + clock + `, resets_at = resets_at - reported_at + ` + clock + `
		 WHERE provider = $1 AND host = $2 AND reported_at > ` + clock + ` + $4`,
		`UPDATE provider_host SET blocked_at = ` + clock + `, blocked_until = blocked_until - blocked_at + ` + clock + `
		 WHERE provider = $1 AND host = $2 AND blocked_at > ` + clock + ` + $4`,
	} {
		if _, err := t.Exec(query, a.provider, a.host.Key, a.s.ClockArg(), maxAhead.Microseconds()); err != nil {
			return err
		}
	}
	return nil
}

// makeSlots creates the slots of the limit and the reserved slots. If there were more slots
// before, the time of the last request in a removed slot is copied to all remaining slots.
// This allows no extra requests for one period.
func (a *Allowance) makeSlots(ctx context.Context) error {
	if a.slots == 0 || a.slotsMade.Load() {
		return nil
	}
	err := a.s.InTx(ctx, func(t *db.Tx) error {
		var surplus, newest int64
		if err := t.QueryRow(`SELECT count(*), coalesce(max(at), 0) FROM budget_slot WHERE provider = $1 AND host = $2 AND slot >= $3`,
			a.provider, a.host.Key, a.all).Scan(&surplus, &newest); err != nil {
			return err
		}
		if surplus > 0 {
			if _, err := t.Exec(`UPDATE budget_slot SET used = $4, at = $5 WHERE provider = $1 AND host = $2 AND slot < $3 AND at < $5`,
				a.provider, a.host.Key, a.all, a.size, newest); err != nil {
				return err
			}
			if _, err := t.Exec(`DELETE FROM budget_slot WHERE provider = $1 AND host = $2 AND slot >= $3`, a.provider, a.host.Key, a.all); err != nil {
				return err
			}
		}
		_, err := t.Exec(`
			WITH RECURSIVE number (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n + 1 < $3)
			INSERT INTO budget_slot (provider, host, slot, used, at) SELECT $1, $2, n, 0, 0 FROM number WHERE true
			ON CONFLICT (provider, host, slot) DO NOTHING`, a.provider, a.host.Key, a.all)
		return err
	})
	a.slotsMade.Store(err == nil)
	return err
}

// slotState is the state of the slots of a limit.
type slotState struct {
	n              int
	oldest, newest time.Time
	used           int       // number of requests that count now
	since          time.Time // time of the oldest request that counts
}

// readSlots returns the state of the slots at now.
func (a *Allowance) readSlots(ctx context.Context, now time.Time) (slotState, error) {
	var n, used int
	var oldest, newest, since int64
	err := a.s.Read.QueryRowContext(ctx, `
		SELECT count(*), coalesce(min(at), 0), coalesce(max(at), 0),
			coalesce(sum(used) FILTER (WHERE at > $3), 0), coalesce(min(at) FILTER (WHERE at > $3), 0)
		FROM budget_slot WHERE provider = $1 AND host = $2 AND slot < $4`,
		a.provider, a.host.Key, db.Micros(now.Add(-a.host.Limit.Stretch())), a.slots).Scan(&n, &oldest, &newest, &used, &since)
	return slotState{n, db.Moment(oldest), db.Moment(newest), used, db.Moment(since)}, err
}

// State returns the remaining budget: the limit, the quotas and the reported quota. It also
// returns the end of the retry-after, or zero if there is none.
func (a *Allowance) State(ctx context.Context) (b provider.Budget, blockedUntil time.Time, err error) {
	b = provider.Budget{Limit: a.host.Limit, Left: a.host.Limit.Requests}
	d, err := a.readHostState(ctx, a.s.Read)
	if err != nil && !errors.Is(err, errSetBack) {
		return b, blockedUntil, err
	}
	b.Reported = d.reported
	if a.slots > 0 {
		slots, err := a.readSlots(ctx, d.now)
		if err != nil {
			return b, d.blocked, err
		}
		if b.Used = slots.used; b.Used > 0 {
			stretch := a.host.Limit.Stretch()
			b.Left = max(0, b.Limit.Requests-b.Used)
			b.ResetsAt = d.now.Add(min(slots.since.Add(stretch).Sub(d.now), stretch))
		}
	}
	if b.Quotas, err = a.quotas(ctx, d.now); err != nil {
		return b, d.blocked, err
	}
	return b, d.blocked, a.addForecasts(ctx, d.now, &b)
}

// Of returns the state of a host. See Allowance.State.
func Of(ctx context.Context, s *db.DB, p string, host provider.Host) (b provider.Budget, blockedUntil time.Time, err error) {
	return New(s, p, host).State(ctx)
}

func (a *Allowance) quotas(ctx context.Context, now time.Time) ([]provider.QuotaUsed, error) {
	if a.host.Quota == (provider.Quota{}) {
		return nil, nil
	}
	type row struct {
		period         provider.Period
		startsAt, used int64
	}
	rows, err := db.Collect(ctx, a.s.Read, func(r *sql.Rows, q *row) error { return r.Scan(&q.period, &q.startsAt, &q.used) },
		`SELECT period, starts_at, used FROM budget_quota WHERE provider = $1 AND host = $2`, a.provider, a.host.Key)
	if err != nil {
		return nil, err
	}
	var out []provider.QuotaUsed
	for _, p := range a.host.Quota.Periods() {
		begin, end := p.Bounds(now)
		q := provider.QuotaUsed{Period: p, Limit: a.host.Quota.Of(p), ResetsAt: end}
		for _, r := range rows {
			if r.period == p && r.startsAt >= db.Micros(begin) {
				q.Used = r.used
			}
		}
		q.Left = max(0, q.Limit-q.Used)
		out = append(out, q)
	}
	return out, nil
}
