package view_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/refresh"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/wallet/wallettest"
)

func TestUserList_HasValueAndAgeOfInventories(t *testing.T) {
	w := newWorld(t, false)
	w.own("eve", "x", "y", "z")
	w.price(map[string]money.Micro{"x": 2_000_000, "y": 3_000_000})
	w.tx(func(tx *db.Tx) error { // a deleted user is not listed
		_, err := tx.Exec(`UPDATE platform_user SET deleted_at = 1 WHERE user_id = 'eve'`)
		return err
	})
	w.own("ann", "x", "y", "z") // a sync copies the prices
	w.now = w.now.Add(time.Hour)
	w.own("Bob_1", "x")
	w.own("bobx1", "y")
	show := func(search string, limit int) string {
		t.Helper()
		var out []string
		for after, more := "", true; more; {
			p, err := w.UserList(t.Context(), search, after, limit)
			w.must(err)
			for _, u := range p.Items {
				out = append(out, fmt.Sprintf("%s %v %d/%d %s", u.UserID, u.Value, u.Rows, u.Unpriced, u.SyncedAt.Format("15:04")))
			}
			if more = p.NextCursor != nil; more {
				after = *p.NextCursor
			}
		}
		return strings.Join(out, ", ")
	}
	for search, want := range map[string]string{
		"":     "Bob_1 2 1/0 13:00, ann 5 3/1 12:00, bobx1 3 1/0 13:00",
		"BOB":  "Bob_1 2 1/0 13:00, bobx1 3 1/0 13:00",
		"b_1":  "Bob_1 2 1/0 13:00",
		"none": "",
	} {
		for _, limit := range []int{1, 10} {
			if got := show(search, limit); got != want {
				t.Errorf("search %q in pages of %d: got %s, want %s", search, limit, got, want)
			}
		}
	}
}

func TestOwnersAndItemRuns_OfAnItem(t *testing.T) {
	w := newWorld(t, false)
	w.own("ann", "x", "x", "y")
	w.own("bob", "x")
	w.price(map[string]money.Micro{"x": 2_000_000})
	w.now = w.now.Add(7 * time.Hour)
	w.price(map[string]money.Micro{"x": 4_000_000})
	key := catalog.Key{AppID: catalog.CS2, Name: "x"}
	owners, err := w.Owners(t.Context(), key, 1)
	w.must(err)
	if got, want := fmt.Sprintf("%+v", owners), "{Users:2 Rows:3 Pieces:3 Most:[{UserID:ann Rows:2 Amount:2}]}"; got != want {
		t.Errorf("owners: got %s, want %s", got, want)
	}
	runs, err := w.ItemRuns(t.Context(), key, 10)
	w.must(err)
	var got []string
	for _, r := range runs {
		got = append(got, fmt.Sprintf("%s %s %v-%v", r.Run.ID, r.State, r.PriceBefore, *r.PriceAfter))
	}
	if want := "2 updated 2-4, 1 updated 0-2"; strings.Join(got, ", ") != want {
		t.Errorf("runs: got %s, want %s", strings.Join(got, ", "), want)
	}
}

func TestHeldAndMissing_ListItemsInPages(t *testing.T) {
	w := newWorld(t, false)
	w.own("ann", "a", "b", "c")
	w.tx(func(tx *db.Tx) error {
		if _, err := tx.Exec(`UPDATE item SET price = 5, status = 0, candidate = 9, candidate_at = $1 WHERE name IN ('a', 'b')`, db.Micros(w.now)); err != nil {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM missing_price`); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO missing_price (item_id, queued_at, due_at, attempts) SELECT id, $1, CASE WHEN name = 'c' THEN 0 ELSE CAST($2 AS BIGINT) END, 3 FROM item`,
			db.Micros(w.now), db.Micros(w.now.Add(time.Hour)))
		return err
	})
	var held, missing []string
	for after, more := "", true; more; {
		p, err := w.Held(t.Context(), after, 1)
		w.must(err)
		for _, h := range p.Items {
			held = append(held, fmt.Sprint(h.Key.Name, " ", int64(h.Price), " ", int64(h.Candidate)))
		}
		if more = p.NextCursor != nil; more {
			after = *p.NextCursor
		}
	}
	for after, more := "", true; more; {
		p, err := w.Missing(t.Context(), after, 1)
		w.must(err)
		for _, m := range p.Items {
			missing = append(missing, fmt.Sprint(m.Key.Name, " ", m.Attempts, " ", m.NextAt.IsZero()))
		}
		if more = p.NextCursor != nil; more {
			after = *p.NextCursor
		}
	}
	if len(held) != 2 || !strings.HasSuffix(held[0], " 5 9") {
		t.Errorf("held prices: got %q, want the held prices of a and b", held)
	}
	if len(missing) != 3 || missing[0] != "c 3 true" || !strings.HasSuffix(missing[2], " 3 false") {
		t.Errorf("missing prices: got %q, want c first, because it is due", missing)
	}
}

