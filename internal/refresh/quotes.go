package refresh

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/internal/pricing"
	"assay/internal/provider"
)

// fetchedAfterEstimate reports whether a quote was fetched after the item's last estimate.
func fetchedAfterEstimate(v *MarketSnapshot) bool {
	return v.Reason == pricing.Awaiting || v.Reason == pricing.Confirmed
}

// quoted reports whether a quote has an ask or a sale.
func quoted(v *MarketSnapshot) bool { return v.Ask > 0 || v.Sale > 0 }

// collectQuotes collects the quotes for an item's estimate. It takes the quotes of this job.
// For other configured markets it takes the stored quotes. If a market responded without the
// item, its stored quote counts as empty.
func (s *batchEstimator) collectQuotes(i int) {
	s.rows, s.quotes = s.rows[:0], s.quotes[:0]
	for k := range s.jobQuotes[i] {
		f := &s.jobQuotes[i][k]
		row, newer := s.newerQuote(i, f)
		q := s.quote(row)
		if !newer {
			q.FetchedAt = f.at
		}
		if f.byName && newer {
			q.ChangedAt = unchanged()
		} else if f.byName {
			q.ChangedAt, q.Moved = s.sinceLast(i, f)
		}
		s.rows, s.quotes = append(s.rows, row), append(s.quotes, q)
	}
	for _, old := range s.items[i].Quotes {
		if slices.ContainsFunc(s.jobQuotes[i], func(f jobQuote) bool { return f.MarketID == old.MarketID }) {
			continue
		}
		if old.FetchedAt.IsZero() {
			old.FetchedAt = s.items[i].QuotesAt
		}
		if _, configured := s.estimator.marketsByID[old.MarketID]; !configured {
			continue
		}
		q := s.quote(old)
		if _, responded := s.respondedAt(i, old.MarketID); responded {
			q.Ask, q.Sale, q.Sales, q.SalesWindow = 0, 0, provider.Unknown, 0
		}
		if s.estimator.marketsByID[old.MarketID].byName {
			q.ChangedAt = unchanged()
			if old.Reason == pricing.Awaiting {
				q.ChangedAt = old.FetchedAt
			}
		}
		s.rows, s.quotes = append(s.rows, old), append(s.quotes, q)
	}
}

// newerQuote returns the stored quote of a market if it is newer than the quote of this job. This
// happens if a job stops after its fetches, and another job prices the item before it continues.
// Otherwise newerQuote returns the quote of this job.
func (s *batchEstimator) newerQuote(i int, f *jobQuote) (row MarketSnapshot, newer bool) {
	old := quoteOf(s.items[i].Quotes, f.MarketID)
	if old == nil || old.Reason == pricing.NotConfigured {
		return f.MarketSnapshot, false
	}
	row = *old
	if row.FetchedAt.IsZero() {
		row.FetchedAt = s.items[i].QuotesAt
	}
	if !row.FetchedAt.After(f.at) || row.FetchedAt.After(s.estimator.now()) { // or the clock was ahead
		return f.MarketSnapshot, false
	}
	return row, true
}

// unchanged is the ChangedAt of a quote that has not changed since the last estimate. The time
// is long ago, so the guard does not use the quote as evidence for a held price.
func unchanged() time.Time { return time.Unix(0, 0).UTC() }

// findQuote returns the index of a market's quote.
func findQuote(quotes []MarketSnapshot, market int64) (at int, found bool) {
	return slices.BinarySearchFunc(quotes, market, func(q MarketSnapshot, id int64) int { return cmp.Compare(q.MarketID, id) })
}

// quoteOf returns a market's quote, or nil.
func quoteOf(quotes []MarketSnapshot, market int64) *MarketSnapshot {
	if at, found := findQuote(quotes, market); found {
		return &quotes[at]
	}
	return nil
}

// sinceLast compares a quote that was requested by name with the market's stored quote. It
// returns when the amounts changed and by how much the price moved.
func (s *batchEstimator) sinceLast(i int, f *jobQuote) (changedAt time.Time, moved pricing.Log) {
	old := quoteOf(s.items[i].Quotes, f.MarketID)
	switch {
	case old == nil || old.Currency != f.Currency || !quoted(old):
		return f.at, 0
	case old.Reason == pricing.Awaiting: // the quote in the last estimate is unknown
		if old.Ask == f.Ask && old.Sale == f.Sale {
			return old.FetchedAt, 0
		}
		return f.at, 0
	case old.Ask == f.Ask && old.Sale == f.Sale:
		return unchanged(), 0
	}
	was, _ := pricing.Quoted(old.Ask, old.Sale)
	is, _ := pricing.Quoted(f.Ask, f.Sale)
	if was <= 0 || is <= 0 {
		return f.at, 0
	}
	return f.at, pricing.Ln(is) - pricing.Ln(was)
}

// quote converts a stored quote for an estimate. If the quote has no sales count, its sales
// window is the market's usual one.
func (s *batchEstimator) quote(r MarketSnapshot) pricing.Quote {
	m := s.estimator.marketsByID[r.MarketID]
	q := pricing.Quote{
		ID: r.MarketID, Provider: m.provider, Market: m.Key, Pool: m.Pool, MaxAge: m.MaxAge,
		Currency: r.Currency, Ask: r.Ask, Sale: r.Sale,
		Sales: r.Sales, SalesWindow: r.SalesWindow,
		FetchedAt: r.FetchedAt, MarketTime: r.MarketTime,
	}
	if q.Sales < 0 {
		q.SalesWindow = m.SalesWindow
	}
	return q
}

// newQuotes returns all quotes of an item after the estimate, or nil if none changed.
func (s *batchEstimator) newQuotes(i int) []MarketSnapshot {
	stored := s.items[i].Quotes
	all, changed := append(s.kept[:0], stored...), false
	for k := range all {
		if _, configured := s.estimator.marketsByID[all[k].MarketID]; !configured && all[k].Reason != pricing.NotConfigured {
			all[k].Reason, changed = pricing.NotConfigured, true
			if all[k].FetchedAt.IsZero() {
				all[k].FetchedAt = s.items[i].QuotesAt
			}
		}
	}
	for k := range s.rows {
		r := s.rows[k]
		r.Reason = s.estimated.Quotes[k].Reason
		at, found := findQuote(all[:len(stored)], r.MarketID)
		if !found {
			all, changed = append(all, r), true
			continue
		}
		r.MarketTime = storedTime(all[at].MarketTime, r.MarketTime)
		if all[at] != r {
			all[at], changed = r, true
		}
	}
	s.kept = all
	if !changed {
		return nil
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b MarketSnapshot) int { return cmp.Compare(a.MarketID, b.MarketID) })
	return all
}

// storedTime returns the market time to store. It keeps the stored time if the new one is
// less than six hours later. Otherwise a new time with an unchanged quote would rewrite the
// row. Six hours do not matter, because a quote becomes stale a week after its market time.
func storedTime(stored, stated time.Time) time.Time {
	const tick = 6 * time.Hour
	if d := stated.Sub(stored); !stored.IsZero() && d > 0 && d < tick {
		return stored
	}
	return stated
}

// summary returns the errors of an item as one line of limited length.
func summary(errs []string) string {
	slices.Sort(errs)
	errs = slices.Compact(errs)
	const most = 3
	if len(errs) > most {
		errs = append(errs[:most], fmt.Sprintf("and %d more", len(errs)-most))
	}
	return strings.Join(errs, "; ")
}
