package market_test

import (
	"context"
	"errors"
	"fmt"
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

// world is a market on a store.
type world struct {
	*testing.T
	db     dbtest.Database
	s      *db.DB
	m      *market.Service
	now    atomic.Int64 // microseconds
	queued atomic.Int64 // times that the queue was told of
	steam  map[string]func() error
	ledger *wallet.Ledger
	rates  pricing.Rates
}

func newWorld(t *testing.T) *world {
	t.Helper()
	database := dbtest.NewDatabase(t)
	w := &world{T: t, db: database, steam: map[string]func() error{}}
	w.now.Store(dbtest.Epoch.UnixMicro())
	s, err := db.Open(t.Context(), db.Options{Path: database.Path, URL: database.URL, Now: w.clock})
	w.must(err)
	t.Cleanup(func() { w.must(s.Close()) })
	w.s = s
	ring, err := wallet.NewRing([]wallet.Key{{ID: "k1", Bytes: make([]byte, 32)}})
	w.must(err)
	w.ledger = &wallet.Ledger{Keys: ring}
	feetest.Activate(t, s, ring, fee.BuiltIn())
	w.m = market.New(market.Options{
		InTx: s.InSmallTx, Ledger: w.ledger, Inventories: sellers{w}, Due: func(ctx context.Context, now, after time.Time, afterID int64, limit int) ([]market.Due, error) {
			return market.ReadDue(ctx, s, now, after, afterID, limit)
		}, Base: "USD", Hold: 168 * time.Hour, MaxAge: 15 * time.Minute, Now: w.clock,
		Rates: func(context.Context) (pricing.Rates, error) { return w.rates, nil },
	})
	return w
}

func (w *world) clock() time.Time { return time.UnixMicro(w.now.Load()).UTC() }

func (w *world) pass(d time.Duration) { w.now.Add(d.Microseconds()) }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// refused fails unless an error is a fault of a code.
func (w *world) refused(err error, kind fault.Kind, code string) {
	w.Helper()
	if f := fault.Of(err); f == nil || f.Code != code || f.Kind != kind {
		w.Errorf("got %v, want the fault %s", err, code)
	}
}

// sellers brings inventories up to date with the real service.
type sellers struct{ w *world }

func (s sellers) service() *inventory.Service {
	return &inventory.Service{
		InTx:        s.w.s.InTx,
		Queued:      func() { s.w.queued.Add(1) },
		Inspectable: func() {},
		Synced:      market.InventoryTouched,
	}
}

func (s sellers) Pull(_ context.Context, userID string, _ int32, _ string) error {
	return s.w.steam[userID]()
}

func (s sellers) Push(c context.Context, userID string, p inventory.Push) error {
	_, err := s.service().Sync(c, userID, p, inventory.Listing)
	return err
}

func (s sellers) Renew(c context.Context, userID string, appID int32, contextID string, notBefore time.Time) (bool, error) {
	return s.service().Renew(c, userID, appID, contextID, notBefore)
}

func (s sellers) SteamID(_ context.Context, userID string) (string, bool, error) {
	if s.w.steam[userID] != nil {
		return "76561198000000001", true, nil
	}
	_, known, err := user.Key(s.w.Context(), s.w.s, userID)
	return "", known, err
}

func asset(id, name string) inventory.Asset {
	return inventory.Asset{AssetID: id, Name: name, Amount: 1, Tradable: true, Marketable: true}
}

// push makes a user's inventory.
func (w *world) push(user string, assets ...inventory.Asset) {
	w.Helper()
	_, err := sellers{w}.service().Sync(w.Context(), user, inventory.Push{AppID: app, ContextID: ctx, SnapshotAt: w.clock(), Assets: assets}, inventory.Normal)
	w.must(err)
}

// list lists an asset, or returns why it cannot be.
func (w *world) list(user, assetID string, price int64) (l market.Created, err error) {
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

func (w *world) mustList(user, assetID string, price int64) market.Listing {
	w.Helper()
	l, err := w.list(user, assetID, price)
	w.must(err)
	return l.Listing
}

func (w *world) buy(id int64, buyer string) (t market.Trade, err error) {
	w.Helper()
	err = w.m.Purchase(w.Context(), market.Purchase{ListingID: id, Buyer: buyer}, func(_ *db.Tx, made market.Trade) error {
		t = made
		return nil
	})
	return t, err
}

// give gives users money enough for all that a test buys.
func (w *world) give(users ...string) {
	w.Helper()
	for _, user := range users {
		w.deposit(user, "USD", riches)
	}
}

func (w *world) deposit(user string, currency money.Currency, amount int64) {
	w.Helper()
	w.must(w.s.InTx(w.Context(), func(tx *db.Tx) error {
		_, err := w.ledger.Deposit(tx, wallet.Account{User: user, Currency: currency}, amount, wallet.Request{})
		return err
	}))
}

// riches is what a user is given at once.
const riches = 1_000_000

// has fails unless users have these figures, "balance/held"; "house:fee" is what
// all of its shards have.
func (w *world) has(want map[string]string) {
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
			w.Errorf("%s has %s, want %s", user, got[user], figures)
		}
	}
	if sum != 0 {
		w.Errorf("all wallets together have %d", sum)
	}
}

