package market_test

import (
	"fmt"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/view"
)

func TestCreate_ListsAnOwnedAsset(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	made, err := w.list("u", "1", 1250)
	w.must(err)
	l := made.Listing
	if l.State != market.Active || l.Seller != "u" || l.Item.Name != "x" || l.Price != 1250 || l.Currency != "USD" || l.ID == 0 || made.Price != 0 {
		t.Errorf("got listing %+v, want an active one of x for 1250 USD", made)
	}
	_, err = w.list("u", "1", 1250)
	w.wantFault(err, fault.Conflict, "already_listed")
	_, err = w.list("u", "3", 1)
	w.wantFault(err, fault.Conflict, "not_owned")
}

func TestCreate_RefusesAssetsThatCannotBeSold(t *testing.T) {
	w := newFixture(t)
	locked, nameless := asset("1", "x"), asset("2", "")
	locked.Tradable, nameless.Marketable = false, false
	w.push("u", locked, nameless)
	_, err := w.list("u", "1", 1)
	w.wantFault(err, fault.Conflict, "not_tradable")
	_, err = w.list("u", "2", 1)
	w.wantFault(err, fault.Conflict, "not_marketable")
}

func TestCreate_ReturnsAResultForEachOffer(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "y"))
	var made []market.Created
	offers := market.Offers{UserID: "u", AppID: app, ContextID: ctx}
	for _, id := range []string{"1", "9", "2", "1"} {
		offers.Offers = append(offers.Offers, market.Offer{AssetID: id, Price: 5, Currency: "EUR"})
	}
	w.must(w.m.Create(t.Context(), offers, func(_ *db.Tx, all []market.Created) error {
		made = all
		return nil
	}))
	if len(made) != 4 || made[0].Refused != nil || made[2].Refused != nil {
		t.Fatalf("got results %+v, want 4, the first and third not refused", made)
	}
	w.wantFault(made[1].Refused, fault.Conflict, "not_owned")
	w.wantFault(made[3].Refused, fault.Conflict, "already_listed")
}

func TestCreate_RequiresAFreshInventory(t *testing.T) {
	w := newFixture(t)
	_, err := w.list("unknown", "1", 1)
	w.wantFault(err, fault.NotFound, "user_not_found")
	w.push("u", asset("1", "x"))
	w.advance(15*time.Minute + time.Microsecond)
	_, err = w.list("u", "1", 1)
	w.wantFault(err, fault.Unavailable, "inventory_unavailable")

	included := inventory.Push{AppID: app, ContextID: ctx, SnapshotAt: w.clock(), Assets: []inventory.Asset{asset("1", "x")}}
	with := func(p inventory.Push) error {
		return w.m.Create(t.Context(), market.Offers{
			UserID: "u", AppID: app, ContextID: ctx, Inventory: &p, Offers: []market.Offer{{AssetID: "1", Price: 1, Currency: "USD"}},
		}, func(*db.Tx, []market.Created) error { return nil })
	}
	old := included
	old.SnapshotAt = w.clock().Add(-16 * time.Minute)
	w.wantFault(with(old), fault.Unavailable, "inventory_unavailable")
	w.must(with(included))

	w.onSteam("s")
	for _, failure := range []error{
		fault.New(fault.Unavailable, "steam_throttled", "Slow down."), fault.New(fault.Conflict, "inventory_private", "It is private."),
	} {
		w.steam = func() (inventory.Push, error) { return inventory.Push{}, failure }
		_, err = w.list("s", "1", 1)
		w.wantFault(err, fault.Unavailable, "inventory_unavailable")
	}
	w.pull(asset("1", "x"))
	_, err = w.list("s", "1", 1)
	w.must(err)
}

// TestCreate_UsesANewerStoredInventory lists with an inventory that is older than the
// stored one. This happens if two requests for a seller arrive in the wrong order.
func TestCreate_UsesANewerStoredInventory(t *testing.T) {
	w := newFixture(t)
	older := inventory.Push{AppID: app, ContextID: ctx, SnapshotAt: w.clock(), Assets: []inventory.Asset{asset("1", "x"), asset("gone", "x")}}
	w.advance(time.Second)
	w.push("u", asset("1", "x"))
	offer := func(assetID string) error {
		return w.m.Create(t.Context(), market.Offers{
			UserID: "u", AppID: app, ContextID: ctx, Inventory: &older, Offers: []market.Offer{{AssetID: assetID, Price: 1, Currency: "USD"}},
		}, func(_ *db.Tx, made []market.Created) error {
			if made[0].Refused != nil {
				return made[0].Refused
			}
			return nil
		})
	}
	w.must(offer("1"))
	w.wantFault(offer("gone"), fault.Conflict, "not_owned")

	w.push("s", asset("1", "x"))
	w.onSteam("s")
	w.steam = func() (inventory.Push, error) { return older, nil }
	_, err := w.list("s", "1", 1)
	w.must(err)
}

