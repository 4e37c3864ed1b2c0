package cli

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/pgtest"
)

// run runs a command that does not use a server.
func run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = Program{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &err, Now: time.Now}.Run(ctx)
	return code, out.String(), err.String()
}

// databaseWithNames creates an SQLite database with items.
func databaseWithNames(t *testing.T, names ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "assay.db")
	s, err := db.Open(t.Context(), db.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	err = s.InTx(t.Context(), func(tx *db.Tx) error {
		var keys []catalog.Key
		for _, name := range names {
			keys = append(keys, catalog.Key{AppID: catalog.CS2, Name: name})
		}
		_, err := catalog.EnsureItems(tx, catalog.CS2, keys)
		return err
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCopy_ToPostgreSQLAndBack(t *testing.T) {
	from := databaseWithNames(t, "★ Karambit", "a\nb")
	server := pgtest.Shared(t).NewDatabase(t)
	back := filepath.Join(t.TempDir(), "back.db")

	code, out, progress := run(t.Context(), "copy", "--from", "sqlite:"+from, "--to", server)
	if code != exitOK || !strings.Contains(out, "item                 2\n") ||
		!strings.Contains(out, ": 2 rows in ") || !strings.Contains(out, "; counts and sums are equal\n") {
		t.Errorf("copy: got exit code %d, want 0 and 2 equal rows: %s%s", code, out, progress)
	}
	if !strings.HasPrefix(progress, "copy: 0 of 2 rows, table ") || !strings.Contains(progress, "verify: 0 of 2 rows, table ") {
		t.Errorf("got the progress %s, want lines for copy and verify", progress)
	}
	code, out, progress = run(t.Context(), "copy", "--from", server, "--to", "sqlite:"+back, "--json")
	var done copyResult
	if err := json.Unmarshal([]byte(out), &done); err != nil || code != exitOK {
		t.Fatalf("copy --json: got exit code %d, error %v, want 0: %s%s", code, err, out, progress)
	}
	if done.Rows != 2 || done.To != "sqlite:"+back || len(done.Tables) < 15 {
		t.Errorf("got the report %+v, want 2 rows and at least 15 tables", done)
	}

	code, _, progress = run(t.Context(), "copy", "--from", "sqlite:"+from, "--to", server)
	if code != exitRefused || !strings.Contains(progress, "the target is not empty: choose a new database, or empty this one; rows: item 2\n") {
		t.Errorf("copy to a filled target: got exit code %d, want a refusal with the row counts: %s", code, progress)
	}
}

func TestCopy_ExitCodes(t *testing.T) {
	from := "sqlite:" + databaseWithNames(t, "A")
	to := "sqlite:" + filepath.Join(t.TempDir(), "to.db")
	for name, c := range map[string]struct {
		from, to string
		code     int
		reports  string
	}{
		"unknown scheme":   {"mysql://canary@db/x", to, exitUsage, "--from: is not a database URL; use sqlite:PATH or postgres://user@host/name"},
		"missing file":     {"sqlite:" + filepath.Join(t.TempDir(), "none.db"), to, exitUsage, "no such file"},
		"same database":    {from, from, exitRefused, "the same database"},
		"no server":        {from, "postgres://u:canary@127.0.0.1:1/x", exitUnreachable, "target: "},
		"invalid pool":     {from, "postgres://u:canary@127.0.0.1:1/x?pool_max_conns=1", exitFailed, "pool_max_conns"},
		"no path":          {from, "sqlite:", exitUsage, "--to: is not a database URL"},
		"empty target":     {from, "", exitUsage, "--to: is not a database URL"},
		"memory database":  {from, "sqlite::memory:", exitUsage, "--to: "},
		"no source server": {"postgres://u:canary@127.0.0.1:1/x", to, exitUnreachable, "database to copy: "},
	} {
		code, out, errs := run(t.Context(), "copy", "--from", c.from, "--to", c.to, "--database-wait", "0s")
		if code != c.code || out != "" || !strings.Contains(errs, c.reports) || strings.Contains(errs, "canary") {
			t.Errorf("%s: got exit code %d, want %d with %q and without secrets: %s%s", name, code, c.code, c.reports, out, errs)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, errs := run(ctx, "copy", "--from", from, "--to", to); code != exitInterrupted || !strings.Contains(errs, "interrupted: the target is still empty") {
		t.Errorf("interrupted copy: got exit code %d, want exitInterrupted and an empty target: %s", code, errs)
	}
}