// sold lists an asset of a new push and sells it.
func (w *world) sold(seller, buyer, assetID string, price int64) market.Trade {
	w.Helper()
	l := w.mustList(seller, assetID, price)
	t, err := w.buy(l.ID, buyer)
	w.must(err)
	return t
}

func (w *world) state(listing int64) market.ListingState {
	w.Helper()
	l, err := market.ReadListing(w.Context(), w.s, listing)
	w.must(err)
	return l.State
}

// price gives an item a price, as a run would.
func (w *world) price(name string, p money.Micro) {
	w.Helper()
	w.raw(`UPDATE item SET price = $1, price_checked_at = $2 WHERE name = $3`, int64(p), w.now.Load(), name)
}

// raw changes the database beside the store, and returns how many rows it touched.
func (w *world) raw(query string, args ...any) int64 {
	w.Helper()
	raw := w.db.Raw(w)
	defer raw.Close()
	res, err := raw.ExecContext(w.Context(), query, args...)
	w.must(err)
	n, err := res.RowsAffected()
	w.must(err)
	return n
}

func TestCreate_ListsWhatIsOwned(t *testing.T) {
	w := newWorld(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	made, err := w.list("u", "1", 1250)
	w.must(err)
	l := made.Listing
	if l.State != market.Active || l.Seller != "u" || l.Item.Name != "x" || l.Price != 1250 || l.Currency != "USD" || l.ID == 0 || made.Price != 0 {
		t.Errorf("%+v", made)
	}
	_, err = w.list("u", "1", 1250)
	w.refused(err, fault.Conflict, "already_listed")
	_, err = w.list("u", "3", 1)
	w.refused(err, fault.Conflict, "not_owned")
}

func TestCreate_RefusesWhatCannotBeSold(t *testing.T) {
	w := newWorld(t)
	locked, nameless := asset("1", "x"), asset("2", "")
	locked.Tradable, nameless.Marketable = false, false
	w.push("u", locked, nameless)
	_, err := w.list("u", "1", 1)
	w.refused(err, fault.Conflict, "not_tradable")
	_, err = w.list("u", "2", 1)
	w.refused(err, fault.Conflict, "not_marketable")
}

func TestCreate_AnswersEachOfSeveral(t *testing.T) {
	w := newWorld(t)
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
		t.Fatalf("%+v", made)
	}
	w.refused(made[1].Refused, fault.Conflict, "not_owned")
	w.refused(made[3].Refused, fault.Conflict, "already_listed")
}