func TestCreate_ReportsAnInvalidPull(t *testing.T) {
	w := newFixture(t)
	w.onSteam("s")
	err := w.m.Create(t.Context(), market.Offers{
		UserID: "s", AppID: 753, ContextID: "6", Offers: []market.Offer{{AssetID: "1", Price: 1, Currency: "USD"}},
	}, func(*db.Tx, []market.Created) error { return nil })
	w.wantFault(err, fault.Invalid, "unsupported_inventory")
}

// TestRule3_ARenewedInventoryRefreshesNoKnownPrice tests rule 3 of
// docs/explanation/refresh.md.
func TestRule3_ARenewedInventoryRefreshesNoKnownPrice(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "known"), asset("2", "missing"))
	w.raw(`DELETE FROM missing_price`)
	w.price("known", 5*money.Scale)
	w.raw(`UPDATE inventory SET value = NULL`)
	made, err := w.list("u", "1", 1)
	w.must(err)
	if made.Price != 5*money.Scale || made.CheckedAt.IsZero() {
		t.Errorf("got the price %v, checked at %v, want %v and a time", made.Price, made.CheckedAt, 5*money.Scale)
	}
	rows, err := view.ReadInventory(t.Context(), w.s, made.Listing.SellerKey, 0, 0, 10)
	w.must(err)
	for _, r := range rows {
		if want := map[string]money.Micro{"known": 5 * money.Scale}[r.Name]; r.Value != want {
			t.Errorf("value of %s: got %v, want %v", r.Name, r.Value, want)
		}
	}
	if n := w.raw(`UPDATE missing_price SET attempts = 0 WHERE item_id IN (SELECT id FROM item WHERE name = 'known')`); n != 0 {
		t.Errorf("got %d queue entries for the known price, want 0", n)
	}
	if n := w.raw(`UPDATE missing_price SET attempts = 0`); n != 1 || w.queued.Load() == 0 {
		t.Errorf("got %d queue entries and %d calls of Queued, want 1 and at least 1", n, w.queued.Load())
	}
}

func TestCancel_IsIdempotent(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"))
	l := w.mustList("u", "1", 1)
	for range 2 {
		got, err := w.m.Cancel(t.Context(), l.ID)
		w.must(err)
		if got.State != market.Cancelled {
			t.Errorf("got the state %s, want cancelled", got.State)
		}
	}
	_, err := w.m.Cancel(t.Context(), 999)
	w.wantFault(err, fault.NotFound, "listing_not_found")
	w.mustList("u", "1", 2) // a cancelled asset can be listed again
}

func TestReprice_ChangesOnlyActiveListings(t *testing.T) {
	w := newFixture(t)
	w.fund("b")
	w.push("u", asset("1", "x"))
	l := w.mustList("u", "1", 1000)
	got, err := w.m.Reprice(t.Context(), l.ID, 500)
	w.must(err)
	if got.Price != 500 || got.State != market.Active {
		t.Errorf("Reprice: got %+v, want an active listing for 500", got)
	}
	end := w.repriceDuringPurchase(l.ID, 700)
	_, err = w.buy(l.ID, "b")
	w.wantFault(err, fault.Conflict, "price_changed")
	w.raw(end)
	w.wantBalances(map[string]string{"b": fmt.Sprintf("%d/0", startBalance)})
	sold, err := w.buy(l.ID, "b")
	w.must(err)
	if sold.Price != 500 {
		t.Errorf("got the price %d, want 500", sold.Price)
	}
	_, err = w.m.Reprice(t.Context(), l.ID, 600)
	w.wantFault(err, fault.Conflict, "listing_sold")
	_, err = w.m.Reprice(t.Context(), 999, 600)
	w.wantFault(err, fault.NotFound, "listing_not_found")
}

// repriceDuringPurchase adds a trigger that changes the price of a listing in the middle of each
// purchase. The trigger runs after the purchase has read the listing, when the purchase marks the
// asset as in transfer. The result is the SQL statement that removes the trigger.
func (w *fixture) repriceDuringPurchase(listing, price int64) (end string) {
	w.Helper()
	end = `DROP TRIGGER reprice`
	change := fmt.Sprintf(`UPDATE listing SET price = %d WHERE id = %d AND state = 'active';`, price, listing)
	if w.db.Engine == dbtest.SQLite {
		w.raw(`CREATE TRIGGER reprice AFTER UPDATE OF in_transfer ON inventory BEGIN ` + change + ` END`)
	} else {
		w.raw(`CREATE FUNCTION reprice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + change + ` RETURN NULL; END $$`)
		w.raw(`CREATE TRIGGER reprice AFTER UPDATE OF in_transfer ON inventory FOR EACH ROW EXECUTE FUNCTION reprice()`)
		end += ` ON inventory`
	}
	return end
}
