package inventory_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/randtest"
	"assay/internal/user"
)

func TestSync_ReplacesTheStoredInventory(t *testing.T) {
	base := asset("1", "A")
	changed := func(change func(*inventory.Asset)) inventory.Asset {
		a := base
		change(&a)
		return a
	}
	for name, c := range map[string]struct {
		second []inventory.Asset
		want   inventory.Result
		queues int64
	}{
		"nothing changed": {[]inventory.Asset{base}, inventory.Result{Unchanged: 1, PricedRows: 1}, 0},
		"another asset":   {[]inventory.Asset{base, asset("2", "A")}, inventory.Result{Added: 1, Unchanged: 1, PricedRows: 2}, 0},
		"another name":    {[]inventory.Asset{base, asset("2", "B")}, inventory.Result{Added: 1, Unchanged: 1, PricedRows: 1, QueuedNames: 1}, 1},
		"sold all":        {nil, inventory.Result{Removed: 1}, 0},
		"sold and bought": {[]inventory.Asset{asset("2", "A")}, inventory.Result{Added: 1, Removed: 1, PricedRows: 1}, 0},
		"renamed": {
			[]inventory.Asset{changed(func(a *inventory.Asset) { a.Name = "B" })},
			inventory.Result{Changed: 1, QueuedNames: 1},
			1,
		},
		"a name of other case": {
			[]inventory.Asset{changed(func(a *inventory.Asset) { a.Name = "a" })},
			inventory.Result{Changed: 1, QueuedNames: 1},
			1,
		},
		"a phase became known": {
			[]inventory.Asset{changed(func(a *inventory.Asset) { a.Phase = "Ruby" })},
			inventory.Result{Changed: 1, QueuedNames: 1},
			1,
		},
		"no name any more": {
			[]inventory.Asset{changed(func(a *inventory.Asset) { a.Name, a.Marketable = "", false })},
			inventory.Result{Changed: 1},
			0,
		},
		"amount":     {[]inventory.Asset{changed(func(a *inventory.Asset) { a.Amount = 7 })}, inventory.Result{Changed: 1, PricedRows: 1}, 0},
		"class":      {[]inventory.Asset{changed(func(a *inventory.Asset) { a.ClassID = "9" })}, inventory.Result{Changed: 1, PricedRows: 1}, 0},
		"instance":   {[]inventory.Asset{changed(func(a *inventory.Asset) { a.InstanceID = "9" })}, inventory.Result{Changed: 1, PricedRows: 1}, 0},
		"tradable":   {[]inventory.Asset{changed(func(a *inventory.Asset) { a.Tradable = false })}, inventory.Result{Changed: 1, PricedRows: 1}, 0},
		"marketable": {[]inventory.Asset{changed(func(a *inventory.Asset) { a.Marketable = false })}, inventory.Result{Changed: 1, PricedRows: 1}, 0},
		"inspect":    {[]inventory.Asset{changed(func(a *inventory.Asset) { a.Inspect = "link" })}, inventory.Result{Changed: 1, PricedRows: 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFixture(t)
			same(t, "first push", p.sync("u", pushAt(0, base)), inventory.Result{Added: 1, QueuedNames: 1})
			same(t, "calls of Queued", p.queued, 1)
			p.price("A", 10)
			entries := p.count(`SELECT count(*) FROM missing_price`)
			same(t, "second push", p.sync("u", pushAt(1, c.second...)), c.want)
			same(t, "new queue entries", p.count(`SELECT count(*) FROM missing_price`)-entries, c.queues)
			same(t, "calls of Queued after the second push", int64(p.queued-1), min(c.queues, 1))
			rows := p.rows("u")
			same(t, "rows", len(rows), len(c.second))
			for _, a := range c.second {
				value := 0
				if a.Name == "A" && a.Phase == "" && c.want.Unchanged == 0 {
					value = 10
				}
				got := rows["730/2/"+a.AssetID]
				want := fmt.Sprintf("%s|%s|%s|%s|%d|%t|%t|%s|", a.Name, a.Phase, a.ClassID, a.InstanceID, a.Amount, a.Tradable, a.Marketable, a.Inspect)
				if !strings.HasPrefix(got, want) {
					t.Errorf("row %s: got %s, want %s", a.AssetID, got, want)
				}
				if c.want.Unchanged == 0 && got != want+strconv.Itoa(value) {
					t.Errorf("row %s: got %s, want value %d", a.AssetID, got, value)
				}
			}
		})
	}
}

