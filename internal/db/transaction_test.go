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

func TestInTx_AFailedFunctionLeavesNothing(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		err := attempt(f.Context(), f, "A", func() error { return errTest })
		f.Is("error", errors.Is(err, errTest), true)
		f.Is("unknown", errors.Is(err, db.ErrCommitUnknown), false)
		f.Is("written", made(f, "A"), false)
		f.Must(attempt(f.Context(), f, "B", nothing))
	})
}

func TestInTx_APanicFreesTheWriter(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		func() {
			defer func() { f.Is("recovered", recover(), errTest) }()
			_ = attempt(f.Context(), f, "A", func() error { panic(errTest) })
		}()
		f.Is("written", made(f, "A"), false)
		f.Must(attempt(f.Context(), f, "B", nothing)) // the one writer is free
	})
}

func TestInTx_AnEndedContextLeavesNothing(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		err := attempt(ctx, f, "A", func() error { cancel(); return nil })
		f.Is("error", errors.Is(err, context.Canceled), true)
		f.Is("unknown", errors.Is(err, db.ErrCommitUnknown), false)
		f.Is("written", made(f, "A"), false)
		f.Is("before it began", errors.Is(attempt(ctx, f, "A", nothing), context.Canceled), true)
		f.Must(attempt(f.Context(), f, "B", nothing))
	})
}

func TestInTx_AFaultBeforeTheCommitLeavesNothing(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Faults = func(point string) error {
			if point == "before commit" {
				return errTest
			}
			return nil
		}
		err := attempt(f.Context(), f, "A", nothing)
		f.Is("error", errors.Is(err, errTest), true)
		f.Is("unknown", errors.Is(err, db.ErrCommitUnknown), false)
		f.Is("written", made(f, "A"), false)
		f.Faults = nil
		f.Must(attempt(f.Context(), f, "B", nothing))
	})
}

func TestInTx_AFaultAfterTheCommitIsOfUnknownOutcome(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Faults = func(point string) error {
			if point == "after commit" {
				return errTest
			}
			return nil
		}
		err := attempt(f.Context(), f, "A", nothing)
		f.Is("error", errors.Is(err, errTest), true)
		f.Is("unknown", errors.Is(err, db.ErrCommitUnknown), true)
		f.Is("written", made(f, "A"), true)
	})
}

func TestInTx_ATransactionHasOneMoment(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Tx(func(tx *db.Tx) error {
			f.Now = f.Now.Add(time.Hour)
			f.Is("moment", tx.Now(), dbtest.Epoch)
			_, err := user.Ensure(tx, "A")
			return err
		})
		f.Tx(func(tx *db.Tx) error {
			var at int64
			err := tx.QueryRow(`SELECT created_at FROM platform_user`).Scan(&at)
			f.Is("stored moment", db.Moment(at), dbtest.Epoch)
			return err
		})
	})
}

func TestRead_SeesWhatIsCommitted(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Tx(func(tx *db.Tx) error {
			_, err := user.Ensure(tx, "A")
			f.Is("before the commit", made(f, "A"), false)
			return err
		})
		f.Is("after it", made(f, "A"), true)
		f.Must(f.DB.Healthy(f.Context()))
		v, err := f.DB.SchemaVersion(f.Context())
		f.Must(err)
		f.Is("schema", v > 0, true)
	})
}

// made reports whether a user is stored.
func made(f *dbtest.Fixture, id string) bool {
	f.Helper()
	_, known, err := user.Key(f.Context(), f.DB, id)
	f.Must(err)
	return known
}

// attempt makes a user in a transaction and returns how that ended.
func attempt(ctx context.Context, f *dbtest.Fixture, id string, then func() error) error {
	return f.DB.InTx(ctx, func(tx *db.Tx) error {
		if _, err := user.Ensure(tx, id); err != nil {
			return err
		}
		return then()
	})
}

func nothing() error { return nil }

var errTest = errors.New("failed on purpose")
