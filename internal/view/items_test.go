package view_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/randtest"
	"assay/internal/refresh"
	"assay/internal/view"
)

// createItems creates items of all statuses and ages. Some are held, some have no price, and
// some are offered on the market m or n. It returns the stored items.
func createItems(w *world, random *rand.Rand, items int) []view.StoredItem {
	w.Helper()
	var names []string
	for i := range items {
		names = append(names, fmt.Sprintf("%s %s | %s %d", []string{"★", "AK-47", "ak", "M4A4 "}[random.IntN(4)], []string{"Knife", "knife", "Fade"}[random.IntN(3)],
			[]string{"(Field-Tested)", "x", "É"}[random.IntN(3)], i))
	}
	w.own("u", names...)
	var ids map[refresh.MarketName]int64
	m, n := refresh.MarketName{Provider: "sim", Key: "m"}, refresh.MarketName{Provider: "other", Key: "m"}
	o := refresh.MarketName{Provider: "sim", Key: "n"}
	w.tx(func(tx *db.Tx) (err error) {
		ids, err = refresh.MarketIDs(tx, []refresh.MarketName{m, n, o})
		return err
	})
	byID := slices.Sorted(maps.Values(ids))
	w.quotes = func() (out []refresh.MarketSnapshot) {
		for _, id := range byID {
			if random.IntN(6) == 0 {
				reason := []pricing.Reason{pricing.Used, pricing.Outlier, pricing.NotOffered}[random.IntN(3)]
				out = append(out, refresh.MarketSnapshot{MarketID: id, Ask: 1, Currency: "USD", Reason: reason})
			}
		}
		return out
	}
	for range 6 {
		w.now = w.now.Add(7*time.Hour + time.Duration(random.IntN(1e6))*time.Microsecond)
		estimates := map[string]pricing.Priced{}
		for _, name := range names[items/8:] {
			if random.IntN(3) > 0 {
				continue
			}
			price := money.Micro(1+random.IntN(5)) * 1e6
			e := pricing.Priced{
				Price: price, Estimated: price, Status: pricing.Status(random.IntN(int(pricing.Stale))),
				Average: price + 1, UsedMarkets: 2, Interval: pricing.Interval{Low: price - 1, High: price + 1},
			}
			if random.IntN(5) == 0 {
				e.Status, e.State.Held = pricing.Suspect, pricing.HeldPrice{Candidate: 9e6, At: w.now, Side: pricing.Rise}
			}
			estimates[name] = e
		}
		id := w.begin(3)
		for w.estimateWith(estimates) {
		}
		w.end(id)
	}
	var all []view.StoredItem
	for _, name := range names {
		i, err := view.ReadItem(w.Context(), w.store, catalog.Key{AppID: catalog.CS2, Name: name})
		w.must(err)
		all = append(all, *i)
	}
	return all
}

// shown returns the status that clients see.
func (w *world) shown(i *view.StoredItem) string {
	if i.Price > 0 && i.Status < pricing.Stale && w.now.Sub(i.CheckedAt) > 24*time.Hour {
		return "stale"
	}
	return i.Status.String()
}

// dayChange computes the change of an item's price in a day from its history.
func (w *world) dayChange(i *view.StoredItem) (money.Micro, bool) {
	at := w.now.Add(-24 * time.Hour).Truncate(5 * time.Minute)
	past, err := w.PriceAt(w.Context(), i.Key, at, false, "")
	if i.Price == 0 || err != nil {
		return 0, false
	}
	return money.Ratio(i.Price-past.CurrentPrice, past.CurrentPrice)
}

// passes reports whether an item passes a filter. It implements ItemFilter without SQL or indexes.
func (w *world) passes(f *view.ItemFilter, i *view.StoredItem) bool {
	snaps, err := view.Snapshots(w.Context(), w.store, i.ID)
	w.must(err)
	offered := slices.ContainsFunc(snaps, func(s view.StoredSnapshot) bool {
		return (s.Market == f.Market || s.Provider+"/"+s.Market == f.Market) && s.Reason != pricing.NotOffered
	})
	words := true
	for word := range strings.FieldsSeq(f.Search) {
		words = words && strings.Contains(strings.ReplaceAll(strings.ToLower(i.Key.Name), "é", "É"), strings.ReplaceAll(strings.ToLower(word), "é", "É"))
	}
	priced := i.Price > 0
	return words &&
		(f.Status == "" || w.shown(i) == f.Status) &&
		(f.Market == "" || offered) &&
		(f.Min == 0 || priced && i.Price >= f.Min) && (f.Max == 0 || priced && i.Price <= f.Max) &&
		(f.ChangedSince.IsZero() || !i.UpdatedAt.Before(f.ChangedSince)) &&
		(f.UpdatedSince.IsZero() || !i.CheckedAt.Before(f.UpdatedSince)) &&
		(!f.Held || i.Candidate > 0) && (f.MinDayChange == 0 || w.moved(i, f.MinDayChange))
}

