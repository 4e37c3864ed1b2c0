package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/internal/pgtest"
)

// runOn runs a command of a database with a data directory of its own.
func runOn(t *testing.T, url string, args ...string) (code int, out string) {
	t.Helper()
	code, stdout, stderr := run(t.Context(), append(args, "--data-dir", t.TempDir(), "--database-url", url)...)
	return code, stdout + stderr
}

func TestMigrate_TellsWhatItDid(t *testing.T) {
	postgres := pgtest.Shared(t).NewDatabase(t) + "&pool_max_conns=4"
	for _, url := range []string{postgres, "sqlite:" + filepath.Join(t.TempDir(), "assay.db")} {
		if code, out := runOn(t, url, "migrate"); code != exitOK || !strings.Contains(out, "is brought from schema version 0 to ") {
			t.Errorf("exit %d, said %s", code, out)
		}
		if code, out := runOn(t, url, "migrate"); code != exitOK || !strings.Contains(out, ", which is this program's") {
			t.Errorf("again: exit %d, said %s", code, out)
		}
		if code, out := runOn(t, url, "migrate", "--json"); code != exitOK || !strings.Contains(out, `"fromVersion":`) {
			t.Errorf("as JSON: exit %d, said %s", code, out)
		}
	}
}

func TestServe_RefusesAnOldSchemaWhereItMayNotMigrate(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t) + "&pool_max_conns=4"
	secret := strings.Repeat("s", 40)
	var said bytes.Buffer
	code := Program{
		Args:  []string{"serve", "--listen-addr", "127.0.0.1:0", "--database-migrate", "off", "--data-dir", t.TempDir()},
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &said, Now: time.Now,
		Environ: []string{
			"DATABASE_URL=" + url, "MARKET_PRICE_SYNC_SECRET=m" + secret, "PLATFORM_API_TOKEN=p" + secret, "ADMIN_API_TOKEN=a" + secret,
			"WALLET_LEDGER_KEY=" + strings.Repeat("ab", 32),
		},
	}.Run(t.Context())
	if code == exitOK || !strings.Contains(said.String(), "run `assay migrate`") {
		t.Errorf("exit %d, said %s", code, said.String())
	}
}

func TestBackup_OfPostgreSQLIsRestoredAsItWas(t *testing.T) {
	server := pgtest.Shared(t)
	from, to := server.NewDatabase(t)+"&pool_max_conns=4", server.NewDatabase(t)
	if code, _, said := run(t.Context(), "copy", "--from", "sqlite:"+databaseWithNames(t, "★ Karambit", "a\nb"), "--to", from); code != exitOK {
		t.Fatal(said)
	}
	file := filepath.Join(t.TempDir(), "assay.dump")
	code, out := runOn(t, from, "backup", file)
	if code != exitOK || !strings.Contains(out, file+" holds the database, ") {
		t.Fatalf("exit %d, said %s", code, out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if code, out := runOn(t, from, "backup", file); code == exitOK {
		t.Errorf("over the file that is there: %s", out)
	}
	if code, out := runOn(t, from, "backup", file+"2", "--with-secrets"); code != exitUsage || !strings.Contains(out, "no secrets are generated") {
		t.Errorf("with secrets: exit %d, said %s", code, out)
	}
	if code, out := runOn(t, to, "restore", file); code != exitOK {
		t.Fatalf("exit %d, said %s", code, out)
	}
	if code, out := runOn(t, to, "restore", file); code == exitOK || !strings.Contains(out, "there is a database already") {
		t.Errorf("over a database: exit %d, said %s", code, out)
	}
	if code, out := runOn(t, to, "restore", file, "--force"); code != exitOK {
		t.Errorf("over a database, forced: exit %d, said %s", code, out)
	}
	back := "sqlite:" + filepath.Join(t.TempDir(), "back.db")
	if code, out, said := run(t.Context(), "copy", "--from", to, "--to", back); code != exitOK || !strings.Contains(out, "item                2\n") {
		t.Errorf("what is restored: exit %d, said %s%s", code, out, said)
	}
}

func TestBackup_WithoutTheClientSaysWhatToRun(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	file := filepath.Join(t.TempDir(), "assay.dump")
	code, out := runOn(t, "postgres://u:secret@127.0.0.1:1/db", "backup", file)
	if code != exitUsage || !strings.Contains(out, `pg_dump --format=custom --file=FILE "$DATABASE_URL"`) || strings.Contains(out, "secret") {
		t.Errorf("exit %d, said %s", code, out)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it left a file")
	}
}
