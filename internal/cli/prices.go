package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/view"
)

// pricesCmd explains an item's price, or searches items by name.
type pricesCmd struct {
	Name   string `arg:"" optional:"" complete:"item" help:"Market hash name, byte for byte."`
	AppID  int32  `default:"730" placeholder:"ID" help:"Steam's number of the game."`
	Phase  string `help:"Phase of a Doppler: \"Phase 2\", \"Ruby\", ..."`
	Search string `placeholder:"TEXT" help:"List the items whose name contains this text, in any case, with their prices."`
	Accept bool   `help:"Accept the price that is held back, on all inventory rows, and show the item."`
	listFlags
}

func (*pricesCmd) examples() []example {
	return []example{
		{`prices "AK-47 | Redline (Field-Tested)"`, "show the price, every market's quote, and why it is used or not"},
		{`prices --search redline`, "list the items whose name contains \"redline\""},
		{`prices "★ Karambit | Doppler (Factory New)" --phase "Ruby"`, "show the price of one phase"},
		{`prices "Sealed Graffiti | GLHF (Tiger Orange)" --accept`, "make the price that is held back the price of the item"},
		{`prices "Large Wood Box" --app-id 252490 --json`, "print an item of another game as JSON"},
	}
}

// Run shows the price, or what the search found.
func (c *pricesCmd) Run(ctx context.Context, s *session) error {
	const help = "assay prices --help"
	if (c.Name == "") == (c.Search == "") {
		return &usageError{text: "give the name of an item, or --search TEXT", help: help}
	}
	if c.Accept && c.Name == "" {
		return &usageError{text: "--accept needs the name of one item", help: help}
	}
	text := c.Name + c.Search
	if err := errors.Join(catalog.CheckName(text), catalog.CheckPhase(c.Phase), c.check(help)); err != nil {
		return &usageError{text: err.Error(), help: help}
	}
	api, err := s.server()
	if err != nil {
		return err
	}
	if c.Search != "" {
		return c.search(ctx, s, api)
	}
	show := api.item
	if c.Accept {
		show = api.acceptItem
	}
	item, err := show(ctx, c.AppID, c.Name, c.Phase)
	if answer, ok := errors.AsType[*problem](err); ok && answer.Code == "item_not_found" {
		answer.hint = c.suggestion(ctx, api)
	}
	if err != nil {
		return err
	}
	return s.out.result(item, func(w io.Writer) { writeItem(w, item) })
}

// search lists items by a part of their name.
func (c *pricesCmd) search(ctx context.Context, s *session, api *client) error {
	page, err := c.matching(ctx, api, c.Search, c.Limit)
	if err != nil {
		return err
	}
	return s.out.result(page, func(w io.Writer) {
		rows := [][]string{{"NAME", "PHASE", "PRICE", "STATUS", "CHANGED"}}
		for _, it := range page.Items {
			rows = append(rows, []string{cell(it.MarketHashName), phaseText(it.Phase, false), amount(&it.CurrentPrice), it.Status, momentOrDash(it.PriceUpdatedAt)})
		}
		table(w, rows)
		_, _ = io.WriteString(w, moreText(page))
	})
}

func (c *pricesCmd) matching(ctx context.Context, api *client, text string, most int) (view.Page[view.PricedItem], error) {
	q := url.Values{"appId": {strconv.Itoa(int(c.AppID))}, "q": {text}}
	return listAll[view.PricedItem](ctx, api, request{path: "/api/prices/items", query: q, with: api.market}, most)
}

// suggestion names items whose name contains what was given; a failure only
// leaves them out.
func (c *pricesCmd) suggestion(ctx context.Context, api *client) string {
	const most = 5
	page, err := c.matching(ctx, api, c.Name, most)
	if err != nil || len(page.Items) == 0 {
		return "names are compared byte for byte; search with `assay prices --search TEXT`"
	}
	var text strings.Builder
	text.WriteString("names that contain it:")
	for _, it := range page.Items {
		text.WriteString("\n  " + nameAndPhase(it.MarketHashName, it.Phase))
	}
	return text.String()
}

// writeItem explains a price.
func writeItem(w io.Writer, it view.ItemDetail) {
	title := printable(it.MarketHashName)
	if it.Phase != "" {
		title += ", " + it.Phase
	}
	_, _ = fmt.Fprintf(w, "%s (game %d)\n", title, it.AppID)
	rows := [][]string{
		{"price", priceText(it)},
		{"changed", moment(it.PriceUpdatedAt)},
		{"checked", checkedText(it)},
	}
	if it.Markets > 0 {
		rows = append(rows,
			[]string{"figures", fmt.Sprintf("consensus %s, average %s, median %s, from %s to %s", it.Consensus, it.Average, it.Median, it.Min, it.Max)},
			[]string{"markets", fmt.Sprintf("%d, of which %d are used", it.Markets, it.UsedMarkets)})
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
		rows = append(rows, []string{"next try", moment(it.RetryAt)})
	}
	if it.Failures > 0 {
		rows = append(rows, []string{"failures", fmt.Sprintf("no market answered in the last %d runs", it.Failures)})
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

func priceText(it view.ItemDetail) string {
	if it.CurrentPrice == 0 {
		return "none yet (" + it.Status + ")"
	}
	return fmt.Sprintf("%s %s (%s, by %s)", it.CurrentPrice, it.Currency, it.Status, it.Method)
}

func checkedText(it view.ItemDetail) string {
	text := moment(it.PriceCheckedAt)
	if it.AgeSeconds != nil {
		text += ", " + seconds(*it.AgeSeconds) + " ago"
	}
	return text
}

// quoteRows lists what every market says of an item.
func quoteRows(it view.ItemDetail) [][]string {
	rows := [][]string{{"MARKET", "ASK", "BID", "SALE", "IN", "PRICE " + string(it.Currency), "LEVEL", "OFFERED", "SOLD", "FETCHED", "USED"}}
	for _, q := range it.Snapshots {
		used := "yes"
		if !q.Used {
			used = "no: " + printable(q.Explanation)
		}
		rows = append(rows, []string{
			cell(q.Source + "/" + q.Market), amount(q.LowestAsk), amount(q.HighestBid), amount(q.Sale), string(q.Currency),
			amount(q.Price), amount(q.Level), number(q.Listings), number(q.Sales), q.FetchedAt.UTC().Format("01-02 15:04:05"), used,
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

func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}
