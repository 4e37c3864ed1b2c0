package providertest

import (
	"cmp"
	"slices"

	"assay/internal/provider"
)

// maxRejected is how many rejections a Sink keeps.
const maxRejected = 1000

// Sink is a provider.Sink that keeps all quotes. One goroutine at a time may use it.
type Sink struct {
	Quotes   []provider.Quote
	Rejected []Rejection // the first thousand
	Rejects  int         // the number of all
	Restarts int
	Refuse   error // if set, the error of every Quote

	seen provider.Duplicates
}

// Rejection is one rejected row.
type Rejection struct {
	Market, Name, Reason string
}

// Restart discards everything.
func (s *Sink) Restart() {
	s.Restarts++
	s.seen.Reset()
	s.Quotes, s.Rejected, s.Rejects = s.Quotes[:0], s.Rejected[:0], 0
}

// Quote keeps a copy of q, unless the item was quoted on the market before.
func (s *Sink) Quote(q *provider.Quote) error {
	if s.Refuse != nil {
		return s.Refuse
	}
	switch s.seen.Add(q) {
	case provider.First:
		s.Quotes = append(s.Quotes, *q)
	case provider.Conflicting:
		same := func(k provider.Quote) bool { return k.Market == q.Market && k.Name == q.Name && k.Phase == q.Phase }
		s.Quotes = slices.DeleteFunc(s.Quotes, same)
		s.Reject(q.Market, q.Name, provider.RejectConflict)
		s.Reject(q.Market, q.Name, provider.RejectConflict)
	case provider.Contested:
		s.Reject(q.Market, q.Name, provider.RejectConflict)
	default:
		s.Reject(q.Market, q.Name, provider.RejectRepeat)
	}
	return nil
}

// Reject counts a rejection.
func (s *Sink) Reject(market, name, reason string) {
	s.Rejects++
	if len(s.Rejected) == maxRejected {
		return
	}
	s.Rejected = append(s.Rejected, Rejection{Market: market, Name: name, Reason: reason})
}

// Sorted returns the quotes by market, name and phase.
func (s *Sink) Sorted() []provider.Quote { return sorted(s.Quotes) }

func sorted(quotes []provider.Quote) []provider.Quote {
	quotes = slices.Clone(quotes)
	slices.SortStableFunc(quotes, func(a, b provider.Quote) int {
		return cmp.Or(cmp.Compare(a.Market, b.Market), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Phase, b.Phase))
	})
	return quotes
}
