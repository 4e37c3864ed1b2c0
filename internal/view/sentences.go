package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// sentences explains the price in sentences.
func (e *explainer) sentences(x *Explanation) []string {
	var out []string
	write := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	e.writeEstimate(x, write)
	e.writeExcludedQuotes(write)
	for _, m := range e.refused {
		write("The newest response of %s has been in quarantine since %s: %s. The market's last valid response counts until it is a day old.",
			m.Market, minute(m.Since), quarantineReason(m.Provider, m.Market, m.Reason))
	}
	e.writeStatus(x, write)
	e.writeGuard(write)
	if !x.Complete {
		write("Quotes have been fetched since this estimate. The next run uses them.")
	}
	return out
}

// quarantineReason returns the stored reason of a quarantine without its prefix.
func quarantineReason(provider, market, stored string) string {
	return strings.TrimPrefix(stored, provider+": "+market+": quarantined: ")
}

// sentenceWriter adds a formatted sentence.
type sentenceWriter func(format string, args ...any)

func (e *explainer) writeEstimate(x *Explanation, write sentenceWriter) {
	c := e.policy.Currency
	i := e.item
	switch {
	case i.UsedMarkets == 0 && i.Price > 0:
		write("No market has a usable quote now, so the last price is kept.")
		return
	case i.UsedMarkets == 0:
		write("No market has had a usable quote, so there is no price yet.")
		return
	case e.policy.Method == pricing.Average:
		write("The price is the plain average of %s.", plural(int(i.UsedMarkets), "valid quote"))
		return
	case e.policy.Method == pricing.Median:
		write("The price is the plain median of %s.", plural(int(i.UsedMarkets), "valid quote"))
		return
	}
	level, result := "the usual level of all markets", "price"
	if e.state.Held.Candidate > 0 {
		result = "estimate" // the price is an earlier one
	}
	if e.policy.Level != 0 {
		level = "the usual level of " + e.marketName(e.policy.Level)
	}
	switch {
	case x.Compared == 1:
		write("One market's quote is used. Divided by that market's usual level, it gives %s %s.", i.Consensus, c)
	case x.DecidedBy == string(pricing.ByMajority):
		write("Quotes are compared at %s. %d of %d agree within a factor of 2, from %s to %s %s, and the %s is their median: %s %s.",
			level, x.Agreeing, x.Compared, x.GroupLow, x.GroupHigh, c, result, i.Consensus, c)
	default:
		write("Quotes are compared at %s. No group within a factor of 2 holds more than half of the %d quotes, so %s The %s is its median: %s %s.",
			level, x.Compared, e.whyGroup(x), result, i.Consensus, c)
	}
	if n := x.Agreeing; n%2 == 0 && n > 0 {
		a, b := e.middle()
		switch {
		case a == b:
		case i.Consensus == a || i.Consensus == b:
			write("Of the two quotes in the middle, %s and %s %s, the quote of the market with less noise is used.", a, b, c)
		default:
			write("This median is the mean of the two quotes in the middle, %s and %s %s.", a, b, c)
		}
	}
}

// middle returns the two middle quotes of an even number of used quotes.
func (e *explainer) middle() (a, b money.Micro) {
	var used []money.Micro
	for _, q := range e.results {
		if q.Reason == pricing.Used {
			used = append(used, q.Levelled)
		}
	}
	slices.Sort(used)
	return used[len(used)/2-1], used[len(used)/2]
}

func (e *explainer) whyGroup(x *Explanation) string {
	switch pricing.DecidedBy(x.DecidedBy) {
	case pricing.ByLastPrice:
		moved := ""
		if x.ClassMove != money.Scale {
			moved = fmt.Sprintf(", multiplied by %s, the price change of similar items", x.ClassMove)
		}
		return fmt.Sprintf("the group nearest to the last price decides (%s %s%s).", e.last, e.policy.Currency, moved)
	case pricing.BySize:
		return "the largest group decides."
	case pricing.ByMarket:
		return "the group that contains the market with the fewest quotes off by more than 2× decides."
	default:
		return "the lowest group decides."
	}
}

