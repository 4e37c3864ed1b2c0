package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/refresh"
	"assay/internal/user"
	"assay/internal/view"
)

// trapNames are names as they exist, or could, that a careless store mixes up:
// twins in all but case, spaces, control characters, look-alikes, what other
// languages take for syntax, and the longest.
func trapNames() []string {
	return []string{
		"Sticker | Device", "Sticker | device", "STICKER | DEVICE",
		"Two  spaces", "Two spaces", "Trailing ", "Trailing  ", "Trailing", " Leading", "\tTab",
		"Line\nbreak", "Line\r\nbreak", "Line\u2028separator", "Control\x01\x1f\x7f",
		"壱", "弐", "é", "e\u0301", "★ StatTrak™ Karambit", "\ufeffBOM", "\U0001F600",
		"%2F", "/", "%", "_", "a%b", "a_b", "\\", "&lt;", "<", "&amp;lt;", "'", "''", `"`, `\"`, "--", "; DROP TABLE item",
		"#1", "$1", "?", "?1", ":name", "@name", "null", "NULL", "0", "00", "1e3", "true", "[]", `{"a":1}`, "\u0080",
		strings.Repeat("n", catalog.MaxName), strings.Repeat("n", catalog.MaxName-1), strings.Repeat("★", 170) + "ab",
	}
}

func namesAreKept(f *fixture) {
	names := trapNames()
	ids := f.items(names...)
	if n := len(slices.Compact(slices.Sorted(slices.Values(ids)))); n != len(names) {
		f.Errorf("%d names became %d items", len(names), n)
	}
	user := f.own("u", ids...)
	for i, n := range names {
		got := f.item(n)
		f.is("id of "+n, got.ID, ids[i])
		f.is("name", got.Key, key(n))
	}
	rows, err := view.ReadInventory(f.Context(), f.s, user, app, 0, 1000)
	f.must(err)
	for i, r := range rows {
		f.is("name of a row", r.Name, names[i])
	}
	// Through a plan, a unit and back.
	f.plan(refresh.Bulk, 1, unit("s", ""))
	var planned []string
	f.tx(func(tx *db.Tx) error {
		list, err := refresh.DueNamesOf(tx, 1, app)
		for _, n := range list {
			planned = append(planned, n.Name)
		}
		return err
	})
	want := slices.Clone(names)
	slices.SortFunc(want, func(a, b string) int {
		return cmp.Or(cmp.Compare(catalog.Bucket(a), catalog.Bucket(b)), cmp.Compare(a, b))
	})
	if !slices.Equal(planned, want) {
		f.Errorf("planned %q\n   want %q", planned, want)
	}
	u := unit("t", "")
	u.JobID, u.Names = 1, names
	f.tx(func(tx *db.Tx) error { return refresh.InsertUnits(tx, []refresh.Unit{u}) })
	if got := f.claim("t").Names; !slices.Equal(got, names) {
		f.Errorf("a unit has %q\n   want %q", got, names)
	}
}

func itemsAreMadeOnce(f *fixture) {
	first := f.items("A", "B")
	again := f.items("B", "C", "A")
	f.is("A", again[2], first[0])
	f.is("B", again[0], first[1])
	if again[1] == 0 || again[1] == first[0] || again[1] == first[1] {
		f.Errorf("C has the id %d", again[1])
	}
	// Game and phase are part of the key.
	f.tx(func(tx *db.Tx) error {
		phases, err := catalog.EnsureItems(tx, app, []catalog.Key{{AppID: app, Name: "A", Phase: "Ruby"}, {AppID: app, Name: "A"}})
		f.is("a phase is an item of its own", len(phases), 2)
		f.is("the plain one", phases[key("A")].ID, first[0])
		if err != nil {
			return err
		}
		other, err := catalog.EnsureItems(tx, catalog.Rust, []catalog.Key{{AppID: catalog.Rust, Name: "A"}})
		if id := other[catalog.Key{AppID: catalog.Rust, Name: "A"}].ID; id == first[0] || id == 0 {
			f.Errorf("another game's item has the id %d", id)
		}
		return err
	})
	i, err := view.ReadItem(f.Context(), f.s, key("nobody"))
	f.must(err)
	f.is("no item", i == nil, true)
	f.tx(func(tx *db.Tx) error {
		known, err := refresh.KnowsItem(tx, key("A"))
		f.is("A is known", known, true)
		if err != nil {
			return err
		}
		known, err = refresh.KnowsItem(tx, key("a"))
		f.is("a is known", known, false)
		return err
	})
}