func TestCreate_WantsAFreshInventory(t *testing.T) {
	w := newWorld(t)
	_, err := w.list("nobody", "1", 1)
	w.refused(err, fault.NotFound, "user_not_found")
	w.push("u", asset("1", "x"))
	w.pass(15*time.Minute + time.Microsecond)
	_, err = w.list("u", "1", 1)
	w.refused(err, fault.Unavailable, "inventory_unavailable")

	along := inventory.Push{AppID: app, ContextID: ctx, SnapshotAt: w.clock(), Assets: []inventory.Asset{asset("1", "x")}}
	with := func(p inventory.Push) error {
		return w.m.Create(t.Context(), market.Offers{
			UserID: "u", AppID: app, ContextID: ctx, Inventory: &p, Offers: []market.Offer{{AssetID: "1", Price: 1, Currency: "USD"}},
		}, func(*db.Tx, []market.Created) error { return nil })
	}
	old := along
	old.SnapshotAt = w.clock().Add(-16 * time.Minute)
	w.refused(with(old), fault.Unavailable, "inventory_unavailable")
	w.must(with(along))

	w.steam["s"] = func() error { return fault.New(fault.Unavailable, "steam_throttled", "Slow down.") }
	_, err = w.list("s", "1", 1)
	w.refused(err, fault.Unavailable, "inventory_unavailable")
	w.steam["s"] = func() error { return fault.New(fault.Conflict, "inventory_private", "It is private.") }
	_, err = w.list("s", "1", 1)
	w.refused(err, fault.Unavailable, "inventory_unavailable")
	w.steam["s"] = func() error {
		w.push("s", asset("1", "x"))
		return nil
	}
	_, err = w.list("s", "1", 1)
	w.must(err)
}

// TestCreate_TakesANewerInventoryThanItsOwn is of two who list for a seller at
// once, of whom the first is the last to be heard.
func TestCreate_TakesANewerInventoryThanItsOwn(t *testing.T) {
	w := newWorld(t)
	own := inventory.Push{AppID: app, ContextID: ctx, SnapshotAt: w.clock(), Assets: []inventory.Asset{asset("1", "x"), asset("gone", "x")}}
	w.pass(time.Second)
	w.push("u", asset("1", "x"))
	offer := func(assetID string) error {
		return w.m.Create(t.Context(), market.Offers{
			UserID: "u", AppID: app, ContextID: ctx, Inventory: &own, Offers: []market.Offer{{AssetID: assetID, Price: 1, Currency: "USD"}},
		}, func(_ *db.Tx, made []market.Created) error {
			if made[0].Refused != nil {
				return made[0].Refused
			}
			return nil
		})
	}
	w.must(offer("1"))
	w.refused(offer("gone"), fault.Conflict, "not_owned")

	w.push("s", asset("1", "x"))
	w.steam["s"] = func() error {
		_, err := sellers{w}.service().Sync(t.Context(), "s", own, inventory.Listing)
		return err
	}
	_, err := w.list("s", "1", 1)
	w.must(err)
}

func TestCreate_TellsWhatSteamIsNeverAskedFor(t *testing.T) {
	w := newWorld(t)
	w.steam["s"] = steaminv.Place{AppID: 753, ContextID: "6"}.Check
	_, err := w.list("s", "1", 1)
	w.refused(err, fault.Invalid, "unsupported_inventory")
}

// TestRule3_ARenewedInventoryRefreshesNoKnownPrice is contract, rule 3.
func TestRule3_ARenewedInventoryRefreshesNoKnownPrice(t *testing.T) {
	w := newWorld(t)
	w.push("u", asset("1", "known"), asset("2", "missing"))
	w.raw(`DELETE FROM missing_price`)
	w.price("known", 5*money.Scale)
	w.raw(`UPDATE inventory SET value = NULL`)
	made, err := w.list("u", "1", 1)
	w.must(err)
	if made.Price != 5*money.Scale || made.CheckedAt.IsZero() {
		t.Errorf("the price is %v, checked at %v", made.Price, made.CheckedAt)
	}
	rows, err := view.ReadInventory(t.Context(), w.s, made.Listing.SellerKey, 0, 0, 10)
	w.must(err)
	for _, r := range rows {
		if want := map[string]money.Micro{"known": 5 * money.Scale}[r.Name]; r.Value != want {
			t.Errorf("%s has the value %v, want %v", r.Name, r.Value, want)
		}
	}
	if n := w.raw(`UPDATE missing_price SET attempts = 0 WHERE item_id IN (SELECT id FROM item WHERE name = 'known')`); n != 0 {
		t.Error("a known price was queued")
	}
	if n := w.raw(`UPDATE missing_price SET attempts = 0`); n != 1 || w.queued.Load() == 0 {
		t.Errorf("%d missing prices are queued", n)
	}
}

