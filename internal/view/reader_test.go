package view_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/exchange"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/view"
)

func TestStatus_CountsItemsByPriceAge(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A", "B", "C", "D", "A")
	w.price(map[string]money.Micro{"A": 10, "B": 20})
	w.now = w.now.Add(23 * time.Hour)
	w.price(map[string]money.Micro{"A": 11})
	for _, c := range []struct {
		later time.Duration
		want  view.Freshness
	}{
		{0, view.Freshness{Fresh: 2, Unknown: 2, OldestSeconds: 23 * 3600}},
		{time.Hour, view.Freshness{Fresh: 2, Unknown: 2, OldestSeconds: 24 * 3600}}, // up to 24 h is fresh
		{time.Microsecond, view.Freshness{Fresh: 1, Stale: 1, Unknown: 2, OldestSeconds: 24 * 3600}},
		{24 * time.Hour, view.Freshness{Stale: 2, Unknown: 2, OldestSeconds: 48 * 3600}},
	} {
		w.now = w.now.Add(c.later)
		if c.later == time.Microsecond { // within the cache time of a count
			w.read(view.Options{Store: w.store, Now: func() time.Time { return w.now }})
		}
		if got := w.status().Freshness; got != c.want {
			t.Errorf("freshness %v later: got %+v, want %+v", c.later, got, c.want)
		}
	}
}

func TestStatus_CountsItemsInScope(t *testing.T) {
	for scopeAll, want := range map[bool]int64{false: 1, true: 3} {
		w := newWorld(t, scopeAll)
		w.own("u", "A", "B", "C")
		w.now = w.now.Add(time.Minute)
		w.own("u", "A") // the user no longer owns B
		if got := w.status().Freshness; got != (view.Freshness{Unknown: want}) {
			t.Errorf("all in scope %t: got %+v, want %d unknown", scopeAll, got, want)
		}
	}
}

func TestStatus_CountsAddUpInEveryStage(t *testing.T) {
	w := newWorld(t, false)
	names := make([]string, 40)
	prices := map[string]money.Micro{}
	for i := range names {
		names[i] = fmt.Sprint("name ", i)
		if i%4 > 0 {
			prices[names[i]] = money.Micro(i)
		}
	}
	w.own("u", names...)
	w.price(map[string]money.Micro{names[1]: 5, names[2]: 5})
	w.now = w.now.Add(time.Hour) // within the TTL of the two priced items
	const total = 40
	pending, updated := int64(total), int64(0)
	check := func(moment string) view.Status {
		t.Helper()
		s := w.status()
		jobs, err := w.Jobs(t.Context(), "bulk", "", 1)
		w.must(err)
		j := jobs.Items[0]
		sum := j.PendingItems + j.UpdatedItems + j.SkippedItems.Total() +
			j.NoQuoteItems + j.FailedItems + j.CancelledItems
		if sum != total || j.TotalItems != total || s.TotalItems != total {
			t.Errorf("%s: the counts add up to %d, want %d: %+v", moment, sum, j.TotalItems, j)
		}
		if s.PendingItems != j.PendingItems || s.UpdatedItems != j.UpdatedItems || s.PendingItems > pending || s.UpdatedItems < updated {
			t.Errorf("%s: got the status %+v, want the counts of the job %+v, with pending falling and updated growing", moment, s, j)
		}
		pending, updated = s.PendingItems, s.UpdatedItems
		return s
	}
	id := w.begin(8)
	if s := check("planned"); !s.Status.Running || s.SkippedItems.TTL != 2 || s.PendingItems != 38 || s.Status.EtaSeconds != nil {
		t.Errorf("planned job: got %+v, want it running with 2 skipped and 38 pending items", s)
	}
	w.now = w.now.Add(time.Second)
	for batch := 0; w.estimate(prices); batch++ {
		if s := check(fmt.Sprint("after batch ", batch)); s.Status.EtaSeconds == nil {
			t.Error("got no etaSeconds while items are estimated, want one")
		}
	}
	w.end(id)
	s := check("ended")
	if s.Status.Running || s.PendingItems != 0 || s.NoQuoteItems != 10 || s.UpdatedItems != 28 {
		t.Errorf("ended job: got %+v, want 28 updated items and 10 without a quote", s)
	}
	if f := s.Freshness; f.Fresh != 30 || f.Unknown != 10 {
		t.Errorf("freshness after the job's end: got %+v, want 30 fresh and 10 unknown", f)
	}
}