// writeExcludedQuotes lists the quotes that were left out as outliers or late markets.
func (e *explainer) writeExcludedQuotes(write sentenceWriter) {
	var outliers []string
	for k := range e.snaps {
		v := &e.snaps[k]
		switch v.Reason {
		case pricing.Outlier:
			outliers = append(outliers, fmt.Sprintf("%s (%s)", v.Title, e.results[v.MarketID].Price))
		case pricing.LateMarket:
			write("%s is left out: %s.", v.Title, e.why(v))
		}
	}
	if len(outliers) > 0 {
		write("Quotes outside the deciding group are left out: %s.", strings.Join(outliers, ", "))
	}
}

// writeStatus explains the status of the price.
func (e *explainer) writeStatus(x *Explanation, write sentenceWriter) {
	i, c := e.item, e.policy.Currency
	if i.Interval.Low > 0 {
		write("Another reliable market would quote between %s and %s %s in about 80 %% of cases.", i.Interval.Low, i.Interval.High, c)
	}
	switch currentStatus(i.Price, i.Status, i.CheckedAt, e.now) {
	case pricing.OK:
		write("The status is ok: a majority agrees, and %d used quotes are within 1.25× of the price.", x.Near)
	case pricing.Thin:
		if x.Near < 2 {
			write("The status is thin: fewer than two used quotes are within 1.25× of the price.")
		} else {
			write("The status is thin: the quotes differ so much that the ends of the interval are more than 1.3× away from the price.")
		}
	case pricing.Disputed:
		write("The status is disputed: no majority of the quotes agrees.")
	case pricing.Stale:
		write("The status is stale: no quote of the last 24 hours confirms the price.")
	case pricing.Suspect:
		for k := range e.snaps {
			v := &e.snaps[k]
			if until := e.set.Market(v.MarketID).MarketMovedUntil; v.Reason == pricing.Used && i.EstimatedAt.Before(until) {
				write("All items of %s are suspect until %s: its prices moved by more than 1.35× at the median, or half of the markets contradict the others.", v.Title, minute(until))
			}
		}
	}
}

// writeGuard explains the decision of the guard, and how a held price is released.
func (e *explainer) writeGuard(write sentenceWriter) {
	m, s, c := &e.move, &e.state, e.policy.Currency
	if m.Reference > 0 {
		moved := fmt.Sprintf("%s %s is %s times %s %s, %s", e.estimated(), c, m.Factor, m.Reference, c, windowText(m.Window))
		if m.ClassMove != money.Scale {
			moved += fmt.Sprintf(" (in addition to %s times for similar items)", m.ClassMove)
		}
		switch m.Decision {
		case pricing.TakenAtOnce:
			write("%s, more than the limit of %s. It was accepted immediately, because %d markets support it and also moved at least half as far.", moved, m.Window.Limit(), m.Moved)
		case pricing.HeldBack:
			write("%s, more than the limit of %s, so it has been held since %s.", moved, m.Window.Limit(), minute(s.Held.At))
		case pricing.Released:
			write("%s, more than the limit of %s. It was held until a changed response released it. The price is the least extreme value seen while it was held; before this estimate that was %s %s.", moved, m.Window.Limit(), m.Earlier, c)
		}
	}
	if s.Held.Candidate > 0 {
		left := max(1, m.Needed-s.Held.Readings)
		from := s.Held.EvidenceAt.Add(pricing.EvidenceAfter)
		text := fmt.Sprintf("The price is released by %s from a market within 1.5× of it, if the response changed at %s or later", plural(left, "further response"), minute(from))
		if m.Needed > 1 {
			text += fmt.Sprintf(". This happens at %s at the earliest, because a rise or fall of 5× on one market needs two such responses at least 24 hours apart", minute(s.Held.At.Add(pricing.SingleMarketWait)))
		}
		write("%s. You can also accept the price.", text)
	}
	if at := s.ReleasedAt; e.item.EstimatedAt.Before(at) {
		write("An operator accepted the held price at %s. The previous status stays until the next estimate.", minute(at))
	}
	if until := s.SuspectUntil; e.now.Before(until) && s.Held.Candidate == 0 {
		if m.Reference > 0 {
			write("The price stays suspect until %s because of this move.", minute(until))
		} else if !e.writeAccepted(write) {
			write("The price stays suspect until %s because of an earlier large move, or because half of its quotes moved by more than 1.35× within eight days while the others did not move.", minute(until))
		}
	}
	if until := s.SingleMarketUntil; e.now.Before(until) {
		write("The price rose by 5× or more on one market. It stays suspect until %s, unless two quotes support it.", minute(until))
	}
}

