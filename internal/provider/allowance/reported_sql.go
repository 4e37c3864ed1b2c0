package allowance

import (
	"context"
	"database/sql"
	"time"

	"assay/internal/db"
	"assay/internal/provider"
)

// hostState is the current wait and the current reported quota of a host.
type hostState struct {
	now      time.Time
	refusal  provider.Refusal        // set during a wait, or when the quota is exhausted
	blocked  time.Time               // end of the wait; zero: none
	reported *provider.ReportedQuota // nil: none
}

// readHostState returns the current time and the state of the host.
func (a *Allowance) readHostState(ctx context.Context, q db.Querier) (d hostState, err error) {
	clock := a.s.Dialect.Clock(3)
	type row struct {
		now, blockedAt, blockedUntil, reportedAt, resetsAt int64
		reported                                           provider.ReportedQuota
	}
	rows, err := db.Collect(ctx, q, func(r *sql.Rows, d *row) error {
		return r.Scan(&d.now, &d.blockedAt, &d.blockedUntil, &d.reported.Limit, &d.reported.Left, &d.reportedAt, &d.resetsAt)
	}, `
		SELECT n.now, coalesce(h.blocked_at, 0), coalesce(h.blocked_until, 0),
			coalesce(t.reported_limit, 0), coalesce(t.reported_left, 0), coalesce(t.reported_at, 0), coalesce(t.resets_at, 0)
		FROM (SELECT `+clock+` AS now) n
		LEFT JOIN provider_host h ON h.provider = $1 AND h.host = $2
		LEFT JOIN reported_quota t ON t.provider = $1 AND t.host = $2`, a.provider, a.host.Key, a.s.ClockArg())
	if err != nil {
		return d, err
	}
	r := rows[0]
	d.now = db.Moment(r.now)
	if r.resetsAt > r.now && a.host.Headers != provider.HeadersIgnored {
		d.reported = &r.reported
		d.reported.At, d.reported.ResetsAt, d.reported.Period = db.Moment(r.reportedAt), db.Moment(r.resetsAt), a.host.Headers.Period()
		if d.reported.Left <= 0 {
			d.refusal = provider.Refusal{
				Kind: provider.KindBudget, Wait: d.reported.ResetsAt.Sub(d.now), Quota: d.reported.Period, ResetsAt: d.reported.ResetsAt,
			}
		}
	}
	if r.blockedUntil > r.now {
		d.blocked = db.Moment(r.blockedUntil)
		d.refusal = provider.Refusal{Kind: provider.KindRateLimited, Wait: d.blocked.Sub(d.now)}
	}
	ahead := r.now + maxAhead.Microseconds()
	if !d.blocked.IsZero() && r.blockedAt > ahead || d.reported != nil && r.reportedAt > ahead {
		err = errSetBack
	}
	return d, err
}

// StoreReported implements provider.Allowance. Responses for one window may arrive in any
// order, so the smallest remaining quota is kept. The stored quota also counts the requests
// sent since the last response.
func (a *Allowance) StoreReported(ctx context.Context, r provider.Rate) error {
	store := a.s.InTx
	if r.Left == 0 {
		store = a.s.InUrgentTx // urgent, like a retry-after
	}
	return store(ctx, func(t *db.Tx) error {
		if err := a.resetFutureTimes(t); err != nil {
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

// DropReported deletes the reported quotas of a provider.
func DropReported(t *db.Tx, provider string) error {
	_, err := t.Exec(`DELETE FROM reported_quota WHERE provider = $1`, provider)
	return err
}