func TestSync_SamePushWritesNothing(t *testing.T) {
	p := newFixture(t)
	var assets []inventory.Asset
	for i := range 500 {
		assets = append(assets, asset(strconv.Itoa(i), fmt.Sprint("name ", i%300)))
	}
	assets = append(assets, inventory.Asset{AssetID: "nameless", Amount: 1})
	p.sync("u", pushAt(0, assets...))
	p.price("name 7", 10)
	before := p.version()
	for range 3 {
		r := p.sync("u", pushAt(0, assets...))
		same(t, "result", r, inventory.Result{Unchanged: 501, PricedRows: 2})
	}
	same(t, "database version", p.version(), before)
	// The same push with a later time writes only the time.
	p.sync("u", pushAt(1, assets...))
	if p.version() == before {
		t.Error("push with a later time: got an unchanged database, want the new time")
	}
}

func TestSync_RejectsOlderSnapshots(t *testing.T) {
	p := newFixture(t)
	p.sync("u", pushAt(5, asset("1", "A")))
	before := p.version()
	_, err := p.Sync(t.Context(), "u", pushAt(4, asset("2", "B")), inventory.Normal)
	if f := fault.Of(err); f == nil || f.Kind != fault.Conflict || f.Code != "snapshot_outdated" {
		t.Errorf("older snapshot: got error %v, want snapshot_outdated", err)
	} else if !strings.Contains(f.Detail, "2026-03-01T12:05:00Z") {
		t.Errorf("got detail %q, want it with the time of the stored inventory", f.Detail)
	}
	same(t, "database version", p.version(), before)
	same(t, "snapshot with the same time", p.sync("u", pushAt(5, asset("2", "B"))), inventory.Result{Added: 1, Removed: 1, QueuedNames: 1})
	// A snapshot that is older by a microsecond is refused. Other users, games and contexts are
	// independent.
	late := pushAt(5, asset("2", "B"))
	late.SnapshotAt = late.SnapshotAt.Add(-time.Microsecond)
	if _, err := p.Sync(t.Context(), "u", late, inventory.Normal); fault.Of(err) == nil {
		t.Error("snapshot that is older by a microsecond: got no error, want one")
	}
	p.sync("other", pushAt(0, asset("1", "A")))
	game, context := pushAt(0, asset("1", "A")), pushAt(0, asset("1", "A"))
	game.AppID, context.ContextID = catalog.Rust, "6"
	same(t, "rows added for another game", p.sync("u", game).Added, 1)
	same(t, "rows added for another context", p.sync("u", context).Added, 1)
	same(t, "rows", len(p.rows("u")), 3)
}