// moved reports whether an item's price rose or fell in a day by at least the given fraction.
func (w *world) moved(i *view.StoredItem, least money.Micro) bool {
	move, known := w.dayChange(i)
	return known && max(move, -move) >= least
}

// inOrder sorts items like ItemFilter.Sort.
func (w *world) inOrder(sort string, all []view.StoredItem) {
	by, descending := strings.CutPrefix(sort, "-")
	rank := []string{"ok", "thin", "suspect", "disputed", "stale", "noPrice"}
	moves := map[int64]money.Micro{}
	for i := range all {
		if by != "dayChange" {
			break
		}
		move, known := w.dayChange(&all[i])
		if moves[all[i].ID] = move; !known {
			moves[all[i].ID] = -2 * money.Scale
		}
	}
	slices.SortFunc(all, func(a, b view.StoredItem) int {
		c := 0
		switch by {
		case "price":
			c = cmp.Compare(a.Price, b.Price)
		case "status":
			c = cmp.Compare(slices.Index(rank, w.shown(&a)), slices.Index(rank, w.shown(&b)))
		case "changed":
			c = a.UpdatedAt.Compare(b.UpdatedAt)
		case "dayChange":
			c = cmp.Compare(moves[a.ID], moves[b.ID])
		}
		if descending {
			c = -c
		}
		if sort == "-name" {
			a, b = b, a
		}
		return cmp.Or(c, cmp.Compare(a.Key.Name, b.Key.Name), cmp.Compare(a.Key.Phase, b.Key.Phase))
	})
}

func anyFilter(random *rand.Rand, all []view.StoredItem) view.ItemFilter {
	f := view.ItemFilter{AppID: catalog.CS2, Sort: view.ItemSorts()[random.IntN(len(view.ItemSorts()))]}
	some := func() bool { return random.IntN(4) == 0 }
	if some() {
		f.Search = []string{"KNIFE ★", "fade", " ak-47  x ", "★ É", "m4a4\t(field", "nothing like it", " "}[random.IntN(7)]
	}
	if some() {
		f.Status = view.PriceStatuses()[random.IntN(len(view.PriceStatuses()))]
	}
	if some() {
		f.Market = []string{"n", "sim/n", "sim/m", "other/m"}[random.IntN(4)]
	}
	if some() {
		f.Min = money.Micro(1+random.IntN(5)) * 1e6
	}
	if some() {
		f.Max = money.Micro(1+random.IntN(5)) * 1e6
	}
	if some() {
		f.ChangedSince = all[random.IntN(len(all))].UpdatedAt
	}
	if some() {
		f.UpdatedSince = all[random.IntN(len(all))].CheckedAt
	}
	if some() {
		f.MinDayChange = []money.Micro{1, 500_000, 1_000_000, 4_000_000}[random.IntN(4)]
	}
	f.Held = some()
	return f
}

// TestItems_MatchFilterAndSort compares lists, read page by page, with a simple filter and
// sort of all stored items.
func TestItems_MatchFilterAndSort(t *testing.T) {
	random := randtest.New(t)
	w := newWorld(t, false)
	all := createItems(w, random, 150)
	found := 0
	for range randtest.Count(150, 3000) {
		f := anyFilter(random, all)
		var want []string
		sorted := slices.Clone(all)
		w.inOrder(f.Sort, sorted)
		for i := range sorted {
			if w.passes(&f, &sorted[i]) {
				want = append(want, fmt.Sprint(sorted[i].Key.Name, " ", sorted[i].Price, " ", w.shown(&sorted[i]), " ", sorted[i].Candidate > 0))
			}
		}
		limit := 1 + random.IntN(60)
		var got []string
		for cursor := ""; ; {
			p, err := w.Items(t.Context(), f, cursor, limit)
			w.must(err)
			for _, i := range p.Items {
				got = append(got, fmt.Sprint(i.MarketHashName, " ", i.CurrentPrice, " ", i.Status, " ", i.Held))
			}
			if len(p.Items) > limit || p.NextCursor != nil && len(p.Items) < limit {
				t.Fatalf("limit %d: got a page of %d items, next cursor %t, want up to the limit, and a cursor only after a full page", limit, len(p.Items), p.NextCursor != nil)
			}
			if p.NextCursor == nil {
				break
			}
			cursor = *p.NextCursor
		}
		found += len(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%+v, pages of %d:\ngot  %q\nwant %q", f, limit, got, want)
		}
	}
	if found == 0 {
		t.Fatal("got empty lists for all filters, want some items")
	}
}

