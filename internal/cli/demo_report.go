package cli

import (
	"context"
	"fmt"
	"io"

	"assay/internal/catalog"
	"assay/internal/config"
	"assay/internal/money"
	"assay/internal/view"
)

const (
	// demoSample is the number of items from which the share of used quotes is computed.
	demoSample = 500
	demoTop    = 10
)

// demoReport is the result of the refresh, read from the public API.
type demoReport struct {
	Job     view.Job          `json:"job"`
	Markets []demoMarket      `json:"markets"`
	Sampled int               `json:"sampledItems"`
	Top     []view.ItemPrice  `json:"top"`
	Explain []view.ItemDetail `json:"explained"`
}

// demoMarket is the result of one market. Used and Excluded count only quotes of the sampled
// items.
type demoMarket struct {
	Market   string `json:"market"`
	Quotes   int64  `json:"quotes"`
	Rejected int64  `json:"rejected"`
	Used     int    `json:"used"`
	Excluded int    `json:"leftOut"`
}

// gatherDemo reads the result of the refresh, and the price explanations of the items in explain.
func gatherDemo(ctx context.Context, api *client, job view.Job, names, explain []string) (demoReport, error) {
	report := demoReport{Job: job}
	debug, err := call[view.ProvidersDebug](ctx, api, providersRequest())
	if err != nil {
		return report, err
	}
	for _, provider := range debug.Providers {
		for _, m := range provider.Markets {
			report.Markets = append(report.Markets, demoMarket{Market: m.Market, Quotes: m.Quotes, Rejected: m.Rejected})
		}
	}
	byPrice := request{path: itemsPath, query: filter("appId", unlessZero(catalog.CS2), "sort", "-price"), as: config.RoleMarket}
	top, err := listAll[view.ItemPrice](ctx, api, byPrice, demoTop)
	if err != nil {
		return report, err
	}
	report.Top = top.Items
	for _, name := range explain {
		item, err := call[view.ItemDetail](ctx, api, itemRequest(catalog.CS2, name, ""))
		if err != nil {
			return report, err
		}
		report.Explain = append(report.Explain, item)
	}
	return report, report.sample(ctx, api, names[:min(demoSample, len(names))])
}

// sample counts the used quotes of the named items by market.
func (r *demoReport) sample(ctx context.Context, api *client, names []string) error {
	at := map[string]int{}
	for i, m := range r.Markets {
		at[m.Market] = i
	}
	for _, name := range names {
		item, err := call[view.ItemDetail](ctx, api, itemRequest(catalog.CS2, name, ""))
		if err != nil {
			return err
		}
		for _, q := range item.Snapshots {
			i, known := at[q.Market]
			switch {
			case !known:
			case q.Used:
				r.Markets[i].Used++
			default:
				r.Markets[i].Excluded++
			}
		}
	}
	r.Sampled = len(names)
	return nil
}

// write prints the report as text.
func (r *demoReport) write(w io.Writer) {
	writeJob(w, &r.Job)
	_, _ = fmt.Fprintln(w)
	rows := [][]string{{"MARKET", "QUOTES", "REJECTED", "USED", fmt.Sprintf("LEFT OUT (of %d sampled items)", r.Sampled)}}
	for _, m := range r.Markets {
		rows = append(rows, []string{cell(m.Market), count(m.Quotes), count(m.Rejected), count(int64(m.Used)), count(int64(m.Excluded))})
	}
	table(w, rows)

	_, _ = fmt.Fprintf(w, "\nThe %d most expensive items:\n", len(r.Top))
	rows = nil
	for _, it := range r.Top {
		rows = append(rows, []string{"  " + it.CurrentPrice.String(), it.Status, cell(it.MarketHashName)})
	}
	table(w, rows)

	_, _ = fmt.Fprintln(w, "\nHow some prices were computed:")
	for i := range r.Explain {
		writeExplained(w, &r.Explain[i])
	}
}

// writeExplained writes the price of an item and the quotes that were left out.
func writeExplained(w io.Writer, it *view.ItemDetail) {
	_, _ = fmt.Fprintf(w, "  %s: %s %s from %d of %d markets; the plain average would be %s\n",
		printable(it.MarketHashName), it.CurrentPrice, it.Currency, it.UsedMarkets, it.Markets, it.Average)
	for _, q := range it.Snapshots {
		if q.Used {
			continue
		}
		price := "no price"
		if q.Price != nil && *q.Price > money.Micro(0) {
			price = q.Price.String()
		}
		_, _ = fmt.Fprintf(w, "    left out: %s with %s, %s\n", printable(q.Market), price, printable(q.Explanation))
	}
}
