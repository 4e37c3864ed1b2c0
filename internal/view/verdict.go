package view

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Verdict is one sentence about the state of pricing or about one problem. It links to the page where
// an operator can act.
type Verdict struct {
	Level  string // good, calm, warn or bad
	Text   string // a sentence
	Action string // text of the link; empty: no link
	Href   string // path on the operator's page
}

// Situation is the input of VerdictsOf.
type Situation struct {
	Failing     []string // failing health checks of the server
	Ledger      *LedgerVerification
	Configured  int             // number of providers
	Unrequested int             // providers that were not requested yet
	Down        []string        // providers whose last fetches all failed, or whose breaker is open
	Degraded    []string        // providers with some failed fetches
	Paused      []string        // providers paused by an operator
	LowBudget   []string        // providers whose budget runs out before it resets
	Quarantined []MarketTrouble // markets in quarantine
	Prices      int64           // items in scope with a price
	QuoteAge    time.Duration   // 95th percentile of the age of their quotes; negative: no price
	Last        *RunBar         // last bulk run that ended; nil: none
	Missing     *RunBar         // last run for missing prices that ended, if it is newer than Last; nil: none
	Running     *RunBar         // queued or running bulk run; nil: none
	Held        int64           // held prices
}

// MarketTrouble is a market with a problem.
type MarketTrouble struct{ Provider, Market, Why string }

// VerdictsOf returns the verdicts on a situation, most important first. The first one is the headline
// of the overview page. There is always at least one.
func VerdictsOf(s *Situation) []Verdict {
	var out []Verdict
	add := func(level, action, href, format string, args ...any) {
		out = append(out, Verdict{Level: level, Text: fmt.Sprintf(format, args...), Action: action, Href: href})
	}
	if len(s.Failing) > 0 {
		add("bad", "Show events", "/events", "The server fails its health check: %s.", strings.Join(s.Failing, ", "))
	}
	if l := s.Ledger; l != nil && l.Status == "failed" {
		add("bad", "Show the ledger", "/ledger", "The ledger does not verify: %s.", countText(l.FailureCount, "failure", "failures"))
	}
	if s.Configured == 0 {
		add("bad", "Read how", "/help/index.html", "Nothing is configured: set MARKET_PRICE_PROVIDERS to the providers that prices come from.")
		return out
	}
	if n := len(s.Down); n > 0 {
		add("bad", "Show providers", "/providers", "%s%s", countOf(n, s.Configured, s.Down), basis(s))
	}
	if l := s.Last; l.failed() {
		add("bad", "Show the run", "/runs/"+l.ID, "The last run failed: %s", sentenceEnd(l.LastError, "no item got a price"))
	}
	if l := s.Missing; l.failed() {
		add("bad", "Show the run", "/runs/"+l.ID, "The last run for missing prices failed: %s", sentenceEnd(l.LastError, "no item got a price"))
	}
	for _, q := range s.Quarantined {
		add("warn", "Compare and accept", "/providers/"+url.PathEscape(q.Provider), "A response of %s/%s is in quarantine: %s", q.Provider, q.Market, sentenceEnd(q.Why, "it failed validation"))
	}
	if s.Last == nil && s.Running == nil && s.Missing == nil {
		add("calm", "Start a run", "/runs", "No run has ended yet: start one to get prices.")
	}
	if s.Prices > 0 && s.QuoteAge > freshFor {
		add("warn", "Show stale prices", "/items?status=stale", "More than 5 %% of %s are based on quotes older than a day.", countText(s.Prices, "price", "prices"))
	}
	if manyHeld(s) {
		add("warn", "Compare and accept", "/held", "%s of %s are held, so their last prices stay published.", humanize.Comma(s.Held), countText(s.Prices, "price", "prices"))
	}
	if n := len(s.LowBudget); n > 0 {
		add("warn", "Show budgets", "/providers", "The budget of %s runs out before it resets.", list(s.LowBudget))
	}
	if len(s.Degraded) > 0 {
		add("warn", "Show providers", "/providers", "Some fetches of %s failed.", list(s.Degraded))
	}
	if l := s.Last; l != nil && l.Outcome == "partial" {
		add("warn", "Show the run", "/runs/"+l.ID, "The last run is partial: %s.", OutcomeText(l.Outcome))
	}
	if len(s.Paused) > 0 {
		add("warn", "Show providers", "/providers", "%s paused, so no requests are sent.", isAre(s.Paused))
	}
	if s.Held > 0 && !manyHeld(s) {
		add("calm", "Show held prices", "/held", "%s held until you accept or a later run confirms.", countText(s.Held, "price is", "prices are"))
	}
	if !slices.ContainsFunc(out, func(v Verdict) bool { return v.Level != "calm" }) && s.Prices > 0 {
		// A few held prices are not a problem. Their verdict follows the good one.
		good := Verdict{Level: "good", Text: fmt.Sprintf("Everything works: %s%s", responding(s.Configured, s.Unrequested), basis(s)), Action: "Show prices", Href: "/items"}
		if s.Unrequested == s.Configured {
			good.Level, good.Text = "calm", "No problem is known, but no provider was requested yet"+basis(s)
		}
		out = append([]Verdict{good}, out...)
	}
	if len(out) == 0 {
		out = append(out, Verdict{Level: "calm", Text: "No item has a price yet.", Action: "Show runs", Href: "/runs"})
	}
	return out
}

