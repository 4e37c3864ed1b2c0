package db_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/randtest"
	"assay/internal/view"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("STORE_TEST_OPEN"); path != "" {
		hold(path)
	}
	if from := os.Getenv(copyFrom); from != "" {
		copyAndHold(from)
	}
	os.Exit(m.Run())
}

// hold opens a database in a child process, prints a line and waits to be killed.
func hold(path string) {
	// The path comes from the environment variable that child sets.
	s, err := db.Open(context.Background(), db.Options{Path: path})
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, "open")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // blocks until the process is killed
	_ = s.Close()
	os.Exit(0)
}

// child starts a process that opens a database.
func child(t *testing.T, path string) (c *exec.Cmd, output *bufio.Reader) {
	t.Helper()
	c = exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), "STORE_TEST_OPEN="+path)
	in, err := c.StdinPipe()
	must(t, err)
	t.Cleanup(func() { in.Close() })
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	return c, bufio.NewReader(out)
}

func open(tb testing.TB, path string) *db.DB {
	tb.Helper()
	s, err := db.Open(tb.Context(), db.Options{Path: path})
	must(tb, err)
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// refused opens a database and returns the error. The test fails if there is none.
func refused(tb testing.TB, path string) error {
	tb.Helper()
	s, err := db.Open(tb.Context(), db.Options{Path: path})
	if err == nil {
		must(tb, s.Close())
		tb.Fatal("Open: got no error, want one")
	}
	return err
}

func add(tb testing.TB, s *db.DB, name string) error {
	tb.Helper()
	return s.InTx(tb.Context(), func(tx *db.Tx) error {
		_, err := catalog.EnsureItems(tx, catalog.CS2, []catalog.Key{{AppID: catalog.CS2, Name: name}})
		return err
	})
}

func has(tb testing.TB, s *db.DB, name string) bool {
	tb.Helper()
	i, err := view.ReadItem(tb.Context(), s, catalog.Key{AppID: catalog.CS2, Name: name})
	must(tb, err)
	return i != nil
}

func TestOpen_CreatesAMissingDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b?c d%20.db") // a path with characters that have a meaning in a URI
	s := open(t, path)
	must(t, add(t, s, "A"))
	v, err := s.SchemaVersion(t.Context())
	must(t, err)
	must(t, s.Close())
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, want 0600", info.Mode())
	}
	s = open(t, path)
	if !has(t, s, "A") {
		t.Error("got no item A, want the written one")
	}
	again, err := s.SchemaVersion(t.Context())
	must(t, err)
	if again != v || v < 1 {
		t.Errorf("got schema version %d, then %d, want the same and at least 1", v, again)
	}
}

func TestOpen_RefusesASchemaOfANewerVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assay.db")
	must(t, open(t, path).Close())
	raw, err := sql.Open("sqlite", path)
	must(t, err)
	_, err = raw.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (4711, 1)`)
	must(t, err)
	must(t, raw.Close())
	if err := refused(t, path); !errors.Is(err, db.ErrSchemaNewer) || !strings.Contains(err.Error(), "schema version 4711") || !strings.Contains(err.Error(), "newer version of assay") {
		t.Errorf("got error %q, want the schema version and a hint to use a newer version", err)
	}
}

// TestOpen_RefusesTheSchemaOfAnotherBuild changes the fingerprint of a database, as
// another build would, or removes it, as in databases older than fingerprints.
func TestOpen_RefusesTheSchemaOfAnotherBuild(t *testing.T) {
	for _, engine := range []string{dbtest.SQLite, dbtest.PostgreSQL} {
		for statement, message := range map[string]string{
			`UPDATE setting SET value = 'abc123' WHERE name = 'schema_fingerprint'`: "fingerprint abc123, this build has ",
			`DELETE FROM setting WHERE name = 'schema_fingerprint'`:                 "fingerprint none",
		} {
			d := dbtest.On(t, engine)
			s, err := db.Open(t.Context(), db.Options{Path: d.Path, URL: d.URL})
			must(t, err)
			must(t, s.Close())
			raw := d.Raw(t)
			_, err = raw.ExecContext(t.Context(), statement)
			must(t, errors.Join(err, raw.Close()))
			for _, keep := range []bool{false, true} {
				_, err := db.Open(t.Context(), db.Options{Path: d.Path, URL: d.URL, KeepSchema: keep})
				if !errors.Is(err, db.ErrSchemaUnknown) || !strings.Contains(err.Error(), message) || !strings.Contains(err.Error(), "Start the build that created it") {
					t.Errorf("%s after %s: got error %v, want ErrSchemaUnknown with %q", engine, statement, err, message)
				}
			}
			if _, err := db.Migrate(t.Context(), db.Options{Path: d.Path, URL: d.URL}); !errors.Is(err, db.ErrSchemaUnknown) {
				t.Errorf("%s: migrate: got error %v, want ErrSchemaUnknown", engine, err)
			}
		}
	}
}

// TestOpen_RefusesATableThatWasChanged changes tables but not the stored fingerprint. A
// server on such a database would return errors.
func TestOpen_RefusesATableThatWasChanged(t *testing.T) {
	for _, engine := range []string{dbtest.SQLite, dbtest.PostgreSQL} {
		for statement, message := range map[string]string{
			`ALTER TABLE platform_user DROP COLUMN display_name`:                          `column platform_user.display_name is "none", expected "text`,
			`ALTER TABLE platform_user ADD COLUMN more INTEGER`:                           `column platform_user.more is "integer", expected "none"`,
			`ALTER TABLE platform_user RENAME TO users`:                                   `column platform_user.id is "none"`,
			`DROP INDEX platform_user_steam`:                                              `unique index platform_user.platform_user_steam is "none"`,
			`DROP TABLE setting; CREATE TABLE setting (name TEXT, value TEXT)`:            "",
			`DELETE FROM goose_db_version`:                                                "goose_db_version is empty or missing",
			`DROP TABLE goose_db_version`:                                                 "goose_db_version is empty or missing",
			`CREATE TABLE mine (x INTEGER UNIQUE); CREATE INDEX mine_too ON item (price)`: "allowed",
		} {
			d := dbtest.On(t, engine)
			s, err := db.Open(t.Context(), db.Options{Path: d.Path, URL: d.URL})
			must(t, err)
			must(t, s.Close())
			raw := d.Raw(t)
			_, err = raw.ExecContext(t.Context(), statement)
			must(t, errors.Join(err, raw.Close()))
			for _, keep := range []bool{false, true} {
				s, err := db.Open(t.Context(), db.Options{Path: d.Path, URL: d.URL, KeepSchema: keep})
				switch {
				case message == "allowed":
					must(t, err)
					must(t, s.Close())
				case message == "":
					if !errors.Is(err, db.ErrSchemaUnknown) { // the fingerprint was stored in the dropped table
						t.Errorf("%s after %s: got error %v, want ErrSchemaUnknown", engine, statement, err)
					}
				case !errors.Is(err, db.ErrSchemaChanged) || !strings.Contains(err.Error(), message) || !strings.Contains(err.Error(), "estore a backup"):
					t.Errorf("%s after %s: got error %v, want ErrSchemaChanged with %q", engine, statement, err, message)
				}
			}
		}
	}
}

func TestOpen_RefusesAFileThatIsNoDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assay.db")
	write(t, path, strings.Repeat("this is no database\n", 1000))
	_ = refused(t, path)
	text, err := os.ReadFile(path)
	must(t, err)
	if !strings.HasPrefix(string(text), "this is no database") {
		t.Error("the file was overwritten, want no change")
	}
}

func TestOpen_RefusesADeletedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assay.db")
	must(t, open(t, path).Close())
	for _, damage := range []func() error{
		func() error { return os.Truncate(path, 0) },
		func() error { return os.Remove(path) },
	} {
		must(t, damage())
		if err := refused(t, path); !errors.Is(err, db.ErrDatabaseMissing) {
			t.Errorf("got error %v, want ErrDatabaseMissing", err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a file was created, want none")
	}
	must(t, os.Remove(path+".id")) // the error message names this fix
	must(t, add(t, open(t, path), "A"))
}

func TestOpen_RefusesAReplacedDatabase(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "assay.db"), filepath.Join(dir, "other.db")
	must(t, open(t, path).Close())
	must(t, open(t, other).Close())
	must(t, os.Rename(other, path))
	if err := refused(t, path); !errors.Is(err, db.ErrDatabaseReplaced) {
		t.Errorf("got error %v, want ErrDatabaseReplaced", err)
	}
}

