package db

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/internal/pgtest"
)

func TestCopy_RefusesATargetThatIsNotEmpty(t *testing.T) {
	copySides(t, func(t *testing.T, from, to *copySide) {
		from.fill(t)
		to.exec(t, `INSERT INTO market (id, provider, key, title) VALUES (1, 'a', 'b', 'c')`)
		to.exec(t, `INSERT INTO setting (name, value) VALUES ('currency', 'USD')`)
		_, err := runCopy(t, from, to)
		if !errors.Is(err, ErrTargetNotEmpty) || !strings.Contains(err.Error(), "market 1, setting 1") {
			t.Errorf("got error %v, want ErrTargetNotEmpty with the row counts", err)
		}
		if n := to.count(t); n != 2 {
			t.Errorf("got %d rows in the target, want 2", n)
		}
	})
}

func TestCopy_DiscardsACopyThatDiffers(t *testing.T) {
	faults := map[string]struct{ sqlite, postgres, message string }{
		"lost row": {
			`AFTER INSERT ON item WHEN new.id = 3 BEGIN DELETE FROM item WHERE id = 3; END`,
			`IF new.id = 3 THEN RETURN NULL; END IF;`,
			"verify item: the copy differs from the source and was discarded: the source has 71 rows, the target has 70",
		},
		"changed amount": {
			`AFTER INSERT ON item WHEN new.id = 3 BEGIN UPDATE item SET price = price + 1 WHERE id = 3; END`,
			`IF new.id = 3 THEN new.price = new.price + 1; END IF;`,
			"the checksums of column price differ",
		},
		"changed name": {
			`AFTER INSERT ON item WHEN new.id = 3 BEGIN UPDATE item SET name = name || ' ' WHERE id = 3; END`,
			`IF new.id = 3 THEN new.name = new.name || ' '; END IF;`,
			"the checksums of column name differ",
		},
		"swapped amounts": {
			`AFTER INSERT ON item WHEN new.id IN (3, 4) BEGIN UPDATE item SET low = CASE low WHEN 12003 THEN 12004 ELSE 12003 END WHERE id = new.id; END`,
			`IF new.id IN (3, 4) THEN new.low = CASE new.low WHEN 12003 THEN 12004 ELSE 12003 END; END IF;`,
			"values are in the wrong rows",
		},
	}
	copySides(t, func(t *testing.T, from, to *copySide) {
		from.fill(t)
		for name, f := range faults {
			if to.d == SQLite {
				to.exec(t, `CREATE TRIGGER wrong `+f.sqlite)
			} else {
				to.exec(t, `CREATE FUNCTION wrong() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+f.postgres+` RETURN new; END $$`)
				to.exec(t, `CREATE TRIGGER wrong BEFORE INSERT ON item FOR EACH ROW EXECUTE FUNCTION wrong()`)
			}
			_, err := runCopy(t, from, to)
			if !errors.Is(err, ErrCopyDiffers) || !strings.Contains(err.Error(), f.message) {
				t.Errorf("%s: got error %v, want ErrCopyDiffers with %q", name, err, f.message)
			}
			if n := to.count(t); n != 0 {
				t.Errorf("%s: got %d rows in the target, want 0", name, n)
			}
			if to.d == SQLite {
				to.exec(t, `DROP TRIGGER wrong`)
			} else {
				to.exec(t, `DROP FUNCTION wrong CASCADE`)
			}
		}
		_, err := runCopy(t, from, to)
		must(t, err)
	})
}

func TestCopy_RefusesASourceInUse(t *testing.T) {
	const instance = `INSERT INTO instance (owner, version, endpoints, started_at, heartbeat, heartbeat_at, report) VALUES ('a', '', '[]', 0, 1, 0, '')`
	t.Run("SQLite", func(t *testing.T) {
		from, to := emptySide(t, SQLite), emptySide(t, SQLite)
		server, err := Open(t.Context(), from.Options)
		must(t, err)
		_, err = runCopy(t, from, to)
		if !errors.Is(err, ErrDatabaseLocked) {
			t.Errorf("got error %v, want ErrDatabaseLocked", err)
		}
		must(t, server.Close())
		from.exec(t, instance)
		_, err = runCopy(t, from, to)
		must(t, err)
	})
	t.Run("heartbeat changes", func(t *testing.T) {
		from, to := emptySide(t, PostgreSQL), emptySide(t, PostgreSQL)
		from.exec(t, instance)
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for ctx.Err() == nil {
				_, _ = from.db.ExecContext(ctx, `UPDATE instance SET heartbeat = heartbeat + 1`)
			}
		}()
		_, err := runCopy(t, from, to)
		stop()
		<-stopped
		if !errors.Is(err, ErrSourceInUse) {
			t.Errorf("got error %v, want ErrSourceInUse", err)
		}
	})
	t.Run("no heartbeat changes", func(t *testing.T) {
		from, to := emptySide(t, PostgreSQL), emptySide(t, PostgreSQL)
		from.exec(t, instance)
		_, err := Copy(t.Context(), CopyOptions{From: from.Options, To: to.Options, Lease: 30 * time.Millisecond})
		must(t, err)
		if n := to.number(t, `SELECT count(*) FROM instance`); n != 0 {
			t.Errorf("got %d copied rows of the stopped instance, want 0", n)
		}
	})
	t.Run("server starts during the copy", func(t *testing.T) {
		from, to := emptySide(t, PostgreSQL), emptySide(t, SQLite)
		from.fill(t)
		_, err := Copy(t.Context(), CopyOptions{From: from.Options, To: to.Options, OnProgress: func(p CopyProgress) {
			if p.Verifying && p.Table == "item" {
				from.exec(t, instance)
			}
		}})
		if !errors.Is(err, ErrSourceInUse) {
			t.Errorf("got error %v, want ErrSourceInUse", err)
		}
		if n := to.count(t); n != 0 {
			t.Errorf("got %d rows in the target, want 0", n)
		}
	})
}

func TestCopy_LocksTheTarget(t *testing.T) {
	from, to := emptySide(t, SQLite), emptySide(t, PostgreSQL)
	from.fill(t)
	_, err := Copy(t.Context(), CopyOptions{From: from.Options, To: to.Options, OnProgress: func(p CopyProgress) {
		if p.Verifying || p.Table != "market" {
			return
		}
		_, err := to.db.ExecContext(t.Context(), `SET lock_timeout = 1; INSERT INTO setting (name, value) VALUES ('a', 'b'); RESET lock_timeout`)
		if err == nil {
			t.Error("write of another connection to the target during the copy: got no error, want one")
		}
	}})
	must(t, err)
}

func TestCopy_LeavesTheTargetEmptyWhenCancelled(t *testing.T) {
	copySides(t, func(t *testing.T, from, to *copySide) {
		from.fill(t)
		for _, verifying := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := Copy(ctx, CopyOptions{From: from.Options, To: to.Options, OnProgress: func(p CopyProgress) {
				if p.Verifying == verifying && p.Table == "platform_user" {
					cancel()
				}
			}})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v, want context.Canceled", err)
			}
			if n := to.count(t); n != 0 {
				t.Errorf("got %d rows in the target, want 0", n)
			}
		}
	})
}

func TestCopy_ReportsTextThatPostgreSQLCannotStore(t *testing.T) {
	for name, text := range map[string]string{"NUL byte": "a\x00b", "invalid UTF-8": "a\xffb"} {
		from, to := emptySide(t, SQLite), emptySide(t, PostgreSQL)
		from.exec(t, `INSERT INTO market (provider, key, title) VALUES ('a', 'b', $1)`, text)
		_, err := runCopy(t, from, to)
		if err == nil || !strings.Contains(err.Error(), "copy market: column title has text that PostgreSQL cannot store: ") {
			t.Errorf("%s: got error %v, want one that names the column title", name, err)
		}
	}
}

func TestCopy_RefusesASourceWithAnotherSchema(t *testing.T) {
	old := emptySide(t, SQLite)
	old.exec(t, `DELETE FROM goose_db_version WHERE version_id > 0`)
	newer := emptySide(t, PostgreSQL)
	newer.exec(t, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (4711, true)`)
	none := Options{URL: pgtest.Shared(t).NewDatabase(t)}
	changed := emptySide(t, SQLite)
	changed.exec(t, `ALTER TABLE market ADD COLUMN more TEXT`)
	for name, c := range map[string]struct {
		from    Options
		message string
	}{
		"old schema":    {old.Options, "goose_db_version is empty or missing"},
		"newer schema":  {newer.Options, "schema version 4711"},
		"no schema":     {none, "schema is not up to date"},
		"changed table": {changed.Options, "column market.more is"},
		"missing file":  {Options{Path: filepath.Join(t.TempDir(), "none.db")}, "no such file"},
	} {
		path := filepath.Join(t.TempDir(), "to.db")
		_, err := Copy(t.Context(), CopyOptions{From: c.from, To: Options{Path: path}})
		if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: got error %v, want %q in it", name, err, c.message)
		}
	}
	if _, err := Copy(t.Context(), CopyOptions{From: old.Options, To: old.Options}); !errors.Is(err, ErrSameDatabase) {
		t.Errorf("source as target: got error %v, want ErrSameDatabase", err)
	}
}
