package view_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
)

// sampled writes samples of requests. A line is "host at result upTo requests".
func (w *world) sampled(lines ...string) {
	w.Helper()
	w.tx(func(tx *db.Tx) error {
		for _, line := range lines {
			var host, at, result, upTo string
			var requests int64
			if _, err := fmt.Sscan(line, &host, &at, &result, &upTo, &requests); err != nil {
				return err
			}
			clock, err := time.Parse("02T15:04", at)
			w.must(err)
			bound, err := time.ParseDuration(upTo)
			w.must(err)
			month := time.March
			if clock.Day() > 1 {
				month = time.February
			}
			moment := time.Date(2026, month, clock.Day(), clock.Hour(), clock.Minute(), 0, 0, time.UTC)
			if _, err := tx.Exec(`INSERT INTO request_sample (provider, host, at, result, up_to, requests, duration, bytes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
				"sim", host, db.Micros(moment), result, bound.Microseconds(), requests, requests*2_000_000, requests*10); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestProviderHours_ShowResultsAndLatency(t *testing.T) {
	w := newWorld(t, false) // 2026-03-01 12:00
	w.now = w.now.Add(10 * time.Minute)
	w.sampled(
		"a 01T12:00 ok 100ms 90", "b 01T12:00 ok 1s 6", "a 01T12:00 failed 0s 4",
		"a 01T11:30 limited 50ms 2", "a 01T11:00 notModified 50ms 1", "a 01T11:00 cancelled 50ms 1",
	)
	r := view.New(view.Options{Store: w.store, Currency: "USD", Now: func() time.Time { return w.now }})
	all, err := r.Providers.ProviderHours(t.Context())
	w.must(err)
	hours := all["sim"]
	if len(all) != 1 || len(hours) != 48 {
		t.Fatalf("got %d providers with %d half hours, want 1 with 48", len(all), len(hours))
	}
	if first := time.Date(2026, 2, 28, 12, 30, 0, 0, time.UTC); !hours[0].At.Equal(first) || hours[0].State != "none" {
		t.Errorf("first half hour: got %v with state %s, want %v with state none", hours[0].At, hours[0].State, first)
	}
	last := hours[47]
	if last.State != "warn" || last.Requests != 100 || last.Bytes != 1000 || last.P50 != 100*time.Millisecond || last.P95 != time.Second {
		t.Errorf("last half hour: got %+v, want 100 requests with state warn, a median of 100 ms and a 95th percentile of 1 s", last)
	}
	want := map[provider.SentResult]int64{provider.ResultOK: 96, provider.ResultFailed: 4}
	if !reflect.DeepEqual(last.ByResult, want) {
		t.Errorf("results: got %v, want %v", last.ByResult, want)
	}
	if hours[46].State != "bad" || hours[45].State != "good" {
		t.Errorf("states: got %s and %s, want bad and good", hours[46].State, hours[45].State)
	}
	history, err := r.Providers.ProviderHistory(t.Context(), "sim", time.Hour)
	w.must(err)
	if len(history) != 2 || history[1].Requests != 100 {
		t.Errorf("history of an hour: got %+v, want 2 half hours, the last one with 100 requests", history)
	}
}

// The last requests are in the current half hour, so the series ends now.
func TestBurnDowns_AddRequestsSinceTheStartOfTheWindow(t *testing.T) {
	w := newWorld(t, false)
	w.sampled("h 28T23:30 ok 1s 9", "h 01T08:00 ok 1s 3", "h 01T12:00 failed 1s 2", "other 01T08:00 ok 1s 50")
	w.tx(func(tx *db.Tx) error {
		_, err := tx.Exec(`INSERT INTO budget_quota (provider, host, period, starts_at, used) VALUES ('sim', 'h', 'day', $1, 5)`, db.Micros(w.now.Truncate(24*time.Hour)))
		return err
	})
	host := provider.Host{Key: "h", Limit: provider.Limit{Requests: 10, Per: time.Minute}, Quota: provider.Quota{Day: 100}}
	client := provider.NewClient(provider.Options{Provider: "sim"})
	t.Cleanup(client.Close)
	r := view.New(view.Options{
		Store: w.store, Currency: "USD", Now: func() time.Time { return w.now },
		Providers: []provider.Provider{described{provider.Description{Name: "sim", Hosts: []provider.Host{host}}}},
		Clients:   map[string]provider.Clients{"sim": {"h": client}},
	})
	got, err := r.Providers.BurnDowns(t.Context(), "sim")
	w.must(err)
	if len(got) != 1 || got[0].Part != "day" || got[0].Limit != 100 || got[0].Left != 95 {
		t.Fatalf("got %+v, want a quota of a day with 95 of 100 requests left", got)
	}
	var series []string
	for _, u := range got[0].Used {
		series = append(series, fmt.Sprintf("%s %d", u.At.Format("15:04"), u.Used))
	}
	if want := "00:00 0, 08:30 3, 12:00 5"; strings.Join(series, ", ") != want {
		t.Errorf("series: got %s, want %s", strings.Join(series, ", "), want)
	}
}

func TestReadPriceState_CountsItemsAndAgeOfQuotes(t *testing.T) {
	w := newWorld(t, true)
	empty, err := refresh.ReadPriceState(t.Context(), w.store, true, w.now)
	w.must(err)
	if empty != (refresh.PriceState{QuoteAge: -time.Microsecond}) {
		t.Errorf("state without items: got %+v, want no age", empty)
	}
	w.own("u", "no price")
	w.tx(func(tx *db.Tx) error {
		for i := range 40 { // quotes of 1 to 40 minutes
			at := db.Micros(w.now.Add(-time.Duration(i+1) * time.Minute))
			checked := at
			if i < 3 { // held: the quotes are newer than the price
				checked = db.Micros(w.now.Add(-25 * time.Hour))
			}
			if _, err := tx.Exec(`INSERT INTO item (id, app_id, name, phase, bucket, price, status, quotes_at, price_checked_at) VALUES ($1, 730, $2, '', 0, 5, 0, $3, $4)`,
				int64(1000+i), fmt.Sprint("item ", i), at, checked); err != nil {
				return err
			}
		}
		return nil
	})
	got, err := refresh.ReadPriceState(t.Context(), w.store, true, w.now)
	w.must(err)
	if want := (refresh.PriceState{Fresh: 37, Stale: 3, Unknown: 1, QuoteAge: 25 * time.Hour}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestFilterRequests_ByOutcomeAndText(t *testing.T) {
	all := []view.RequestDebug{
		{Host: "a.example", Path: "/list", Status: 200},
		{Host: "a.example", Path: "/list", Status: 304, Error: "status"},
		{Host: "b.example", Path: "/names", Status: 429, Error: "rateLimited"},
		{Host: "b.example", Path: "/names", Error: "timeout"},
	}
	for _, c := range []struct {
		outcome, search string
		want            int
	}{{"", "", 4}, {"ok", "", 2}, {"failed", "", 2}, {"429", "", 1}, {"", "B.EXAMPLE", 2}, {"failed", "timeout", 1}, {"ok", "names", 0}} {
		if got := len(view.FilterRequests(all, c.outcome, c.search)); got != c.want {
			t.Errorf("outcome %q, text %q: got %d requests, want %d", c.outcome, c.search, got, c.want)
		}
	}
}

func TestOverview_CombinesRunsSamplesAndProviders(t *testing.T) {
	w := newWorld(t, false)
	next := w.now.Add(2 * time.Hour)
	r := view.New(view.Options{
		Store: w.store, Currency: "USD", Now: func() time.Time { return w.now }, Started: w.now,
		Providers: []provider.Provider{described{provider.Description{Name: "sim"}}},
		Scheduled: func() map[string]time.Time { return map[string]time.Time{"refresh": next, "retention": w.now} },
	})
	show := func() (view.Overview, string) {
		t.Helper()
		o, err := r.Overview.Overview(t.Context())
		w.must(err)
		return o, o.Verdicts[0].Text
	}
	if _, got := show(); got != "No run has ended yet: start one to get prices." {
		t.Errorf("verdict before the first run: got %q, want one without an ended run", got)
	}
	w.own("u", "x", "y", "z")
	w.price(map[string]money.Micro{"x": 1_000_000, "y": 2_000_000})
	w.sampled("h 01T12:00 ok 1s 3")
	w.tx(func(tx *db.Tx) error {
		for hours, values := range map[int64][3]int64{2: {60_000_000, 500_000, 5}, 1: {-1, -1, 6}, 24 * 8: {1, 1, 7}} {
			if _, err := tx.Exec(`INSERT INTO price_sample (at, fresh, stale, unknown, quote_age, budget_left) VALUES ($1, $4, 0, 0, $2, $3)`,
				db.Micros(w.now.Add(-time.Duration(hours)*time.Hour)), values[0], values[1], values[2]); err != nil {
				return err
			}
		}
		return nil
	})
	w.now = w.now.Add(20 * time.Minute)
	o, verdict := show()
	if want := "No problem is known, but no provider was requested yet; 95 % of 2 prices are based on quotes at most 20 min old."; verdict != want {
		t.Errorf("verdict: got %q, want %q", verdict, want)
	}
	var tiles []string
	for _, tile := range o.Tiles {
		now := "none"
		if tile.Now != nil {
			now = fmt.Sprint(*tile.Now)
		}
		var values []int64
		for _, p := range tile.Points {
			values = append(values, p.Value)
		}
		tiles = append(tiles, fmt.Sprint(tile.Key, " ", now, " ", values))
	}
	if want := "quoteAge 1200 [60], updated 2 [2], failed 0 [0], budgetLeft none [500000]"; strings.Join(tiles, ", ") != want {
		t.Errorf("tiles: got %s, want %s", strings.Join(tiles, ", "), want)
	}
	if len(o.Runs) != 1 || o.Runs[0].Updated != 2 || o.Runs[0].NoQuote != 1 || o.Runs[0].Total != 3 || o.Runs[0].State != "finished" {
		t.Errorf("runs: got %+v, want one with 2 updated items and 1 without a quote", o.Runs)
	}
	if len(o.Hours["sim"]) != 48 || o.Hours["sim"][47].Requests != 3 {
		t.Errorf("half hours: got %d, want 48 with 3 requests in the last one", len(o.Hours["sim"]))
	}
	if o.Next == nil || !o.Next.Equal(next) {
		t.Errorf("next run: got %v, want %v", o.Next, next)
	}
	if len(o.Events) != 1 || o.Events[0].Text != "Run 1 priced 2 of 3 items." || o.Events[0].Href != "/runs/1" {
		t.Errorf("events: got %+v, want a sentence with a link to run 1", o.Events)
	}
}

func TestEventLineOf_IsSentenceWithLink(t *testing.T) {
	for _, c := range []struct {
		data       event.Data
		text, href string
	}{
		{event.ProviderDown{Provider: "sim", Why: event.WhyBreaker, Host: "h", Detail: "repeated failures: timeout"}, "sim h is down: repeated failures: timeout.", "/providers/sim"},
		{event.BudgetLow{Provider: "sim", Budget: "day", Left: 5, Limit: 1000}, "The budget (day) of sim is low: 5 of 1,000 requests left.", "/providers/sim"},
		{event.JobEnded{JobID: "3", Outcome: "failed"}, "Run 3 failed: no item got a price and an error occurred.", "/runs/3"},
		{event.JobEnded{JobID: "4", Outcome: "partial", TotalItems: 2000, UpdatedItems: 1}, "Run 4 priced 1 of 2,000 items; some items or markets are missing.", "/runs/4"},
		{
			event.InventoryPriced{UserID: "u/1", AppID: 730, ContextID: "2", Rows: 1200, UnpricedRows: 3, TotalValueDecimal: "27.5", Currency: "EUR"},
			"Inventory of u/1, game 730, context 2: 1,197 of 1,200 rows priced, 27.5 EUR.", "/users/u%2F1",
		},
	} {
		data, err := json.Marshal(c.data)
		if err != nil {
			t.Fatal(err)
		}
		got := view.EventLineOf(event.Stored{Kind: c.data.Kind(), Data: data})
		if got.Text != c.text || got.Href != c.href {
			t.Errorf("%s: got %q with link %s, want %q with link %s", c.data.Kind(), got.Text, got.Href, c.text, c.href)
		}
	}
}

// TestPriceState_IsRenewedBeforeItIsTooOld renews the state while it is in use. The overview then
// needs no scan.
func TestPriceState_IsRenewedBeforeItIsTooOld(t *testing.T) {
	w := newWorld(t, true)
	r := view.New(view.Options{Store: w.store, ScopeAll: true, Currency: "USD", Now: func() time.Time { return w.now }}).Overview
	state := func() int64 {
		t.Helper()
		s, err := r.PriceState(t.Context())
		w.must(err)
		return s.Unknown
	}
	w.must(r.RenewState(t.Context())) // not in use
	w.own("u", "first")
	if got := state(); got != 1 {
		t.Errorf("first state: got %d items, want 1", got)
	}
	w.own("v", "second")
	w.must(r.RenewState(t.Context())) // recent enough
	if got := state(); got != 1 {
		t.Errorf("state of this second: got %d items, want 1", got)
	}
	w.now = w.now.Add(10 * time.Second)
	w.must(r.RenewState(t.Context()))
	w.own("x", "third")
	w.now = w.now.Add(10 * time.Second)
	if got := state(); got != 2 {
		t.Errorf("renewed state after 10 s: got %d items, want 2", got)
	}
	w.now = w.now.Add(16 * time.Second)
	if got := state(); got != 3 {
		t.Errorf("state after 26 s: got %d items, want 3", got)
	}
}

// TestHeadline_IsRenewedBeforeItIsTooOld renews the headline while it is in use. Requests then need
// not read it, except after an action.
func TestHeadline_IsRenewedBeforeItIsTooOld(t *testing.T) {
	w := newWorld(t, true)
	r := view.New(view.Options{
		Store: w.store, ScopeAll: true, Currency: "USD", Now: func() time.Time { return w.now },
		Scheduled: func() map[string]time.Time { return nil }, PricesOnly: true,
		Providers: []provider.Provider{described{provider.Description{Name: "sim"}}},
	}).Overview
	pause := func(paused bool) {
		w.tx(func(tx *db.Tx) error {
			_, err := tx.Exec(`INSERT INTO provider_state (provider, paused) VALUES ('sim', $1) ON CONFLICT (provider) DO UPDATE SET paused = excluded.paused`, paused)
			return err
		})
	}
	w.price(map[string]money.Micro{})
	is := func(what, got, want string) {
		t.Helper()
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	const paused = "sim is paused"
	w.must(r.RenewHeadline(t.Context())) // not in use
	is("headline before the first request", r.LastHeadline().Text, "The state is not known yet.")
	running := r.Headline(t.Context()).Text
	if strings.HasPrefix(running, paused) {
		t.Errorf("first headline: got %q, want a provider that is not paused", running)
	}
	pause(true)
	w.must(r.RenewHeadline(t.Context())) // recent enough
	is("headline of this second", r.Headline(t.Context()).Text, running)
	w.now = w.now.Add(10 * time.Second)
	is("headline after 10 s", r.Headline(t.Context()).Text, running)
	w.must(r.RenewHeadline(t.Context()))
	is("renewed headline after 10 s", r.LastHeadline().Text, paused)
	pause(false)
	is("headline before the action is reported", r.Headline(t.Context()).Text, paused)
	r.ExpireHeadline()
	is("headline after the action", r.Headline(t.Context()).Text, running)
	pause(true)
	w.now = w.now.Add(16 * time.Second)
	is("headline after 16 s", r.Headline(t.Context()).Text, paused)
}
