package pricelist

import (
	"fmt"
	"maps"
	"slices"
)

// finish decides whether the list as a whole is what was configured, and names
// the markets of which it held no price.
func (r *rows) finish() (silent []string, err error) {
	for i, n := range r.priced {
		if n == 0 {
			silent = append(silent, r.list.quotes[i].market.Key)
		}
	}
	switch {
	case r.rows == 0:
		return nil, &malformed{"the list is empty"}
	case r.quotes == 0 && r.rejected > 0:
		return nil, &malformed{fmt.Sprintf("none of %d rows is a quote; %s", r.rows, r.commonest())}
	case r.quotes == 0 && r.unknown != nil:
		return nil, &malformed{"no row is of a configured market; the rows name " + quoteSome(r.unknown)}
	case r.quotes == 0:
		return nil, &malformed{fmt.Sprintf("none of %d rows quotes anything", r.rows)}
	case len(silent) == len(r.priced):
		return nil, &malformed{fmt.Sprintf("none of %d rows has a price", r.rows)}
	case r.rejected > r.quotes:
		return nil, &malformed{fmt.Sprintf("%d quotes and %d rejects; %s", r.quotes, r.rejected, r.commonest())}
	case r.seen.Len() < r.list.minItems:
		return nil, &malformed{fmt.Sprintf("%d items, and minItems is %d", r.seen.Len(), r.list.minItems)}
	}
	return silent, nil
}

// commonest names the reason for which most was rejected.
func (r *rows) commonest() string {
	var top string
	for _, reason := range slices.Sorted(maps.Keys(r.reasons)) {
		if top == "" || r.reasons[reason] > r.reasons[top] {
			top = reason
		}
	}
	return fmt.Sprintf("most often: %s (%d times)", top, r.reasons[top])
}
