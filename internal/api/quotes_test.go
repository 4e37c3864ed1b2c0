package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"assay/internal/money"
	"assay/internal/view"
)

func TestQuotes_CompareTheMarketsOfItems(t *testing.T) {
	h := startServer(t, nil)
	got := h.request("POST", "/api/prices/quotes", `{"items":[{"marketHashName":"`+asiimov+`"},{"marketHashName":"no"}]}`, asPlatform)
	var all view.Quotes
	if err := json.Unmarshal([]byte(got.body), &all); err != nil || got.StatusCode != http.StatusOK || len(all.Items) != 2 {
		t.Fatalf("got %d %s, error %v, want 200 with 2 items", got.StatusCode, got.body, err)
	}
	v := all.Items[0]
	if v.BestAsk == nil || v.BestAsk.Price != 50*money.Scale || v.BestBid == nil || *v.Spread != 3*money.Scale || len(v.Quotes) != 2 {
		t.Errorf("got body %s, want the best ask 50, a spread of 3 and 2 quotes", got.body)
	}
	if *v.Listings != 800 || *v.Sales != 1800 || *v.SalesPerDay != 60*money.Scale || *v.Liquidity != 75_000 {
		t.Errorf("got %d listings, %d sales, %v a day, liquidity %v, want 800, 1800, 60, 0.075", *v.Listings, *v.Sales, *v.SalesPerDay, *v.Liquidity)
	}
	if all.Items[1].Status != "unknown" || !strings.Contains(got.body, `"quotes":[]`) {
		t.Errorf("unknown item: got %s, want the status unknown and no quotes", got.body)
	}
}

func TestQuotes_ReportEveryFaultOfABody(t *testing.T) {
	h := startServer(t, nil)
	many := func(n int, element string) string { return strings.TrimSuffix(strings.Repeat(element+",", n), ",") }
	items := func(n int) string { return `"items":[` + many(n, `{"marketHashName":"x"}`) + `]` }
	for _, c := range []struct {
		query, body string
		status      int
		want        string
	}{
		{"", `{` + items(maxLookup) + `,"markets":["steam","sim/a b"]}`, 200, ""},
		{"", `{` + items(maxLookup+1) + `}`, 413, "too_many_items"},
		{"", `{` + items(1) + `,"markets":[` + many(maxMarkets+1, `"steam"`) + `]}`, 413, "too_many_items"},
		{"", `{` + items(1) + `,"markets":["steam","nowhere","price list/steam"]}`, 400, "/markets/1 /markets/2"},
		{"", `{"markets":["steam"]}`, 400, "/items"},
		{"", `{` + items(1) + `,"markets":"steam"}`, 400, "/markets"},
		{"", `{` + items(1) + `,"markets":["",7]}`, 400, "/markets/0 /markets/1"},
		{"", `{"items":[{"marketHashName":"x","phase":"Phase 5"}],"queueMissing":true}`, 400, "/items/0/phase /queueMissing"},
		{"?currency=usd", `{` + items(1) + `}`, 400, "/query/currency"},
		{"?currency=USD", `{` + items(1) + `}`, 200, ""},
		{"?currency=CHF", `{` + items(1) + `}`, 422, "no_exchange_rate"},
	} {
		got := h.request("POST", "/api/prices/quotes"+c.query, c.body, asMarket)
		what := ""
		if c.status != http.StatusOK {
			p := got.problem(t)
			what = p.Code
			if len(p.Errors) > 0 {
				var pointers []string
				for _, f := range p.Errors {
					pointers = append(pointers, f.Pointer)
				}
				what = strings.Join(pointers, " ")
			}
		}
		if fmt.Sprint(got.StatusCode, what) != fmt.Sprint(c.status, c.want) {
			t.Errorf("%s %.80s: got %d %s, want %d %s", c.query, c.body, got.StatusCode, what, c.status, c.want)
		}
	}
}
