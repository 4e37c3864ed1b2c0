package web

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/view"
)

// itemsPage lists the items that match a filter.
type itemsPage struct {
	frame
	Items    []view.PricedItem
	Filter   itemQueryValues
	Statuses []tab
	Sorts    []sortChoice
	Clear    string // URL of the list without filters; empty if there are none
	FirstURL string
	Next     string
	First    bool
}

// itemQueryValues are the filters in the URL.
type itemQueryValues struct{ Status, Held, Market, MinPrice, MaxPrice, Sort string }

// sortChoice is one sort order of the list.
type sortChoice struct {
	Value, Label string
	Current      bool
}

func (s *itemPages) items(w http.ResponseWriter, r *http.Request, sess session) error {
	q := r.URL.Query()
	by, err := itemFilter(q)
	if err != nil {
		return err
	}
	by.Fields = view.FieldInterval
	cursor := q.Get("cursor")
	found, err := s.Items.Items(r.Context(), by, cursor, itemsPerPage)
	if err != nil {
		return err
	}
	v := itemQueryValues{q.Get("status"), q.Get("held"), q.Get("market"), q.Get("minPrice"), q.Get("maxPrice"), cmp.Or(by.Sort, "name")}
	filters := []string{
		"appId", strconv.Itoa(int(by.AppID)), "q", by.Search, "status", v.Status, "held", v.Held,
		"market", v.Market, "minPrice", v.MinPrice, "maxPrice", v.MaxPrice, "sort", by.Sort,
	}
	page := itemsPage{
		frame: s.frame("Items", "items", &sess), Items: found.Items, First: cursor == "", Filter: v, Sorts: sortChoices(v.Sort),
		Statuses: statusTabs(v, filters), FirstURL: itemsURL(filters), Next: nextPage("/items", found.NextCursor, filters...),
	}
	if v.Status+v.Held+v.Market+v.MinPrice+v.MaxPrice != "" {
		page.Clear = itemsURL(filters[:4])
	}
	page.Search = search{AppID: by.AppID, Query: by.Search}
	return s.show(w, r, "items", page)
}

// itemFilter parses the query of an items URL.
func itemFilter(q url.Values) (view.ItemFilter, error) {
	appID, err := appIDOf(q)
	if err != nil {
		return view.ItemFilter{}, err
	}
	by := view.ItemFilter{AppID: appID, Search: q.Get("q"), Status: q.Get("status"), Market: q.Get("market"), Sort: q.Get("sort")}
	for _, text := range []string{by.Search, by.Market} {
		if len(text) > catalog.MaxName || !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
			return by, fault.New(fault.Invalid, "invalid_parameters", "A search must be valid UTF-8 without NUL and at most %d bytes long.", catalog.MaxName)
		}
	}
	for name, into := range map[string]*money.Micro{"minPrice": &by.Min, "maxPrice": &by.Max} {
		if text := q.Get(name); text != "" {
			if *into, err = money.Parse([]byte(text), 1); err != nil || *into < 0 || *into == 0 && name == "maxPrice" || len(text) > 32 {
				return by, fault.New(fault.Invalid, "invalid_parameters", "A price must be a decimal number, such as 12.5. The highest price must be above 0.")
			}
		}
	}
	if by.Sort != "" && !slices.Contains(view.ItemSorts(), by.Sort) {
		return by, fault.New(fault.Invalid, "invalid_parameters", "The order must be one of %s.", strings.Join(view.ItemSorts(), ", "))
	}
	if held := q.Get("held"); held != "" {
		if by.Held = held == "1"; !by.Held {
			return by, fault.New(fault.Invalid, "invalid_parameters", "The parameter held must be 1 or absent.")
		}
	}
	return by, nil
}

func itemsURL(filters []string) string {
	q := url.Values{}
	for i := 0; i+1 < len(filters); i += 2 {
		if filters[i+1] != "" {
			q.Set(filters[i], filters[i+1])
		}
	}
	return "/items?" + q.Encode()
}

// statusTabs returns the tabs for statuses and held prices. The tabs keep all other filters.
func statusTabs(v itemQueryValues, filters []string) []tab {
	with := func(status, held string) string {
		changed := slices.Clone(filters)
		for i := 0; i < len(changed); i += 2 {
			switch changed[i] {
			case "status":
				changed[i+1] = status
			case "held":
				changed[i+1] = held
			}
		}
		return itemsURL(changed)
	}
	tabs := []tab{{Label: "All", Href: with("", ""), Current: v.Status == "" && v.Held == ""}}
	for _, status := range view.PriceStatuses() {
		tabs = append(tabs, tab{Label: badges["price"][status].Text, Href: with(status, ""), Current: v.Status == status && v.Held == ""})
	}
	return append(tabs, tab{Label: heldBadge().Text, Href: with("", "1"), Current: v.Held != ""})
}

func sortChoices(current string) []sortChoice {
	labels := map[string]string{
		"name": "Name", "price": "Lowest price", "-price": "Highest price", "status": "Best status", "-status": "Worst status",
		"changed": "Longest unchanged", "-changed": "Latest change",
		"dayChange": "Largest fall in a day", "-dayChange": "Largest rise in a day",
	}
	var out []sortChoice
	for _, sort := range view.ItemSorts() {
		out = append(out, sortChoice{sort, labels[sort], sort == current})
	}
	return out
}

// appIDOf returns the game in a query. The default is CS2.
func appIDOf(q url.Values) (int32, error) {
	text := q.Get("appId")
	if text == "" {
		return catalog.CS2, nil
	}
	id, err := strconv.ParseInt(text, 10, 32)
	if err != nil || id <= 0 {
		return 0, fault.New(fault.Invalid, "invalid_app_id", "The appId must be a whole number, such as 730.")
	}
	return int32(id), nil
}

