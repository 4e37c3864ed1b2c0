package cli

import (
	"context"
	"fmt"
	"io"

	"assay/internal/app"
	"assay/internal/config"
)

// migrateCmd creates or updates the tables of the database.
type migrateCmd struct{}

func (*migrateCmd) examples() []example {
	return []example{
		{"migrate", "update the tables before you start servers with DATABASE_MIGRATE=off"},
	}
}

// migration is the result that --json prints.
type migration struct {
	Database string `json:"database"`
	From     int64  `json:"fromVersion"` // 0: new database
	To       int64  `json:"toVersion"`
}

func (c *migrateCmd) Run(ctx context.Context, s *session) error {
	cfg, err := config.LoadDatabase(s.options(nil))
	if err != nil {
		return err
	}
	if err := s.await(ctx, cfg, cfg.Database); err != nil {
		return err
	}
	r, err := app.Migrate(ctx, cfg.Database, s.logger(cfg))
	if err != nil {
		return err
	}
	done := migration{Database: cfg.Database.String(), From: r.From, To: r.To}
	return s.out.result(done, func(w io.Writer) {
		if done.From == done.To {
			_, _ = fmt.Fprintf(w, "%s is up to date at schema version %d\n", printable(done.Database), done.To)
			return
		}
		_, _ = fmt.Fprintf(w, "updated %s from schema version %d to %d\n", printable(done.Database), done.From, done.To)
	})
}
