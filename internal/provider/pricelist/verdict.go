package pricelist

import (
	"assay/internal/provider/feed"
)

// finish validates the list as a whole and returns the markets without a price.
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
		return nil, feed.Malformed("no row names a configured market; the rows name %s", quoteSome(r.unknown))
	case r.Quotes() == 0:
		return nil, feed.Malformed("none of %d rows quotes anything", r.rows)
	case len(silent) == len(r.priced):
		return nil, feed.Malformed("none of %d rows has a price", r.rows)
	case r.Sound() != nil:
		return nil, r.Sound()
	case r.Items() < r.list.minItems:
		return nil, feed.Malformed("%d items, fewer than minItems %d", r.Items(), r.list.minItems)
	}
	return silent, nil
}
