package allowance

import (
	"context"
	"database/sql"
	"time"

	"assay/internal/db"
	"assay/internal/provider"
)

// demands are the wait and the quota that a host has reported and that are in force.
type demands struct {
	now      time.Time
	refusal  provider.Refusal        // set while a wait lasts or no quota is left
	blocked  time.Time               // when requests may be sent again; zero: now
	reported *provider.ReportedQuota // nil: none
}

// demanded returns the current time and what the host demands.
func (a *Allowance) demanded(ctx context.Context, q db.Querier) (o demands, err error) {
	clock := a.s.Dialect.Clock(3)
	type row struct {
		now, blockedAt, blockedUntil, reportedAt, resetsAt int64
		reported                                           provider.ReportedQuota
	}
	rows, err := db.Collect(ctx, q, func(r *sql.Rows, o *row) error {
		return r.Scan(&o.now, &o.blockedAt, &o.blockedUntil, &o.reported.Limit, &o.reported.Left, &o.reportedAt, &o.resetsAt)
	}, `
		SELECT n.now, coalesce(h.blocked_at, 0), coalesce(h.blocked_until, 0),
			coalesce(t.reported_limit, 0), coalesce(t.reported_left, 0), coalesce(t.reported_at, 0), coalesce(t.resets_at, 0)
		FROM (SELECT `+clock+` AS now) n
		LEFT JOIN provider_host h ON h.provider = $1 AND h.host = $2
		LEFT JOIN reported_quota t ON t.provider = $1 AND t.host = $2`, a.provider, a.host.Key, a.s.ClockArg())
	if err != nil {
		return o, err
	}
	r := rows[0]
	o.now = db.Moment(r.now)
	if r.resetsAt > r.now && a.host.Headers != provider.HeadersIgnored {
		o.reported = &r.reported
		o.reported.At, o.reported.ResetsAt, o.reported.Period = db.Moment(r.reportedAt), db.Moment(r.resetsAt), a.host.Headers.Period()
		if o.reported.Left <= 0 {
			o.refusal = provider.Refusal{
				Kind: provider.KindBudget, Wait: o.reported.ResetsAt.Sub(o.now), Quota: o.reported.Period, ResetsAt: o.reported.ResetsAt,
			}
		}
	}
	if r.blockedUntil > r.now {
		o.blocked = db.Moment(r.blockedUntil)
		o.refusal = provider.Refusal{Kind: provider.KindRateLimited, Wait: o.blocked.Sub(o.now)}
	}
	ahead := r.now + setBack.Microseconds()
	if !o.blocked.IsZero() && r.blockedAt > ahead || o.reported != nil && r.reportedAt > ahead {
		err = errSetBack
	}
	return o, err
}

// StoreReported implements provider.Allowance. Responses of one window may arrive in any
// order, so the least remaining quota counts. Requests sent since have lowered it.
func (a *Allowance) StoreReported(ctx context.Context, r provider.Rate) error {
	store := a.s.InTx
	if r.Left == 0 {
		store = a.s.InUrgentTx // urgent, like a retry-after
	}
	return store(ctx, func(t *db.Tx) error {
		if err := a.catchUp(t); err != nil {
			return err
		}
		clock := t.Dialect.Clock(3)
		same := `reported_quota.resets_at > ` + clock + ` AND abs(excluded.resets_at - reported_quota.resets_at) <= $7`
		_, err := t.Exec(`
			INSERT INTO reported_quota (provider, host, reported_limit, reported_left, reported_at, resets_at)
			VALUES ($1, $2, $4, $5, `+clock+`, `+clock+` + $6)
			ON CONFLICT (provider, host) DO UPDATE SET
				reported_limit = excluded.reported_limit, reported_at = excluded.reported_at,
				reported_left = CASE WHEN `+same+` AND reported_quota.reported_left < excluded.reported_left
					THEN reported_quota.reported_left ELSE excluded.reported_left END,
				resets_at = CASE WHEN `+same+` THEN reported_quota.resets_at ELSE excluded.resets_at END`,
			a.provider, a.host.Key, a.s.ClockArg(), r.Limit, r.Left, r.Reset.Microseconds(), provider.SameReset.Microseconds())
		return err
	})
}
