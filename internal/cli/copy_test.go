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

// run runs a command that needs no server.
func run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = Program{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &err, Now: time.Now}.Run(ctx)
	return code, out.String(), err.String()
}

// databaseWithNames makes an SQLite database that has some items.
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

func TestCopy_ToPostgreSQLAndBackTellsWhatItDid(t *testing.T) {
	from := databaseWithNames(t, "★ Karambit", "a\nb")
	server := pgtest.Shared(t).NewDatabase(t)
	back := filepath.Join(t.TempDir(), "back.db")

	code, out, progress := run(t.Context(), "copy", "--from", "sqlite:"+from, "--to", server)
	if code != exitOK || !strings.Contains(out, "item                 2\n") ||
		!strings.Contains(out, ": 2 rows in ") || !strings.Contains(out, "; counts and sums are the same on both sides\n") {
		t.Errorf("exit %d, said %s%s", code, out, progress)
	}
	if !strings.HasPrefix(progress, "copy: 0 of 2 rows, at ") || !strings.Contains(progress, "verify: 0 of 2 rows, at ") {
		t.Errorf("progress: %s", progress)
	}
	code, out, progress = run(t.Context(), "copy", "--from", server, "--to", "sqlite:"+back, "--json")
	var done copyResult
	if err := json.Unmarshal([]byte(out), &done); err != nil || code != exitOK {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, progress)
	}
	if done.Rows != 2 || done.To != "sqlite:"+back || len(done.Tables) < 15 {
		t.Errorf("did %+v", done)
	}

	code, _, progress = run(t.Context(), "copy", "--from", "sqlite:"+from, "--to", server)
	if code != exitRefused || !strings.Contains(progress, "the target is not empty: choose a new database, or empty this one; rows: item 2\n") {
		t.Errorf("exit %d, said %s", code, progress)
	}
}

func TestCopy_EndsWithTheCodeOfWhatIsWrong(t *testing.T) {
	from := "sqlite:" + databaseWithNames(t, "A")
	to := "sqlite:" + filepath.Join(t.TempDir(), "to.db")
	for name, c := range map[string]struct {
		from, to string
		code     int
		says     string
	}{
		"no database":       {"mysql://canary@db/x", to, exitUsage, "--from: is not a database; write sqlite:PATH or postgres://user@host/name"},
		"no file":           {"sqlite:" + filepath.Join(t.TempDir(), "none.db"), to, exitUsage, "no such file"},
		"itself":            {from, from, exitRefused, "the same database"},
		"no server answers": {from, "postgres://u:canary@127.0.0.1:1/x", exitUnreachable, "target: "},
		"a bad pool":        {from, "postgres://u:canary@127.0.0.1:1/x?pool_max_conns=1", exitFailed, "pool_max_conns"},
		"another tree":      {from, "sqlite:", exitUsage, "--to: is not a database"},
		"without an end":    {from, "", exitUsage, "--to: is not a database"},
		"all in memory":     {from, "sqlite::memory:", exitUsage, "--to: "},
		"a server's alone":  {"postgres://u:canary@127.0.0.1:1/x", to, exitUnreachable, "provider: "},
	} {
		code, out, said := run(t.Context(), "copy", "--from", c.from, "--to", c.to, "--database-wait", "0s")
		if code != c.code || out != "" || !strings.Contains(said, c.says) || strings.Contains(said, "canary") {
			t.Errorf("%s: exit %d, said %s%s", name, code, out, said)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, said := run(ctx, "copy", "--from", from, "--to", to); code != exitInterrupted || !strings.Contains(said, "interrupted; the target is still empty") {
		t.Errorf("interrupted: exit %d, said %s", code, said)
	}
}
