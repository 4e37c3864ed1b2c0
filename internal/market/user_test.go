package market_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/market"
	"assay/internal/randtest"
	"assay/internal/user"
	"assay/internal/view"
	"assay/internal/wallet"
)

func (w *fixture) remove(user string) error { return w.m.DeleteUser(w.Context(), user) }

// withdraw withdraws the whole balance of a user.
func (w *fixture) withdraw(user string) {
	w.Helper()
	accounts, err := wallet.ReadWallets(w.Context(), w.s, user)
	w.must(err)
	for _, a := range accounts {
		if a.Head.Balance == 0 {
			continue
		}
		w.must(w.s.InTx(w.Context(), func(tx *db.Tx) error {
			_, err := w.ledger.Withdraw(tx, a.Head.Account, a.Head.Balance, wallet.Request{})
			return err
		}))
	}
}

// known reports whether a user exists, and the number of inventory rows of the user.
func (w *fixture) known(userID string) (known bool, rows int64) {
	w.Helper()
	key, known, err := user.Key(w.Context(), w.s, userID)
	w.must(err)
	if known {
		total, err := view.ReadInventoryTotal(w.Context(), w.s, key, 0)
		w.must(err)
		rows = total.Rows
	}
	return known, rows
}

// TestDeleteUser_RejectsUsersWithListingsTradesOrMoney runs a sale and tries to delete both
// users after each step. Each attempt must fail and change nothing.
func TestDeleteUser_RejectsUsersWithListingsTradesOrMoney(t *testing.T) {
	w := newFixture(t)
	w.wantFault(w.remove("unknown"), fault.NotFound, "user_not_found")
	w.wantFault(w.remove("house:fee"), fault.Unprocessable, "reserved_user")
	raw := w.db.Raw(t)
	defer raw.Close()
	refused := func(user, code string) {
		t.Helper()
		before := w.db.Version(t, raw)
		w.wantFault(w.remove(user), fault.Conflict, code)
		if after := w.db.Version(t, raw); after != before {
			t.Errorf("user %s: the refused deletion changed the database, want no change", user)
		}
		if known, _ := w.known(user); !known {
			t.Errorf("user %s is unknown after the refusal %s, want known", user, code)
		}
	}
	w.push("u", asset("1", "x"), asset("2", "x"))
	l := w.mustList("u", "1", 1000)
	refused("u", "user_has_listings")
	w.push("b")
	w.deposit("b", "EUR", 1)
	w.deposit("b", "USD", 1000)
	refused("b", "user_has_money")
	trade, err := w.buy(l.ID, "b")
	w.must(err)
	refused("u", "user_has_trades")
	refused("b", "user_has_trades")
	_, err = w.m.Complete(t.Context(), trade.ID)
	w.must(err)
	refused("u", "user_has_trades")
	refused("b", "user_has_trades")
	w.advance(168 * time.Hour)
	w.must(w.m.SettleDue(t.Context()))
	refused("u", "user_has_money")
	refused("b", "user_has_money") // one cent in another currency
	w.withdraw("u")
	w.withdraw("b")
	w.must(w.remove("u"))
	w.must(w.remove("b"))
}

// TestDeleteUser_KeepsTradesListingsAndLedger deletes both users of a settled trade, twice
// each.
func TestDeleteUser_KeepsTradesListingsAndLedger(t *testing.T) {
	w := newFixture(t)
	w.setName("u", "Ada", true)
	trade := w.completeTrades("u", 1000, "b", "c")[0]
	r := w.reader()
	if top := w.topTraders(r, "all", "volume"); len(top) != 3 || top[0].DisplayName != "Ada" {
		t.Fatalf("before the deletion: got %+v, want 3 traders, Ada first", top)
	}
	w.advance(168 * time.Hour)
	w.must(w.m.SettleDue(t.Context()))
	raw := w.db.Raw(t)
	defer raw.Close()
	for _, user := range []string{"u", "b"} {
		w.withdraw(user)
		before := w.db.Version(t, raw)
		w.must(w.remove(user))
		at := w.db.Version(t, raw)
		w.must(w.remove(user))
		if w.db.Version(t, raw) != at || at == before {
			t.Errorf("user %s: the first deletion changed nothing or the second one did, want a change only by the first", user)
		}
		if known, _ := w.known(user); known {
			t.Errorf("user %s is known after the deletion, want unknown", user)
		}
	}
	// The third user stays in the ranking.
	for _, r := range []struct {
		name string
		top  int
	}{{"all", len(w.topTraders(r, "all", "volume"))}, {"30d", len(w.topTraders(r, "30d", "trades"))}, {"a new instance", len(w.topTraders(w.reader(), "all", "volume"))}} {
		if r.top != 1 {
			t.Errorf("ranking %s: got %d traders, want 1", r.name, r.top)
		}
	}
	got, err := market.ReadTrade(t.Context(), w.s, trade.ID)
	w.must(err)
	if got.Seller != "u" || got.Buyer != "b" || got.State != market.Settled || got.Net != trade.Net {
		t.Errorf("ReadTrade: got %+v, want the settled trade of u and b", got)
	}
	if l, err := market.ReadListing(t.Context(), w.s, trade.ListingID); err != nil || l.Seller != "u" || l.State != market.Sold {
		t.Errorf("ReadListing: got %+v, %v, want the sold listing of u", l, err)
	}
	w.wantBalances(map[string]string{"u": "0/0", "b": "0/0"})

	// A push creates the user again. Only the old trades are still there.
	w.push("u", asset("9", "x"))
	if known, rows := w.known("u"); !known || rows != 1 {
		t.Errorf("user u after a push: got known %v and %d rows, want true and 1", known, rows)
	}
	if top := w.topTraders(w.reader(), "all", "volume"); len(top) != 2 || top[0].DisplayName != "anonymous" {
		t.Errorf("ranking after a push: got %+v, want 2 traders, the first one anonymous", top)
	}
	w.mustList("u", "9", 1)
}

