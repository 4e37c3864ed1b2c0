package allowance

import (
	"context"
	"database/sql"
	"time"

	"assay/internal/db"
	"assay/internal/provider"
)

// orders are the wait and the quota that a host has reported and that still hold.
type orders struct {
	now     time.Time
	refusal provider.Refusal // because of a demanded wait, or because nothing is left
	blocked time.Time        // until when no request may be sent; zero: one may
	told    *provider.Told   // nil: nothing
}

// ordered returns the moment, and what the host has reported.
func (a *Allowance) ordered(ctx context.Context, q db.Querier) (o orders, err error) {
	clock := a.s.Dialect.Clock(3)
	type row struct {
		now, blockedAt, blockedUntil, toldAt, resetsAt int64
		told                                           provider.Told
	}
	rows, err := db.Collect(ctx, q, func(r *sql.Rows, o *row) error {
		return r.Scan(&o.now, &o.blockedAt, &o.blockedUntil, &o.told.Limit, &o.told.Left, &o.toldAt, &o.resetsAt)
	}, `
		SELECT n.now, coalesce(h.blocked_at, 0), coalesce(h.blocked_until, 0),
			coalesce(t.told_limit, 0), coalesce(t.told_left, 0), coalesce(t.told_at, 0), coalesce(t.resets_at, 0)
		FROM (SELECT `+clock+` AS now) n
		LEFT JOIN source_host h ON h.source = $1 AND h.host = $2
		LEFT JOIN budget_told t ON t.source = $1 AND t.host = $2`, a.source, a.host.Key, a.s.ClockArg())
	if err != nil {
		return o, err
	}
	r := rows[0]
	o.now = db.Moment(r.now)
	if r.resetsAt > r.now && a.host.Headers != provider.HeadersIgnored {
		o.told = &r.told
		o.told.At, o.told.ResetsAt, o.told.Period = db.Moment(r.toldAt), db.Moment(r.resetsAt), a.host.Headers.Period()
		if o.told.Left <= 0 {
			o.refusal = provider.Refusal{
				Kind: provider.KindBudget, Wait: o.told.ResetsAt.Sub(o.now), Quota: o.told.Period, ResetsAt: o.told.ResetsAt,
			}
		}
	}
	if r.blockedUntil > r.now {
		o.blocked = db.Moment(r.blockedUntil)
		o.refusal = provider.Refusal{Kind: provider.KindRateLimited, Wait: o.blocked.Sub(o.now)}
	}
	ahead := r.now + setBack.Microseconds()
	if !o.blocked.IsZero() && r.blockedAt > ahead || o.told != nil && r.toldAt > ahead {
		err = errSetBack
	}
	return o, err
}

// Tell implements provider.Allowance. Answers that are about one window may come in
// any order, so of those the least counts; it was lowered by what was sent since.
func (a *Allowance) Tell(ctx context.Context, r provider.Rate) error {
	store := a.s.InTx
	if r.Left == 0 {
		store = a.s.InUrgentTx // as an order to wait is
	}
	return store(ctx, func(t *db.Tx) error {
		if err := a.catchUp(t); err != nil {
			return err
		}
		clock := t.Dialect.Clock(3)
		same := `budget_told.resets_at > ` + clock + ` AND abs(excluded.resets_at - budget_told.resets_at) <= $7`
		_, err := t.Exec(`
			INSERT INTO budget_told (source, host, told_limit, told_left, told_at, resets_at)
			VALUES ($1, $2, $4, $5, `+clock+`, `+clock+` + $6)
			ON CONFLICT (source, host) DO UPDATE SET
				told_limit = excluded.told_limit, told_at = excluded.told_at,
				told_left = CASE WHEN `+same+` AND budget_told.told_left < excluded.told_left
					THEN budget_told.told_left ELSE excluded.told_left END,
				resets_at = CASE WHEN `+same+` THEN budget_told.resets_at ELSE excluded.resets_at END`,
			a.source, a.host.Key, a.s.ClockArg(), r.Limit, r.Left, r.Reset.Microseconds(), provider.SameReset.Microseconds())
		return err
	})
}
