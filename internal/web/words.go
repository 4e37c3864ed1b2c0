package web

import (
	"fmt"

	"assay/internal/exchange"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/view"
)

// badge is a state in words, with the tone that colours it. The words are complete
// without the colour.
type badge struct {
	Tone string // good, busy, warn, bad, calm
	Text string
	Hint string // a sentence more
}

// badges are the states of the service, by kind and code.
var badges = map[string]map[string]badge{
	"health": {
		string(provider.HealthHealthy):  {"good", "Healthy", ""},
		string(provider.HealthDegraded): {"warn", "Degraded", "Its last fetch failed."},
		string(provider.HealthDown):     {"bad", "Down", "Its last fetches failed."},
		string(provider.HealthUnknown):  {"calm", "Not requested yet", ""},
	},
	"job": {
		"queued":    {"busy", "Queued", "Starts in a moment."},
		"running":   {"busy", "Running", ""},
		"finished":  {"good", "Finished", ""},
		"failed":    {"bad", "Failed", sentence(view.OutcomeText("failed"))},
		"cancelled": {"calm", "Cancelled", ""},
	},
	"item": {
		"pending":   {"busy", "Waiting", ""},
		"updated":   {"good", "Updated", "Priced in this run, changed or not."},
		"skipped":   {"calm", "Skipped", ""},
		"noQuote":   {"warn", "No quote", "All providers responded, and none had a price."},
		"failed":    {"bad", "Failed", "No market has data for it, and a provider failed."},
		"cancelled": {"calm", "Cancelled", ""},
	},
	"price": {
		"ok":       {"good", "OK", "Most markets agree closely."},
		"thin":     {"calm", "Thin", "Few markets have a price, or they are far apart."},
		"suspect":  {"warn", "Suspect", "It moved further than such prices usually do. Check before you rely on it."},
		"disputed": {"warn", "Disputed", "No more than half of the markets agree. The price is that of one group."},
		"stale":    {"warn", "Stale", "No fresh quote. This is the last known price."},
		"noPrice":  {"calm", "No price", "No market has given a price yet."},
	},
	"breaker": {
		"open":     {"bad", "Not responding", "Too many failures in a row. It gets no requests for a while."},
		"halfOpen": {"warn", "Retrying", "A few requests test whether it responds again."},
		"closed":   {"good", "Closed", ""},
	},
}

// badgeOf returns the badge of a state: a text, a *string or a provider.Health.
func badgeOf(kind string, code any) badge {
	text := fmt.Sprint(code)
	if p, ok := code.(*string); ok {
		text = ""
		if p != nil {
			text = *p
		}
	}
	if b, ok := badges[kind][text]; ok {
		return b
	}
	return badge{Tone: "calm", Text: text}
}

// runBadge shows the outcome of a run if it is partial, else its state.
func runBadge(state string, outcome *string) badge {
	if state == "finished" && outcome != nil && *outcome == "partial" {
		return badge{"warn", "Partial", sentence(view.OutcomeText(*outcome))}
	}
	return badgeOf("job", state)
}

// heldBadge is the badge of an item with a held price.
func heldBadge() badge {
	return badge{"warn", "Held", "A suspicious new price waits for confirmation. This is the price before it."}
}

// breakerText names the state of a circuit breaker.
func breakerText(state string) string {
	switch state {
	case "closed":
		return "Closed"
	case "open":
		return "Open"
	case "halfOpen":
		return "Half open"
	}
	return state
}

// outcomeText describes what was done with a market's last response.
func outcomeText(code string) string {
	switch code {
	case "":
		return "–"
	case "ok":
		return "Taken"
	case "silent":
		return "Not in the response"
	case "quarantined":
		return "Held back"
	}
	return code
}

// ratesText describes where exchange rates come from.
func ratesText(from string) string {
	switch from {
	case exchange.ECBName:
		return "from the European Central Bank"
	case exchange.FileName:
		return "from the file of MARKET_PRICE_RATES"
	}
	return "fixed in MARKET_PRICE_RATES"
}

// methodText describes how the price is computed from the quotes.
func methodText(method string) string {
	switch pricing.Method(method) {
	case pricing.Consensus:
		return "Middle of the markets that agree"
	case pricing.Average:
		return "Mean of all markets"
	case pricing.Median:
		return "Median of the markets"
	}
	return method
}