// manyHeld reports whether more than 5 % of the prices are held. A guard that holds so many is wrong,
// or so are the quotes.
func manyHeld(s *Situation) bool { return s.Held*20 > s.Prices }

// basis returns the end of a verdict's sentence: the age of the quotes behind most prices, or only a
// full stop if the age is unknown.
func basis(s *Situation) string {
	if s.Prices == 0 || s.QuoteAge < 0 {
		return "."
	}
	return fmt.Sprintf("; 95 %% of %s are based on quotes at most %s old.", countText(s.Prices, "price", "prices"), ageText(s.QuoteAge))
}

func countOf(n, all int, names []string) string {
	if n == all {
		if n == 1 {
			return "The provider " + names[0] + " fails"
		}
		return fmt.Sprintf("All %d providers fail", all)
	}
	if n == 1 {
		return fmt.Sprintf("1 of %d providers fails (%s)", all, names[0])
	}
	return fmt.Sprintf("%d of %d providers fail (%s)", n, all, list(names))
}

// responding describes the providers of a server without a failure, of which one has responded.
func responding(all, unrequested int) string {
	switch responded := all - unrequested; {
	case unrequested > 0:
		has, were := "have", "were"
		if responded == 1 {
			has = "has"
		}
		if unrequested == 1 {
			were = "was"
		}
		return fmt.Sprintf("%d of %d providers %s responded, and %d %s not requested yet", responded, all, has, unrequested, were)
	case all == 1:
		return "the provider responds"
	}
	return fmt.Sprintf("all %d providers respond", all)
}

// listed is the number of names in a sentence.
const listed = 3

// list joins names. It replaces the names after the third by their number.
func list(names []string) string {
	if len(names) > listed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:listed], ", "), len(names)-listed)
	}
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return strings.Join(names, "")
}

func isAre(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return list(names) + " are"
}

// countText returns a number with its noun.
func countText(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(n) + " " + more
}

// sentenceEnd returns the text with a full stop. If the text is empty, it uses otherwise.
func sentenceEnd(text, otherwise string) string {
	if text == "" {
		text = otherwise
	}
	return strings.TrimSuffix(text, ".") + "."
}

// ageText returns a duration in minutes, hours or days, such as "31 min".
func ageText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "1 min"
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int64(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int64(d/time.Hour))
	default:
		return fmt.Sprintf("%d days", int64(d/(24*time.Hour)))
	}
}
