package pricelist

import (
	"assay/internal/provider/feed"
)

// finish validates the whole list. It returns the markets without a price.
func (r *rows) finish() (silent []string, err error) {
	for i, n := range r.priced {
		if n == 0 {
			silent = append(silent, r.list.quotes[i].market.Key)
		}
	}
	switch {
	case r.rows == 0:
		return nil, feed.Malformed("the list is empty")
	case r.Quotes() == 0 && r.Rejects() > 0:
		return nil, feed.Malformed("all %d rows are invalid; %s", r.rows, r.TopReason())
	case r.Quotes() == 0 && r.unknown != nil:
		return nil, feed.Malformed("no row has a configured market; found %s", quoteSome(r.unknown))
	case r.Quotes() == 0:
		return nil, feed.Malformed("none of %d rows has a quote", r.rows)
	case len(silent) == len(r.priced):
		return nil, feed.Malformed("none of %d rows has a price", r.rows)
	case r.CheckRejectRate() != nil:
		return nil, r.CheckRejectRate()
	case r.Items() < r.list.minItems:
		return nil, feed.Malformed("%d items, want at least %d (minItems)", r.Items(), r.list.minItems)
	}
	return silent, nil
}
