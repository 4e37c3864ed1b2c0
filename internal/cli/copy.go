package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"assay/internal/config"
	"assay/internal/db"
	"assay/internal/refresh"
)

// copyCmd copies a database to another one.
type copyCmd struct {
	From string `required:"" placeholder:"URL" help:"Database to copy, in the format of DATABASE_URL: sqlite:PATH or postgres://... No server may use it."`
	To   string `required:"" placeholder:"URL" help:"Database to fill. It must be empty. An SQLite file is created."`
}

func (*copyCmd) examples() []example {
	return []example{
		{"copy --from sqlite:data/assay.db --to postgres://assay@db.internal/assay", "move from SQLite to PostgreSQL; PGPASSWORD or ~/.pgpass keeps the password off the command line"},
		{"copy --from postgres://assay@db.internal/assay --to sqlite:copy/assay.db", "the reverse, for example to inspect the data on a laptop"},
	}
}

// copyResult is the result that --json prints.
type copyResult struct {
	From    string         `json:"from"`
	To      string         `json:"to"`
	Rows    int64          `json:"rows"`
	Seconds float64        `json:"seconds"`
	Tables  []db.TableRows `json:"tables"`
}

func (c *copyCmd) Run(ctx context.Context, s *session) error {
	from, err := copiedDatabase("--from", c.From)
	if err != nil {
		return err
	}
	to, err := copiedDatabase("--to", c.To)
	if err != nil {
		return err
	}
	if from.Engine == config.SQLite {
		if _, err := os.Stat(from.Path); err != nil {
			return usageOfFile(err)
		}
	}
	cfg, err := config.LoadDatabase(s.options(nil)) // reads DATABASE_WAIT
	if err != nil {
		return err
	}
	if err := s.await(ctx, cfg, from); err != nil {
		return fmt.Errorf("database to copy: %w", err)
	}
	if err := s.await(ctx, cfg, to); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	began := s.Now()
	p := s.newProgress()
	tables, err := db.Copy(ctx, db.CopyOptions{From: storeOptions(from), To: storeOptions(to), Lease: refresh.Lease, OnProgress: func(c db.CopyProgress) {
		what := "copy"
		if c.Verifying {
			what = "verify"
		}
		p.show(fmt.Sprintf("%-6s %-18s", what, c.Table), c.Done, c.Total, what, fmt.Sprintf("%s: %s of %s rows, table %s", what, count(c.Done), count(c.Total), c.Table))
	}})
	p.end()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		s.printf("interrupted: the target is still empty")
		return fmt.Errorf("%w: %w", context.Canceled, errReported)
	}
	if errors.Is(err, db.ErrCommitUnknown) {
		return fmt.Errorf("%w: run the command again. If it then reports that the target is not empty, the copy is complete", err)
	}
	if err != nil {
		return err
	}
	done := copyResult{From: from.String(), To: to.String(), Tables: tables, Seconds: s.Now().Sub(began).Seconds()}
	for _, t := range tables {
		done.Rows += t.Rows
	}
	return s.out.result(done, func(w io.Writer) {
		rows := [][]string{{"TABLE", "ROWS"}}
		for _, t := range tables {
			rows = append(rows, []string{t.Table, count(t.Rows)})
		}
		table(w, rows)
		_, _ = fmt.Fprintf(w, "copied %s to %s: %s rows in %.1f s; counts and sums are equal\n",
			printable(done.From), printable(done.To), count(done.Rows), done.Seconds)
	})
}

// copiedDatabase parses the database URL given in a flag.
func copiedDatabase(flag, value string) (config.Database, error) {
	d, err := config.ParseDatabase(value)
	if err != nil {
		return d, &usageError{text: flag + ": " + err.Error()}
	}
	return d, nil
}

func storeOptions(d config.Database) db.Options {
	return db.Options{Path: d.Path, URL: d.URL.Reveal()}
}
