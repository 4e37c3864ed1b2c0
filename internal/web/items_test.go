package web

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"assay/internal/catalog"
	"assay/internal/provider"
)

var (
	itemLink = regexp.MustCompile(`<a class="item" href="([^"]+)">`)
	nextLink = regexp.MustCompile(`<a href="([^"]*)" rel="next">`)
)

// listed follows the pages of a list and returns the links of its items, in order.
func (v *visitor) listed(target string) (links []*url.URL) {
	v.t.Helper()
	for target != "" {
		res := v.get(target)
		if res.StatusCode != http.StatusOK {
			v.t.Fatalf("%s: got status %d, want 200", target, res.StatusCode)
		}
		for _, link := range itemLink.FindAllStringSubmatch(res.body, -1) {
			parsed, err := url.ParseRequestURI(html.UnescapeString(link[1]))
			if err != nil || parsed.Path != "/item" || parsed.Fragment != "" {
				v.t.Fatalf("link %q: got error %v, want a valid link to /item without a fragment", link[1], err)
			}
			links = append(links, parsed)
		}
		target = ""
		if next := nextLink.FindStringSubmatch(res.body); next != nil {
			target = html.UnescapeString(next[1])
		}
	}
	return links
}

// TestItems_TrapNamesHaveWorkingLinks follows the links of all pages of the list.
func TestItems_TrapNamesHaveWorkingLinks(t *testing.T) {
	v := newWorld(t).visit(t, marketSecret)
	reached := map[string]bool{}
	links := v.listed("/items")
	for _, link := range links {
		key := link.Query()
		if name := key.Get("name"); slices.Contains(trapNames, name) && v.get(link.String()).StatusCode != http.StatusOK {
			t.Errorf("%q: got no item page, want one", link)
		}
		reached[key.Get("name")+key.Get("phase")] = true
	}
	for _, name := range trapNames {
		if !reached[name] {
			t.Errorf("the list has no link to %q", name)
		}
	}
	if want := len(sampleItems()) + 1; len(links) != want || len(reached) != want {
		t.Errorf("got %d links to %d items, want %d", len(links), len(reached), want)
	}
}

func TestItem_ExplainsUnusedQuotes(t *testing.T) {
	v := newWorld(t).visit(t, marketSecret)
	mustContain(t, v.get(itemURL(730, redline, "")).body,
		"$32.38", `value="32.380718"`, "outside the deciding group of quotes", "no offers or sales", "own data is more than 7 days old",
		"resells the listings of another market", "the price is their median", "1.028×", "last sale", "€28.98", "1 EUR = 1.0834 USD", "Off the scale: Ingot", "6 of 10", "25 min ago",
		`title="2026-10-05 13:37:50 UTC"`)
}

// The interval belongs to the newest estimate. If that estimate is held, the page must not show
// the interval next to the accepted price, which may be outside the interval.
func TestItem_ShowsIntervalNextToItsPrice(t *testing.T) {
	v := newWorld(t).visit(t, adminToken)
	at := itemURL(730, dragonLore, "")
	body := v.get(at).body
	mustContain(t, body, "has been held</b> for <time data-for datetime=", "Another reliable market would quote between", "The last accepted price is kept.", "from a market within 1.5× of it")
	if strings.Contains(body, `class="range"`) {
		t.Error("got the interval of the held price next to the accepted price, want none")
	}
	mustContain(t, v.get("/items?held=1").body, `<span class="soft">held:</span>`)
	v.post("/item/accept?" + itemQuery(catalog.Key{AppID: catalog.CS2, Name: dragonLore}))
	mustContain(t, v.get(at).body, `class="range"`, "1 of 1")
}

func TestItem_RejectsInvalidNames(t *testing.T) {
	v := newWorld(t).visit(t, marketSecret)
	for query, want := range map[string]int{
		"":         http.StatusBadRequest,
		"name=":    http.StatusBadRequest,
		"name=%00": http.StatusBadRequest,
		"name=%ff": http.StatusBadRequest,
		"name=" + strings.Repeat("x", catalog.MaxName+1): http.StatusBadRequest,
		"name=x&phase=Phase+9":                           http.StatusBadRequest,
		"name=x&appId=0":                                 http.StatusBadRequest,
		"name=x&appId=banana":                            http.StatusBadRequest,
		"name=x&appId=99999999999":                       http.StatusBadRequest,
		"name=An+unknown+item":                           http.StatusNotFound,
	} {
		if res := v.get("/item?" + query); res.StatusCode != want {
			t.Errorf("query %q: got status %d, want %d", query, res.StatusCode, want)
		}
	}
}

