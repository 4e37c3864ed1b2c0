package web

import (
	"cmp"
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
	List     listState
	Items    []view.PricedItem
	Statuses []tab
	Sorts    []choice
	Markets  []choice
	Moves    bool   // whether the list shows the change in 24 hours
	Clear    string // URL of the list without filters; empty if there are none
	Self     string
	API      apiCall
	Form     form // the filter
}

// choice is an option of a form.
type choice struct {
	Value, Label string
	Current      bool
}

// csvChunk is the number of rows that a CSV export reads at once.
const csvChunk = 5000

func (s *itemPages) items(w http.ResponseWriter, r *http.Request, sess session) error {
	by, err := itemFilter(r.URL.Query())
	file := r.URL.Query().Get("format") == "csv"
	if err != nil && (file || by.AppID == 0) {
		return err
	}
	if err != nil { // the page repeats the search, whose bytes may be invalid
		by.Search, by.Market = strings.ToValidUTF8(by.Search, "\uFFFD"), strings.ToValidUTF8(by.Market, "\uFFFD")
	}
	by.Fields = view.FieldInterval
	list := listOf(r, "q", "status", "held", "market", "minPrice", "maxPrice", "minMove")
	list.values.Set("appId", strconv.Itoa(int(by.AppID)))
	if file {
		return s.itemsCSV(w, r, by)
	}
	var found view.PricedItems
	if err == nil {
		found, err = s.Items.Items(r.Context(), by, list.cursor, itemsPerPage)
	}
	refused := fault.Of(err)
	if err != nil && (refused == nil || refused.Kind != fault.Invalid) {
		return err
	}
	list = list.until(found.NextCursor)
	page := itemsPage{
		frame: s.frame("Items", "items", &sess), List: list, Items: found.Items, Statuses: statusTabs(list),
		Sorts: sortChoices(cmp.Or(by.Sort, "name")), Markets: s.marketChoices(by.AppID, by.Market),
		Moves: by.MinDayChange > 0 || strings.HasSuffix(by.Sort, "dayChange"), Self: r.URL.RequestURI(),
		API:  apiCall{Method: http.MethodGet, Path: "/api/prices/items?" + apiQuery(list, by).Encode()},
		Form: form{Refused: refused},
	}
	kept := url.Values{"appId": {list.Get("appId")}}
	if by.Search != "" {
		kept.Set("q", by.Search)
	}
	if len(list.values) > len(kept)+len(list.values["sort"]) {
		page.Clear = "/items?" + kept.Encode()
	}
	page.Search = search{AppID: by.AppID, Query: by.Search}
	return s.showForm(w, r, page.Form, "items", page)
}

// apiQuery returns the query of the API request for the same list.
func apiQuery(list listState, by view.ItemFilter) url.Values {
	q, _ := url.ParseQuery(list.values.Encode()) // a copy; parsing encoded values cannot fail
	if q.Del("minMove"); by.MinDayChange > 0 {
		q.Set("minDayChange", by.MinDayChange.String())
	}
	return q
}

// itemsCSV sends all items of a list as a file.
func (s *itemPages) itemsCSV(w http.ResponseWriter, r *http.Request, by view.ItemFilter) error {
	found, err := s.Items.Items(r.Context(), by, "", csvChunk) // read before the file begins, so that an error is shown as a page
	if err != nil {
		return err
	}
	return s.sendCSV(w, r, "items", []string{
		"appId", "marketHashName", "phase", "price", "currency", "status", "held", "intervalLow", "intervalHigh", "dayChange", "priceUpdatedAt", "priceCheckedAt",
	}, records(found.Page, s.itemRecord, func(cursor string) (view.Page[view.PricedItem], error) {
		more, err := s.Items.Items(r.Context(), by, cursor, csvChunk)
		return more.Page, err
	}))
}

// itemRecord returns an item as a row of a file. Unknown values are empty.
func (s *itemPages) itemRecord(i *view.PricedItem) []string {
	var low, high, move, amount string
	if i.Figures != nil && i.Interval != nil {
		low, high = i.Interval.Low.String(), i.Interval.High.String()
	}
	if i.DayChange != nil {
		move = i.DayChange.String()
	}
	if i.CurrentPrice > 0 {
		amount = i.CurrentPrice.String()
	}
	return []string{
		strconv.Itoa(int(i.AppID)), i.MarketHashName, i.Phase, amount, string(s.Currency), i.Status, strconv.FormatBool(i.Held),
		low, high, move, csvTime(i.PriceUpdatedAt), csvTime(i.PriceCheckedAt),
	}
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
	for _, limit := range []struct {
		name, rule string
		least      money.Micro
		into       *money.Micro
	}{
		{"minPrice", "The lowest price must be a decimal number of at least 0", 0, &by.Min},
		{"maxPrice", "The highest price must be a decimal number above 0", 1, &by.Max},
		{"minMove", "The price change must be a percentage of at least 0", 0, &by.MinDayChange},
	} {
		if text := q.Get(limit.name); text != "" {
			if *limit.into, err = money.Parse([]byte(text), 1); err != nil || *limit.into < limit.least || len(text) > 32 {
				return by, fault.New(fault.Invalid, "invalid_parameters", "%s, such as 12.5.", limit.rule)
			}
		}
	}
	by.MinDayChange /= 100 // the form contains percent
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

// statusTabs returns the tabs for statuses and held prices. The tabs keep all other filters.
func statusTabs(l listState) []tab {
	at := func(label, status, held string) tab {
		return tab{Label: label, Href: l.url("status", status, "held", held), Current: l.Get("status") == status && l.Get("held") == held}
	}
	tabs := []tab{at("All", "", "")}
	for _, status := range view.PriceStatuses() {
		tabs = append(tabs, at(badges["price"][status].Text, status, ""))
	}
	return append(tabs, at(heldBadge().Text, "", "1"))
}

func sortChoices(current string) []choice {
	labels := map[string]string{
		"name": "Name", "-name": "Name, from Z to A", "price": "Lowest price", "-price": "Highest price", "status": "Best status", "-status": "Worst status",
		"changed": "Longest unchanged", "-changed": "Latest change",
		"dayChange": "Largest fall in a day", "-dayChange": "Largest rise in a day",
	}
	var out []choice
	for _, sort := range view.ItemSorts() {
		out = append(out, choice{sort, labels[sort], sort == current})
	}
	return out
}

// marketChoices returns the markets of a game. The current one is a key or provider/key, as in the API.
func (s *itemPages) marketChoices(appID int32, current string) []choice {
	out := []choice{{Label: "Any", Current: current == ""}}
	for _, m := range s.Items.MarketsOf(appID) {
		out = append(out, choice{m.Name, m.Title, m.Name == current || m.Key == current})
	}
	if !slices.ContainsFunc(out, func(c choice) bool { return c.Current }) {
		out = append(out, choice{current, current, true}) // a former market
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