func TestOpen_RefusesASecondOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assay.db")
	s := open(t, path)
	if err := refused(t, path); !errors.Is(err, db.ErrDatabaseLocked) {
		t.Errorf("got error %v, want ErrDatabaseLocked", err)
	}
	must(t, add(t, s, "A"))
	must(t, s.Close())
	must(t, open(t, path).Close())
}

func TestOpen_RefusesASecondProcessWhileTheFirstRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assay.db")
	c, output := child(t, path)
	line, err := output.ReadString('\n')
	must(t, err)
	if line != "open\n" {
		t.Fatalf("got output %q, want %q", line, "open\n")
	}
	if err := refused(t, path); !errors.Is(err, db.ErrDatabaseLocked) {
		t.Errorf("got error %v, want ErrDatabaseLocked", err)
	}
	must(t, c.Process.Kill())
	_ = c.Wait()
	must(t, add(t, open(t, path), "A"))
}

func TestOpen_SucceedsAfterACrashDuringCreation(t *testing.T) {
	r := randtest.New(t)
	rounds := randtest.Count(12, 500)
	for range rounds {
		path := filepath.Join(t.TempDir(), "assay.db")
		c, _ := child(t, path)
		after := time.NewTimer(time.Duration(r.Int64N(int64(120 * time.Millisecond))))
		<-after.C
		must(t, c.Process.Kill())
		_ = c.Wait()
		s := open(t, path)
		must(t, add(t, s, "A"))
		must(t, s.Close())
		must(t, open(t, path).Close())
	}
}

func TestFile_DeletedWhileOpenIsNotWrittenTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assay.db")
	s := open(t, path)
	must(t, add(t, s, "A"))
	must(t, os.Remove(path))
	if err := add(t, s, "B"); !errors.Is(err, db.ErrDatabaseReplaced) {
		t.Errorf("write: got error %v, want ErrDatabaseReplaced", err)
	}
	if err := s.Healthy(t.Context()); !errors.Is(err, db.ErrDatabaseReplaced) {
		t.Errorf("health check: got error %v, want ErrDatabaseReplaced", err)
	}
	if !has(t, s, "A") {
		t.Error("read after the deletion: got no item, want one")
	}
	must(t, s.Close())
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a new file was created, want none")
	}
}

func TestFile_ReplacedWhileOpenIsNotWrittenTo(t *testing.T) {
	dir := t.TempDir()
	path, kept := filepath.Join(dir, "assay.db"), filepath.Join(dir, "kept.db")
	s := open(t, path)
	must(t, add(t, s, "A"))
	must(t, os.Rename(path, kept))
	write(t, path, "something else")
	if err := add(t, s, "B"); !errors.Is(err, db.ErrDatabaseReplaced) {
		t.Errorf("write: got error %v, want ErrDatabaseReplaced", err)
	}
	must(t, os.Rename(kept, path))
	must(t, add(t, s, "B"))
	must(t, s.Close())
	if s = open(t, path); !has(t, s, "A") || !has(t, s, "B") {
		t.Error("got one of the items A and B, want both")
	}
}

// TestCatalog_PostgresIsTheOneStored compares the schema that the migrations create on
// PostgreSQL with catalog_postgres.txt. ASSAY_UPDATE=1 rewrites the file.
func TestCatalog_PostgresIsTheOneStored(t *testing.T) {
	d := dbtest.On(t, dbtest.PostgreSQL)
	if os.Getenv("ASSAY_UPDATE") != "1" {
		d.Open(t, db.Options{})
		d.Open(t, db.Options{KeepSchema: true})
		return
	}
	d.Open(t, db.Options{})
	raw := d.Raw(t)
	catalog, err := db.CatalogPostgres(t.Context(), raw)
	must(t, errors.Join(err, raw.Close()))
	must(t, os.WriteFile("catalog_postgres.txt", []byte(catalog), 0o644))
}