func TestItems_ShowsRefusedFilterWithItsEntries(t *testing.T) {
	v := newWorld(t).visit(t, marketSecret)
	for query, problem := range map[string]string{
		"minMove=abc": "The price change must be a percentage of at least 0, such as 12.5.", "minMove=-20": "The price change must be a percentage of at least 0, such as 12.5.",
		"minPrice=a": "The lowest price must be a decimal number of at least 0, such as 12.5.", "maxPrice=0": "The highest price must be a decimal number above 0, such as 12.5.",
	} {
		res := v.get("/items?q=redline&" + query)
		name, value, _ := strings.Cut(query, "=")
		mustContain(t, res.body, `id="problem" role="alert">`+problem, `<form class="filter" action="/items">`, `name="q" value="redline"`)
		if !regexp.MustCompile(`name="` + name + `"[^>]* value="` + value + `"`).MatchString(res.body) {
			t.Errorf("query %q: the form lacks the entry, want it", query)
		}
		if res.StatusCode != http.StatusBadRequest || strings.Contains(res.body, "Nothing found") {
			t.Errorf("query %q: got status %d, want 400 and no result", query, res.StatusCode)
		}
	}
	mustContain(t, v.get("/items?minMove=abc&format=csv").body, "Bad Request")
}

func TestItems_RejectsInvalidSearches(t *testing.T) {
	v := newWorld(t).visit(t, marketSecret)
	for _, query := range []string{
		"q=%ff", "q=%00", "q=a%00b", "q=" + strings.Repeat("x", catalog.MaxName+1), "appId=0",
		"market=%00", "minPrice=a", "minPrice=-1", "maxPrice=0", "maxPrice=1,5", "sort=cheap", "held=yes",
	} {
		if res := v.get("/items?" + query); res.StatusCode != http.StatusBadRequest {
			t.Errorf("query %q: got status %d, want 400", query, res.StatusCode)
		}
	}
}

// A market of several providers is one choice per provider.
func TestItems_ChoicesNameTheProvider(t *testing.T) {
	shared := provider.Market{Key: "basalt", Title: "Basalt", AppIDs: []int32{catalog.CS2}}
	w := newWorld(t, &sampleProvider{provider.Description{Name: "odd", Title: "Odd", Shape: provider.Batch, BatchSize: 10, Markets: []provider.Market{shared}}, nil})
	body := w.visit(t, marketSecret).get("/items?market=sim/basalt").body
	for _, option := range []string{
		`<option value="odd/basalt">Basalt (Odd)</option>`, `<option value="sim/basalt" selected>Basalt (Market simulator)</option>`, `<option value="sim/aurum">Aurum</option>`,
	} {
		mustContain(t, body, option)
	}
}

// Filters select items. Every link and the form of the page keep the filters.
func TestItems_FiltersAndSorts(t *testing.T) {
	v := newWorld(t).visit(t, marketSecret)
	const query = "/items?q=e&status=ok&market=basalt&minPrice=0.508&maxPrice=1000&sort=-price"
	body := v.get(query).body
	const kept = "appId=730&amp;market=basalt&amp;maxPrice=1000&amp;minPrice=0.508&amp;q=e&amp;sort=-price"
	for _, part := range []string{
		`<a href="/items?` + kept + `">All</a>`,
		`<a href="/items?` + kept + `&amp;status=ok" aria-current="true">OK</a>`,
		`<a href="/items?appId=730&amp;held=1&amp;market=basalt&amp;maxPrice=1000&amp;minPrice=0.508&amp;q=e&amp;sort=-price">Held</a>`,
		`<a href="/items?appId=730&amp;q=e">Clear</a>`, `<option value="-price" selected>Highest price</option>`,
		`<input type="hidden" name="status" value="ok">`, `<input name="minPrice" aria-label="Lowest price" value="0.508"`,
	} {
		mustContain(t, body, part)
	}
	// The expected items have an e in their name, a fresh quote on basalt, and a price from
	// 0.508 to 1000 USD.
	var want []string
	for _, item := range sampleItems() {
		if item.markets == nil && strings.Contains(strings.ToLower(item.Name), "e") && item.price >= 508_000 && item.price < 1_000_000_000 && item.Name != graffiti {
			want = append(want, item.Name)
		}
	}
	var got []string
	for _, link := range v.listed(query) {
		got = append(got, link.Query().Get("name"))
	}
	if len(got) <= itemsPerPage || got[0] != redline {
		t.Errorf("got %d items, %q first; want several pages, with the highest price first", len(got), got[0])
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got the items\n%q\nwant\n%q", got, want)
	}
	body = v.get("/items?held=1").body
	mustContain(t, body, ">Held</span>")
	mustContain(t, body, "Dragon Lore")
	if strings.Contains(body, "Redline") {
		t.Error("list of held prices: got an item without a held price, want none")
	}
	mustContain(t, v.get("/items?minPrice=9000000").body, "No known CS2 item matches the filters.")
}
