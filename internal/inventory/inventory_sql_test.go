package inventory

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"assay/internal/catalog"
	"assay/internal/catalog/catalogtest"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/money"
	"assay/internal/user"
)

const app = catalog.CS2

func TestInventoryAsOf_IsStoredPerContext(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		u := own(f, "u")
		at := func(context string) (at int64) {
			f.Tx(func(tx *db.Tx) (err error) {
				at, err = inventoryAsOf(tx, u, app, context)
				return err
			})
			return at
		}
		f.Is("time without an inventory", at("2"), int64(0))
		for _, want := range []int64{5, 7} {
			f.Tx(func(tx *db.Tx) error { return setInventoryAsOf(tx, u, app, "2", want) })
			f.Is("stored time", at("2"), want)
		}
		f.Is("time of another context", at("6"), int64(0))
	})
}

func TestRows_CopyThePriceOfTheirItem(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		ids := catalogtest.Items(f, app, "A", "B")
		u := own(f, "u", ids[0])
		f.Tx(func(tx *db.Tx) error {
			_, err := tx.Exec(`UPDATE item SET price = 7 WHERE id = $1`, ids[0])
			return err
		})
		v := own(f, "v", ids[0], ids[1], 0)
		if got := values(f, v); !slices.Equal(got, []money.Micro{7, 0, 0}) {
			f.Errorf("new rows: got values %v, want 7, 0, 0", got)
		}
		var rows []Row
		f.Tx(func(tx *db.Tx) (err error) {
			rows, err = inventoryRows(tx, v, app, "2")
			return err
		})
		slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.AssetID, b.AssetID) })
		want := Row{ID: rows[0].ID, AssetID: "a", ItemID: ids[0], Amount: 1, Tradable: true, Marketable: true}
		f.Is("stored row", rows[0], want)
		rows[0] = Row{
			ID: rows[0].ID, AssetID: "a", ItemID: ids[1], ClassID: "c ★", InstanceID: "i", Amount: 1 << 31,
			Marketable: true, Inspect: "steam://rungame/%20\"'",
		}
		rows[1].ItemID = ids[0]
		f.Tx(func(tx *db.Tx) error { return changeInventory(tx, rows[:2]) })
		if got := values(f, v); !slices.Equal(got, []money.Micro{0, 7, 0}) {
			f.Errorf("changed rows: got values %v, want 0, 7, 0", got)
		}
		f.Tx(func(tx *db.Tx) error {
			again, err := inventoryRows(tx, v, app, "2")
			slices.SortFunc(again, func(a, b Row) int { return strings.Compare(a.AssetID, b.AssetID) })
			f.Is("row after the change", again[0], rows[0])
			return err
		})
		f.Tx(func(tx *db.Tx) error { return RemoveInventory(tx, []int64{rows[1].ID, rows[2].ID}) })
		f.Is("remaining rows", len(values(f, v)), 1)
		f.Is("rows of another user", len(values(f, u)), 1)
		err := f.DB.InTx(f.Context(), func(tx *db.Tx) error {
			return addInventory(tx, v, app, "2", []Row{{AssetID: "a", Amount: 1}}, nil)
		})
		if err == nil {
			f.Error("adding the same asset twice: got no error, want one")
		}
		f.Tx(func(tx *db.Tx) error {
			return addInventory(tx, v, app, "6", []Row{{AssetID: "a", Amount: 1}}, nil)
		})
	})
}

func TestRows_SupportsLargeInventories(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		const n = 12_000 // requires more than one statement
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprint("name ", i)
		}
		items, userKey := catalogtest.Items(f, app, names...), own(f, "u")
		f.Tx(func(tx *db.Tx) error {
			rows := make([]Row, n)
			for i := range rows {
				rows[i] = Row{AssetID: fmt.Sprint(i), ItemID: items[i], Amount: 1}
			}
			return addInventory(tx, userKey, app, "2", rows, nil)
		})
		f.Tx(func(tx *db.Tx) error {
			rows, err := inventoryRows(tx, userKey, app, "2")
			if err != nil {
				return err
			}
			f.Is("number of rows", len(rows), n)
			ids := make([]int64, len(rows))
			for i := range rows {
				ids[i], rows[i].Amount = rows[i].ID, 2
			}
			if err := changeInventory(tx, rows); err != nil {
				return err
			}
			return RemoveInventory(tx, ids[1:])
		})
		f.Is("remaining rows", len(values(f, userKey)), 1)
	})
}

func TestSync_ConcurrentSyncsQueueEachNameOnce(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		const users, size = 200, 20
		s := &Service{InTx: f.DB.InTx, Queued: func() {}, Inspectable: func() {}}
		var queued atomic.Int64
		distinct := map[string]bool{}
		pushes := make([]Push, users)
		for u := range pushes {
			var names []string
			for i := range size {
				n := fmt.Sprint("common ", (u+i)%40) // in a different order for each push
				if i%5 == 4 {
					n = fmt.Sprint("unique ", u, " ", i)
				}
				names = append(names, n)
				distinct[n] = true
			}
			slices.Reverse(names)
			pushes[u] = Push{AppID: app, ContextID: "2", SnapshotAt: f.Now}
			for i, n := range names {
				pushes[u].Assets = append(pushes[u].Assets, Asset{AssetID: fmt.Sprint(i), Name: n, Amount: 1})
			}
		}
		dbtest.AtOnce(users, func(u int) {
			r, err := s.Sync(f.Context(), fmt.Sprint("user ", u/2), pushes[u], Normal) // two pushes per user
			if err != nil {
				f.Error(err)
			}
			queued.Add(r.QueuedNames)
		})
		f.Is("names queued", queued.Load(), int64(len(distinct)))
		var due int64
		f.Tx(func(tx *db.Tx) error { return tx.QueryRow(`SELECT count(*) FROM missing_price`).Scan(&due) })
		f.Is("length of the queue", due, int64(len(distinct)))
		for u := range users / 2 {
			key, known, err := user.Key(f.Context(), f.DB, fmt.Sprint("user ", u))
			f.Must(err)
			f.Is("the user exists", known, true)
			f.Is("rows of a user", len(values(f, key)), size)
		}
	})
}

// own adds one asset of each item to a user's inventory, with the asset ids a, b and so on.
func own(f *dbtest.Fixture, userID string, items ...int64) (userKey int64) {
	f.Helper()
	f.Tx(func(tx *db.Tx) (err error) {
		if userKey, err = user.Ensure(tx, userID); err != nil {
			return err
		}
		prices, err := catalog.LockPrices(tx, items)
		if err != nil {
			return err
		}
		rows := make([]Row, len(items))
		for i, id := range items {
			rows[i] = Row{AssetID: string(rune('a' + i)), ItemID: id, Amount: 1, Tradable: true, Marketable: true}
		}
		return addInventory(tx, userKey, app, "2", rows, prices)
	})
	return userKey
}

// values returns the values of a user's rows in order of id.
func values(f *dbtest.Fixture, userKey int64) (out []money.Micro) {
	f.Helper()
	f.Tx(func(tx *db.Tx) (err error) {
		out, err = db.Collect(tx.Context(), tx, func(r *sql.Rows, v *money.Micro) error { return r.Scan(v) },
			`SELECT coalesce(value, 0) FROM inventory WHERE user_key = $1 ORDER BY id`, userKey)
		return err
	})
	return out
}