// The clock was ahead when the first inventory was stored.
func TestSync_ReplacesASnapshotOfTheFuture(t *testing.T) {
	p := newFixture(t)
	p.sync("u", pushAt(60*24, asset("1", "A")))
	renew := func() bool {
		t.Helper()
		fresh, err := p.Renew(t.Context(), "u", catalog.CS2, "2", noon.Add(-time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return fresh
	}
	same(t, "inventory of the future is fresh", renew(), false)
	same(t, "inventory of now", p.sync("u", pushAt(0, asset("2", "A"))), inventory.Result{Added: 1, Removed: 1})
	same(t, "inventory of now is fresh", renew(), true)
	if _, err := p.Sync(t.Context(), "u", pushAt(-1, asset("3", "A")), inventory.Normal); !inventory.Outdated(err) {
		t.Errorf("older snapshot: got error %v, want snapshot_outdated", err)
	}
	p.sync("u", pushAt(5, asset("2", "A"))) // the latest time of a push
	same(t, "inventory of the latest time is fresh", renew(), true)
	if _, err := p.Sync(t.Context(), "u", pushAt(0, asset("3", "A")), inventory.Normal); !inventory.Outdated(err) {
		t.Errorf("older snapshot than the latest time: got error %v, want snapshot_outdated", err)
	}
}

// The push has two hidden assets, so the missing rows stay and become not tradable.
func TestSync_KeepsHiddenAssetsAsNotTradable(t *testing.T) {
	p := newFixture(t)
	locked := asset("3", "C")
	locked.Tradable = false
	p.sync("u", pushAt(0, asset("1", "A"), asset("2", "B"), locked))
	p.price("B", 7)
	part := pushAt(1, asset("1", "A"), asset("4", "D"))
	part.Hidden = 2
	same(t, "result", p.sync("u", part), inventory.Result{Added: 1, Changed: 1, Unchanged: 2, QueuedNames: 1, Hidden: 2})
	rows := p.rows("u")
	same(t, "rows", len(rows), 4)
	same(t, "hidden asset", rows["730/2/2"], "B||||1|false|true||7")
	same(t, "visible asset", rows["730/2/1"], "A||||1|true|true||0")
	version := p.version()
	same(t, "same push", p.sync("u", part), inventory.Result{Unchanged: 4, Hidden: 2})
	same(t, "database version", p.version(), version)
	same(t, "push without hidden assets", p.sync("u", pushAt(2, asset("1", "A"), asset("2", "B"))), inventory.Result{Removed: 2, Changed: 1, Unchanged: 1, PricedRows: 1})
	same(t, "visible again", p.rows("u")["730/2/2"], "B||||1|true|true||7")
}

func TestSync_UsersAreIndependent(t *testing.T) {
	p := newFixture(t)
	for _, user := range []string{"u", "U", "u ", strings.Repeat("ü", 64)} {
		p.sync(user, pushAt(0, asset("1", "A"), asset("2", "B")))
	}
	p.sync("u", pushAt(1))
	same(t, "rows of the user with an empty push", len(p.rows("u")), 0)
	for _, user := range []string{"U", "u ", strings.Repeat("ü", 64)} {
		same(t, "rows of "+user, len(p.rows(user)), 2)
	}
	same(t, "items", p.count(`SELECT count(*) FROM item`), 2)
	same(t, "queue entries", p.count(`SELECT count(*) FROM missing_price`), 2)
}

func TestSync_RejectsInvalidUserIDs(t *testing.T) {
	p := newFixture(t)
	before := p.version()
	for _, id := range []string{"", strings.Repeat("x", 129), "a\x00b", "\xff", strings.Repeat("x", 10_000)} {
		_, err := p.Sync(t.Context(), id, pushAt(0), inventory.Normal)
		if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || f.Code != "invalid_user_id" {
			t.Errorf("Sync(%.10q): got error %v, want invalid_user_id", id, err)
		}
		if err := p.PutUser(t.Context(), user.User{ID: id}); fault.Of(err) == nil {
			t.Errorf("PutUser(%.10q): got error %v, want a fault", id, err)
		}
	}
	same(t, "database version", p.version(), before)
}

func TestSync_CreatesAnUnknownUser(t *testing.T) {
	p := newFixture(t)
	u := user.User{ID: "u", SteamID: "76561198000000000", DisplayName: "N", Leaderboard: false}
	if err := p.PutUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	p.sync("u", pushAt(0, asset("1", "A")))
	p.sync("new", pushAt(0))
	got, err := user.Read(t.Context(), p.store, "u")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "existing user", got, u)
	got, err = user.Read(t.Context(), p.store, "new")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "new user", got, user.User{ID: "new", Leaderboard: true})
}

func TestSync_RandomPushesAreStored(t *testing.T) {
	r := randtest.New(t)
	p := newFixture(t)
	rounds := randtest.Count(60, 5000)
	stored := map[string]string{}
	for round := range rounds {
		var assets []inventory.Asset
		next := map[string]string{}
		for id := range 30 {
			if r.IntN(3) == 0 {
				continue
			}
			a := asset(strconv.Itoa(id), fmt.Sprint("name ", r.IntN(5)))
			a.Amount, a.Tradable = 1+r.Int64N(2), r.IntN(2) == 0
			assets = append(assets, a)
			next["730/2/"+a.AssetID] = fmt.Sprintf("%s||||%d|%t|true||0", a.Name, a.Amount, a.Tradable)
		}
		var want inventory.Result
		for id, row := range next {
			switch was, there := stored[id]; {
			case !there:
				want.Added++
			case was == row:
				want.Unchanged++
			default:
				want.Changed++
			}
		}
		for id := range stored {
			if _, there := next[id]; !there {
				want.Removed++
			}
		}
		got := p.sync("u", pushAt(round, assets...))
		want.QueuedNames = got.QueuedNames
		same(t, "result", got, want)
		rows := p.rows("u")
		same(t, "rows", len(rows), len(next))
		for id, row := range next {
			same(t, id, rows[id], row)
		}
		stored = next
	}
	same(t, "names queued", p.count(`SELECT count(*) FROM missing_price`), 5)
}

