package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"assay/internal/catalog"
	"assay/internal/config"
	"assay/internal/money"
	"assay/internal/view"
)

// pricesCmd explains the price of an item, or lists items.
type pricesCmd struct {
	Name     string `arg:"" optional:"" complete:"item" help:"Exact market hash name."`
	AppID    int32  `complete:"game" default:"730" placeholder:"ID" help:"Steam app ID of the game."`
	Phase    string `help:"Phase of a Doppler: \"Phase 2\", \"Ruby\", ..."`
	Currency string `placeholder:"CODE" help:"Convert all amounts to this currency, such as EUR, by the exchange rates in force."`
	Accept   bool   `help:"Accept the held price, apply it to all inventory rows, and show the item."`
	itemFlags
	listFlags
}

// itemFlags filter and sort the listed items.
type itemFlags struct {
	Search       string `placeholder:"WORDS" help:"List the items whose name contains all these words, in any order and case."`
	Status       string `enum:"ok,thin,suspect,disputed,stale,noPrice," default:"" placeholder:"STATUS" help:"List the items whose price has this status now: ok, thin, suspect, disputed, stale or noPrice."`
	Held         bool   `help:"List the items whose suspicious new price is held until it is confirmed."`
	Market       string `complete:"market" placeholder:"MARKET" help:"List the items that this market, such as steam, offers or has sold."`
	MinPrice     string `placeholder:"PRICE" help:"List the items with this price or more, such as 12.5."`
	MaxPrice     string `placeholder:"PRICE" help:"List the items with this price or less."`
	ChangedSince string `placeholder:"TIME" help:"List the items whose price changed at this time or later, such as 2026-01-31T12:00:00Z."`
	UpdatedSince string `placeholder:"TIME" help:"List the items whose price was confirmed at this time or later, changed or not."`
	Sort         string `enum:"name,price,-price,status,-status,changed,-changed," default:"" placeholder:"ORDER" help:"List by name, price, status (best first) or changed; -price, -status and -changed reverse the order."`
}

// query returns the filter of the list. It is empty if no flag is set.
func (f *itemFlags) query() url.Values {
	q := filter("q", f.Search, "status", f.Status, "market", f.Market, "minPrice", f.MinPrice, "maxPrice", f.MaxPrice,
		"changedSince", f.ChangedSince, "updatedSince", f.UpdatedSince, "sort", f.Sort)
	if f.Held {
		q.Set("held", "1")
	}
	return q
}

func (*pricesCmd) examples() []example {
	return []example{
		{`prices "AK-47 | Redline (Field-Tested)"`, "show the price and the quote of every market, with the reason if it is not used"},
		{`prices --search "redline tested"`, "list the items whose name contains \"redline\" and \"tested\""},
		{`prices --held --sort=-price`, "list the items with a held price, most expensive first"},
		{`prices --status disputed --min-price 10 --json`, "print the items with a disputed price of 10 or more as JSON"},
		{`prices "AK-47 | Redline (Field-Tested)" --currency EUR`, "show the price and the figures in euros"},
		{`prices "★ Karambit | Doppler (Factory New)" --phase "Ruby"`, "show the price of one phase"},
		{`prices "Sealed Graffiti | GLHF (Tiger Orange)" --accept`, "accept the held price of the item"},
		{`prices "Large Wood Box" --app-id 252490 --json`, "print an item of another game as JSON"},
	}
}

func (c *pricesCmd) Run(ctx context.Context, s *session) error {
	filter := c.query()
	switch {
	case c.Name == "" && c.Accept:
		return &usageError{text: "--accept needs the name of one item"}
	case (c.Name == "") == (len(filter) == 0):
		return &usageError{text: "give the name of an item or a filter, such as --search WORDS"}
	case c.Accept && c.Currency != "":
		return &usageError{text: "--currency cannot be used with --accept"}
	case c.Name == "" && c.Phase != "":
		return &usageError{text: "--phase needs the name of one item"}
	}
	err := errors.Join(catalog.CheckPhase(c.Phase), c.check())
	if c.Name != "" {
		err = errors.Join(catalog.CheckName(c.Name), err)
	}
	if err != nil {
		return &usageError{text: err.Error()}
	}
	if c.Name == "" {
		return c.list(ctx, s, filter)
	}
	api, err := s.server()
	if err != nil {
		return err
	}
	r := itemRequest(c.AppID, c.Name, c.Phase)
	if c.Currency != "" {
		r.query.Set("currency", c.Currency)
	}
	if c.Accept {
		r.method, r.path = http.MethodPost, marketPrices+"/items/"+segment(c.Name)+"/accept"
	}
	item, err := call[view.ItemDetail](ctx, api, r)
	if response, ok := errors.AsType[*problem](err); ok && response.Code == "item_not_found" {
		response.hint = c.suggestion(ctx, api)
	}
	if err != nil {
		return err
	}
	return s.out.result(item, func(w io.Writer) { writeItem(w, &item) })
}