// writeAccepted explains a move that an operator accepted. It returns false if there is
// no such move.
func (e *explainer) writeAccepted(write sentenceWriter) (accepted bool) {
	class := pricing.ClassOf(e.item.Key.Name)
	for k := range e.snaps {
		m := e.set.Market(e.snaps[k].MarketID)
		if move := m.AcceptedMoves[class]; move != 0 && e.snaps[k].Reason == pricing.Used && !e.state.ReleasedAt.Before(m.AcceptedAt) {
			write("An operator accepted the response of %s, in which the prices of this item class changed by a factor of %s. The price followed immediately. It stays suspect until %s.", e.snaps[k].Title, pricing.Exp(move), minute(e.state.SuspectUntil))
			accepted = true
		}
	}
	return accepted
}

// estimated returns the price that the guard checked.
func (e *explainer) estimated() money.Micro {
	switch e.policy.Method {
	case pricing.Average:
		return e.item.Average
	case pricing.Median:
		return e.item.Median
	default:
		return e.item.Consensus
	}
}

// heldReason describes the move of a held price that exceeds a limit.
func heldReason(guard string, c money.Currency) string {
	m, err := pricing.DecodeGuard(guard, &pricing.State{})
	if err != nil || m.Reference == 0 {
		return ""
	}
	return fmt.Sprintf("%s times %s %s, %s. The limit is %s.", m.Factor, m.Reference, c, windowText(m.Window), m.Window.Limit())
}

func windowText(w pricing.Window) string {
	switch w {
	case pricing.SinceDay:
		return "the price 24 hours earlier or the first price after that"
	case pricing.SinceWeek:
		return "the price 7 days earlier or the first price after that"
	default:
		return "the previous price"
	}
}

// why explains why a quote is not used. It returns "" for a used quote.
func (e *explainer) why(v *StoredSnapshot) string {
	switch v.Reason {
	case pricing.Used:
		return ""
	case pricing.NotOffered:
		if v.Ask != 0 || v.Sale != 0 {
			return "the newest response does not contain this item; the amounts are from an earlier response"
		}
		return "no offers or sales"
	case pricing.InvalidAmount:
		return "the amount cannot be a price"
	case pricing.NoRate:
		return "there is no exchange rate for " + string(v.Currency)
	case pricing.StaleFetch:
		return "it was fetched too long ago"
	case pricing.StaleMarket:
		return "the market's own data is more than 7 days old"
	case pricing.Duplicate:
		return "a newer quote of the same market is used"
	case pricing.SharedListings:
		return "it resells the listings of another market, which are used only once"
	case pricing.Outlier:
		return "it is outside the deciding group of quotes"
	case pricing.LateMarket:
		if other := e.set.Market(v.MarketID).Repeats; other != 0 {
			return "late: it repeats the quotes of " + e.marketName(other) + " from the day before"
		}
		return "late: it does not move while the others do"
	case pricing.NotConfigured:
		return "the market is no longer configured"
	case pricing.Awaiting, pricing.Confirmed:
		return "it was fetched after this estimate; the next run uses it"
	default:
		return string(v.Reason)
	}
}

// marketName returns the title of a market, or its ID if this item has no quote of it.
func (e *explainer) marketName(id int64) string {
	for k := range e.snaps {
		if e.snaps[k].MarketID == id {
			return e.snaps[k].Title
		}
	}
	return fmt.Sprintf("market %d", id)
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