func itemsAreListed(f *fixture) {
	names := []string{"B", "a", "A", "★", "b", "AB%"}
	f.items(names...)
	slices.Sort(names)
	list := func(after string, limit int) (out []string) {
		items, err := view.UnpricedItems(f.Context(), f.s, app, after, "", limit)
		f.must(err)
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
			f.Errorf("items without a price after %q: got %q, want %q", c.after, got, c.want)
		}
	}
	f.tx(func(tx *db.Tx) error {
		_, err := catalog.EnsureItems(tx, app, []catalog.Key{{AppID: app, Name: "B", Phase: "Ruby"}, {AppID: app, Name: "B", Phase: "Emerald"}})
		return err
	})
	items, err := view.UnpricedItems(f.Context(), f.s, app, "B", "Emerald", 1)
	f.must(err)
	f.is("after a phase", items[0].Key, catalog.Key{AppID: app, Name: "B", Phase: "Ruby"})
	f.own("u", f.items(names...)...)
	f.run(10)
	f.is("without a price once all that are owned have one", len(list("", 100)), 2)
}

func usersAreMadeOnce(f *fixture) {
	a, b := f.own("A"), f.own("a")
	f.is("again", f.own("A"), a)
	f.is("users differ in case alone", a != b, true)
	got, ok, err := user.Key(f.Context(), f.s, "A")
	f.must(err)
	f.is("key", got, a)
	f.is("known", ok, true)
	_, ok, err = user.Key(f.Context(), f.s, "nobody")
	f.must(err)
	f.is("nobody is known", ok, false)
	for _, u := range []user.User{
		{ID: "A", SteamID: "76561198000000000", DisplayName: "Ä ★", Leaderboard: false},
		{ID: "A", Leaderboard: true},
		{ID: "new", DisplayName: "N"},
	} {
		f.tx(func(tx *db.Tx) error { return user.Put(tx, u) })
		got, err := user.Read(f.Context(), f.s, u.ID)
		f.must(err)
		f.is("user", got, u)
	}
	for _, u := range []struct {
		id   string
		want bool
	}{{"A", true}, {"new", false}, {"newer", true}} {
		f.tx(func(tx *db.Tx) error {
			return user.Put(tx, user.User{ID: u.id, Leaderboard: true, KeepLeaderboard: true})
		})
		got, err := user.Read(f.Context(), f.s, u.id)
		f.must(err)
		f.is("leaderboard of "+u.id+", of which nothing was said", got.Leaderboard, u.want)
	}
	f.is("the key stays", f.own("A"), a)

	asOf := func(context string) (at int64) {
		f.tx(func(tx *db.Tx) (err error) {
			at, err = inventory.InventoryAsOf(tx, a, app, context)
			return err
		})
		return at
	}
	f.is("no inventory yet", asOf("2"), int64(0))
	for _, at := range []int64{5, 7} {
		f.tx(func(tx *db.Tx) error { return inventory.SetInventoryAsOf(tx, a, app, "2", at) })
		f.is("as of", asOf("2"), at)
	}
	f.is("another context", asOf("6"), int64(0))
}

func rowsCopyPrices(f *fixture) {
	ids := f.items("A", "B")
	u := f.own("u", ids[0])
	f.finish(f.run(7))
	v := f.own("v", ids[0], ids[1], 0)
	if got := f.values(v); !slices.Equal(got, []money.Micro{7, 0, 0}) {
		f.Errorf("values of new rows: %v", got)
	}
	var rows []inventory.Row
	f.tx(func(tx *db.Tx) (err error) {
		rows, err = inventory.InventoryRows(tx, v, app, "2")
		return err
	})
	slices.SortFunc(rows, func(a, b inventory.Row) int { return strings.Compare(a.AssetID, b.AssetID) })
	want := inventory.Row{ID: rows[0].ID, AssetID: "a", ItemID: ids[0], Amount: 1, Tradable: true, Marketable: true}
	f.is("row", rows[0], want)
	rows[0] = inventory.Row{
		ID: rows[0].ID, AssetID: "a", ItemID: ids[1], ClassID: "c ★", InstanceID: "i", Amount: 1 << 31,
		Marketable: true, Inspect: "steam://rungame/%20\"'",
	}
	rows[1].ItemID = ids[0]
	f.tx(func(tx *db.Tx) error { return inventory.ChangeInventory(tx, rows[:2]) })
	if got := f.values(v); !slices.Equal(got, []money.Micro{0, 7, 0}) {
		f.Errorf("values of changed rows: %v", got)
	}
	f.tx(func(tx *db.Tx) error {
		again, err := inventory.InventoryRows(tx, v, app, "2")
		slices.SortFunc(again, func(a, b inventory.Row) int { return strings.Compare(a.AssetID, b.AssetID) })
		f.is("changed row", again[0], rows[0])
		return err
	})
	f.tx(func(tx *db.Tx) error { return inventory.RemoveInventory(tx, []int64{rows[1].ID, rows[2].ID}) })
	f.is("rows left", len(f.values(v)), 1)
	f.is("another user's rows", len(f.values(u)), 1)
	err := f.s.InTx(f.Context(), func(tx *db.Tx) error {
		return inventory.AddInventory(tx, v, app, "2", []inventory.Row{{AssetID: "a", Amount: 1}}, nil)
	})
	if err == nil {
		f.Error("an asset is there twice")
	}
	f.tx(func(tx *db.Tx) error {
		return inventory.AddInventory(tx, v, app, "6", []inventory.Row{{AssetID: "a", Amount: 1}}, nil)
	})
}

