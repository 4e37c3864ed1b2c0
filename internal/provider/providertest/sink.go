package providertest

import (
	"cmp"
	"slices"

	"assay/internal/provider"
)

// maxRejected is the number of rejections that a Sink keeps.
const maxRejected = 1000

// Sink is a provider.Sink that keeps all quotes. It is not safe for concurrent use.
type Sink struct {
	Quotes   []provider.Quote
	Rejected []Rejection // the first maxRejected rejections
	Rejects  int         // number of all rejections
	Restarts int
	Err      error // if set, returned by Quote

	seen provider.Duplicates
}

// Rejection is one rejected row.
type Rejection struct {
	Market, Name, Reason string
}

// Restart discards all quotes and rejections.
func (s *Sink) Restart() {
	s.Restarts++
	s.seen.Reset()
	s.Quotes, s.Rejected, s.Rejects = s.Quotes[:0], s.Rejected[:0], 0
}

// Quote keeps a copy of q. It rejects a repeated item and market.
func (s *Sink) Quote(q *provider.Quote) error {
	if s.Err != nil {
		return s.Err
	}
	switch s.seen.Add(q) {
	case provider.First:
		s.Quotes = append(s.Quotes, *q)
	case provider.Conflicting:
		same := func(k provider.Quote) bool { return k.Market == q.Market && k.Name == q.Name && k.Phase == q.Phase }
		s.Quotes = slices.DeleteFunc(s.Quotes, same)
		s.Reject(q.Market, q.Name, provider.RejectConflict)
		s.Reject(q.Market, q.Name, provider.RejectConflict)
	case provider.AfterConflict:
		s.Reject(q.Market, q.Name, provider.RejectConflict)
	default:
		s.Reject(q.Market, q.Name, provider.RejectRepeat)
	}
	return nil
}

// Reject counts and keeps a rejection.
func (s *Sink) Reject(market, name, reason string) {
	s.Rejects++
	if len(s.Rejected) == maxRejected {
		return
	}
	s.Rejected = append(s.Rejected, Rejection{Market: market, Name: name, Reason: reason})
}

// Sorted returns the quotes, sorted by market, name and phase.
func (s *Sink) Sorted() []provider.Quote { return sorted(s.Quotes) }

func sorted(quotes []provider.Quote) []provider.Quote {
	quotes = slices.Clone(quotes)
	slices.SortStableFunc(quotes, func(a, b provider.Quote) int {
		return cmp.Or(cmp.Compare(a.Market, b.Market), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Phase, b.Phase))
	})
	return quotes
}