// keyOf returns the item in a query.
func keyOf(q url.Values) (catalog.Key, error) {
	appID, err := appIDOf(q)
	if err != nil {
		return catalog.Key{}, err
	}
	key := catalog.Key{AppID: appID, Name: q.Get("name"), Phase: q.Get("phase")}
	if err := cmp.Or(catalog.CheckName(key.Name), catalog.CheckPhase(key.Phase)); err != nil {
		return catalog.Key{}, fault.New(fault.Invalid, "invalid_item", "%s", err.Error())
	}
	return key, nil
}

// itemPage explains the price of an item.
type itemPage struct {
	frame
	Item   view.ItemDetail
	Status badge
	Method string
	Self   string
	// Accept is a URL with the item in its query. A form field would change the line endings
	// of names.
	Accept string
	Quotes []quoteRow
	Plot   *plot // nil if fewer than two prices can be compared
	// UnusedQuotes is the number of markets with an unused price.
	UnusedQuotes int
}

// quoteRow is the quote of one market.
type quoteRow struct {
	view.MarketSnapshot
	Why   string // reason if it is not used; empty if it is used
	Basis string // empty for the usual basis, the ask
}

func (s *itemPages) item(w http.ResponseWriter, r *http.Request, sess session) error {
	key, err := keyOf(r.URL.Query())
	if err != nil {
		return err
	}
	detail, err := s.Items.Item(r.Context(), key)
	if err != nil {
		return err
	}
	page := itemPage{
		frame: s.frame(key.Name, "items", &sess), Item: detail,
		Status: badgeOf("price", detail.Status), Method: methodText(detail.Method),
		Self: itemURL(key.AppID, key.Name, key.Phase), Accept: "/item/accept?" + itemQuery(key), Quotes: quoteRows(detail.Snapshots),
	}
	page.Plot = newPlot(page.Quotes, detail.CurrentPrice)
	for _, q := range page.Quotes {
		if !q.Used {
			page.UnusedQuotes++
		}
	}
	page.Search.AppID = key.AppID
	return s.show(w, r, "item", page)
}

// quoteRows sorts quotes: first the used ones by price, then the others, and quotes without a
// price last.
func quoteRows(snapshots []view.MarketSnapshot) []quoteRow {
	rows := make([]quoteRow, len(snapshots))
	for i, snapshot := range snapshots {
		rows[i] = quoteRow{MarketSnapshot: snapshot}
		if !snapshot.Used {
			rows[i].Why = snapshot.Explanation
		}
		if snapshot.Basis == "sale" {
			rows[i].Basis = "last sale"
		}
	}
	slices.SortStableFunc(rows, func(a, b quoteRow) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(amountOf(a.Price), amountOf(b.Price)), cmp.Compare(a.Market, b.Market))
	})
	return rows
}

func rank(q quoteRow) int {
	switch {
	case q.Used:
		return 0
	case q.Price != nil:
		return 1
	}
	return 2
}

func amountOf(m *money.Micro) money.Micro {
	if m == nil {
		return 0
	}
	return *m
}

// plot shows the prices of the markets on a line. The scale is logarithmic, so half and double
// of a price have the same distance to it.
type plot struct {
	Min, Max money.Micro
	Price    string // position of the item's price; empty: none
	Dots     []dot
	Far      []dot // prices too far away to show on the scale
}

// dot is the price of one market.
type dot struct {
	X     string
	Used  bool
	Title string
	Price money.Micro
}

// reach is the factor by which the line extends beyond the used prices.
const reach = 2

// newPlot returns nil unless there are two different prices.
func newPlot(quotes []quoteRow, price money.Micro) *plot {
	var all []dot
	var used []money.Micro
	for _, q := range quotes {
		if q.Price == nil || *q.Price <= 0 {
			continue
		}
		all = append(all, dot{Used: q.Used, Title: q.Title, Price: *q.Price})
		if q.Used {
			used = append(used, *q.Price)
		}
	}
	if price > 0 {
		used = append(used, price)
	}
	if len(all) < 2 || len(used) == 0 {
		return nil
	}
	return drawn(all, slices.Min(used), slices.Max(used), price)
}

// drawn returns a plot of the prices near the range from low to high, which contains the used
// prices.
func drawn(all []dot, low, high, price money.Micro) *plot {
	p := &plot{Min: low, Max: high}
	for _, d := range all {
		if d.Price < low/reach || d.Price > high*reach {
			p.Far = append(p.Far, d)
			continue
		}
		p.Dots = append(p.Dots, d)
		p.Min, p.Max = min(p.Min, d.Price), max(p.Max, d.Price)
	}
	if p.Min == p.Max {
		return nil
	}
	// Draw the used ones last, so that they are in front.
	slices.SortStableFunc(p.Dots, func(a, b dot) int {
		switch {
		case a.Used == b.Used:
			return 0
		case b.Used:
			return -1
		}
		return 1
	})
	for i := range p.Dots {
		p.Dots[i].X = p.place(p.Dots[i].Price)
	}
	if price > 0 {
		p.Price = p.place(price)
	}
	return p
}

// place returns a position between 2 and 98 percent. It is only for display. No amount is
// computed from it.
func (p *plot) place(m money.Micro) string {
	low, high := math.Log(float64(p.Min)), math.Log(float64(p.Max))
	share := (math.Log(float64(m)) - low) / (high - low)
	return strconv.FormatFloat(2+96*share, 'f', 2, 64) + "%"
}
