package refresh

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
)

// Register stores an instance with its counter.
func Register(t *db.Tx, i Instance) error {
	endpoints, err := json.Marshal(endpointKeys(i.Endpoints))
	if err != nil {
		return err
	}
	_, err = t.Exec(`
		INSERT INTO instance (owner, version, endpoints, started_at, heartbeat, heartbeat_at, report, modules) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (owner) DO UPDATE SET heartbeat = excluded.heartbeat, heartbeat_at = excluded.heartbeat_at, report = excluded.report`,
		i.Owner, i.Version, string(endpoints), db.Micros(i.StartedAt), i.Heartbeat, db.Micros(t.Now()), i.Report, i.Modules)
	return err
}

// writeHeartbeat increments the counter of an instance and stores its report. It returns
// false if the instance is no longer registered, because others have taken over.
func writeHeartbeat(t *db.Tx, owner, report string, syncTime time.Duration) (bool, error) {
	n, err := t.Exec(`UPDATE instance SET heartbeat = heartbeat + 1, heartbeat_at = $2, report = $3, sync_time = $4 WHERE owner = $1`, owner, db.Micros(t.Now()), report, syncTime.Microseconds())
	return n == 1, err
}

const endSessionsPostgres = `
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = $1 AND datname = current_database() AND usename = current_user AND xact_start IS NOT NULL
	AND pid <> pg_backend_pid() AND NOT EXISTS (SELECT 1 FROM instance WHERE owner = $2 AND heartbeat <> $3)`

// endSessions terminates the open transactions of an instance with an expired lease on
// PostgreSQL. They may hold locks, and a stopped process does not end them. Sessions of other
// database users are not affected.
func endSessions(ctx context.Context, s *db.DB, p Heartbeat) error {
	if s.Dialect == db.SQLite {
		return nil
	}
	_, err := db.Collect(ctx, s.Read, func(r *sql.Rows, ended *bool) error { return r.Scan(ended) },
		endSessionsPostgres, db.SessionName(p.Owner), p.Owner, p.Count)
	return err
}

// removeInstance deletes an instance and releases its claims, if its counter is unchanged.
// NoHeartbeat selects an owner that is not registered. It returns false, and changes nothing,
// if the counter has increased or another process has deleted the instance.
func removeInstance(t *db.Tx, p Heartbeat) (bool, error) {
	n, err := t.Exec(`DELETE FROM instance WHERE owner = $1 AND heartbeat = $2`, p.Owner, p.Count)
	if err != nil {
		return false, err
	}
	if n == 0 {
		if known, err := knowsInstance(t, p.Owner); err != nil || known || p.Count != NoHeartbeat {
			return false, err
		}
	}
	for _, query := range []string{
		`UPDATE fetch_unit SET state = 'pending', token = token + 1 WHERE state = 'running' AND owner = $1`,
		`UPDATE refresh_batch SET state = 'pending', token = token + 1 WHERE state = 'running' AND owner = $1`,
	} {
		if _, err := t.Exec(query, p.Owner); err != nil {
			return false, err
		}
	}
	return true, catalog.RemovePriceWriter(t, p.Owner)
}

func knowsInstance(t *db.Tx, owner string) (known bool, err error) {
	err = t.QueryRow(`SELECT EXISTS (SELECT 1 FROM instance WHERE owner = $1)`, owner).Scan(&known)
	return known, err
}

// heartbeats selects the counters of all instances, and the owners of claims without an
// instance.
const heartbeats = `
SELECT owner, heartbeat, sync_time FROM instance
UNION ALL
SELECT owner, -1, 0 FROM (
	SELECT owner FROM fetch_unit WHERE state = 'running'
	UNION SELECT owner FROM refresh_batch WHERE state IN ('pending', 'running') AND state = 'running'
	UNION SELECT owner FROM price_writer) claimed
WHERE NOT EXISTS (SELECT 1 FROM instance i WHERE i.owner = claimed.owner)`

// readHeartbeats returns the counters of all instances and unregistered claim owners.
func readHeartbeats(ctx context.Context, s *db.DB) ([]Heartbeat, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, p *Heartbeat) error {
		var micros int64
		err := r.Scan(&p.Owner, &p.Count, &micros)
		p.SyncTime = time.Duration(micros) * time.Microsecond
		return err
	}, heartbeats)
}

// Instances returns all registered instances, the oldest first.
func Instances(ctx context.Context, s *db.DB) ([]Instance, error) {
	return instances(ctx, s.Read)
}

func instances(ctx context.Context, q db.Querier) ([]Instance, error) {
	return db.Collect(ctx, q, func(r *sql.Rows, i *Instance) error {
		var started, heartbeatAt int64
		var endpoints sql.RawBytes
		if err := r.Scan(&i.Owner, &i.Version, &endpoints, &started, &i.Heartbeat, &heartbeatAt, &i.Report, &i.Modules); err != nil {
			return err
		}
		i.StartedAt, i.HeartbeatAt = db.Moment(started), db.Moment(heartbeatAt)
		var keys []string
		err := json.Unmarshal(endpoints, &keys)
		for _, key := range keys {
			provider, file, _ := strings.Cut(key, "/")
			i.Endpoints = append(i.Endpoints, Endpoint{Provider: provider, File: file})
		}
		return err
	}, `SELECT owner, version, endpoints, started_at, heartbeat, heartbeat_at, report, modules FROM instance ORDER BY started_at, owner`)
}

// endpointKeys encodes endpoints as text. Names of providers contain no slash. The result is
// never nil.
func endpointKeys(endpoints []Endpoint) []string {
	keys := make([]string, len(endpoints))
	for i, a := range endpoints {
		keys[i] = a.Provider + "/" + a.File
	}
	return keys
}

// abandoned selects the open units with an endpoint that is not in the list $1.
const abandoned = `state IN ('pending', 'running') AND provider || '/' || file NOT IN `

// abandonUnits fails the open units whose provider no instance has configured, so that their
// jobs continue. Without any instance it does nothing, because the next instance may have the
// provider.
func abandonUnits(t *db.Tx) error {
	all, err := instances(t.Context(), t)
	if err != nil || len(all) == 0 {
		return err
	}
	var endpoints []Endpoint
	for _, i := range all {
		endpoints = append(endpoints, i.Endpoints...)
	}
	list := t.Dialect.Texts(1)
	for _, query := range []string{
		`UPDATE refresh_job SET last_error = (
			SELECT min(provider) || ': no longer configured' FROM fetch_unit u WHERE u.job_id = refresh_job.id AND ` + abandoned + list + `)
		 WHERE state IN ('queued', 'running') AND id IN (SELECT job_id FROM fetch_unit WHERE ` + abandoned + list + `)`,
		`UPDATE fetch_unit SET state = 'failed', token = token + 1, error = provider || ': no longer configured' WHERE ` + abandoned + list,
	} {
		if _, err := t.Exec(query, t.Dialect.EncodeTexts(endpointKeys(endpoints))); err != nil {
			return err
		}
	}
	return nil
}
