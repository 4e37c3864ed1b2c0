package db_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/user"
)

func TestInTx_RollsBackWhenTheFunctionFails(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		err := attempt(f.Context(), f, "A", func() error { return errTest })
		f.Is("the transaction returns the expected error", errors.Is(err, errTest), true)
		f.Is("the error is ErrCommitUnknown", errors.Is(err, db.ErrCommitUnknown), false)
		f.Is("the user was written", userExists(f, "A"), false)
		f.Must(attempt(f.Context(), f, "B", nothing))
	})
}

func TestInTx_ReleasesTheWriterAfterAPanic(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		func() {
			defer func() { f.Is("recovered value", recover(), errTest) }()
			_ = attempt(f.Context(), f, "A", func() error { panic(errTest) })
		}()
		f.Is("the user was written", userExists(f, "A"), false)
		f.Must(attempt(f.Context(), f, "B", nothing)) // the single SQLite writer was released
	})
}

func TestInTx_RollsBackWhenCancelled(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		err := attempt(ctx, f, "A", func() error { cancel(); return nil })
		f.Is("the transaction returns the expected error", errors.Is(err, context.Canceled), true)
		f.Is("the error is ErrCommitUnknown", errors.Is(err, db.ErrCommitUnknown), false)
		f.Is("the user was written", userExists(f, "A"), false)
		f.Is("a transaction that was cancelled before it began returns context.Canceled", errors.Is(attempt(ctx, f, "A", nothing), context.Canceled), true)
		f.Must(attempt(f.Context(), f, "B", nothing))
	})
}

func TestInTx_RollsBackAfterAFaultBeforeTheCommit(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Faults = func(point string) error {
			if point == "before commit" {
				return errTest
			}
			return nil
		}
		err := attempt(f.Context(), f, "A", nothing)
		f.Is("the transaction returns the expected error", errors.Is(err, errTest), true)
		f.Is("the error is ErrCommitUnknown", errors.Is(err, db.ErrCommitUnknown), false)
		f.Is("the user was written", userExists(f, "A"), false)
		f.Faults = nil
		f.Must(attempt(f.Context(), f, "B", nothing))
	})
}

func TestInTx_ReportsAnUnknownOutcomeAfterAFaultInTheCommit(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Faults = func(point string) error {
			if point == "after commit" {
				return errTest
			}
			return nil
		}
		err := attempt(f.Context(), f, "A", nothing)
		f.Is("the transaction returns the expected error", errors.Is(err, errTest), true)
		f.Is("the error is ErrCommitUnknown", errors.Is(err, db.ErrCommitUnknown), true)
		f.Is("the user was written", userExists(f, "A"), true)
	})
}

func TestInTx_AllRowsCarryTheSameTime(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Tx(func(tx *db.Tx) error {
			f.Now = f.Now.Add(time.Hour)
			f.Is("time of the transaction", tx.Now(), dbtest.Epoch)
			_, err := user.Ensure(tx, "A")
			return err
		})
		f.Tx(func(tx *db.Tx) error {
			var at int64
			err := tx.QueryRow(`SELECT created_at FROM platform_user`).Scan(&at)
			f.Is("stored time", db.Moment(at), dbtest.Epoch)
			return err
		})
	})
}

func TestRead_ReturnsCommittedDataOnly(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Tx(func(tx *db.Tx) error {
			_, err := user.Ensure(tx, "A")
			f.Is("user found before the commit", userExists(f, "A"), false)
			return err
		})
		f.Is("user found after the commit", userExists(f, "A"), true)
		f.Must(f.DB.Healthy(f.Context()))
		v, err := f.DB.SchemaVersion(f.Context())
		f.Must(err)
		f.Is("the schema version is positive", v > 0, true)
	})
}

// userExists reports whether a user is stored.
func userExists(f *dbtest.Fixture, id string) bool {
	f.Helper()
	_, known, err := user.Key(f.Context(), f.DB, id)
	f.Must(err)
	return known
}

// attempt creates a user in a transaction, calls then and returns the result of the
// transaction.
func attempt(ctx context.Context, f *dbtest.Fixture, id string, then func() error) error {
	return f.DB.InTx(ctx, func(tx *db.Tx) error {
		if _, err := user.Ensure(tx, id); err != nil {
			return err
		}
		return then()
	})
}

func nothing() error { return nil }

var errTest = errors.New("test error")