// TestCreate_DoesNotCreateAUser deletes the seller between the sync and the listing.
func TestCreate_DoesNotCreateAUser(t *testing.T) {
	w := newFixture(t)
	w.onSteam("u")
	w.pull(asset("1", "x"))
	w.synced = func() { w.must(w.remove("u")) }
	_, err := w.list("u", "1", 1)
	w.wantFault(err, fault.NotFound, "user_not_found")
	if known, _ := w.known("u"); known {
		t.Error("user u: known after Create, want unknown")
	}
}

// TestDeleteUser_IsCompleteDuringConcurrentOperations deletes users while other goroutines
// push, list, buy, cancel and withdraw. A deleted user must have no inventory rows, active
// listings or open trades, and the ledger must stay balanced.
func TestDeleteUser_IsCompleteDuringConcurrentOperations(t *testing.T) {
	w := newFixture(t)
	const users = 3
	rounds := randtest.Count(12, 60)
	name := func(i int) string { return fmt.Sprint("user ", i%users) }
	assets := []inventory.Asset{asset("1", "x"), asset("2", "y"), asset("3", "x")}
	for i := range users {
		w.push(name(i), assets...)
	}
	var deleted, refused, sold int
	var mu sync.Mutex
	note := func(n *int) {
		mu.Lock()
		defer mu.Unlock()
		*n++
	}
	// Each goroutine continues after its rounds until enough users were deleted and a
	// listing was sold. On a loaded machine this can take longer.
	more := func(round int) bool {
		mu.Lock()
		defer mu.Unlock()
		return round < rounds || round < 20*rounds && (deleted < users || sold == 0)
	}
	tolerate := func(err error, what string) bool {
		if f := fault.Of(err); err != nil && (f == nil || f.Kind != fault.Conflict && f.Kind != fault.NotFound && f.Code != "inventory_unavailable") {
			t.Errorf("%s: got error %v, want none or a conflict", what, err)
		}
		return err == nil
	}
	var wg sync.WaitGroup
	for i := range users {
		wg.Go(func() {
			for round := 0; more(round); round++ {
				switch err := w.remove(name(i)); {
				case tolerate(err, "delete"):
					note(&deleted)
				default:
					note(&refused)
				}
			}
		})
		wg.Go(func() {
			for round := 0; more(round); round++ {
				_, err := w.inventories.Sync(t.Context(), name(i), inventory.Push{
					AppID: app, ContextID: ctx, SnapshotAt: w.clock(), Assets: assets[:1+round%3],
				}, inventory.Normal)
				tolerate(err, "push")
				_, err = w.list(name(i), assets[round%3].AssetID, 100)
				tolerate(err, "list")
			}
		})
		wg.Go(func() {
			for round := 0; more(round); round++ {
				w.deposit(name(i+1), "USD", 100)
				listings, err := market.Listings(t.Context(), w.s, market.ListingFilter{State: market.Active, Before: 1 << 62}, 100)
				w.must(err)
				for _, l := range listings {
					if trade, err := w.buy(l.ID, name(i+1)); tolerate(err, "buy") {
						note(&sold)
						_, err := w.m.Reverse(t.Context(), trade.ID)
						tolerate(err, "reverse")
					} else {
						_, err := w.m.Cancel(t.Context(), l.ID)
						tolerate(err, "cancel")
					}
				}
				accounts, err := wallet.ReadWallets(t.Context(), w.s, name(i+1))
				w.must(err)
				tolerate(w.s.InTx(t.Context(), func(tx *db.Tx) error {
					if len(accounts) == 0 || accounts[0].Head.Available() == 0 {
						return nil
					}
					_, err := w.ledger.Withdraw(tx, accounts[0].Head.Account, accounts[0].Head.Available(), wallet.Request{})
					return err
				}), "withdraw")
			}
		})
	}
	wg.Wait()
	t.Logf("%d deletions, %d refused, %d sales", deleted, refused, sold)
	if deleted < users || sold == 0 {
		t.Errorf("got %d deletions and %d sales, want at least %d and 1", deleted, sold, users)
	}
	raw := w.db.Raw(t)
	defer raw.Close()
	for _, left := range []string{
		`inventory WHERE user_key IN `, `inventory_snapshot WHERE user_key IN `, `inventory_waiting WHERE user_key IN `, `inspection WHERE user_key IN `,
		`listing WHERE state = 'active' AND seller_key IN `,
		`trade WHERE state IN ('pending', 'completed') AND seller_key IN `, `trade WHERE state IN ('pending', 'completed') AND buyer_key IN `,
		`platform_user WHERE steam_id || display_name <> '' AND id IN `,
	} {
		var n int
		w.must(raw.QueryRowContext(t.Context(), `SELECT count(*) FROM `+left+`(SELECT id FROM platform_user WHERE deleted_at <> 0)`).Scan(&n))
		if n != 0 {
			t.Errorf("got %d rows of deleted users, want 0: %s", n, left)
		}
	}
	w.wantBalances(nil)
	// Without listings and money, all users can be deleted.
	for i := range users {
		for _, l := range w.active(name(i)) {
			_, err := w.m.Cancel(t.Context(), l)
			w.must(err)
		}
		w.withdraw(name(i))
		if err := w.remove(name(i)); err != nil {
			t.Errorf("delete %s at the end: got %v, want nil", name(i), err)
		}
	}
}

