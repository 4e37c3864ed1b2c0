package view_test

import (
	"slices"
	"testing"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/view"
)

func TestUnpricedItems_AreSortedByBytes(t *testing.T) {
	w := newWorld(t, false)
	names := []string{"B", "a", "A", "★", "b", "AB%"}
	w.tx(func(tx *db.Tx) error {
		keys := make([]catalog.Key, len(names))
		for i, n := range names {
			keys[i] = catalog.Key{AppID: app, Name: n}
		}
		_, err := catalog.EnsureItems(tx, app, keys)
		return err
	})
	slices.Sort(names)
	list := func(after string, limit int) (out []string) {
		items, err := view.UnpricedItems(w.Context(), w.store, app, after, "", limit)
		w.must(err)
		for _, i := range items {
			out = append(out, i.Key.Name)
		}
		return out
	}
	for _, c := range []struct {
		after string
		limit int
		want  []string
	}{
		{"", 100, names},
		{"", 2, names[:2]},
		{names[1], 100, names[2:]},
	} {
		if got := list(c.after, c.limit); !slices.Equal(got, c.want) {
			w.Errorf("items without a price after %q: got %q, want %q", c.after, got, c.want)
		}
	}
	w.tx(func(tx *db.Tx) error {
		_, err := catalog.EnsureItems(tx, app, []catalog.Key{{AppID: app, Name: "B", Phase: "Ruby"}, {AppID: app, Name: "B", Phase: "Emerald"}})
		return err
	})
	items, err := view.UnpricedItems(w.Context(), w.store, app, "B", "Emerald", 1)
	w.must(err)
	w.is("first item after the one with a phase", items[0].Key, catalog.Key{AppID: app, Name: "B", Phase: "Ruby"})
	w.own("u", names...)
	prices := map[string]money.Micro{}
	for _, n := range names {
		prices[n] = 10
	}
	w.price(prices)
	w.is("items without a price after all owned items got one", len(list("", 100)), 2)
}
