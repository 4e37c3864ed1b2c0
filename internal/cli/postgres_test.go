package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"assay/internal/pgtest"
)

// runOn runs a command with the given database and a new data directory.
func runOn(t *testing.T, url string, args ...string) (code int, out string) {
	t.Helper()
	code, stdout, stderr := run(t.Context(), append(args, "--data-dir", t.TempDir(), "--database-url", url)...)
	return code, stdout + stderr
}

func TestMigrate_ReportsVersions(t *testing.T) {
	postgres := pgtest.Shared(t).NewDatabase(t) + "&pool_max_conns=4"
	for _, url := range []string{postgres, "sqlite:" + filepath.Join(t.TempDir(), "assay.db")} {
		if code, out := runOn(t, url, "migrate"); code != exitOK || !strings.Contains(out, " from schema version 0 to ") {
			t.Errorf("empty database: got exit code %d, want 0 and a migration from version 0: %s", code, out)
		}
		if code, out := runOn(t, url, "migrate"); code != exitOK || !strings.Contains(out, " is up to date at schema version ") {
			t.Errorf("second call: got exit code %d, want 0 and a database that is up to date: %s", code, out)
		}
		if code, out := runOn(t, url, "migrate", "--json"); code != exitOK || !strings.Contains(out, `"fromVersion":`) {
			t.Errorf("migrate --json: got exit code %d, want 0 and fromVersion: %s", code, out)
		}
	}
}

func TestMigrate_PartitionsTheInventory(t *testing.T) {
	postgres := pgtest.Shared(t).NewDatabase(t) + "&pool_max_conns=4"
	for _, c := range []struct{ parts, message string }{
		{"4", "the inventory has 4 partitions"}, {"4", "the inventory has 4 partitions"}, {"1", "the inventory has 1 partition\n"},
	} {
		if code, out := runOn(t, postgres, "migrate", "--partition-inventory", c.parts); code != exitOK || !strings.Contains(out, c.message) {
			t.Errorf("%s partitions: got exit code %d, want 0 and %q: %s", c.parts, code, c.message, out)
		}
	}
	if code, out := runOn(t, postgres, "migrate", "--partition-inventory=8", "--json"); code != exitOK || !strings.Contains(out, `"inventoryPartitions":8`) {
		t.Errorf("8 partitions with --json: got exit code %d, want 0 and inventoryPartitions: %s", code, out)
	}
	for _, parts := range []string{"65", "0", "-1"} {
		if code, out := runOn(t, postgres, "migrate", "--partition-inventory="+parts); code != exitUsage || !strings.Contains(out, "use 1 to 64") {
			t.Errorf("%s partitions: got exit code %d, want %d: %s", parts, code, exitUsage, out)
		}
	}
	sqlite := "sqlite:" + filepath.Join(t.TempDir(), "assay.db")
	if code, out := runOn(t, sqlite, "migrate", "--partition-inventory=4"); code != exitUsage || !strings.Contains(out, "needs PostgreSQL") {
		t.Errorf("SQLite: got exit code %d, want %d: %s", code, exitUsage, out)
	}
}

func TestServe_RejectsOldSchemaWithoutMigration(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t) + "&pool_max_conns=4"
	secret := strings.Repeat("s", 40)
	var reported bytes.Buffer
	code := Program{
		Args:  []string{"serve", "--listen-addr", "127.0.0.1:0", "--database-migrate", "off", "--data-dir", t.TempDir()},
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &reported, Now: time.Now,
		Environ: []string{
			"DATABASE_URL=" + url, "MARKET_PRICE_SYNC_SECRET=m" + secret, "PLATFORM_API_TOKEN=p" + secret, "ADMIN_API_TOKEN=a" + secret,
			"WALLET_LEDGER_KEY=" + strings.Repeat("ab", 32),
		},
	}.Run(t.Context())
	if code == exitOK || !strings.Contains(reported.String(), "run `assay migrate`") {
		t.Errorf("server on an empty database: got exit code %d, want a failure with a hint to assay migrate: %s", code, reported.String())
	}
}

