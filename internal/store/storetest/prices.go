package storetest

import (
	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/store"
)

func pricesAreLookedUp(f *fixture) {
	names := trapNames()
	f.own("u", f.items(append(names, "waits", "idle")...)...)
	f.run(10)
	f.tx(func(tx *store.Tx) error {
		items, err := tx.EnsureItems(app, []catalog.Key{{AppID: app, Name: names[0], Phase: "Ruby"}, key("queued")})
		if err != nil {
			return err
		}
		_, err = tx.QueueMissing([]int64{items[key("queued")].ID})
		return err
	})
	keys := []catalog.Key{key("queued"), key("nobody"), {AppID: app, Name: names[0], Phase: "Ruby"}, key("queued")}
	for _, n := range names {
		keys = append(keys, key(n))
	}
	got, err := f.s.Prices(f.Context(), app, keys)
	f.must(err)
	f.is("items found", len(got), len(names)+2)
	for _, n := range names {
		f.is("price of "+n, got[key(n)], store.Price{Amount: 10, UpdatedAt: f.now, CheckedAt: f.now})
	}
	f.is("queued", got[key("queued")], store.Price{Status: pricing.NoPrice, Queued: true})
	f.is("another phase", got[keys[2]], store.Price{Status: pricing.NoPrice})
	other, err := f.s.Prices(f.Context(), catalog.Rust, []catalog.Key{key(names[0])})
	f.must(err)
	f.is("items of another game", len(other), 0)
	f.is("amount", got[key(names[0])].Amount, money.Micro(10))
}
