package catalog_test

import (
	"slices"
	"testing"

	"assay/internal/catalog"
	"assay/internal/catalog/catalogtest"
	"assay/internal/db"
	"assay/internal/db/dbtest"
)

const app = catalog.CS2

func TestEnsureItems_KeepsNamesByteForByte(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		names := catalogtest.Names()
		ids := catalogtest.Items(f, app, names...)
		if n := len(slices.Compact(slices.Sorted(slices.Values(ids)))); n != len(names) {
			f.Errorf("got %d items, want one for each of %d names", n, len(names))
		}
		f.Tx(func(tx *db.Tx) error {
			for i, want := range names {
				var name string
				if err := tx.QueryRow(`SELECT name FROM item WHERE id = $1`, ids[i]).Scan(&name); err != nil {
					return err
				}
				f.Is("name of the item", name, want)
			}
			return nil
		})
	})
}

func TestEnsureItems_CreatesAnItemOnce(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		first := catalogtest.Items(f, app, "A", "B")
		again := catalogtest.Items(f, app, "B", "C", "A")
		f.Is("id of item A", again[2], first[0])
		f.Is("id of item B", again[0], first[1])
		if again[1] == 0 || again[1] == first[0] || again[1] == first[1] {
			f.Errorf("item C: got the id %d, want a new id", again[1])
		}
		// The game and the phase are parts of the key.
		f.Tx(func(tx *db.Tx) error {
			phases, err := catalog.EnsureItems(tx, app, []catalog.Key{{AppID: app, Name: "A", Phase: "Ruby"}, {AppID: app, Name: "A"}})
			f.Is("items of two phases", len(phases), 2)
			f.Is("id of the item without a phase", phases[key("A")].ID, first[0])
			if err != nil {
				return err
			}
			other, err := catalog.EnsureItems(tx, catalog.Rust, []catalog.Key{{AppID: catalog.Rust, Name: "A"}})
			if id := other[catalog.Key{AppID: catalog.Rust, Name: "A"}].ID; id == first[0] || id == 0 {
				f.Errorf("item A of another game: got the id %d, want a new id", id)
			}
			return err
		})
	})
}

func key(name string) catalog.Key { return catalog.Key{AppID: app, Name: name} }
