package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/view"
	"assay/internal/view/metadata"
)

// rowsShown is the number of owners, listings and runs on the page of an item.
const rowsShown = 8

// itemPage explains the price of an item.
type itemPage struct {
	frame
	Item   view.ItemDetail
	Status badge
	Method string
	Self   string
	Query  string // the item in forms, encoded because a form field changes line endings
	Quotes []quoteRow
	Plot   *plot // nil if fewer than two prices can be compared
	// UnusedQuotes is the number of markets with an unused price.
	UnusedQuotes int
	Chart        itemChart
	Figures      view.ItemFigures
	Owners       view.Owners
	Runs         []view.ItemRun
	Market       bool // whether the market module is on
	Listings     []view.Listing
	API          apiCall
}

// quoteRow is the quote of one market.
type quoteRow struct {
	view.MarketSnapshot
	Why   string // why the quote is not used; empty if it is used
	Basis string // empty for the usual basis, the ask
}

func (s *itemPages) item(w http.ResponseWriter, r *http.Request, sess session) error {
	key, err := keyOf(r.URL.Query())
	if err != nil {
		return err
	}
	detail, err := s.Items.Item(r.Context(), key, "")
	if err != nil {
		return err
	}
	page := itemPage{
		frame: s.frame(key.Name, "items", &sess), Item: detail,
		Status: badgeOf("price", detail.Status), Method: methodText(detail.Method),
		Self: r.URL.RequestURI(), Query: itemQuery(key), Quotes: quoteRows(detail.Snapshots), API: itemCall(key),
	}
	page.Plot = newPlot(page.Quotes, detail.CurrentPrice)
	for _, q := range page.Quotes {
		if !q.Used {
			page.UnusedQuotes++
		}
	}
	err = view.Together(r.Context(), append(s.records(&page, key), func(ctx context.Context) (err error) {
		page.Chart, err = s.chartOf(ctx, key, &detail, r.URL.Query().Get("range"))
		return err
	})...)
	if err != nil {
		return err
	}
	page.Search.AppID = key.AppID
	return s.show(w, r, "item", page)
}

// records returns the parts that read the figures, owners, runs and listings of an item.
func (s *itemPages) records(page *itemPage, key catalog.Key) []func(context.Context) error {
	page.Market = !s.PricesOnly
	return []func(context.Context) error{
		func(ctx context.Context) (err error) { page.Figures, err = s.History.Figures(ctx, key, ""); return err },
		func(ctx context.Context) (err error) {
			page.Owners, err = s.Items.Owners(ctx, key, rowsShown)
			return err
		},
		func(ctx context.Context) (err error) {
			page.Runs, err = s.Items.ItemRuns(ctx, key, rowsShown)
			return err
		},
		func(ctx context.Context) error {
			if !page.Market {
				return nil
			}
			listings, err := s.Market.Listings(ctx, view.ListingFilter{AppID: key.AppID, Name: key.Name, Phase: &key.Phase, State: "active"}, "", rowsShown)
			page.Listings = listings.Items
			return err
		},
	}
}

// itemCall returns the API call that returns the same explanation.
func itemCall(key catalog.Key) apiCall {
	q := url.Values{"appId": {strconv.Itoa(int(key.AppID))}}
	if key.Phase != "" {
		q.Set("phase", key.Phase)
	}
	return apiCall{Method: http.MethodGet, Path: "/api/prices/items/" + url.PathEscape(key.Name) + "?" + q.Encode()}
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

// SkipReason describes the reason of a skipped item.
func (itemPage) SkipReason(code string) string { return view.ReasonText(code) }

// Since returns the time of the first price in a period if the prices do not cover the whole
// period. Otherwise it returns nil.
func (p itemPage) Since(f view.PeriodFigures) *time.Time {
	if f.From.After(p.Figures.To.AddDate(0, 0, -int(f.Days))) {
		return &f.From
	}
	return nil
}

// trait is a property of an item.
type trait struct{ Name, Value string }

// traitsOf returns the known properties of an item. It omits the image, which is on another host
// that the content security policy does not allow.
func traitsOf(d *metadata.Description) (out []trait) {
	for _, t := range []trait{{"Type", d.Type}, {"Rarity", d.Rarity}, {"Wear", d.Wear}, {"Collection", d.Collection}} {
		if t.Value != "" {
			out = append(out, t)
		}
	}
	return out
}