func TestSync_ExpiresListingsOfAssetsThatLeft(t *testing.T) {
	w := newWorld(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	one, two := w.mustList("u", "1", 1), w.mustList("u", "2", 1)
	w.push("u", asset("2", "x"))
	if w.state(one.ID) != market.Expired || w.state(two.ID) != market.Active {
		t.Errorf("states %s and %s", w.state(one.ID), w.state(two.ID))
	}
	_, err := w.buy(one.ID, "b")
	w.refused(err, fault.Conflict, "listing_expired")
	_, err = w.m.Cancel(t.Context(), one.ID)
	w.refused(err, fault.Conflict, "listing_expired")
}

func TestSync_ExpiresListingsOfMoreThanIsLeft(t *testing.T) {
	w := newWorld(t)
	five := asset("1", "x")
	five.Amount = 5
	w.push("u", five)
	l := w.mustList("u", "1", 1)
	five.Amount = 6
	w.push("u", five)
	if s := w.state(l.ID); s != market.Active {
		t.Errorf("5 of 6 are %s", s)
	}
	five.Amount = 4
	w.push("u", five)
	if s := w.state(l.ID); s != market.Expired {
		t.Errorf("5 of 4 are %s", s)
	}
	if l := w.mustList("u", "1", 1); l.Amount != 4 {
		t.Errorf("%d are listed", l.Amount)
	}
}

// TestSync_AListingIsOfWhatItsAssetIs gives the same asset another name or phase.
func TestSync_AListingIsOfWhatItsAssetIs(t *testing.T) {
	const name = "★ Karambit | Doppler (Factory New)"
	w := newWorld(t)
	for i, c := range []struct {
		what              string
		name, phase       string // then
		newName, newPhase string
		want              market.ListingState
		wantPhase         string
	}{
		{"the same", name, "", name, "", market.Active, ""},
		{"its phase became known", name, "", name, "Ruby", market.Active, "Ruby"},
		{"its phase is another one", name, "Ruby", name, "Phase 1", market.Expired, "Ruby"},
		{"its phase is known no longer", name, "Ruby", name, "", market.Expired, "Ruby"},
		{"it is something else", "x", "", "y", "", market.Expired, ""},
		{"it is something else, with a phase", "x", "", name, "Ruby", market.Expired, ""},
		{"it has no name any more", "x", "", "", "", market.Expired, ""},
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
			t.Errorf("%s: %s and %+v", c.what, got.State, got.Item)
		}
	}
}

func TestCancel_MayBeRepeated(t *testing.T) {
	w := newWorld(t)
	w.push("u", asset("1", "x"))
	l := w.mustList("u", "1", 1)
	for range 2 {
		got, err := w.m.Cancel(t.Context(), l.ID)
		w.must(err)
		if got.State != market.Cancelled {
			t.Errorf("state %s", got.State)
		}
	}
	_, err := w.m.Cancel(t.Context(), 999)
	w.refused(err, fault.NotFound, "listing_not_found")
	w.mustList("u", "1", 2) // again
}