func rowsAreListed(f *fixture) {
	ids := f.items("A", "B", "C")
	f.own("else", ids[0])
	f.finish(f.run(10))
	u := f.own("u", ids...)
	f.tx(func(tx *db.Tx) error {
		return inventory.AddInventory(tx, u, catalog.Rust, "2", []inventory.Row{{AssetID: "r", Amount: 5}}, nil)
	})
	page, err := view.ReadInventory(f.Context(), f.s, u, app, 0, 2)
	f.must(err)
	f.is("rows of a page", len(page), 2)
	f.is("value", page[0].Value, money.Micro(10))
	f.is("moved at", page[0].UpdatedAt, f.now)
	rest, err := view.ReadInventory(f.Context(), f.s, u, app, page[1].ID, 2)
	f.must(err)
	f.is("rows of the next", len(rest), 1)
	f.is("name", rest[0].Name, "C")
	all, err := view.ReadInventory(f.Context(), f.s, u, 0, 0, 10)
	f.must(err)
	f.is("rows of all games", len(all), 4)
	f.is("a row without a name", all[3].Name, "")
	for _, c := range []struct {
		app  int32
		want view.InventoryTotal
	}{
		{app, view.InventoryTotal{Value: money.Sum{}.Add(10, 1), Rows: 3, Unpriced: 2}},
		{catalog.Rust, view.InventoryTotal{Rows: 1, Unpriced: 1}},
		{0, view.InventoryTotal{Value: money.Sum{}.Add(10, 1), Rows: 4, Unpriced: 3}},
		{catalog.Dota, view.InventoryTotal{}},
	} {
		got, err := view.ReadInventoryTotal(f.Context(), f.s, u, c.app)
		f.must(err)
		f.is(fmt.Sprint("total of ", c.app), got, c.want)
	}
	f.tx(func(tx *db.Tx) error {
		return inventory.AddInventory(tx, u, app, "2", []inventory.Row{{AssetID: "much", ItemID: ids[0], Amount: 1 << 62}}, map[int64]money.Micro{ids[0]: 10})
	})
	got, err := view.ReadInventoryTotal(f.Context(), f.s, u, app)
	f.must(err)
	f.is("a total beyond any amount", got.Value.String(), "46116860184273.87905")
}

func missingIsQueuedOnce(f *fixture) {
	ids := f.items("A", "B", "C")
	f.own("u", ids[0])
	f.finish(f.run(10))
	queue := func(items ...int64) (n int64) {
		f.tx(func(tx *db.Tx) (err error) {
			n, _, err = catalog.QueueMissing(tx, items)
			return err
		})
		return n
	}
	f.is("queued", queue(ids[1:]...), int64(2))
	f.is("again", queue(ids[1:]...), int64(0))
	due, err := refresh.HasDueMissing(f.Context(), f.s, f.rules())
	f.must(err)
	f.is("due", due, true)
	q, err := view.ReadMissingQueue(f.Context(), f.s, f.now)
	f.must(err)
	f.is("queue", q, view.MissingQueue{Due: 2, Oldest: f.now})
	i := f.item("B")
	f.is("item is queued", i.Queued, true)

	f.now = f.now.Add(time.Second)
	f.plan(refresh.Missing, 1)
	q, err = view.ReadMissingQueue(f.Context(), f.s, f.now)
	f.must(err)
	f.is("in work", q, view.MissingQueue{Running: true, Due: 2, Oldest: dbtest.Epoch})
	f.is("queued while in work", queue(ids[1:]...), int64(0))
	due, err = refresh.HasDueMissing(f.Context(), f.s, f.rules())
	f.must(err)
	f.is("due while in work", due, false)
}
