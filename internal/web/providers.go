package web

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/view"
)

// providersPage shows all providers.
type providersPage struct {
	frame
	Providers    []providerCard
	Unconfigured []view.Unconfigured
	Rates        view.RatesDebug
	RatesFrom    string
	Currency     money.Currency // currency of all prices
}

// providerCard shows a provider and its state.
type providerCard struct {
	view.ProviderDebug
	State       badge
	Quarantined bool      // at least one market is in quarantine
	Budgeted    bool      // the provider has a rate limit
	Spent       []segment // used part of the budget
	Responses   []statusCount
}

// statusCount is the number of responses with one status.
type statusCount struct {
	Status string
	Text   string
	Count  int64
	Good   bool
}

func (s *providerPages) providers(w http.ResponseWriter, r *http.Request, sess session) error {
	debug, err := s.Providers.ProviderDebug(r.Context())
	if err != nil {
		return err
	}
	page := providersPage{
		frame: s.frame("Providers", "providers", &sess), Providers: providerCards(debug.Providers, s.Now()), Unconfigured: debug.Unconfigured,
		Rates: debug.Rates, RatesFrom: ratesText(debug.Rates.From), Currency: s.Currency,
	}
	return s.show(w, r, "providers", page)
}

func providerCards(providers []view.ProviderDebug, now time.Time) []providerCard {
	cards := make([]providerCard, len(providers))
	for i, provider := range providers {
		card := providerCard{ProviderDebug: provider, Budgeted: provider.Budget.Limit > 0, Responses: responsesOf(provider.ResponsesByStatus)}
		card.Quarantined = slices.ContainsFunc(provider.Markets, func(m view.MarketDebug) bool { return m.Quarantine != nil })
		card.State = providerBadge(provider, card.Quarantined, now)
		if card.Budgeted {
			used := min(provider.Budget.Used, provider.Budget.Limit)
			card.Spent = segments(provider.Budget.Limit, part{"spent", used})
		}
		cards[i] = card
	}
	return cards
}

// providerBadge returns the most important state of a provider. States that an operator can
// change come first.
func providerBadge(p view.ProviderDebug, quarantined bool, now time.Time) badge {
	switch {
	case p.Paused:
		return badge{"calm", "Paused", "The provider gets no requests until you resume it."}
	case p.Health == provider.HealthDown && p.Breaker != "open":
		return badge{"bad", "Down", "Its last fetches failed. The next run requests it again."}
	case quarantined:
		return badge{"warn", "Quarantined", "A response failed validation and is not used."}
	case p.Breaker == "open" || p.Breaker == "halfOpen":
		return badgeOf("breaker", p.Breaker)
	case p.BlockedUntil != nil && p.BlockedUntil.After(now):
		return badge{"warn", "Backoff", "The provider requested a delay."}
	case p.Budget.Left != nil && *p.Budget.Left <= 0 && p.Budget.Limit > 0,
		slices.ContainsFunc(p.Budget.Quotas, func(q view.Quota) bool { return q.Left <= 0 }),
		p.Budget.Reported != nil && p.Budget.Reported.Left <= 0:
		return badge{"warn", "Budget spent", "Requests resume when its budget resets."}
	case p.Budget.Low:
		return badge{"warn", "Budget low", "Less than a tenth is left. At the current rate the budget runs out before it resets."}
	case p.Health == provider.HealthDegraded:
		return badge{"warn", "Degraded", "Some of its last fetches failed."}
	case p.Health == provider.HealthUnknown:
		return badge{"calm", "Not requested yet", ""}
	}
	return badge{"good", "Healthy", ""}
}

func responsesOf(byStatus map[string]int64) []statusCount {
	out := make([]statusCount, 0, len(byStatus))
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		code, err := strconv.Atoi(status)
		text := http.StatusText(code)
		if err != nil || code == 0 {
			text = "no response"
		}
		out = append(out, statusCount{Status: status, Text: text, Count: byStatus[status], Good: code >= 200 && code < 400})
	}
	return out
}
