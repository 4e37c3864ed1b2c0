package view

import (
	"strings"

	"github.com/dustin/go-humanize"

	"assay/internal/event"
)

// Gap is a part of a run that is missing, in words, for the page and the command line.
type Gap struct {
	What   string // "30 items", "pricelist/skinport"
	Share  string // of the items that were due, or of what was to be requested
	Why    string
	Detail string // the error, where there is one
}

// GapsOf lists what an ended run lacks: items, then markets.
func GapsOf(g event.Gaps) []Gap {
	var out []Gap
	for _, i := range g.Items {
		what := humanize.Comma(i.Items) + " items"
		if i.Items == 1 {
			what = "1 item"
		}
		out = append(out, Gap{What: what, Share: Percent(i.Share), Why: ReasonText(i.Reason)})
	}
	for _, m := range g.Markets {
		out = append(out, Gap{What: strings.TrimSuffix(m.Provider+"/"+m.Market, "/"), Share: Percent(m.Share), Why: ReasonText(m.Reason), Detail: m.Detail})
	}
	return out
}

// String returns the gap in one line, without its detail.
func (g Gap) String() string { return g.What + " (" + g.Share + "): " + g.Why }

// OutcomeText describes the outcome of a run; "" for a complete one.
func OutcomeText(outcome string) string {
	switch outcome {
	case "partial":
		return "some items or markets are missing"
	case "failed":
		return "it priced nothing and an error occurred"
	}
	return ""
}

// ReasonText describes why an item was skipped, or why a run lacks items or a market.
func ReasonText(code string) string {
	switch code {
	case "ttl":
		return "priced recently"
	case "noSales":
		return "no sales lately"
	case "budget":
		return "a limit or quota left no request"
	case "paused":
		return "the provider is paused"
	case "backoff":
		return "the provider fails or demanded a wait"
	case "silent":
		return "not in the response"
	}
	return code
}