// list prints items with their prices.
func (c *pricesCmd) list(ctx context.Context, s *session, filter url.Values) error {
	header := []string{"NAME", "PHASE", "PRICE", "STATUS", "INTERVAL", "CHANGED"}
	return showList(ctx, s, c.listFlags, c.matching(filter), header, func(it *view.PricedItem) []string {
		status := it.Status
		if it.Held {
			status += ", held"
		}
		return []string{
			cell(it.MarketHashName), phaseText(it.Phase, false), amount(&it.CurrentPrice), status, intervalText(it.Figures), momentOrDash(it.PriceUpdatedAt),
		}
	})
}

// intervalText formats the interval of a price.
func intervalText(f *view.Figures) string {
	if f == nil || f.Interval == nil {
		return "-"
	}
	return f.Interval.Low.String() + " to " + f.Interval.High.String()
}

// allFields returns the names of all optional figures of prices, separated by commas.
func allFields() string { return strings.Join(view.FieldNames(), ",") }

func (c *pricesCmd) matching(q url.Values) request {
	q.Set("appId", strconv.Itoa(int(c.AppID)))
	q.Set("fields", allFields())
	if c.Currency != "" {
		q.Set("currency", c.Currency)
	}
	return request{path: itemsPath, query: q, as: config.RoleMarket}
}

// suggestion lists items whose name contains the given words. If the request fails, it
// suggests a search.
func (c *pricesCmd) suggestion(ctx context.Context, api *client) string {
	const most = 5
	page, err := listAll[view.PricedItem](ctx, api, c.matching(url.Values{"q": {c.Name}}), most)
	if err != nil || len(page.Items) == 0 {
		return "names must match exactly: search with `assay prices --search WORDS`"
	}
	var text strings.Builder
	text.WriteString("names with these words:")
	for _, it := range page.Items {
		text.WriteString("\n  " + nameAndPhase(it.MarketHashName, it.Phase))
	}
	return text.String()
}

// writeItem explains a price.
func writeItem(w io.Writer, it *view.ItemDetail) {
	_, _ = fmt.Fprintf(w, "%s (game %d)\n", nameAndPhase(it.MarketHashName, it.Phase), it.AppID)
	rows := [][]string{
		{"price", priceText(it)},
		{"changed", moment(it.PriceUpdatedAt)},
		{"checked", checkedText(it)},
	}
	if it.Markets > 0 {
		rows = append(rows,
			[]string{"figures", fmt.Sprintf("consensus %s, average %s, median %s, from %s to %s", it.Consensus, it.Average, it.Median, it.Min, it.Max)},
			[]string{"interval", intervalText(&view.Figures{Interval: it.Interval})},
			[]string{"markets", fmt.Sprintf("%d (%d used)", it.Markets, it.UsedMarkets)})
	}
	if it.CandidatePrice != nil {
		rows = append(rows, []string{"held", fmt.Sprintf("%s %s since %s", it.CandidatePrice, it.Currency, moment(it.CandidateAt))})
	}
	if it.NoSalesSince != nil {
		rows = append(rows, []string{"no sales", "since " + moment(it.NoSalesSince)})
	}
	if it.Queued {
		rows = append(rows, []string{"queued", "waits for its first price"})
	}
	if it.RetryAt != nil {
		rows = append(rows, []string{"next retry", moment(it.RetryAt)})
	}
	if it.Failures > 0 {
		rows = append(rows, []string{"failures", fmt.Sprintf("no quote in the last %d runs", it.Failures)})
	}
	table(w, rows)
	if it.Explanation != nil && len(it.Explanation.Sentences) > 0 {
		_, _ = fmt.Fprintln(w)
		for _, sentence := range it.Explanation.Sentences {
			_, _ = fmt.Fprintln(w, printable(sentence))
		}
	}
	if len(it.Snapshots) > 0 {
		_, _ = fmt.Fprintln(w)
		table(w, quoteRows(it))
	}
}

func priceText(it *view.ItemDetail) string {
	if it.CurrentPrice == 0 {
		return "none yet (" + it.Status + ")"
	}
	return fmt.Sprintf("%s %s (%s, by %s)", it.CurrentPrice, it.Currency, it.Status, it.Method)
}

func checkedText(it *view.ItemDetail) string {
	text := moment(it.PriceCheckedAt)
	if it.AgeSeconds != nil {
		text += ", " + seconds(*it.AgeSeconds) + " ago"
	}
	return text
}

// quoteRows lists the quotes of all markets for an item.
func quoteRows(it *view.ItemDetail) [][]string {
	rows := [][]string{{"MARKET", "ASK", "BID", "SALE", "IN", "PRICE " + string(it.Currency), "LEVEL", "OFFERED", "SOLD", "FETCHED", "USED"}}
	for _, q := range it.Snapshots {
		used := "yes"
		if !q.Used {
			used = "no: " + printable(q.Explanation)
		}
		rows = append(rows, []string{
			cell(q.Provider + "/" + q.Market), amount(q.LowestAsk), amount(q.HighestBid), amount(q.Sale), string(q.Currency),
			amount(q.Price), amount(q.Level), orDash(q.Listings), orDash(q.Sales), q.FetchedAt.UTC().Format("01-02 15:04:05"), used,
		})
	}
	return rows
}

func amount(m *money.Micro) string {
	if m == nil || *m == 0 {
		return "-"
	}
	return m.String()
}
