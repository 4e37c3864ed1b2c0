package view

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/refresh"
)

// stageTimes holds the ends of the stages of a job. A zero time means that the stage has not ended.
type stageTimes struct{ planned, fetched, estimated time.Time }

// readStageTimes returns the ends of the stages of a job.
func readStageTimes(ctx context.Context, s *db.DB, job int64) (t stageTimes, err error) {
	var planned, fetched, estimated int64
	_, err = db.Found(s.Read.QueryRowContext(ctx, `SELECT started_at, fetched_at, estimated_at FROM refresh_job WHERE id = $1`, job).
		Scan(&planned, &fetched, &estimated))
	return stageTimes{db.Moment(planned), db.Moment(fetched), db.Moment(estimated)}, err
}

// timedUnit is a fetch unit with the times of its last claim.
type timedUnit struct {
	provider, file           string
	state                    refresh.UnitState
	startedAt, fetchedAt     time.Time // zero: not claimed, or not ended
	notBefore                time.Time
	requests, bytes, waiting int64 // waiting: number of deferred names
	detached                 bool
	errorKind, err           string
}

// readTimedUnits returns the units of a job, sorted by provider and start. It omits the units of the
// background fetch.
func readTimedUnits(ctx context.Context, s *db.DB, job int64) ([]timedUnit, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, u *timedUnit) error {
		var started, fetched, notBefore, detached int64
		err := r.Scan(&u.provider, &u.file, &u.state, &started, &fetched, &notBefore, &u.requests, &u.bytes, &u.waiting, &detached, &u.errorKind, &u.err)
		u.startedAt, u.fetchedAt, u.notBefore, u.detached = db.Moment(started), db.Moment(fetched), db.Moment(notBefore), detached != 0
		return err
	}, `SELECT provider, file, state, started_at, fetched_at, not_before, requests + CASE WHEN state = 'running' THEN 0 ELSE reserved END, bytes,
			CASE WHEN state = 'deferred' THEN size ELSE 0 END, detached, error_kind, error
		FROM fetch_unit WHERE job_id = $1 AND detached <> `+refresh.DetachedBackgroundSQL+` ORDER BY provider, started_at, id`, job)
}

// breakerChange is the opening or closing of the circuit breaker of a provider's host.
type breakerChange struct {
	at             time.Time
	provider, host string
	open           bool
	detail         string
}

// readBreakerChanges returns the changes of circuit breakers up to a time, oldest first. It
// reads the newest events only.
func readBreakerChanges(ctx context.Context, s *db.DB, until time.Time) ([]breakerChange, error) {
	const most = 1000
	all, err := db.Collect(ctx, s.Read, func(r *sql.Rows, c *breakerChange) error {
		var at int64
		var kind event.Kind
		var data string
		if err := r.Scan(&at, &kind, &data); err != nil {
			return err
		}
		var d struct{ Provider, Host, Why, Detail string }
		if err := json.Unmarshal([]byte(data), &d); err != nil {
			return err
		}
		*c = breakerChange{at: db.Moment(at), provider: d.Provider, host: d.Host, open: kind == event.WentDown, detail: d.Detail}
		if d.Why != event.WhyBreaker {
			c.provider = "" // not caused by a breaker; removed below
		}
		return nil
	}, `SELECT at, kind, data FROM (
			SELECT id, at, kind, data FROM event
			WHERE kind NOT IN ('price.changed', 'listing.sold', 'listing.cancelled', 'listing.expired', 'trade.completed', 'trade.reversed', 'trade.settled')
			AND kind IN ('provider.down', 'provider.up') AND at <= $1 ORDER BY id DESC LIMIT $2) e ORDER BY id`, db.Micros(until), most)
	out := all[:0]
	for _, c := range all {
		if c.provider != "" {
			out = append(out, c)
		}
	}
	return out, err
}
