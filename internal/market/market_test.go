package market_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
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

// pull sets the assets that pulls from Steam return.
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

// price sets the price of an item, as a refresh does.
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
