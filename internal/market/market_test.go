package market_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/inventory/syncs"
	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/user"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
	"assay/internal/wallet/fee"
	"assay/internal/wallet/fee/feetest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.RunOnEngines(m)) }

const (
	app = catalog.CS2
	ctx = "2"
)

// fixture is a market with a database and a clock.
type fixture struct {
	*testing.T
	db          dbtest.Database
	s           *db.DB
	m           *market.Service
	now         atomic.Int64                   // microseconds
	queued      atomic.Int64                   // number of calls of inventory.Service.Queued
	synced      func()                         // called after a sync that queued items; may be nil
	steam       func() (inventory.Push, error) // result of a pull from Steam
	inventories *inventory.Service
	ledger      *wallet.Ledger
	rates       pricing.Rates
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	database := dbtest.NewDatabase(t)
	w := &fixture{T: t, db: database}
	w.now.Store(dbtest.Epoch.UnixMicro())
	s, err := db.Open(t.Context(), db.Options{Path: database.Path, URL: database.URL, Now: w.clock})
	w.must(err)
	t.Cleanup(func() { w.must(s.Close()) })
	w.s = s
	ring, err := wallet.NewRing([]wallet.Key{{ID: "k1", Bytes: make([]byte, 32)}})
	w.must(err)
	w.ledger = &wallet.Ledger{Keys: ring}
	feetest.Activate(t, s, ring, fee.BuiltIn())
	w.inventories = &inventory.Service{InTx: s.InTx, Queued: w.itemsQueued, Inspectable: func() {}, Synced: market.InventoryTouched}
	pulls := syncs.New(w.inventories, steaminv.Options{
		SteamID: func(ctx context.Context, userID string) (string, error) {
			u, err := user.Read(ctx, s, userID)
			return u.SteamID, err
		},
		Pull:   func(context.Context, string, steaminv.Place) (inventory.Push, error) { return w.steam() },
		Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(pulls.Close)
	w.m = market.New(market.Options{
		Store: s, Ledger: w.ledger, Syncs: pulls, Base: "USD", Hold: 168 * time.Hour, MaxAge: 15 * time.Minute, Now: w.clock,
		Rates: func(context.Context) (pricing.Rates, error) { return w.rates, nil },
	})
	return w
}

func (w *fixture) clock() time.Time { return time.UnixMicro(w.now.Load()).UTC() }

func (w *fixture) advance(d time.Duration) { w.now.Add(d.Microseconds()) }

func (w *fixture) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// wantFault fails the test unless err is a fault with the given kind and code.
func (w *fixture) wantFault(err error, kind fault.Kind, code string) {
	w.Helper()
	if f := fault.Of(err); f == nil || f.Code != code || f.Kind != kind {
		w.Errorf("got error %v, want the fault %s", err, code)
	}
}

func (w *fixture) itemsQueued() {
	w.queued.Add(1)
	if w.synced != nil {
		w.synced()
	}
}

// onSteam gives a user a Steam id.
func (w *fixture) onSteam(userID string) {
	w.Helper()
	w.must(w.inventories.PutUser(w.Context(), user.User{ID: userID, SteamID: "76561198000000001"}))
}

// pull lets a pull from Steam return an inventory.
func (w *fixture) pull(assets ...inventory.Asset) {
	w.steam = func() (inventory.Push, error) {
		return inventory.Push{AppID: app, ContextID: ctx, SnapshotAt: w.clock(), Assets: assets}, nil
	}
}

func asset(id, name string) inventory.Asset {
	return inventory.Asset{AssetID: id, Name: name, Amount: 1, Tradable: true, Marketable: true}
}

// push stores an inventory of a user.
func (w *fixture) push(user string, assets ...inventory.Asset) {
	w.Helper()
	_, err := w.inventories.Sync(w.Context(), user, inventory.Push{AppID: app, ContextID: ctx, SnapshotAt: w.clock(), Assets: assets}, inventory.Normal)
	w.must(err)
}

// list lists an asset. It returns the reason if the offer was refused.
func (w *fixture) list(user, assetID string, price int64) (l market.Created, err error) {
	w.Helper()
	err = w.m.Create(w.Context(), market.Offers{
		UserID: user, AppID: app, ContextID: ctx, Offers: []market.Offer{{AssetID: assetID, Price: price, Currency: "USD"}},
	}, func(_ *db.Tx, made []market.Created) error {
		l = made[0]
		if l.Refused != nil {
			return l.Refused
		}
		return nil
	})
	return l, err
}

func (w *fixture) mustList(user, assetID string, price int64) market.Listing {
	w.Helper()
	l, err := w.list(user, assetID, price)
	w.must(err)
	return l.Listing
}

func (w *fixture) buy(id int64, buyer string) (t market.Trade, err error) {
	w.Helper()
	err = w.m.Purchase(w.Context(), market.Purchase{ListingID: id, Buyer: buyer}, func(_ *db.Tx, made market.Trade) error {
		t = made
		return nil
	})
	return t, err
}

// fund deposits startBalance for each user.
func (w *fixture) fund(users ...string) {
	w.Helper()
	for _, user := range users {
		w.deposit(user, "USD", startBalance)
	}
}

func (w *fixture) deposit(user string, currency money.Currency, amount int64) {
	w.Helper()
	w.must(w.s.InTx(w.Context(), func(tx *db.Tx) error {
		_, err := w.ledger.Deposit(tx, wallet.Account{User: user, Currency: currency}, amount, wallet.Request{})
		return err
	}))
}

// startBalance is the amount that fund deposits, in cents.
const startBalance = 1_000_000

// wantBalances fails the test unless users have the given "balance/held". The key
// "house:fee" stands for the sum of all fee accounts. It also checks that all balances
// add up to 0.
func (w *fixture) wantBalances(want map[string]string) {
	w.Helper()
	got, sum := map[string]string{}, int64(0)
	var fees int64
	w.must(audit.ReadLedger(w.Context(), w.s, func(l *audit.Snapshot) error {
		heads, err := l.Heads("", wallet.Account{}, 10_000)
		for _, h := range heads {
			got[h.User], sum = fmt.Sprintf("%d/%d", h.Balance, h.Held), sum+h.Balance
			if wallet.HouseName(h.User) == wallet.HouseFee {
				fees += h.Balance
			}
		}
		return err
	}))
	got[wallet.HouseFee] = fmt.Sprintf("%d/0", fees)
	for user, figures := range want {
		if got[user] != figures {
			w.Errorf("balance/held of %s: got %q, want %q", user, got[user], figures)
		}
	}
	if sum != 0 {
		w.Errorf("sum of all balances: got %d, want 0", sum)
	}
}

// sell lists an asset and sells it to a buyer.
func (w *fixture) sell(seller, buyer, assetID string, price int64) market.Trade {
	w.Helper()
	l := w.mustList(seller, assetID, price)
	t, err := w.buy(l.ID, buyer)
	w.must(err)
	return t
}

func (w *fixture) state(listing int64) market.ListingState {
	w.Helper()
	l, err := market.ReadListing(w.Context(), w.s, listing)
	w.must(err)
	return l.State
}

// price sets the price of an item, in the way of a refresh.
func (w *fixture) price(name string, p money.Micro) {
	w.Helper()
	w.raw(`UPDATE item SET price = $1, price_checked_at = $2 WHERE name = $3`, int64(p), w.now.Load(), name)
}

// raw runs a statement on a separate connection. It returns the number of changed rows.
func (w *fixture) raw(query string, args ...any) int64 {
	w.Helper()
	raw := w.db.Raw(w)
	defer raw.Close()
	res, err := raw.ExecContext(w.Context(), query, args...)
	w.must(err)
	n, err := res.RowsAffected()
	w.must(err)
	return n
}

func TestCreate_ListsAnOwnedAsset(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	made, err := w.list("u", "1", 1250)
	w.must(err)
	l := made.Listing
	if l.State != market.Active || l.Seller != "u" || l.Item.Name != "x" || l.Price != 1250 || l.Currency != "USD" || l.ID == 0 || made.Price != 0 {
		t.Errorf("got %+v, want an active listing of x for 1250 USD", made)
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
		t.Fatalf("got %+v, want 4 results, the first and third not refused", made)
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

// TestRule3_ARenewedInventoryRefreshesNoKnownPrice tests rule 3 of the contract.
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

func TestSync_ExpiresListingsOfMissingAssets(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	one, two := w.mustList("u", "1", 1), w.mustList("u", "2", 1)
	w.push("u", asset("2", "x"))
	if w.state(one.ID) != market.Expired || w.state(two.ID) != market.Active {
		t.Errorf("got the states %s and %s, want expired and active", w.state(one.ID), w.state(two.ID))
	}
	_, err := w.buy(one.ID, "b")
	w.wantFault(err, fault.Conflict, "listing_expired")
	_, err = w.m.Cancel(t.Context(), one.ID)
	w.wantFault(err, fault.Conflict, "listing_expired")
}

func TestSync_ExpiresListingsWithTooLargeAmounts(t *testing.T) {
	w := newFixture(t)
	five := asset("1", "x")
	five.Amount = 5
	w.push("u", five)
	l := w.mustList("u", "1", 1)
	five.Amount = 6
	w.push("u", five)
	if s := w.state(l.ID); s != market.Active {
		t.Errorf("listing of 5 with 6 in the inventory: got %s, want active", s)
	}
	five.Amount = 4
	w.push("u", five)
	if s := w.state(l.ID); s != market.Expired {
		t.Errorf("listing of 5 with 4 in the inventory: got %s, want expired", s)
	}
	if l := w.mustList("u", "1", 1); l.Amount != 4 {
		t.Errorf("new listing: got the amount %d, want 4", l.Amount)
	}
}

// TestSync_UpdatesOrExpiresListingsOfChangedAssets changes the name or phase of a listed
// asset.
func TestSync_UpdatesOrExpiresListingsOfChangedAssets(t *testing.T) {
	const name = "★ Karambit | Doppler (Factory New)"
	w := newFixture(t)
	for i, c := range []struct {
		what              string
		name, phase       string // when listed
		newName, newPhase string // after the sync
		want              market.ListingState
		wantPhase         string
	}{
		{"unchanged", name, "", name, "", market.Active, ""},
		{"phase found", name, "", name, "Ruby", market.Active, "Ruby"},
		{"other phase", name, "Ruby", name, "Phase 1", market.Expired, "Ruby"},
		{"phase lost", name, "Ruby", name, "", market.Expired, "Ruby"},
		{"other name", "x", "", "y", "", market.Expired, ""},
		{"other name and phase", "x", "", name, "Ruby", market.Expired, ""},
		{"name lost", "x", "", "", "", market.Expired, ""},
	} {
		user := "u" + strconv.Itoa(i)
		was, is := asset("1", c.name), asset("1", c.newName)
		was.Phase, is.Phase, is.Marketable = c.phase, c.newPhase, c.newName != ""
		w.push(user, was)
		l := w.mustList(user, "1", 1)
		w.push(user, is)
		got, err := market.ReadListing(t.Context(), w.s, l.ID)
		w.must(err)
		if got.State != c.want || got.Item.Name != c.name || got.Item.Phase != c.wantPhase {
			t.Errorf("%s: got %s and %+v, want %s and phase %q", c.what, got.State, got.Item, c.want, c.wantPhase)
		}
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

func TestPurchase_IsAtomic(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"))
	l := w.mustList("u", "1", 700)
	_, err := w.buy(l.ID, "u")
	w.wantFault(err, fault.Conflict, "own_listing")
	_, err = w.buy(999, "b")
	w.wantFault(err, fault.NotFound, "listing_not_found")
	_, err = w.buy(l.ID, "house:fee:00")
	w.wantFault(err, fault.Unprocessable, "reserved_user")

	_, err = w.buy(l.ID, "b")
	w.wantFault(err, fault.Conflict, "insufficient_funds")
	if w.state(l.ID) != market.Active || w.inTransfer("u", "1") {
		t.Error("refused purchase: the listing or the asset changed, want no change")
	}
	if _, known, _ := user.Key(t.Context(), w.s, "b"); known {
		t.Error("refused purchase: the buyer exists, want no new user")
	}
	w.fund("b")
	trade, err := w.buy(l.ID, "b")
	w.must(err)
	stored, err := market.ReadTrade(t.Context(), w.s, trade.ID)
	w.must(err)
	if *stored != trade || trade.Seller != "u" || trade.Buyer != "b" || trade.Price != 700 || trade.State != market.Pending {
		t.Errorf("got the trade %+v and the stored trade %+v, want the same pending trade of u and b", trade, stored)
	}
	if trade.Fee != 35 || trade.Net != 665 || trade.FeeRule != "sale" || trade.FeeVersion != 1 || trade.TransactionID == 0 {
		t.Errorf("got the trade %+v, want the fee 35, net 665 and rule sale", trade)
	}
	w.wantBalances(map[string]string{"b": "999300/0", "u": "665/665", "house:fee": "35/0"})
	if w.state(l.ID) != market.Sold || !w.inTransfer("u", "1") {
		t.Error("after the purchase: want a sold listing and an asset in transfer")
	}
	_, err = w.buy(l.ID, "c")
	w.wantFault(err, fault.Conflict, "listing_sold")
	_, err = w.list("u", "1", 1)
	w.wantFault(err, fault.Conflict, "asset_in_transfer")
}

func TestPurchase_AppliesTheFeeRuleOfThePayment(t *testing.T) {
	w := newFixture(t)
	set, err := fee.Decode(strings.NewReader(`{"rules":[
		{"id":"card","priority":1,"conditions":{"kind":["sale"],"paymentMethod":["card"],"country":["DE"],"currency":["USD"]},"basisPoints":1000,"fixed":7}],
		"fallback":{"basisPoints":100}}`))
	w.must(err)
	feetest.Activate(t, w.s, w.ledger.Keys, set)
	w.push("u", asset("1", "x"), asset("2", "x"), asset("3", "x"))
	w.fund("b")
	for i, c := range []struct {
		method, country, rule string
		fee                   int64
	}{{"card", "DE", "card", 107}, {"card", "AT", fee.FallbackID, 10}, {"", "", fee.FallbackID, 10}} {
		l := w.mustList("u", strconv.Itoa(i+1), 1000)
		var made market.Trade
		w.must(w.m.Purchase(t.Context(), market.Purchase{ListingID: l.ID, Buyer: "b", PaymentMethod: c.method, Country: c.country},
			func(_ *db.Tx, t market.Trade) error {
				made = t
				return nil
			}))
		if made.FeeRule != c.rule || made.FeeVersion != 2 || made.Fee != c.fee || made.Net != 1000-c.fee || made.Country != c.country {
			t.Errorf("payment %q from %q: got %+v, want the rule %s and the fee %d", c.method, c.country, made, c.rule, c.fee)
		}
	}
	w.wantBalances(map[string]string{"b": "997000/0", "u": "2873/2873", "house:fee": "127/0"})
	w.push("v", asset("1", "x"))
	err = w.m.Purchase(t.Context(), market.Purchase{ListingID: w.mustList("v", "1", 1000).ID, Buyer: "b", Country: "Germany"}, nil)
	w.wantFault(err, fault.Unprocessable, "invalid_payment")
}

func (w *fixture) inTransfer(userID, assetID string) bool {
	w.Helper()
	key, _, err := user.Key(w.Context(), w.s, userID)
	w.must(err)
	rows, err := view.ReadInventory(w.Context(), w.s, key, 0, 0, 100)
	w.must(err)
	for _, r := range rows {
		if r.AssetID == assetID {
			return r.Moving
		}
	}
	return false
}

func TestSync_EndsTransfersOfReversedTrades(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	w.fund("b")
	trade := w.sell("u", "b", "1", 5)
	other := w.sell("u", "b", "2", 5)
	w.push("u", asset("1", "x"), asset("2", "x"))
	if !w.inTransfer("u", "1") {
		t.Error("pending trade: not in transfer after a sync, want in transfer")
	}
	_, err := w.m.Complete(t.Context(), trade.ID)
	w.must(err)
	_, err = w.m.Reverse(t.Context(), trade.ID)
	w.must(err)
	_, err = w.list("u", "1", 5) // applies the push from before the reversal again
	w.wantFault(err, fault.Conflict, "asset_in_transfer")
	if !w.inTransfer("u", "1") {
		t.Error("reversed trade without a new push: not in transfer, want in transfer")
	}
	w.push("u", asset("1", "x"))
	if w.inTransfer("u", "1") {
		t.Error("reversed trade after a new push: in transfer, want the end of the transfer")
	}
	w.mustList("u", "1", 5)
	_, err = w.m.Complete(t.Context(), other.ID) // its asset has left the inventory
	w.must(err)
}

func TestReverse_EndsTheTransferOfAPendingTrade(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	w.fund("b")
	trade := w.sell("u", "b", "1", 5)
	w.sell("u", "b", "2", 5)
	for range 2 {
		_, err := w.m.Reverse(t.Context(), trade.ID)
		w.must(err)
	}
	if w.inTransfer("u", "1") || !w.inTransfer("u", "2") {
		t.Error("after the reversal: want asset 1 not in transfer and asset 2 in transfer")
	}
	again := w.mustList("u", "1", 5)
	_, err := w.buy(again.ID, "b")
	w.must(err)
	_, err = w.m.Reverse(t.Context(), trade.ID)
	w.must(err)
	if !w.inTransfer("u", "1") {
		t.Error("after a repeated reversal: the asset of the newer trade is not in transfer, want in transfer")
	}
}

func TestSync_ExpiresListingsOfUntradableAssets(t *testing.T) {
	w := newFixture(t)
	held, kept := asset("1", "x"), asset("2", "x")
	w.push("u", held, kept)
	one, two := w.mustList("u", "1", 5), w.mustList("u", "2", 5)
	held.Tradable = false
	w.push("u", held, kept)
	if w.state(one.ID) != market.Expired || w.state(two.ID) != market.Active {
		t.Errorf("got the states %s and %s, want expired and active", w.state(one.ID), w.state(two.ID))
	}
	w.fund("b")
	_, err := w.buy(one.ID, "b")
	w.wantFault(err, fault.Conflict, "listing_expired")
	_, err = w.list("u", "1", 5)
	w.wantFault(err, fault.Conflict, "not_tradable")
}

// TestSync_KeepsTransfersOfAssetsThatReappear removes a sold asset from the inventory and
// adds it again.
func TestSync_KeepsTransfersOfAssetsThatReappear(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	w.fund("b")
	pending, completed := w.sell("u", "b", "1", 5), w.sell("u", "b", "2", 5)
	_, err := w.m.Complete(t.Context(), completed.ID)
	w.must(err)
	w.push("u")
	w.push("u", asset("1", "x"), asset("2", "x"))
	_, err = w.list("u", "1", 5)
	w.wantFault(err, fault.Conflict, "asset_in_transfer")
	w.mustList("u", "2", 5) // the asset was handed over and has returned since
	_, err = w.m.Reverse(t.Context(), pending.ID)
	w.must(err)
	w.push("u", asset("1", "x"), asset("2", "x"))
	w.mustList("u", "1", 5)
}

func TestTrades_AllowOnlyForwardTransitions(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "x"), asset("3", "x"))
	w.fund("b", "c")
	kept, taken, early := w.sell("u", "b", "1", 100), w.sell("u", "b", "2", 100), w.sell("u", "c", "3", 100)
	begin := w.clock()
	for range 2 {
		got, err := w.m.Complete(t.Context(), kept.ID)
		w.must(err)
		if got.State != market.Completed || !got.CompletedAt.Equal(begin) || !got.ReversibleUntil().Equal(begin.Add(7*24*time.Hour)) {
			t.Errorf("Complete: got %+v, want the trade completed at %v", got, begin)
		}
		w.advance(time.Second)
	}
	_, err := w.m.Complete(t.Context(), taken.ID)
	w.must(err)
	for _, id := range []int64{taken.ID, taken.ID, early.ID} {
		got, err := w.m.Reverse(t.Context(), id)
		w.must(err)
		if got.State != market.Reversed || got.ReversedAt.IsZero() {
			t.Errorf("Reverse: got %+v, want a reversed trade", got)
		}
	}
	w.wantBalances(map[string]string{"b": "999900/0", "c": "1000000/0", "u": "95/95", "house:fee": "5/0"})
	_, err = w.m.Complete(t.Context(), taken.ID)
	w.wantFault(err, fault.Conflict, "trade_reversed")
	_, err = w.m.Complete(t.Context(), 999)
	w.wantFault(err, fault.NotFound, "trade_not_found")

	settled := func() *market.Trade {
		t.Helper()
		w.must(w.m.SettleDue(t.Context()))
		got, err := market.ReadTrade(t.Context(), w.s, kept.ID)
		w.must(err)
		return got
	}
	w.now.Store(begin.Add(168*time.Hour - time.Microsecond).UnixMicro())
	if got := settled(); got.State != market.Completed {
		t.Errorf("before the end of the hold: got %+v, want completed", got)
	}
	w.advance(time.Microsecond)
	if got := settled(); got.State != market.Settled || !got.SettledAt.Equal(w.clock()) {
		t.Errorf("at the end of the hold: got %+v, want settled now", got)
	}
	w.advance(time.Hour)
	if got := settled(); !got.SettledAt.Before(w.clock()) {
		t.Errorf("an hour later: got %+v, want the earlier settlement", got)
	}
	if got, err := w.m.Complete(t.Context(), kept.ID); err != nil || got.State != market.Settled {
		t.Errorf("Complete of a settled trade: got %v, %v, want settled, nil", got.State, err)
	}
	_, err = w.m.Reverse(t.Context(), kept.ID)
	w.wantFault(err, fault.Conflict, "trade_settled")
	w.wantBalances(map[string]string{"b": "999900/0", "u": "95/0", "house:fee": "5/0"})
}

func TestSettleDue_ContinuesAfterAFailure(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"))
	w.push("v", asset("1", "x"))
	w.fund("b")
	first, second := w.sell("u", "b", "1", 100), w.sell("v", "b", "1", 100)
	for _, id := range []int64{first.ID, second.ID} {
		_, err := w.m.Complete(t.Context(), id)
		w.must(err)
	}
	w.advance(168 * time.Hour)
	w.raw(`UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'u'`)
	if err := w.m.SettleDue(t.Context()); !errors.Is(err, wallet.ErrTampered) {
		t.Errorf("SettleDue: got %v, want %v", err, wallet.ErrTampered)
	}
	got, err := market.ReadTrade(t.Context(), w.s, second.ID)
	w.must(err)
	if got.State != market.Settled {
		t.Errorf("second trade: got %+v, want settled", got)
	}
	w.raw(`UPDATE wallet_account SET balance = balance - 1 WHERE user_id = 'u'`)
	w.must(w.m.SettleDue(t.Context()))
	if got, err = market.ReadTrade(t.Context(), w.s, first.ID); err != nil || got.State != market.Settled {
		t.Errorf("first trade after the repair: got %+v, %v, want settled", got, err)
	}
	w.wantBalances(map[string]string{"u": "95/0", "v": "95/0"})
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

// repriceDuringPurchase adds a trigger that changes the price of a listing in the middle of
// each purchase. It runs after the purchase has read the listing, when the asset becomes in
// transfer. The result is the SQL statement that removes the trigger.
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
