package providertest

import (
	"cmp"
	"slices"

	"assay/internal/provider"
)

// maxRejected is how many rejections a Sink keeps.
const maxRejected = 1000

// Sink is a provider.Sink that keeps what it is given. It is used by one
// goroutine at a time.
type Sink struct {
	Quotes   []provider.Quote
	Rejected []Rejection // the first thousand
	Rejects  int         // all of them
	Restarts int
	Refuse   error // if set, what every Quote returns
}

// Rejection is one row that was no quote.
type Rejection struct {
	Market, Name, Reason string
}

// Restart forgets what was taken.
func (s *Sink) Restart() {
	s.Restarts++
	s.Quotes, s.Rejected, s.Rejects = s.Quotes[:0], s.Rejected[:0], 0
}

// Quote keeps a copy of q.
func (s *Sink) Quote(q *provider.Quote) error {
	if s.Refuse != nil {
		return s.Refuse
	}
	s.Quotes = append(s.Quotes, *q)
	return nil
}

// Reject counts what was rejected.
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