// The change covers the 24 hours before the request and includes all committed prices.
func TestItems_ReportTheChangeOfADay(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "a", "b", "c")
	w.price(map[string]money.Micro{"a": 10_000_000, "b": 10_000_000})
	start := w.now
	list := func(f view.ItemFilter) (out string) {
		t.Helper()
		f.AppID = catalog.CS2
		p, err := w.Items(t.Context(), f, "", 10)
		w.must(err)
		for _, i := range p.Items {
			out += i.MarketHashName
			if i.DayChange != nil {
				out += fmt.Sprint(" ", *i.DayChange)
			}
			out += ", "
		}
		return out
	}
	w.is("changes of new prices", list(view.ItemFilter{Sort: "-dayChange"}), "a, b, c, ")
	w.now = start.Add(23 * time.Hour)
	w.price(map[string]money.Micro{"a": 12_500_000, "b": 10_000_000})
	w.now = start.Add(25 * time.Hour)
	w.is("changes after a rise", list(view.ItemFilter{Sort: "-dayChange"}), "a 0.25, b 0, c, ")
	w.is("items with a rise of at least 25 %", list(view.ItemFilter{MinDayChange: 250_000}), "a 0.25, ")
	w.is("items with a rise of more than 25 %", list(view.ItemFilter{MinDayChange: 250_001}), "")
	w.is("items without the filter", list(view.ItemFilter{}), "a, b, c, ")
	w.now = start.Add(30 * time.Hour)
	w.price(map[string]money.Micro{"a": 12_500_000, "b": 1_000_000, "c": 5_000_000})
	w.is("changes after a fall", list(view.ItemFilter{Sort: "dayChange"}), "c, b -0.9, a 0.25, ")
	w.now = start.Add(48 * time.Hour)
	w.is("changes a day later", list(view.ItemFilter{Sort: "dayChange"}), "c, b -0.9, a 0, ")
}

// The list computes the status at the time of the request, with microsecond precision.
func TestItems_BecomeStale(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "a", "none")
	id := w.begin(1)
	w.estimate(map[string]money.Micro{"a": 5})
	w.end(id)
	checked := w.now
	for age, want := range map[time.Duration]string{24 * time.Hour: "ok", 24*time.Hour + time.Microsecond: "stale"} {
		w.now = checked.Add(age + 999) // below the microsecond precision
		for _, status := range []string{"ok", "stale"} {
			p, err := w.Items(t.Context(), view.ItemFilter{AppID: catalog.CS2, Status: status}, "", 10)
			w.must(err)
			if status == want && (len(p.Items) != 1 || p.Items[0].Status != want) || status != want && len(p.Items) != 0 {
				t.Errorf("at the age %v, filter %s: got %+v, want the item only with %s", age, status, p.Items, want)
			}
		}
	}
}

func TestItems_RejectUnknownParameters(t *testing.T) {
	w := newWorld(t, false)
	words := ""
	for i := range 17 {
		words += fmt.Sprint(" ", i)
	}
	for name, f := range map[string]view.ItemFilter{"q": {Search: words}, "market": {Market: "?"}, "status": {Status: "queued"}} {
		f.AppID = catalog.CS2
		_, err := w.Items(t.Context(), f, "", 10)
		wantInvalid(t, "the filter "+name, err, name)
	}
	w.own("u", "a", "b")
	p, err := w.Items(t.Context(), view.ItemFilter{AppID: catalog.CS2, Search: strings.Repeat("a ", 200)}, "", 1)
	w.must(err)
	if len(p.Items) != 1 {
		t.Errorf("repeated search word: got %v, want one item", p.Items)
	}
	p, err = w.Items(t.Context(), view.ItemFilter{AppID: catalog.CS2}, "", 1)
	w.must(err)
	_, err = w.Items(t.Context(), view.ItemFilter{AppID: catalog.CS2, Sort: "price"}, *p.NextCursor, 1)
	if fault.Of(err) == nil || fault.Of(err).Code != "invalid_cursor" {
		t.Errorf("cursor of another order: got error %v, want invalid_cursor", err)
	}
}