func TestPurchase_MovesAllOrNothing(t *testing.T) {
	w := newWorld(t)
	w.push("u", asset("1", "x"))
	l := w.mustList("u", "1", 700)
	_, err := w.buy(l.ID, "u")
	w.refused(err, fault.Conflict, "own_listing")
	_, err = w.buy(999, "b")
	w.refused(err, fault.NotFound, "listing_not_found")
	_, err = w.buy(l.ID, "house:fee:00")
	w.refused(err, fault.Unprocessable, "reserved_user")

	_, err = w.buy(l.ID, "b")
	w.refused(err, fault.Conflict, "insufficient_funds")
	if w.state(l.ID) != market.Active || w.inTransfer("u", "1") {
		t.Error("a purchase that was refused left something")
	}
	if _, known, _ := user.Key(t.Context(), w.s, "b"); known {
		t.Error("a buyer was made by a purchase that was refused")
	}
	w.give("b")
	trade, err := w.buy(l.ID, "b")
	w.must(err)
	stored, err := market.ReadTrade(t.Context(), w.s, trade.ID)
	w.must(err)
	if *stored != trade || trade.Seller != "u" || trade.Buyer != "b" || trade.Price != 700 || trade.State != market.Pending {
		t.Errorf("%+v, stored %+v", trade, stored)
	}
	if trade.Fee != 35 || trade.Net != 665 || trade.FeeRule != "sale" || trade.FeeVersion != 1 || trade.TransactionID == 0 {
		t.Errorf("the receipt is %+v", trade)
	}
	w.has(map[string]string{"b": "999300/0", "u": "665/665", "house:fee": "35/0"})
	if w.state(l.ID) != market.Sold || !w.inTransfer("u", "1") {
		t.Error("sold, and the listing or the asset do not show it")
	}
	_, err = w.buy(l.ID, "c")
	w.refused(err, fault.Conflict, "listing_sold")
	_, err = w.list("u", "1", 1)
	w.refused(err, fault.Conflict, "asset_in_transfer")
}

func TestPurchase_ChargesByTheRuleOfItsPayment(t *testing.T) {
	w := newWorld(t)
	set, err := fee.Decode(strings.NewReader(`{"rules":[
		{"id":"card","priority":1,"conditions":{"kind":["sale"],"paymentMethod":["card"],"country":["DE"],"currency":["USD"]},"basisPoints":1000,"fixed":7}],
		"fallback":{"basisPoints":100}}`))
	w.must(err)
	feetest.Activate(t, w.s, w.ledger.Keys, set)
	w.push("u", asset("1", "x"), asset("2", "x"), asset("3", "x"))
	w.give("b")
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
			t.Errorf("%+v: %+v", c, made)
		}
	}
	w.has(map[string]string{"b": "997000/0", "u": "2873/2873", "house:fee": "127/0"})
	w.push("v", asset("1", "x"))
	err = w.m.Purchase(t.Context(), market.Purchase{ListingID: w.mustList("v", "1", 1000).ID, Buyer: "b", Country: "Germany"}, nil)
	w.refused(err, fault.Unprocessable, "invalid_payment")
}