// During these pulls, the user does not exist, is deleted, or changes the Steam account.
func TestSync_RejectsPullsOfAnotherAccount(t *testing.T) {
	const account = "76561198000000000"
	p := newFixture(t)
	pull := pushAt(0, asset("1", "A"))
	pull.SteamID = account
	refused := func(why, code string, kind fault.Kind) {
		t.Helper()
		_, err := p.Sync(t.Context(), "u", pull, inventory.Normal)
		if f := fault.Of(err); f == nil || f.Code != code || f.Kind != kind {
			t.Errorf("%s: got error %v, want %s", why, err, code)
		}
		same(t, why+": rows", p.count(`SELECT count(*) FROM inventory`), 0)
		same(t, why+": names queued", p.count(`SELECT count(*) FROM missing_price`), 0)
	}
	put := func(steamID string) {
		t.Helper()
		if err := p.PutUser(t.Context(), user.User{ID: "u", SteamID: steamID}); err != nil {
			t.Fatal(err)
		}
	}
	refused("unknown user", "user_not_found", fault.NotFound)
	same(t, "users", p.count(`SELECT count(*) FROM platform_user`), 0)
	put("76561198000000009")
	refused("user with another account", "steam_id_changed", fault.Conflict)
	put("")
	refused("user without an account", "steam_id_changed", fault.Conflict)
	put(account)
	p.delete("u")
	refused("deleted user", "user_not_found", fault.NotFound)
	put(account)
	same(t, "user with the account", p.sync("u", pull), inventory.Result{Added: 1, QueuedNames: 1})
}

// Another request may delete the seller while a listing is created.
func TestRenew_CreatesNoUser(t *testing.T) {
	p := newFixture(t)
	p.sync("u", pushAt(0, asset("1", "A")))
	p.delete("u")
	for _, userID := range []string{"u", "unknown"} {
		fresh, err := p.Renew(t.Context(), userID, catalog.CS2, "2", noon.Add(-time.Hour))
		if fresh || err != nil {
			t.Errorf("Renew(%s) = %v, %v, want false and no error", userID, fresh, err)
		}
		if _, known, err := user.Key(t.Context(), p.store, userID); known || err != nil {
			t.Errorf("user %s: got exists %v, error %v, want no user", userID, known, err)
		}
	}
}

// The user has two inventories of the maximum size, and all rows have inspections.
func TestDeleteUser_DeletesTheLargestInventoriesInBoundedTime(t *testing.T) {
	p := newFixture(t)
	for _, app := range []int32{catalog.CS2, catalog.Rust} {
		push := pushAt(0, largest()...)
		push.AppID = app
		p.sync("u", push)
	}
	p.sync("other", pushAt(0, asset("1", "name 1")))
	start := time.Now()
	p.delete("u")
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("the deletion took %v, want at most 30s", took)
	}
	same(t, "rows", p.count(`SELECT count(*) FROM inventory`), 1)
	same(t, "inspections", p.count(`SELECT count(*) FROM inspection`), 0)
	same(t, "snapshots", p.count(`SELECT count(*) FROM inventory_snapshot`), 1)
}

// largest returns the maximum number of assets of a push, each with an inspect link.
func largest() []inventory.Asset {
	assets := make([]inventory.Asset, inventory.MaxItems)
	for i := range assets {
		assets[i] = asset(strconv.Itoa(i), fmt.Sprint("name ", i%20_000))
		assets[i].Inspect = "steam://rungame/730/76561202255233023/+csgo_econ_action_preview%20S1A2D3"
	}
	return assets
}

func TestSync_SyncsTheLargestInventoryInBoundedTime(t *testing.T) {
	p := newFixture(t)
	assets := largest()
	start := time.Now()
	same(t, "first", p.sync("u", pushAt(0, assets...)), inventory.Result{Added: inventory.MaxItems, QueuedNames: 20_000})
	same(t, "again", p.sync("u", pushAt(1, assets...)), inventory.Result{Unchanged: inventory.MaxItems})
	for i := range assets {
		assets[i].Amount = 2
	}
	same(t, "changed", p.sync("u", pushAt(2, assets...)), inventory.Result{Changed: inventory.MaxItems})
	same(t, "sold", p.sync("u", pushAt(3)), inventory.Result{Removed: inventory.MaxItems})
	if took := time.Since(start); took > 2*time.Minute {
		t.Errorf("the syncs took %v, want at most 2m", took)
	}
}
