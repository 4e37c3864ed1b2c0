package web

import (
	"fmt"
	"strings"

	"assay/internal/exchange"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/webhook"
)

// badge is a state with a text and a tone, which sets the colour. The text is complete without
// the colour.
type badge struct {
	Tone string // good, busy, warn, bad or calm
	Text string
	Hint string // additional sentence
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
		"updated":   {"good", "Updated", "This run confirmed or changed the price."},
		"skipped":   {"calm", "Skipped", ""},
		"noQuote":   {"warn", "No quote", "All providers responded, but none had a price."},
		"failed":    {"bad", "Failed", "No market has data for the item, and a provider failed."},
		"cancelled": {"calm", "Cancelled", ""},
	},
	"price": {
		"ok":       {"good", "OK", "Most markets agree closely."},
		"thin":     {"calm", "Thin", "Few markets have a price, or they are far apart."},
		"suspect":  {"warn", "Suspect", "The price moved unusually far. Check it before you rely on it."},
		"disputed": {"warn", "Disputed", "No majority of the markets agrees. The price comes from one group of them."},
		"stale":    {"warn", "Stale", "No fresh quote. This is the last known price."},
		"noPrice":  {"calm", "No price", "No market has reported a price yet."},
	},
	"listing": {
		"active":    {"busy", "Active", "It can be bought."},
		"reserved":  {"busy", "Reserved", "A purchase is in progress."},
		"sold":      {"good", "Sold", ""},
		"cancelled": {"calm", "Cancelled", ""},
		"expired":   {"calm", "Expired", "The asset left the seller's inventory or is no longer tradable."},
	},
	"trade": {
		"pending":   {"warn", "Pending", "Bought, and not yet handed over."},
		"completed": {"busy", "Completed", "Handed over. The seller's credit is held."},
		"settled":   {"good", "Settled", "The hold has ended. The seller can spend the credit."},
		"reversed":  {"calm", "Reversed", "The buyer has the money back."},
	},
	"entry": {
		string(wallet.TypeDeposit):      {"good", "Deposit", ""},
		string(wallet.TypeWithdrawal):   {"calm", "Withdrawal", ""},
		string(wallet.TypeCorrection):   {"warn", "Correction", "The note of the transaction states the reason."},
		string(wallet.TypeReversal):     {"warn", "Reversal", ""},
		string(wallet.TypeRelease):      {"calm", "Release", "The hold ended: the money leaves the held balance."},
		string(wallet.TypeFree):         {"good", "Free", "The hold ended: the money becomes available."},
		string(wallet.TypePurchase):     {"calm", "Purchase", ""},
		string(wallet.TypeSale):         {"busy", "Sale", "Held until the trade settles."},
		string(wallet.TypeSaleReversal): {"warn", "Sale reversal", ""},
		string(wallet.TypeFee):          {"calm", "Fee", ""},
		string(wallet.TypeCompletion):   {"calm", "Completion", "The asset was handed over."},
	},
	"check": {
		"pass":          {"good", "Passed", ""},
		"fail":          {"bad", "Failed", ""},
		"skipped":       {"warn", "Skipped", "The check could not run."},
		"notApplicable": {"calm", "Not applicable", "There was nothing to examine."},
	},
	"fee": {
		"added":     {"good", "Added", ""},
		"removed":   {"bad", "Removed", ""},
		"modified":  {"warn", "Modified", ""},
		"unchanged": {"calm", "Unchanged", ""},
	},
	"webhook": {
		webhook.IsHealthy:  {"good", "Healthy", ""},
		webhook.IsFailing:  {"warn", "Failing", "The last attempt failed. Messages are sent again later."},
		webhook.IsDisabled: {"calm", "Disabled", "It gets no messages until you enable it."},
	},
	"delivery": {
		webhook.Delivered: {"good", "Delivered", ""},
		webhook.Retrying:  {"busy", "Retrying", ""},
		webhook.Failed:    {"bad", "Failed", "The receiver did not accept it for a day. It is not sent again."},
		webhook.Lost:      {"bad", "Lost", "The events were deleted before they could be sent."},
	},
	"breaker": {
		"open":     {"bad", "Not responding", "Too many consecutive failures. Requests are paused for a while."},
		"halfOpen": {"warn", "Retrying", "A few requests check whether it responds again."},
		"closed":   {"good", "Closed", ""},
	},
}

// badgeOf returns the badge of a state. The state is a string, a *string or a provider.Health.
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

// runBadge returns the badge of a run. A partial outcome takes precedence over the state.
func runBadge(state string, outcome *string) badge {
	if state == "finished" && outcome != nil && *outcome == "partial" {
		return badge{"warn", "Partial", sentence(view.OutcomeText(*outcome))}
	}
	return badgeOf("job", state)
}

// heldBadge returns the badge of an item with a held price.
func heldBadge() badge {
	return badge{"warn", "Held", "A suspicious new price is held until it is confirmed. This is the previous price."}
}

// breakerText describes the state of a circuit breaker.
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

// outcomeText describes the result of a market's last response.
func outcomeText(code string) string {
	switch code {
	case "":
		return "–"
	case "ok":
		return "Accepted"
	case "silent":
		return "Not in the response"
	case "quarantined":
		return "Quarantined"
	}
	return code
}

// ratesText describes the origin of exchange rates.
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
		return "Median of the markets that agree"
	case pricing.Average:
		return "Average of all markets"
	case pricing.Median:
		return "Median of the markets"
	}
	return method
}

// requesterText returns the requester of a change in words. The stored text has a prefix, because an
// operator and an API key can have the same name.
func requesterText(by string) string {
	if name, ok := strings.CutPrefix(by, "operator:"); ok {
		return name
	}
	if name, ok := strings.CutPrefix(by, "key:"); ok {
		return "API key " + name
	}
	switch by {
	case author:
		return "page, with the admin token"
	case "start":
		return "start of the service"
	case "admin":
		return "API, with the admin token"
	case "market":
		return "API, with the market secret"
	case "platform":
		return "API, with the platform token"
	}
	return by
}
