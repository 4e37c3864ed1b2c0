package view

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"

	"assay/internal/event"
)

// Gap describes a missing part of a run, for the page and the command line.
type Gap struct {
	What   string // for example "30 items" or "pricelist/skinport"
	Share  string // of the due items or of the planned requests
	Why    string
	Detail string // the error, if any
}

// GapsOf lists the gaps of a run that has ended: items first, then markets. More than three markets
// of a provider with the same gap are one line.
func GapsOf(g event.Gaps) []Gap {
	var out []Gap
	for _, i := range g.Items {
		what := humanize.Comma(i.Items) + " items"
		if i.Items == 1 {
			what = "1 item"
		}
		out = append(out, Gap{What: what, Share: Percent(i.Share), Why: ReasonText(i.Reason)})
	}
	same := map[event.MarketGap]int{} // number of markets with this gap, by the gap without its market
	for _, m := range g.Markets {
		m.Market = ""
		same[m]++
	}
	for _, m := range g.Markets {
		what := strings.TrimSuffix(m.Provider+"/"+m.Market, "/")
		m.Market = ""
		if same[m] == 0 {
			continue // already listed with the first of them
		}
		if same[m] > 3 { // one request for names covers many markets
			what = fmt.Sprintf("%d markets of %s", same[m], m.Provider)
			same[m] = 0
		}
		out = append(out, Gap{What: what, Share: Percent(m.Share), Why: ReasonText(m.Reason), Detail: strings.TrimPrefix(m.Detail, m.Provider+": ")})
	}
	return out
}

// String returns the gap in one line, without Detail.
func (g Gap) String() string { return g.What + " (" + g.Share + "): " + g.Why }

// OutcomeText describes the outcome of a run. It returns "" for a complete run.
func OutcomeText(outcome string) string {
	switch outcome {
	case "partial":
		return "some items or markets are missing"
	case "failed":
		return "no item got a price and an error occurred"
	}
	return ""
}

// ReasonText describes why a run skipped an item, or why items or a market are missing.
func ReasonText(code string) string {
	switch code {
	case "ttl":
		return "recent quotes"
	case "noSales":
		return "no sales lately"
	case "budget":
		return "a limit or quota is used up"
	case "paused":
		return "the provider is paused"
	case "backoff":
		return "the provider failed or requested a delay"
	case "silent":
		return "not in the response"
	}
	return code
}
