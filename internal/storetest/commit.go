package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/inventory"
	"assay/internal/refresh"
	"assay/internal/user"
	"assay/internal/view"
)

var errTest = errors.New("as the test wants it")

// made reports whether an item is there.
func (f *fixture) made(name string) bool {
	f.Helper()
	i, err := view.ReadItem(f.Context(), f.s, key(name))
	f.must(err)
	return i != nil
}

// attempt makes an item in a transaction and returns how that ended.
func (f *fixture) attempt(ctx context.Context, name string, then func() error) error {
	return f.s.InTx(ctx, func(tx *db.Tx) error {
		if _, err := catalog.EnsureItems(tx, app, []catalog.Key{key(name)}); err != nil {
			return err
		}
		return then()
	})
}

func nothing() error { return nil }

func rollsBack(f *fixture) {
	err := f.attempt(f.Context(), "A", func() error { return errTest })
	f.is("error", errors.Is(err, errTest), true)
	f.is("unknown", errors.Is(err, db.ErrCommitUnknown), false)
	f.is("made", f.made("A"), false)
	f.items("B")
}

func panics(f *fixture) {
	func() {
		defer func() { f.is("recovered", recover(), errTest) }()
		_ = f.attempt(f.Context(), "A", func() error { panic(errTest) })
	}()
	f.is("made", f.made("A"), false)
	f.items("B") // the one writer is free
}

func endedContext(f *fixture) {
	ctx, cancel := context.WithCancel(f.Context())
	err := f.attempt(ctx, "A", func() error { cancel(); return nil })
	f.is("error", errors.Is(err, context.Canceled), true)
	f.is("unknown", errors.Is(err, db.ErrCommitUnknown), false)
	f.is("made", f.made("A"), false)
	f.is("before it began", errors.Is(f.attempt(ctx, "A", nothing), context.Canceled), true)
	f.items("B")
}

func faultBefore(f *fixture) {
	f.faults = func(point string) error {
		if point == "before commit" {
			return errTest
		}
		return nil
	}
	err := f.attempt(f.Context(), "A", nothing)
	f.is("error", errors.Is(err, errTest), true)
	f.is("unknown", errors.Is(err, db.ErrCommitUnknown), false)
	f.is("made", f.made("A"), false)
	f.faults = nil
	f.items("B")
}

func faultAfter(f *fixture) {
	f.faults = func(point string) error {
		if point == "after commit" {
			return errTest
		}
		return nil
	}
	err := f.attempt(f.Context(), "A", nothing)
	f.is("error", errors.Is(err, errTest), true)
	f.is("unknown", errors.Is(err, db.ErrCommitUnknown), true)
	f.is("made", f.made("A"), true)
}

func oneMoment(f *fixture) {
	f.tx(func(tx *db.Tx) error {
		f.now = f.now.Add(time.Hour)
		f.is("moment", tx.Now(), dbtest.Epoch)
		_, _, err := refresh.InsertJob(tx, refresh.Job{Kind: refresh.Bulk})
		return err
	})
	f.is("job", f.job(1).CreatedAt, dbtest.Epoch)
}

func readersSeeCommits(f *fixture) {
	f.tx(func(tx *db.Tx) error {
		_, err := catalog.EnsureItems(tx, app, []catalog.Key{key("A")})
		f.is("before the commit", f.made("A"), false)
		return err
	})
	f.is("after it", f.made("A"), true)
	f.must(f.s.Healthy(f.Context()))
	v, err := f.s.SchemaVersion(f.Context())
	f.must(err)
	f.is("schema", v > 0, true)
}

func otherCurrency(f *fixture) {
	f.must(refresh.SetCurrency(f.Context(), f.s, "EUR"))
	f.must(refresh.SetCurrency(f.Context(), f.s, "EUR"))
	if err := refresh.SetCurrency(f.Context(), f.s, "USD"); err == nil {
		f.Error("took another currency")
	}
	f.must(refresh.SetCurrency(f.Context(), f.s, "EUR"))
}

func largeLists(f *fixture) {
	const n = 12_000 // more than the parameters of a statement of any table
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("name ", i)
	}
	ids := f.items(names...)
	var userID int64
	f.tx(func(tx *db.Tx) (err error) {
		if userID, err = user.Ensure(tx, "u"); err != nil {
			return err
		}
		rows := make([]inventory.Row, n)
		for i := range rows {
			rows[i] = inventory.Row{AssetID: fmt.Sprint(i), ItemID: ids[i], Amount: 1}
		}
		return inventory.AddInventory(tx, userID, app, "2", rows, nil)
	})
	units := make([]refresh.Unit, 3_000)
	for i := range units {
		units[i] = unit("s", "")
		units[i].State = refresh.UnitFailed
	}
	id := f.plan(refresh.Bulk, 1, units...)
	f.storeVerdict(id)
	f.estimate(f.claimBatch(), 10)
	f.is("updated", f.job(id).Counts.Updated, int64(n))
	list, err := refresh.JobUnits(f.Context(), f.s, id)
	f.must(err)
	f.is("units", len(list), 3_000)
	f.tx(func(tx *db.Tx) error {
		rows, err := inventory.InventoryRows(tx, userID, app, "2")
		if err != nil {
			return err
		}
		ids := make([]int64, len(rows))
		for i := range rows {
			ids[i], rows[i].Amount = rows[i].ID, 2
		}
		if err := inventory.ChangeInventory(tx, rows); err != nil {
			return err
		}
		return inventory.RemoveInventory(tx, ids[1:])
	})
	f.is("rows left", len(f.values(userID)), 1)
}
