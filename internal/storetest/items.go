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
	"assay/internal/money"
	"assay/internal/refresh"
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

func rowsAreListed(f *fixture) {
	ids := f.items("A", "B", "C")
	f.own("else", ids[0])
	f.finish(f.run(10))
	u := f.own("u", ids...)
	f.tx(func(tx *db.Tx) error {
		_, err := tx.Exec(`INSERT INTO inventory (user_key, app_id, item_id, amount, context_id, asset_id, class_id, instance_id, inspect, tradable, marketable)
			VALUES ($1, $2, 0, 5, '2', 'r', '', '', '', TRUE, TRUE)`, u, catalog.Rust)
		return err
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
		_, err := tx.Exec(`INSERT INTO inventory (user_key, app_id, item_id, amount, context_id, asset_id, class_id, instance_id, inspect, tradable, marketable, value)
			VALUES ($1, $2, $3, $4, '2', 'much', '', '', '', TRUE, TRUE, 10)`, u, app, ids[0], int64(1)<<62)
		return err
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
