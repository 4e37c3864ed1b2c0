package allowance

import (
	"context"
	"database/sql"

	"assay/internal/db"
	"assay/internal/event"
)

// Down implements provider.Allowance. Of all processes that find the host down, the
// first tells of it.
func (a *Allowance) Down(ctx context.Context, why string) error {
	return a.s.InTx(ctx, func(t *db.Tx) error {
		n, err := t.Exec(`INSERT INTO source_down (source, host, since) VALUES ($1, $2, $3) ON CONFLICT (source, host) DO NOTHING`,
			a.source, a.host.Key, db.Micros(t.Now()))
		if err != nil || n == 0 {
			return err
		}
		return event.Add(t, event.ProviderDown{Source: a.source, Why: event.WhyBreaker, Host: a.host.Key, Detail: why})
	})
}

// Up implements provider.Allowance.
func (a *Allowance) Up(ctx context.Context) error {
	down, err := db.Collect(ctx, a.s.Read, func(r *sql.Rows, host *string) error { return r.Scan(host) },
		`SELECT host FROM source_down WHERE source = $1 AND host = $2`, a.source, a.host.Key)
	if err != nil || len(down) == 0 {
		return err
	}
	return a.s.InTx(ctx, func(t *db.Tx) error {
		n, err := t.Exec(`DELETE FROM source_down WHERE source = $1 AND host = $2`, a.source, a.host.Key)
		if err != nil || n == 0 {
			return err
		}
		return event.Add(t, event.ProviderUp{Source: a.source, Why: event.WhyBreaker, Host: a.host.Key, Detail: "it answers again"})
	})
}