func (w *world) inTransfer(userID, assetID string) bool {
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

func TestSync_EndsTheTransferOfWhatIsOver(t *testing.T) {
	w := newWorld(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	w.give("b")
	trade := w.sold("u", "b", "1", 5)
	other := w.sold("u", "b", "2", 5)
	w.push("u", asset("1", "x"), asset("2", "x"))
	if !w.inTransfer("u", "1") {
		t.Error("a sync ended the transfer of a pending trade")
	}
	_, err := w.m.Complete(t.Context(), trade.ID)
	w.must(err)
	_, err = w.m.Reverse(t.Context(), trade.ID)
	w.must(err)
	_, err = w.list("u", "1", 5) // the last push again, which is older
	w.refused(err, fault.Conflict, "asset_in_transfer")
	if !w.inTransfer("u", "1") {
		t.Error("no sync has shown yet where the asset is")
	}
	w.push("u", asset("1", "x"))
	if w.inTransfer("u", "1") {
		t.Error("the asset is still in transfer")
	}
	w.mustList("u", "1", 5)
	_, err = w.m.Complete(t.Context(), other.ID) // it has left the inventory
	w.must(err)
}

func TestReverse_WhatWasNeverHandedOverIsNotInTransfer(t *testing.T) {
	w := newWorld(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	w.give("b")
	trade := w.sold("u", "b", "1", 5)
	w.sold("u", "b", "2", 5)
	for range 2 {
		_, err := w.m.Reverse(t.Context(), trade.ID)
		w.must(err)
	}
	if w.inTransfer("u", "1") || !w.inTransfer("u", "2") {
		t.Error("the reversal ends the transfer of its own asset, and of no other")
	}
	again := w.mustList("u", "1", 5) // from the last push
	_, err := w.buy(again.ID, "b")
	w.must(err)
	_, err = w.m.Reverse(t.Context(), trade.ID)
	w.must(err)
	if !w.inTransfer("u", "1") {
		t.Error("the repeated reversal of one trade ended the transfer of another")
	}
}

func TestSync_ExpiresListingsOfWhatCannotBeTradedAnyMore(t *testing.T) {
	w := newWorld(t)
	held, kept := asset("1", "x"), asset("2", "x")
	w.push("u", held, kept)
	one, two := w.mustList("u", "1", 5), w.mustList("u", "2", 5)
	held.Tradable = false
	w.push("u", held, kept)
	if w.state(one.ID) != market.Expired || w.state(two.ID) != market.Active {
		t.Errorf("states %s and %s", w.state(one.ID), w.state(two.ID))
	}
	w.give("b")
	_, err := w.buy(one.ID, "b")
	w.refused(err, fault.Conflict, "listing_expired")
	_, err = w.list("u", "1", 5)
	w.refused(err, fault.Conflict, "not_tradable")
}

// TestSync_WhatIsSoldIsSoldAlsoWhenItComesBack is of an asset that an inventory
// does not show for a while.
func TestSync_WhatIsSoldIsSoldAlsoWhenItComesBack(t *testing.T) {
	w := newWorld(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	w.give("b")
	pending, completed := w.sold("u", "b", "1", 5), w.sold("u", "b", "2", 5)
	_, err := w.m.Complete(t.Context(), completed.ID)
	w.must(err)
	w.push("u")
	w.push("u", asset("1", "x"), asset("2", "x"))
	_, err = w.list("u", "1", 5)
	w.refused(err, fault.Conflict, "asset_in_transfer")
	w.mustList("u", "2", 5) // it was handed over, and came back since
	_, err = w.m.Reverse(t.Context(), pending.ID)
	w.must(err)
	w.push("u", asset("1", "x"), asset("2", "x"))
	w.mustList("u", "1", 5)
}

func TestTrades_GoOnlyForward(t *testing.T) {
	w := newWorld(t)
	w.push("u", asset("1", "x"), asset("2", "x"), asset("3", "x"))
	w.give("b", "c")
	kept, taken, early := w.sold("u", "b", "1", 100), w.sold("u", "b", "2", 100), w.sold("u", "c", "3", 100)
	begin := w.clock()
	for range 2 {
		got, err := w.m.Complete(t.Context(), kept.ID)
		w.must(err)
		if got.State != market.Completed || !got.CompletedAt.Equal(begin) || !got.ReversibleUntil().Equal(begin.Add(7*24*time.Hour)) {
			t.Errorf("%+v", got)
		}
		w.pass(time.Second)
	}
	_, err := w.m.Complete(t.Context(), taken.ID)
	w.must(err)
	for _, id := range []int64{taken.ID, taken.ID, early.ID} {
		got, err := w.m.Reverse(t.Context(), id)
		w.must(err)
		if got.State != market.Reversed || got.ReversedAt.IsZero() {
			t.Errorf("%+v", got)
		}
	}
	w.has(map[string]string{"b": "999900/0", "c": "1000000/0", "u": "95/95", "house:fee": "5/0"})
	_, err = w.m.Complete(t.Context(), taken.ID)
	w.refused(err, fault.Conflict, "trade_reversed")
	_, err = w.m.Complete(t.Context(), 999)
	w.refused(err, fault.NotFound, "trade_not_found")

	settled := func() *market.Trade {
		t.Helper()
		w.must(w.m.SettleDue(t.Context()))
		got, err := market.ReadTrade(t.Context(), w.s, kept.ID)
		w.must(err)
		return got
	}
	w.now.Store(begin.Add(168*time.Hour - time.Microsecond).UnixMicro())
	if got := settled(); got.State != market.Completed {
		t.Errorf("settled before its time: %+v", got)
	}
	w.pass(time.Microsecond)
	if got := settled(); got.State != market.Settled || !got.SettledAt.Equal(w.clock()) {
		t.Errorf("%+v", got)
	}
	w.pass(time.Hour)
	if got := settled(); !got.SettledAt.Before(w.clock()) {
		t.Errorf("settled twice: %+v", got)
	}
	if got, err := w.m.Complete(t.Context(), kept.ID); err != nil || got.State != market.Settled {
		t.Errorf("completing it again: %v, %v", got.State, err)
	}
	_, err = w.m.Reverse(t.Context(), kept.ID)
	w.refused(err, fault.Conflict, "trade_settled")
	w.has(map[string]string{"b": "999900/0", "u": "95/0", "house:fee": "5/0"})
}

func TestSettle_OneThatFailsHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.push("u", asset("1", "x"))
	w.push("v", asset("1", "x"))
	w.give("b")
	first, second := w.sold("u", "b", "1", 100), w.sold("v", "b", "1", 100)
	for _, id := range []int64{first.ID, second.ID} {
		_, err := w.m.Complete(t.Context(), id)
		w.must(err)
	}
	w.pass(168 * time.Hour)
	w.raw(`UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'u'`)
	if err := w.m.SettleDue(t.Context()); !errors.Is(err, wallet.ErrTampered) {
		t.Errorf("got %v", err)
	}
	got, err := market.ReadTrade(t.Context(), w.s, second.ID)
	w.must(err)
	if got.State != market.Settled {
		t.Errorf("%+v", got)
	}
	w.raw(`UPDATE wallet_account SET balance = balance - 1 WHERE user_id = 'u'`)
	w.must(w.m.SettleDue(t.Context()))
	if got, err = market.ReadTrade(t.Context(), w.s, first.ID); err != nil || got.State != market.Settled {
		t.Errorf("%+v, %v", got, err)
	}
	w.has(map[string]string{"u": "95/0", "v": "95/0"})
}

func TestReprice_ChangesWhatABuyerPaysAndNothingThatEnded(t *testing.T) {
	w := newWorld(t)
	w.give("b")
	w.push("u", asset("1", "x"))
	l := w.mustList("u", "1", 1000)
	got, err := w.m.Reprice(t.Context(), l.ID, 500)
	w.must(err)
	if got.Price != 500 || got.State != market.Active {
		t.Errorf("%+v", got)
	}
	end := w.repriced(l.ID, 700)
	_, err = w.buy(l.ID, "b")
	w.refused(err, fault.Conflict, "price_changed")
	w.raw(end)
	w.has(map[string]string{"b": fmt.Sprintf("%d/0", riches)})
	sold, err := w.buy(l.ID, "b")
	w.must(err)
	if sold.Price != 500 {
		t.Errorf("sold for %d", sold.Price)
	}
	_, err = w.m.Reprice(t.Context(), l.ID, 600)
	w.refused(err, fault.Conflict, "listing_sold")
	_, err = w.m.Reprice(t.Context(), 999, 600)
	w.refused(err, fault.NotFound, "listing_not_found")
}

// repriced makes the price of a listing change within each purchase, once the listing was
// read: when its asset is marked as in transfer. It returns what ends that.
func (w *world) repriced(listing, price int64) (end string) {
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
