package web

import (
	"assay/internal/exchange"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/view"
)

// badge is a state in words, with the tone that colours it. The words alone
// say everything; the colour only repeats it.
type badge struct {
	Tone string // good, busy, warn, bad, calm
	Text string
	Hint string // a sentence more
}

// badgeOf puts a state's code into words, whatever it is the state of.
func badgeOf(kind string, code any) badge {
	text, _ := code.(string)
	if h, ok := code.(provider.Health); ok {
		return healthBadge(h)
	}
	if p, ok := code.(*string); ok && p != nil {
		text = *p
	}
	switch kind {
	case "job":
		return jobBadge(text)
	case "item":
		return itemBadge(text)
	case "price":
		return priceBadge(text)
	case "breaker":
		return breakerBadge(text)
	}
	return badge{Tone: "calm", Text: text}
}

// runBadge is the state of a run, or its outcome where that says less than the state.
func runBadge(state string, outcome *string) badge {
	if state == "finished" && outcome != nil && *outcome == "partial" {
		return badge{"warn", "Partial", sentence(view.OutcomeText(*outcome))}
	}
	return jobBadge(state)
}

func healthBadge(h provider.Health) badge {
	switch h {
	case provider.HealthHealthy:
		return badge{"good", "Healthy", ""}
	case provider.HealthDegraded:
		return badge{"warn", "Degraded", "Its last fetch failed."}
	case provider.HealthDown:
		return badge{"bad", "Down", "Its last fetches failed."}
	}
	return badge{"calm", "Not requested yet", ""}
}

func jobBadge(state string) badge {
	switch state {
	case "queued":
		return badge{"busy", "Queued", "Starts in a moment."}
	case "running":
		return badge{"busy", "Running", ""}
	case "finished":
		return badge{"good", "Finished", ""}
	case "failed":
		return badge{"bad", "Failed", sentence(view.OutcomeText("failed"))}
	case "cancelled":
		return badge{"calm", "Cancelled", ""}
	}
	return badge{"calm", state, ""}
}

func itemBadge(state string) badge {
	switch state {
	case "pending":
		return badge{"busy", "Waiting", ""}
	case "updated":
		return badge{"good", "Updated", "Priced in this run, changed or not."}
	case "skipped":
		return badge{"calm", "Skipped", ""}
	case "noQuote":
		return badge{"warn", "No quote", "All providers answered, and none had a price."}
	case "failed":
		return badge{"bad", "Failed", "No market has data for it, and a provider failed."}
	case "cancelled":
		return badge{"calm", "Cancelled", ""}
	}
	return badge{"calm", state, ""}
}

func priceBadge(status string) badge {
	switch status {
	case "ok":
		return badge{"good", "OK", "Most markets agree, closely enough to buy at."}
	case "thin":
		return badge{"calm", "Thin", "Few markets have a price, or they are far apart."}
	case "suspect":
		return badge{"warn", "Suspect", "It moved further than such prices usually do. Check before you rely on it."}
	case "disputed":
		return badge{"warn", "Disputed", "No more than half of the markets agree; the price is that of one group."}
	case "stale":
		return badge{"warn", "Stale", "No fresh quote; this is the last known price."}
	case "noPrice":
		return badge{"calm", "No price", "No market has given a price yet."}
	}
	return badge{"calm", status, ""}
}

// heldBadge is of an item with a held price.
func heldBadge() badge {
	return badge{"warn", "Held", "A suspicious new price waits for confirmation. This is the price before it."}
}

func breakerBadge(state string) badge {
	switch state {
	case "open":
		return badge{"bad", "Not answering", "Too many failures in a row; it is left alone for a while."}
	case "halfOpen":
		return badge{"warn", "Trying again", "A few requests find out whether it is back."}
	case "closed":
		return badge{"good", "Closed", ""}
	}
	return badge{"calm", state, ""}
}

// breakerText says what the breaker of a provider does.
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

// outcomeText says what became of a market's last answer.
func outcomeText(code string) string {
	switch code {
	case "":
		return "–"
	case "ok":
		return "Taken"
	case "silent":
		return "Not in the answer"
	case "quarantined":
		return "Held back"
	}
	return code
}

// ratesText says where exchange rates come from.
func ratesText(from string) string {
	switch from {
	case exchange.ECBName:
		return "from the European Central Bank"
	case exchange.FileName:
		return "from the file of MARKET_PRICE_RATES"
	}
	return "fixed in MARKET_PRICE_RATES"
}

// methodText says how the price comes from the quotes.
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
