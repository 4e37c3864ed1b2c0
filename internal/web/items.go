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

// itemsPage lists what a search found.
type itemsPage struct {
	frame
	Items []view.PricedItem
	Next  string
	First bool
}

func (s *site) items(w http.ResponseWriter, r *http.Request, who session) error {
	q := r.URL.Query()
	appID, err := appIDOf(q)
	if err != nil {
		return err
	}
	query, cursor := q.Get("q"), q.Get("cursor")
	if len(query) > catalog.MaxName || !utf8.ValidString(query) || strings.IndexByte(query, 0) >= 0 {
		return fault.New(fault.Invalid, "invalid_query", "A search takes valid UTF-8 without NUL, at most %d bytes.", catalog.MaxName)
	}
	found, err := s.Reader.Items(r.Context(), view.ItemFilter{AppID: appID, Search: query}, cursor, itemsPerPage)
	if err != nil {
		return err
	}
	page := itemsPage{frame: s.frame("Items", &who), Items: found.Items, First: cursor == ""}
	page.Next = nextPage("/items", found.NextCursor, "appId", strconv.Itoa(int(appID)), "q", query)
	page.Section = "items"
	page.Search = search{AppID: appID, Query: query}
	s.show(w, r, http.StatusOK, "items", page)
	return nil
}

// appIDOf reads the game, CS2 where none is named.
func appIDOf(q url.Values) (int32, error) {
	text := q.Get("appId")
	if text == "" {
		return catalog.CS2, nil
	}
	id, err := strconv.ParseInt(text, 10, 32)
	if err != nil || id <= 0 {
		return 0, fault.New(fault.Invalid, "invalid_app_id", "appId must be a whole number, such as 730.")
	}
	return int32(id), nil
}

// keyOf reads which item is meant.
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

// itemPage explains an item's price.
type itemPage struct {
	frame
	Item   view.ItemDetail
	Status badge
	Method string
	Self   string
	// Accept names the item in its query: a form's fields would come back with
	// other line ends.
	Accept string
	Quotes []quoteRow
	Plot   *plot // nil: no two prices to compare
	// LeftOut counts the markets that gave a price which does not count.
	LeftOut int
}

// quoteRow is one market's quote in words.
type quoteRow struct {
	view.MarketSnapshot
	Why   string // it is left out; empty: it counts
	Basis string // empty: the ask, as usual
}

func (s *site) item(w http.ResponseWriter, r *http.Request, who session) error {
	key, err := keyOf(r.URL.Query())
	if err != nil {
		return err
	}
	detail, err := s.Reader.Item(r.Context(), key)
	if err != nil {
		return err
	}
	page := itemPage{
		frame: s.frame(key.Name, &who), Item: detail,
		Status: priceBadge(detail.Status), Method: methodText(detail.Method),
		Self: itemURL(key.AppID, key.Name, key.Phase), Accept: "/item/accept?" + itemQuery(key), Quotes: quoteRows(detail.Snapshots),
	}
	page.Plot = newPlot(page.Quotes, detail.CurrentPrice)
	for _, q := range page.Quotes {
		if !q.Used {
			page.LeftOut++
		}
	}
	page.Section = "items"
	page.Search.AppID = key.AppID
	s.show(w, r, http.StatusOK, "item", page)
	return nil
}

// quoteRows puts what counts first, cheapest first, and what has no price last.
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

// plot places the markets' prices on one line. Its scale is logarithmic: half
// and twice a price are equally far from it.
type plot struct {
	Min, Max money.Micro
	Price    string // place of the item's price; empty: none
	Dots     []dot
	Far      []dot // beyond the ends: they would press all others together
}

// dot is a market's place.
type dot struct {
	X     string
	Used  bool
	Title string
	Price money.Micro
}

// reach is how far, as a factor, the line goes on beyond the prices that count.
const reach = 2

// newPlot needs two different prices, or there is nothing to see.
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

// drawn shows what is near to the prices from low to high, which count.
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
	// Those that count are drawn last, above the others.
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

// place gives a position between 2 and 98 per cent. It is for the eye: no
// amount is computed from it.
func (p *plot) place(m money.Micro) string {
	low, high := math.Log(float64(p.Min)), math.Log(float64(p.Max))
	share := (math.Log(float64(m)) - low) / (high - low)
	return strconv.FormatFloat(2+96*share, 'f', 2, 64) + "%"
}
