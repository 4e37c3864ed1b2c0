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

// sourcesPage shows every source.
type sourcesPage struct {
	frame
	Sources      []sourceCard
	Unconfigured []view.Unconfigured
	Rates        view.RatesDebug
	RatesFrom    string
	Currency     money.Currency // of all prices
}

// sourceCard is a source with its state in words.
type sourceCard struct {
	view.SourceDebug
	State       badge
	Quarantined bool      // an operator's word can end it
	Budgeted    bool      // the source has a limit
	Spent       []segment // of the budget
	Answers     []answer
}

// answer counts one status of a source's answers.
type answer struct {
	Status string
	Text   string
	Count  int64
	Good   bool
}

func (s *site) sources(w http.ResponseWriter, r *http.Request, sess session) error {
	debug, err := s.Reader.ProviderDebug(r.Context())
	if err != nil {
		return err
	}
	page := sourcesPage{
		frame: s.frame("Sources", &sess), Sources: s.sourceCards(debug.Sources), Unconfigured: debug.Unconfigured,
		Rates: debug.Rates, RatesFrom: ratesText(debug.Rates.From), Currency: s.Currency,
	}
	page.Section = "sources"
	s.show(w, r, http.StatusOK, "sources", page)
	return nil
}

func (s *site) sourceCards(sources []view.SourceDebug) []sourceCard {
	now := s.Now()
	cards := make([]sourceCard, len(sources))
	for i, source := range sources {
		card := sourceCard{SourceDebug: source, Budgeted: source.Budget.Limit > 0, Answers: answersOf(source.AnswersByStatus)}
		card.Quarantined = slices.ContainsFunc(source.Markets, func(m view.MarketDebug) bool { return m.Quarantine != nil })
		card.State = sourceBadge(source, card.Quarantined, now)
		if card.Budgeted {
			used := min(source.Budget.Used, source.Budget.Limit)
			card.Spent = segments(source.Budget.Limit, part{"spent", used})
		}
		cards[i] = card
	}
	return cards
}

// sourceBadge says first what an operator can change, then what only time can.
func sourceBadge(source view.SourceDebug, quarantined bool, now time.Time) badge {
	switch {
	case source.Paused:
		return badge{"calm", "Paused", "It gets no requests until you resume it."}
	case source.Health == provider.HealthDown && source.Breaker != "open":
		return badge{"bad", "Down", "Its last fetches failed. It is requested again in the next run."}
	case quarantined:
		return badge{"warn", "Quarantined", "An answer looked wrong and was not taken. The last good one counts."}
	case source.Breaker == "open" || source.Breaker == "halfOpen":
		return breakerBadge(source.Breaker)
	case source.BlockedUntil != nil && source.BlockedUntil.After(now):
		return badge{"warn", "Backoff", "The provider demanded a wait."}
	case source.Budget.Left != nil && *source.Budget.Left <= 0 && source.Budget.Limit > 0,
		slices.ContainsFunc(source.Budget.Quotas, func(q view.Quota) bool { return q.Left <= 0 }),
		source.Budget.Told != nil && source.Budget.Told.Left <= 0:
		return badge{"warn", "Budget spent", "Requests resume when its budget renews."}
	case source.Budget.Low:
		return badge{"warn", "Budget low", "Less than a tenth is left, and at the present pace it runs out before it renews."}
	case source.Health == provider.HealthDegraded:
		return badge{"warn", "Degraded", "Some of its last fetches failed."}
	case source.Health == provider.HealthUnknown:
		return badge{"calm", "Not requested yet", ""}
	}
	return badge{"good", "Healthy", ""}
}

func answersOf(byStatus map[string]int64) []answer {
	answers := make([]answer, 0, len(byStatus))
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		code, err := strconv.Atoi(status)
		text := http.StatusText(code)
		if err != nil || code == 0 {
			text = "no answer"
		}
		answers = append(answers, answer{Status: status, Text: text, Count: byStatus[status], Good: code >= 200 && code < 400})
	}
	return answers
}