// The job has 300 failed items with three causes, and two updated items.
func TestJobItems_AreSelectedByCauseAndWords(t *testing.T) {
	w := newWorld(t, false)
	var names []string
	causes := []string{"a: timeout", "b: status 500", `c: "odd", text`}
	for i := range 302 {
		names = append(names, fmt.Sprintf("Item %03d", i))
	}
	w.own("u", names...)
	id := w.begin(4)
	for {
		var b *refresh.Batch
		w.tx(func(tx *db.Tx) (err error) {
			b, err = refresh.ClaimBatch(tx, "test")
			return err
		})
		if b == nil {
			break
		}
		items, err := refresh.BatchItems(t.Context(), w.store, *b)
		w.must(err)
		s := refresh.Estimates{MissingRetry: time.Hour}
		for _, i := range items {
			var n int
			_, _ = fmt.Sscanf(i.Key.Name, "Item %d", &n)
			out := refresh.EstimatedItem{Item: i, State: refresh.ItemFailed, Error: causes[n%3]}
			if n >= 300 {
				out.State, out.Error, out.Responded, out.AsOf = refresh.ItemUpdated, "", true, w.now
				out.Estimate.Price = 7_000_000
				s.Counts.Updated++
			} else {
				s.Counts.Failed++
			}
			s.Items = append(s.Items, out)
		}
		w.tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
	}
	w.end(id)
	list, others, err := w.JobFailures(t.Context(), id, 0)
	w.must(err)
	if len(list) != 3 || others != 0 {
		t.Fatalf("got %d causes and %d others, want 3 and 0", len(list), others)
	}
	for _, c := range list {
		if c.Count != 100 {
			t.Errorf("cause %q: got %d items, want 100", c.Cause, c.Count)
		}
	}
	count := func(f view.JobItemFilter) (n int) {
		t.Helper()
		for after, more := "", true; more; {
			p, err := w.JobItems(t.Context(), id, f, after, 30)
			w.must(err)
			n += len(p.Items)
			if more = p.NextCursor != nil; more {
				after = *p.NextCursor
			}
		}
		return n
	}
	for _, c := range []struct {
		f    view.JobItemFilter
		want int
	}{
		{view.JobItemFilter{}, 302},
		{view.JobItemFilter{Cause: causes[1]}, 100},
		{view.JobItemFilter{Cause: "a"}, 0},
		{view.JobItemFilter{Search: "item 30"}, 5},
		{view.JobItemFilter{Search: "01 ITEM", State: "failed"}, 13},
		{view.JobItemFilter{Search: "00", Cause: causes[0]}, 4},
		{view.JobItemFilter{State: "updated"}, 2},
	} {
		if got := count(c.f); got != c.want {
			t.Errorf("filter %+v: got %d items, want %d", c.f, got, c.want)
		}
	}
	var csv bytes.Buffer
	w.must(w.WriteJobItems(t.Context(), &csv, id, view.JobItemFilter{Cause: causes[2], Search: "Item 002"}))
	if want := "appId,marketHashName,phase,state,reason,priceBefore,priceAfter,error\n730,Item 002,,failed,,,,\"c: \"\"odd\"\", text\"\n"; csv.String() != want {
		t.Errorf("CSV: got %q, want %q", csv.String(), want)
	}
}

func TestInventories_HaveValueAndAgeByContext(t *testing.T) {
	w := newWorld(t, false)
	w.own("eve", "x")
	w.price(map[string]money.Micro{"x": 2_000_000})
	w.own("ann", "x", "x", "y") // a sync copies the prices
	w.own("ben")
	show := func(user string) string {
		t.Helper()
		found, err := w.Inventories(t.Context(), user)
		w.must(err)
		return fmt.Sprint(found)
	}
	if got, want := show("ann"), fmt.Sprint([]view.UserInventory{{
		AppID: catalog.CS2, ContextID: "2", SyncedAt: w.now, Value: money.Sum{}.Add(2_000_000, 2), Rows: 3, Unpriced: 1,
	}}); got != want {
		t.Errorf("inventories of ann: got %s, want %s", got, want)
	}
	if got, want := show("ben"), fmt.Sprint([]view.UserInventory{{AppID: catalog.CS2, ContextID: "2", SyncedAt: w.now}}); got != want {
		t.Errorf("empty inventory of ben: got %s, want %s", got, want)
	}
	if _, err := w.Inventories(t.Context(), "none"); fault.Of(err) == nil || fault.Of(err).Kind != fault.NotFound {
		t.Errorf("unknown user: got the error %v, want a fault of the kind NotFound", err)
	}
}

func TestAccounts_ArePagedAndHaveNoHouse(t *testing.T) {
	w := newWorld(t, false)
	keys := wallettest.NewRing(t, "k1")
	book := wallet.Ledger{Keys: keys}
	w.tx(func(tx *db.Tx) error { return wallet.SetLedgerKey(tx, keys.Marks()[0]) })
	for _, a := range []wallet.Account{{User: "ann", Currency: "USD"}, {User: "ann", Currency: "EUR"}, {User: "zoe", Currency: "JPY"}} {
		w.tx(func(tx *db.Tx) error {
			_, err := book.Deposit(tx, a, 1250, wallet.Request{})
			return err
		})
	}
	wallets := view.New(view.Options{Store: w.store, Currency: "USD", Now: func() time.Time { return w.now }}).Wallets
	for _, limit := range []int{1, 10} {
		var got []string
		for after, more := "", true; more; {
			p, err := wallets.Accounts(t.Context(), after, limit)
			w.must(err)
			for _, a := range p.Items {
				got = append(got, fmt.Sprintf("%s %s %d/%d %d", a.UserID, a.Currency, a.Available, a.Held, a.Entries))
			}
			if more = p.NextCursor != nil; more {
				after = *p.NextCursor
			}
		}
		if want := "ann EUR 1250/0 1, ann USD 1250/0 1, zoe JPY 1250/0 1"; strings.Join(got, ", ") != want {
			t.Errorf("accounts in pages of %d: got %s, want %s", limit, strings.Join(got, ", "), want)
		}
	}
}
