package cli

import (
	"context"
	"fmt"
	"io"

	"assay/internal/app"
	"assay/internal/config"
	"assay/internal/db"
)

// migrateCmd creates or updates the tables of the database.
type migrateCmd struct {
	PartitionInventory *int `placeholder:"N" help:"On PostgreSQL: divide the inventory into N partitions by user, 2 to 64; 1 makes it one table again. No server may run. Absent: leave it as it is."`
}

func (*migrateCmd) examples() []example {
	return []example{
		{"migrate", "update the tables before you start servers with DATABASE_MIGRATE=off"},
		{"migrate --partition-inventory 16", "divide a large inventory on PostgreSQL; stop every server first"},
	}
}

// migration is the result that --json prints.
type migration struct {
	Database string `json:"database"`
	From     int64  `json:"fromVersion"` // 0: new database
	To       int64  `json:"toVersion"`
	Parts    int    `json:"inventoryPartitions,omitempty"` // as requested; 0: not requested
}

func (c *migrateCmd) Run(ctx context.Context, s *session) error {
	cfg, err := config.LoadDatabase(s.options(nil))
	if err != nil {
		return err
	}
	if err := c.check(cfg.Database.Engine); err != nil {
		return err
	}
	if err := s.await(ctx, cfg, cfg.Database); err != nil {
		return err
	}
	var parts int
	if c.PartitionInventory != nil {
		parts = *c.PartitionInventory
	}
	r, err := app.Migrate(ctx, cfg.Database, parts, s.logger(cfg))
	if err != nil {
		return err
	}
	done := migration{Database: cfg.Database.String(), From: r.From, To: r.To, Parts: parts}
	return s.out.result(done, func(w io.Writer) {
		if done.From == done.To {
			_, _ = fmt.Fprintf(w, "%s is up to date at schema version %d\n", printable(done.Database), done.To)
		} else {
			_, _ = fmt.Fprintf(w, "updated %s from schema version %d to %d\n", printable(done.Database), done.From, done.To)
		}
		if done.Parts > 0 {
			_, _ = fmt.Fprintf(w, "the inventory has %s\n", plural(int64(done.Parts), "partition", "partitions"))
		}
	})
}

// check rejects a number of partitions that the database cannot have.
func (c *migrateCmd) check(engine config.Engine) error {
	if c.PartitionInventory == nil {
		return nil
	}
	if n := *c.PartitionInventory; n < 1 || n > db.MaxPartitions {
		return &usageError{text: fmt.Sprintf("--partition-inventory is %d; use 1 to %d", n, db.MaxPartitions)}
	}
	if engine == config.SQLite {
		return &usageError{text: "--partition-inventory needs PostgreSQL; the database is SQLite"}
	}
	return nil
}
