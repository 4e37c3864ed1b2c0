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

func (w *world) remove(user string) error { return w.m.DeleteUser(w.Context(), user) }

// withdraw takes all that a user has.
func (w *world) withdraw(user string) {
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

// known reports whether there is such a user, and how many rows the user has.
func (w *world) known(userID string) (known bool, rows int64) {
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

// TestDeleteUser_RefusesWhoHasListingsTradesOrMoney takes a seller and a buyer through a
// sale: at each step one reason is there, and nothing changes.
func TestDeleteUser_RefusesWhoHasListingsTradesOrMoney(t *testing.T) {
	w := newWorld(t)
	w.refused(w.remove("nobody"), fault.NotFound, "user_not_found")
	w.refused(w.remove("house:fee"), fault.Unprocessable, "reserved_user")
	raw := w.db.Raw(t)
	defer raw.Close()
	refused := func(user, code string) {
		t.Helper()
		before := w.db.Version(t, raw)
		w.refused(w.remove(user), fault.Conflict, code)
		if after := w.db.Version(t, raw); after != before {
			t.Errorf("a refused deletion of %s changed something", user)
		}
		if known, _ := w.known(user); !known {
			t.Errorf("%s is unknown after %s", user, code)
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
	w.pass(168 * time.Hour)
	w.must(w.m.SettleDue(t.Context()))
	refused("u", "user_has_money")
	refused("b", "user_has_money") // 1 cent of another currency
	w.withdraw("u")
	w.withdraw("b")
	w.must(w.remove("u"))
	w.must(w.remove("b"))
}

// TestDeleteUser_LeavesWhatTheLedgerNames deletes both users of a settled trade, twice.
func TestDeleteUser_LeavesWhatTheLedgerNames(t *testing.T) {
	w := newWorld(t)
	w.name("u", "Ada", true)
	trade := w.traded("u", 1000, "b", "c")[0]
	r := w.reader()
	if top := w.top(r, "all", "volume"); len(top) != 3 || top[0].DisplayName != "Ada" {
		t.Fatalf("%+v", top)
	}
	w.pass(168 * time.Hour)
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
			t.Errorf("a repeated deletion of %s changed something", user)
		}
		if known, _ := w.known(user); known {
			t.Errorf("%s is known", user)
		}
	}
	// The third one's figures still count both.
	for _, r := range []struct {
		name string
		top  int
	}{{"all", len(w.top(r, "all", "volume"))}, {"30d", len(w.top(r, "30d", "trades"))}, {"a new instance", len(w.top(w.reader(), "all", "volume"))}} {
		if r.top != 1 {
			t.Errorf("%s: %d traders, want 1", r.name, r.top)
		}
	}
	got, err := market.ReadTrade(t.Context(), w.s, trade.ID)
	w.must(err)
	if got.Seller != "u" || got.Buyer != "b" || got.State != market.Settled || got.Net != trade.Net {
		t.Errorf("%+v", got)
	}
	if l, err := market.ReadListing(t.Context(), w.s, trade.ListingID); err != nil || l.Seller != "u" || l.State != market.Sold {
		t.Errorf("%+v, %v", l, err)
	}
	w.has(map[string]string{"u": "0/0", "b": "0/0"})

	// A push creates the user anew, with the old trades and nothing else.
	w.push("u", asset("9", "x"))
	if known, rows := w.known("u"); !known || rows != 1 {
		t.Errorf("u anew: known %v, %d rows", known, rows)
	}
	if top := w.top(w.reader(), "all", "volume"); len(top) != 2 || top[0].DisplayName != "anonymous" {
		t.Errorf("%+v", top)
	}
	w.mustList("u", "9", 1)
}

// TestCreate_CreatesNoUser deletes the seller between the sync and the listing.
func TestCreate_CreatesNoUser(t *testing.T) {
	w := newWorld(t)
	w.steam["u"] = func() error {
		w.push("u", asset("1", "x"))
		return w.remove("u")
	}
	_, err := w.list("u", "1", 1)
	w.refused(err, fault.NotFound, "user_not_found")
	if known, _ := w.known("u"); known {
		t.Error("the listing created the user anew")
	}
}

// TestDeleteUser_BesideEverythingElseLeavesNoHalfOfAUser deletes users while they are
// pushed, list, buy, cancel and withdraw. Whatever came first, a user is either known
// or has no rows, no active listing and no open trade; and no money is lost.
func TestDeleteUser_BesideEverythingElseLeavesNoHalfOfAUser(t *testing.T) {
	w := newWorld(t)
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
	// Each goes on after its rounds until something was deleted and something sold
	// beside the others, which a loaded machine may delay.
	more := func(round int) bool {
		mu.Lock()
		defer mu.Unlock()
		return round < rounds || round < 20*rounds && (deleted < users || sold == 0)
	}
	may := func(err error, what string) bool {
		if f := fault.Of(err); err != nil && (f == nil || f.Kind != fault.Conflict && f.Kind != fault.NotFound && f.Code != "inventory_unavailable") {
			t.Errorf("%s: %v", what, err)
		}
		return err == nil
	}
	var wg sync.WaitGroup
	for i := range users {
		wg.Go(func() {
			for round := 0; more(round); round++ {
				switch err := w.remove(name(i)); {
				case may(err, "delete"):
					note(&deleted)
				default:
					note(&refused)
				}
			}
		})
		wg.Go(func() {
			for round := 0; more(round); round++ {
				_, err := sellers{w}.service().Sync(t.Context(), name(i), inventory.Push{
					AppID: app, ContextID: ctx, SnapshotAt: w.clock(), Assets: assets[:1+round%3],
				}, inventory.Normal)
				may(err, "push")
				_, err = w.list(name(i), assets[round%3].AssetID, 100)
				may(err, "list")
			}
		})
		wg.Go(func() {
			for round := 0; more(round); round++ {
				w.deposit(name(i+1), "USD", 100)
				listings, err := market.Listings(t.Context(), w.s, market.ListingFilter{State: market.Active, Before: 1 << 62}, 100)
				w.must(err)
				for _, l := range listings {
					if trade, err := w.buy(l.ID, name(i+1)); may(err, "buy") {
						note(&sold)
						_, err := w.m.Reverse(t.Context(), trade.ID)
						may(err, "reverse")
					} else {
						_, err := w.m.Cancel(t.Context(), l.ID)
						may(err, "cancel")
					}
				}
				accounts, err := wallet.ReadWallets(t.Context(), w.s, name(i+1))
				w.must(err)
				may(w.s.InTx(t.Context(), func(tx *db.Tx) error {
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
		t.Error("nothing happened beside each other")
	}
	raw := w.db.Raw(t)
	defer raw.Close()
	for _, left := range []string{
		`inventory WHERE user_key IN `, `inventory_snapshot WHERE user_key IN `, `inspection WHERE user_key IN `,
		`listing WHERE state = 'active' AND seller_key IN `,
		`trade WHERE state IN ('pending', 'completed') AND seller_key IN `, `trade WHERE state IN ('pending', 'completed') AND buyer_key IN `,
		`platform_user WHERE steam_id || display_name <> '' AND id IN `,
	} {
		var n int
		w.must(raw.QueryRowContext(t.Context(), `SELECT count(*) FROM `+left+`(SELECT id FROM platform_user WHERE deleted_at <> 0)`).Scan(&n))
		if n != 0 {
			t.Errorf("%d rows of deleted users: %s", n, left)
		}
	}
	w.has(nil)
	// In the end everybody can leave.
	for i := range users {
		for _, l := range w.active(name(i)) {
			_, err := w.m.Cancel(t.Context(), l)
			w.must(err)
		}
		w.withdraw(name(i))
		if err := w.remove(name(i)); err != nil {
			t.Errorf("%s at the end: %v", name(i), err)
		}
	}
}

// active returns the active listings of a user.
func (w *world) active(userID string) (ids []int64) {
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

// TestDeleteUser_TheSameIDIsTheSameKey deletes a user with an inventory, and creates the
// user again in every way.
func TestDeleteUser_TheSameIDIsTheSameKey(t *testing.T) {
	w := newWorld(t)
	const steamID = "76561198000000001"
	is := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	hold := func(id string) (u user.Held) {
		w.must(w.s.InTx(t.Context(), func(tx *db.Tx) (err error) {
			u, err = user.Hold(tx, id)
			return err
		}))
		return u
	}
	known := func(id string) bool {
		known, _ := w.known(id)
		_, err := user.Read(t.Context(), w.s, id)
		if known != (err == nil) || !known && fault.Of(err) == nil {
			t.Errorf("%s: known %v, %v", id, known, err)
		}
		is(id+" is held as known", hold(id).Known(), known)
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
		w.must(w.s.Read.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table+` WHERE user_key = $1`, hold("a").Key).Scan(&n))
		return n
	}
	linked := asset("1", "A")
	linked.Inspect = "steam://rungame/730/1/+csgo_econ_action_preview%20S1A1D1"
	w.push("a", linked, asset("2", "B"))
	w.push("b", asset("1", "A"), asset("2", "B"))
	w.must(put(user.User{ID: "a", SteamID: steamID, DisplayName: "Ada", Leaderboard: true})())
	a := hold("a")
	is("a is known", known("a"), true)
	is("an unknown id is held", hold("unknown"), user.Held{})
	is("a is held", a, user.Held{Key: a.Key, SteamID: steamID})
	tables := []string{"inventory", "inventory_snapshot", "inspection"}
	for _, table := range tables {
		is(table+" has rows of a", stored(table) > 0, true)
	}

	w.must(w.remove("a"))
	is("a is known after the deletion", known("a"), false)
	is("a is held after the deletion", hold("a"), user.Held{Key: a.Key, Deleted: true})
	is("b is known", known("b"), true)
	users, err := user.List(t.Context(), w.s, "", "", 10)
	w.must(err)
	is("users that are listed", len(users), 1)
	_, rows := w.known("b")
	is("rows of b", rows, int64(2))
	w.must(put(user.User{ID: "b", SteamID: steamID})()) // it is free again

	// Each way to create a user creates a deleted one again, under the same key.
	for _, again := range []func() error{
		func() error {
			return w.s.InTx(t.Context(), func(tx *db.Tx) error { _, err := user.Ensure(tx, "a"); return err })
		},
		put(user.User{ID: "a", Leaderboard: true, KeepLeaderboard: true}),
	} {
		w.must(again())
		is("a again", read(), user.User{ID: "a", Leaderboard: true})
		is("key of a again", hold("a").Key, a.Key)
		for _, table := range tables {
			is(table+" of a again", stored(table), int64(0))
		}
		w.must(w.remove("a"))
	}
	w.must(put(user.User{ID: "a", Leaderboard: false})())
	is("a again, opted out", read(), user.User{ID: "a"})
}
