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
	PartitionInventory int `placeholder:"N" help:"On PostgreSQL: divide the inventory into N partitions by user, 2 to 64; 1 makes it one table again. No server may run. Absent: leave it as it is."`
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
	Parts    int    `json:"inventoryPartitions,omitempty"` // as requested
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
	r, err := app.Migrate(ctx, cfg.Database, c.PartitionInventory, s.logger(cfg))
	if err != nil {
		return err
	}
	done := migration{Database: cfg.Database.String(), From: r.From, To: r.To, Parts: c.PartitionInventory}
	return s.out.result(done, func(w io.Writer) {
		defer func() {
			if done.Parts > 0 {
				_, _ = fmt.Fprintf(w, "the inventory has %s\n", plural(int64(done.Parts), "partition", "partitions"))
			}
		}()
		if done.From == done.To {
			_, _ = fmt.Fprintf(w, "%s is up to date at schema version %d\n", printable(done.Database), done.To)
			return
		}
		_, _ = fmt.Fprintf(w, "updated %s from schema version %d to %d\n", printable(done.Database), done.From, done.To)
	})
}

func (c *migrateCmd) check(engine config.Engine) error {
	if n := c.PartitionInventory; n < 0 || n > db.MaxPartitions {
		return &usageError{text: fmt.Sprintf("--partition-inventory is %d; use 1 to %d", n, db.MaxPartitions)}
	}
	if c.PartitionInventory > 0 && engine == config.SQLite {
		return &usageError{text: "--partition-inventory needs PostgreSQL; the database is SQLite"}
	}
	return nil
}