func TestServe_WithoutSecretsDoesNotChangePostgreSQL(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t)
	if code, out := runOn(t, url, "serve", "--listen-addr", "127.0.0.1:0"); code != exitUsage || strings.Count(out, "is required on PostgreSQL") != 4 {
		t.Errorf("server without secrets: got exit code %d, want a usage error for each of 4 secrets: %s", code, out)
	}
	var tables int
	if err := connect(t, url).QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`).Scan(&tables); err != nil || tables != 0 {
		t.Errorf("after the failed start: got %d tables, error %v, want none", tables, err)
	}
}

func TestBackup_RestoresPostgreSQL(t *testing.T) {
	server := pgtest.Shared(t)
	from, to := server.NewDatabase(t)+"&pool_max_conns=4", server.NewDatabase(t)
	if code, _, reported := run(t.Context(), "copy", "--from", "sqlite:"+databaseWithNames(t, "★ Karambit", "a\nb"), "--to", from); code != exitOK {
		t.Fatalf("copy to PostgreSQL: got exit code %d, want 0: %s", code, reported)
	}
	file := filepath.Join(t.TempDir(), "assay.dump")
	code, out := runOn(t, from, "backup", file)
	if code != exitOK || !strings.Contains(out, file+" holds the database, ") {
		t.Fatalf("backup: got exit code %d, want 0 and the file: %s", code, out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
		t.Errorf("backup file: got %v, error %v, want a file that only its owner can read", info, err)
	}
	if code, out := runOn(t, from, "backup", file); code == exitOK {
		t.Errorf("backup to an existing file: got success, want an error: %s", out)
	}
	if code, out := runOn(t, from, "backup", file+"2", "--with-secrets"); code != exitUsage || !strings.Contains(out, "no secrets are generated") {
		t.Errorf("backup --with-secrets: got exit code %d, want a usage error: %s", code, out)
	}
	if code, out := runOn(t, to, "restore", file); code != exitOK {
		t.Fatalf("restore: got exit code %d, want 0: %s", code, out)
	}
	if code, out := runOn(t, to, "restore", file); code == exitOK || !strings.Contains(out, "the database is not empty") {
		t.Errorf("restore over a database: got exit code %d, want an error: %s", code, out)
	}
	inUse := heartbeat(t, to)
	if code, out := runOn(t, to, "restore", file, "--force"); code != exitRefused || !strings.Contains(out, "a server uses the database") {
		t.Errorf("restore --force over a database in use: got exit code %d, want a refusal: %s", code, out)
	}
	inUse()
	if code, out := runOn(t, to, "restore", file, "--force"); code != exitOK {
		t.Errorf("restore --force over a database: got exit code %d, want 0: %s", code, out)
	}
	back := "sqlite:" + filepath.Join(t.TempDir(), "back.db")
	if code, out, reported := run(t.Context(), "copy", "--from", to, "--to", back); code != exitOK || !strings.Contains(out, "item                 2\n") {
		t.Errorf("copy of the restored database: got exit code %d, want 0 and 2 items: %s%s", code, out, reported)
	}
}

// heartbeat increments an instance's heartbeat counter like a server. The returned function stops
// it.
func heartbeat(t *testing.T, url string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := connect(t, url)
	if _, err := c.Exec(ctx, `INSERT INTO instance VALUES ('test', 'v0', '[]', 0, 1, 0, '')`); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if _, err := c.Exec(ctx, `UPDATE instance SET heartbeat = heartbeat + 1 WHERE owner = 'test'`); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			<-tick.C
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) }) // the server may already be stopped
	return c
}

// TestDatabase_RejectsOtherEncodings uses a database with an encoding that would change names.
func TestDatabase_RejectsOtherEncodings(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t)
	c := connect(t, url)
	if _, err := c.Exec(t.Context(), `CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`); err != nil {
		t.Fatal(err)
	}
	latin := strings.Replace(url, c.Config().Database, "latin", 1)
	if code, out := runOn(t, latin, "migrate"); code == exitOK || !strings.Contains(out, "LATIN1") || !strings.Contains(out, "UTF8") {
		t.Errorf("LATIN1 database: got exit code %d, want an error that names LATIN1 and UTF8: %s", code, out)
	}
}

func TestBackup_WithoutPostgreSQLClientShowsCommand(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	file := filepath.Join(t.TempDir(), "assay.dump")
	code, out := runOn(t, "postgres://u:secret@127.0.0.1:1/db", "backup", file)
	if code != exitUsage || !strings.Contains(out, `pg_dump --format=custom --file=FILE "$DATABASE_URL"`) || strings.Contains(out, "secret") {
		t.Errorf("got exit code %d, want a usage error with the pg_dump command and without the password: %s", code, out)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("got a backup file, want none")
	}
}