// active returns the ids of the active listings of a user.
func (w *fixture) active(userID string) (ids []int64) {
	w.Helper()
	key, known, err := user.Key(w.Context(), w.s, userID)
	w.must(err)
	if !known {
		return nil
	}
	listings, err := market.Listings(w.Context(), w.s, market.ListingFilter{Seller: key, State: market.Active, Before: 1 << 62}, 100)
	w.must(err)
	for _, l := range listings {
		ids = append(ids, l.ID)
	}
	return ids
}

// TestDeleteUser_KeepsTheKeyOfTheID deletes a user with an inventory. It then creates the
// user again with each function that can create users.
func TestDeleteUser_KeepsTheKeyOfTheID(t *testing.T) {
	w := newFixture(t)
	const steamID = "76561198000000001"
	is := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	lock := func(id string) (u user.Locked) {
		w.must(w.s.InTx(t.Context(), func(tx *db.Tx) (err error) {
			u, err = user.Lock(tx, id)
			return err
		}))
		return u
	}
	known := func(id string) bool {
		known, _ := w.known(id)
		_, err := user.Read(t.Context(), w.s, id)
		if known != (err == nil) || !known && fault.Of(err) == nil {
			t.Errorf("user.Read of %s: got error %v, want none for a known user and a fault for an unknown user (known: %v)", id, err, known)
		}
		is("Lock reports "+id+" as known", lock(id).Known(), known)
		return known
	}
	put := func(u user.User) func() error {
		return func() error { return w.s.InTx(t.Context(), func(tx *db.Tx) error { return user.Put(tx, u) }) }
	}
	read := func() user.User {
		u, err := user.Read(t.Context(), w.s, "a")
		w.must(err)
		return u
	}
	stored := func(table string) (n int64) {
		w.must(w.s.Read.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table+` WHERE user_key = $1`, lock("a").Key).Scan(&n))
		return n
	}
	linked := asset("1", "A")
	linked.Inspect = "steam://rungame/730/1/+csgo_econ_action_preview%20S1A1D1"
	w.push("a", linked, asset("2", "B"))
	w.push("b", asset("1", "A"), asset("2", "B"))
	w.must(put(user.User{ID: "a", SteamID: steamID, DisplayName: "Ada", Leaderboard: true})())
	a := lock("a")
	is("user a is known", known("a"), true)
	is("Lock of an unknown id", lock("unknown"), user.Locked{})
	is("Lock of user a", a, user.Locked{Key: a.Key, SteamID: steamID})
	tables := []string{"inventory", "inventory_snapshot", "inventory_waiting", "inspection"}
	for _, table := range tables {
		is("table "+table+" has rows of user a", stored(table) > 0, true)
	}

	w.must(w.remove("a"))
	is("user a is known after the deletion", known("a"), false)
	is("Lock of user a after the deletion", lock("a"), user.Locked{Key: a.Key, Deleted: true})
	is("user b is known", known("b"), true)
	users, err := user.List(t.Context(), w.s, "", "", 10)
	w.must(err)
	is("number of listed users", len(users), 1)
	_, rows := w.known("b")
	is("rows of user b", rows, int64(2))
	w.must(put(user.User{ID: "b", SteamID: steamID})()) // the Steam id is free again

	// Each function that creates users gives a deleted user the same key again.
	for _, again := range []func() error{
		func() error {
			return w.s.InTx(t.Context(), func(tx *db.Tx) error { _, err := user.Ensure(tx, "a"); return err })
		},
		put(user.User{ID: "a", Leaderboard: true, KeepLeaderboard: true}),
	} {
		w.must(again())
		is("user a after it was created again", read(), user.User{ID: "a", Leaderboard: true})
		is("key of user a after it was created again", lock("a").Key, a.Key)
		for _, table := range tables {
			is("rows in the table "+table+" after user a was created again", stored(table), int64(0))
		}
		w.must(w.remove("a"))
	}
	w.must(put(user.User{ID: "a", Leaderboard: false})())
	is("user a after it opted out", read(), user.User{ID: "a"})
}
