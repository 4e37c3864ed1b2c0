package db_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/fault"
	"assay/internal/pgtest"
	"assay/internal/user"
)

func TestPostgres_ConcurrentMigrations(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t)
	if _, err := db.Open(t.Context(), db.Options{URL: url, KeepSchema: true}); !errors.Is(err, db.ErrSchemaOutdated) {
		t.Errorf("empty database with KeepSchema: got error %v, want ErrSchemaOutdated", err)
	}
	var starting sync.WaitGroup
	for range 6 {
		starting.Go(func() {
			s, err := db.Open(t.Context(), db.Options{URL: url + "&pool_max_conns=4"})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	s := dbtest.Database{URL: url}.Open(t, db.Options{KeepSchema: true})
	v, err := s.SchemaVersion(t.Context())
	must(t, err)
	raw := dbtest.Database{Engine: dbtest.PostgreSQL, URL: url}.Raw(t)
	defer raw.Close()
	_, err = raw.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, true)`, v+1)
	must(t, err)
	if _, err := db.Open(t.Context(), db.Options{URL: url}); !errors.Is(err, db.ErrSchemaNewer) || !strings.Contains(err.Error(), "newer version of assay") {
		t.Errorf("newer schema: got error %v, want ErrSchemaNewer and a hint to use a newer version", err)
	}
}

// Two transactions lock rows in opposite order. Both must succeed.
func TestPostgres_RetriesAfterADeadlock(t *testing.T) {
	s := dbtest.On(t, dbtest.PostgreSQL).Open(t, db.Options{})
	users := []user.User{{ID: "a"}, {ID: "b"}}
	for _, u := range users {
		must(t, s.InTx(t.Context(), func(tx *db.Tx) error { return user.Put(tx, u) }))
	}
	var both, running sync.WaitGroup
	both.Add(2)
	for range 2 {
		order := slices.Clone(users)
		slices.Reverse(users)
		meet := sync.OnceFunc(func() { both.Done(); both.Wait() })
		running.Go(func() {
			err := s.InTx(t.Context(), func(tx *db.Tx) error {
				if err := user.Put(tx, order[0]); err != nil {
					return err
				}
				meet()
				return user.Put(tx, order[1])
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
}

func TestPostgres_KeepsPlansOnlyInSmallTransactions(t *testing.T) {
	s := dbtest.On(t, dbtest.PostgreSQL).Open(t, db.Options{})
	is := func(mode, scan string) func(*db.Tx) error {
		return func(tx *db.Tx) error {
			for name, want := range map[string]string{"plan_cache_mode": mode, "enable_seqscan": scan} {
				if got, err := setting(tx, name); err != nil || got != want {
					t.Errorf("setting %s: got %q, error %v, want %q", name, got, err, want)
				}
			}
			return nil
		}
	}
	must(t, s.InSmallTx(t.Context(), is("force_generic_plan", "off")))
	must(t, s.InTx(t.Context(), is("force_custom_plan", "on"))) // on the same connection, because it is the only idle one
}

// Compiling a scan of all items takes longer than the scan.
func TestPostgres_CompilesNoStatementsUnlessConfigured(t *testing.T) {
	d := dbtest.On(t, dbtest.PostgreSQL)
	for parameter, want := range map[string]string{"": "off", "jit=on": "on"} {
		configured := d
		if parameter != "" {
			u, err := url.Parse(d.URL)
			must(t, err)
			q := u.Query()
			q.Set("jit", want)
			u.RawQuery = q.Encode()
			configured.URL = u.String()
		}
		var got string
		must(t, configured.Open(t, db.Options{}).Read.QueryRowContext(t.Context(), `SELECT current_setting('jit')`).Scan(&got))
		if got != want {
			t.Errorf("setting jit with the parameter %q: got %q, want %q", parameter, got, want)
		}
	}
}

func TestPostgres_MigrationBypassesThePooler(t *testing.T) {
	server := pgtest.Shared(t)
	direct := server.NewDatabase(t)
	pooled := dbtest.Database{URL: server.StartPooler(t, 20).Through(t, direct)}
	pooled.Open(t, db.Options{Direct: direct})
	pooled.Open(t, db.Options{Direct: direct, KeepSchema: true})
}

func TestPostgres_ReportsAStoppedServerAsUnavailable(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	url := server.NewDatabase(t)
	s := dbtest.Database{URL: url}.Open(t, db.Options{})
	write := func() error {
		return s.InTx(t.Context(), func(tx *db.Tx) error { return user.Put(tx, user.User{ID: "u"}) })
	}
	must(t, write())
	must(t, server.Stop())
	for what, err := range map[string]error{"write": write(), "health": s.Healthy(t.Context())} {
		if err == nil {
			t.Errorf("%s: got no error, want one while the server is stopped", what)
		}
	}
	if f := fault.Of(write()); f == nil || f.Kind != fault.Unavailable {
		t.Errorf("write while the server is stopped: got fault %+v, want unavailable", f)
	}
	if err := write(); errors.Is(err, db.ErrCommitUnknown) {
		t.Errorf("transaction that never began: got error %v, want an error other than ErrCommitUnknown", err)
	}
	must(t, server.Restart())
	must(t, s.Healthy(t.Context()))
	must(t, write())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f := fault.Of(s.InTx(ctx, func(*db.Tx) error { return nil })); f != nil {
		t.Errorf("cancelled transaction: got fault %+v, want none", f)
	}
}

func TestPostgres_RefusesInvalidAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://u:secret@h:notaport/db":        "not a valid PostgreSQL address",
		"postgres://u:secret@h/d?pool_max_conns=x": "4 or more",
		"postgres://u:secret@h/d?pool_max_conns=2": "4 or more",
		"postgres://u:secret@h/d?sslmode=perhaps":  "not a valid PostgreSQL address",
	} {
		_, err := db.Open(t.Context(), db.Options{URL: address})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got error %v, want one with %q and without the password", address, err, want)
		}
	}
}

// setting returns a PostgreSQL setting.
func setting(t *db.Tx, name string) (value string, err error) {
	err = t.QueryRow(`SELECT current_setting($1)`, name).Scan(&value)
	return value, err
}

// migratesAfter is a database that another process migrates after the first query.
type migratesAfter struct {
	db.Querier
	migrate func()
}

func (q *migratesAfter) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	defer func() {
		if q.migrate != nil {
			migrate := q.migrate
			q.migrate = nil
			migrate()
		}
	}()
	return q.Querier.QueryContext(ctx, query, args...) //nolint:sqlclosecheck // the caller closes the rows
}

func TestOpen_AcceptsAMigrationByAnotherProcess(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t)
	raw, err := sql.Open("pgx", url)
	must(t, err)
	defer func() { _ = raw.Close() }() // only reads
	q := &migratesAfter{Querier: raw, migrate: func() {
		_, err := db.Migrate(t.Context(), db.Options{URL: url})
		must(t, err)
	}}
	version, upToDate, err := db.CheckSchema(t.Context(), db.PostgreSQL, q)
	if err != nil || !upToDate || version == 0 {
		t.Errorf("got version %d, up to date %v, error %v, want a version that is up to date", version, upToDate, err)
	}
}
