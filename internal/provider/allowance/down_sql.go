package allowance

import (
	"context"
	"database/sql"

	"assay/internal/db"
	"assay/internal/event"
)

// Down implements provider.Allowance. Only the first process that stores the state adds an
// event.
func (a *Allowance) Down(ctx context.Context, why string) error {
	return a.s.InTx(ctx, func(t *db.Tx) error {
		n, err := t.Exec(`INSERT INTO provider_down (provider, host, since) VALUES ($1, $2, $3) ON CONFLICT (provider, host) DO NOTHING`,
			a.provider, a.host.Key, db.Micros(t.Now()))
		if err != nil || n == 0 {
			return err
		}
		return event.Add(t, event.ProviderDown{Provider: a.provider, Why: event.WhyBreaker, Host: a.host.Key, Detail: why})
	})
}

// Up implements provider.Allowance. Only the first process that removes the state adds an
// event.
func (a *Allowance) Up(ctx context.Context) error {
	down, err := db.Collect(ctx, a.s.Read, func(r *sql.Rows, host *string) error { return r.Scan(host) },
		`SELECT host FROM provider_down WHERE provider = $1 AND host = $2`, a.provider, a.host.Key)
	if err != nil || len(down) == 0 {
		return err
	}
	return a.s.InTx(ctx, func(t *db.Tx) error {
		n, err := t.Exec(`DELETE FROM provider_down WHERE provider = $1 AND host = $2`, a.provider, a.host.Key)
		if err != nil || n == 0 {
			return err
		}
		return event.Add(t, event.ProviderUp{Provider: a.provider, Why: event.WhyBreaker, Host: a.host.Key, Detail: "the host responds again"})
	})
}