func TestStatus_IsZeroBeforeFirstJob(t *testing.T) {
	s := newWorld(t, false).status()
	if s.Status.Running || s.Status.JobID != nil || s.TotalItems != 0 || s.Usage.ByProvider == nil || s.LastError != nil {
		t.Errorf("got status %+v, want no job and zero counts", s)
	}
}

// lists returns a function for each paginated list. The function returns the names on a page.
func (w *world) lists(job int64) map[string]func(cursor string, limit int) ([]string, *string, error) {
	ctx := w.Context()
	return map[string]func(string, int) ([]string, *string, error){
		"items": func(cursor string, limit int) ([]string, *string, error) {
			p, err := w.Items(ctx, view.ItemFilter{AppID: catalog.CS2}, cursor, limit)
			return names(p.Items, func(i view.PricedItem) string { return i.MarketHashName }), p.NextCursor, err
		},
		"jobs": func(cursor string, limit int) ([]string, *string, error) {
			p, err := w.Jobs(ctx, "", cursor, limit)
			return names(p.Items, func(j view.Job) string { return j.ID }), p.NextCursor, err
		},
		"jobItems": func(cursor string, limit int) ([]string, *string, error) {
			p, err := w.JobItems(ctx, job, view.JobItemFilter{}, cursor, limit)
			return names(p.Items, func(i view.JobItem) string { return i.MarketHashName }), p.NextCursor, err
		},
		"users": func(cursor string, limit int) ([]string, *string, error) {
			p, err := w.Users(ctx, "u", cursor, limit)
			return names(p.Items, func(u view.User) string { return u.UserID }), p.NextCursor, err
		},
		"inventory": func(cursor string, limit int) ([]string, *string, error) {
			p, err := w.Inventory(ctx, "u", 0, 0, "", cursor, limit)
			return names(p.Items, func(r view.InventoryRow) string { return r.AssetID }), p.NextCursor, err
		},
	}
}

func names[T any](items []T, name func(T) string) (out []string) {
	for _, i := range items {
		out = append(out, name(i))
	}
	return out
}

// filledLists creates a world with five elements in every list.
func filledLists(t *testing.T) (*world, int64) {
	w := newWorld(t, false)
	w.own("u", "A", "B\n", "C/c ", "d", "Ä")
	for _, other := range []string{"u ", "u\n", "uÄ", "u\U0010FFFF", "t", "v"} { // only four start with u
		w.own(other)
	}
	var id int64
	for range 5 {
		w.now = w.now.Add(7 * time.Hour)
		id = w.begin(1)
		w.estimate(nil)
		w.end(id)
	}
	return w, id
}

func TestLists_PagesReturnEachElementOnce(t *testing.T) {
	w, id := filledLists(t)
	for name, list := range w.lists(id) {
		all, next, err := list("", 5)
		w.must(err)
		if len(all) != 5 || next != nil {
			t.Errorf("%s: got the page %q with the next cursor %v, want all 5 elements and no cursor", name, all, next)
		}
		for limit := 1; limit < 5; limit++ {
			var got []string
			for cursor := ""; ; {
				page, next, err := list(cursor, limit)
				w.must(err)
				if len(page) == 0 || len(page) > limit {
					t.Fatalf("%s: got a page of %d elements, want 1 to %d", name, len(page), limit)
				}
				got = append(got, page...)
				if next == nil {
					break
				}
				cursor = *next
			}
			if !slices.Equal(got, all) {
				t.Errorf("%s in pages of %d: got %q, want %q", name, limit, got, all)
			}
		}
	}
}

func TestLists_RejectCursorsOfOtherLists(t *testing.T) {
	w, id := filledLists(t)
	lists := w.lists(id)
	refused := func(list, cursor string) {
		t.Helper()
		_, _, err := lists[list](cursor, 2)
		if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || f.Code != "invalid_cursor" {
			t.Errorf("%s with cursor %q: got error %v, want invalid_cursor", list, cursor, err)
		}
	}
	for giver, list := range lists {
		_, next, err := list("", 2)
		w.must(err)
		for taker := range lists {
			if taker != giver {
				refused(taker, *next)
			}
		}
		refused(giver, *next+"A")
		refused(giver, (*next)[1:])
		refused(giver, "no base64!")
		for _, forged := range []string{
			`null`, `{}`, `[]`, `["%s"]`, `["%s",null,null]`, `["%s",null]`, `["%s",{},{}]`, `["%s",[]]`,
			`["%s",1.5,1.5]`, `["%s",1e99]`, `["%s",true,true]`, `["%s",1,2,3]`, `["%s","x",2]`, `["%s",-5]`, `["%s",0]`, `["%s",-1,1]`, `["other",1]`, `["%s",1`,
		} {
			if slices.Contains([]byte(forged), '%') {
				forged = fmt.Sprintf(forged, giver)
			}
			refused(giver, base64.RawURLEncoding.EncodeToString([]byte(forged)))
		}
	}
}

func TestReader_ReturnsNotFound(t *testing.T) {
	w := newWorld(t, false)
	for code, ask := range map[string]func() error{
		"job_not_found": func() error { _, err := w.Job(t.Context(), 1); return err },
		"item_not_found": func() error {
			_, err := w.Item(t.Context(), catalog.Key{AppID: catalog.CS2, Name: "A"}, "")
			return err
		},
		"user_not_found": func() error { _, err := w.Inventory(t.Context(), "u", 0, 0, "", "", 1); return err },
	} {
		if f := fault.Of(ask()); f == nil || f.Kind != fault.NotFound || f.Code != code {
			t.Errorf("got error %v, want %s", f, code)
		}
	}
	w.own("u", "A")
	id := w.begin(1)
	_, err := w.JobItems(t.Context(), id, view.JobItemFilter{State: "unheard"}, "", 1)
	if f := fault.Of(err); f == nil || f.Code != "invalid_state" {
		t.Errorf("request with an unknown state returned %v, want code invalid_state", err)
	}
	if _, err := w.JobItems(t.Context(), id+1, view.JobItemFilter{}, "", 1); fault.Of(err) == nil || fault.Of(err).Code != "job_not_found" {
		t.Errorf("request for items of an unknown job returned %v, want code job_not_found", err)
	}
}

// TestItem_ConvertsWithRatesOfItsEstimate explains a quote in euros. The rate must be the one
// in use at the time of the estimate.
func TestItem_ConvertsWithRatesOfItsEstimate(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A")
	w.begin(1)
	day := time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC)
	w.tx(func(tx *db.Tx) error {
		b, err := refresh.ClaimBatch(tx, "test")
		w.must(err)
		items, err := refresh.BatchItems(w.Context(), w.store, *b)
		w.must(err)
		name := refresh.MarketName{Provider: "s", Key: "m", Title: "M"}
		markets, err := refresh.MarketIDs(tx, []refresh.MarketName{name})
		w.must(err)
		rates, err := exchange.RateSet(tx, pricing.Rates{"EUR": {Value: 1_100_000_000_000, Date: day}})
		w.must(err)
		_, err = refresh.StoreEstimates(tx, *b, refresh.Estimates{
			RateSet: rates,
			Items: []refresh.EstimatedItem{{
				Item: items[0], State: refresh.ItemUpdated, Responded: true, AsOf: w.now, QuotedAt: w.now,
				Estimate:  pricing.Priced{Price: 11_000_000, Estimated: 11_000_000},
				NewQuotes: []refresh.MarketSnapshot{{MarketID: markets[name], Currency: "EUR", Ask: 10_000_000, Listings: -1, Sales: -1}},
			}},
		})
		return err
	})
	d, err := w.Item(t.Context(), catalog.Key{AppID: catalog.CS2, Name: "A"}, "")
	w.must(err)
	if len(d.Snapshots) != 1 {
		t.Fatalf("got %d snapshots, want 1", len(d.Snapshots))
	}
	s := d.Snapshots[0]
	if s.Price == nil || *s.Price != 11_000_000 || *s.Rate != 1_100_000_000_000 || !s.RateDate.Equal(day) {
		t.Errorf("got the price %v at the rate %v of %v, want 11 at the rate 1.1 of the day", s.Price, s.Rate, s.RateDate)
	}
}
