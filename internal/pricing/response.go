package pricing

import (
	"cmp"
	"slices"
	"time"

	"assay/internal/money"
)

// Point is the price of one name in a response.
type Point struct {
	// Key identifies the item in all responses of a game. It is the row id of the item or
	// the result of KeyOf.
	Key    uint64
	Traits Traits
	Amount money.Micro // positive amount in the currency of the response
}

// Response contains the quotes of one market for one game from one provider.
type Response struct {
	At   time.Time  // when it was fetched
	Rate money.Rate // rate of its currency; money.RateScale for the base currency
	// Partial marks quotes that were requested by name. Their number is not checked,
	// because such a response never covers all names.
	Partial bool
	// Old is the number of additional names with quotes that are older than a week by the
	// market's own time. They count only in the check of the number of names.
	Old    int
	Points []Point
}

// Normalize sorts the points by key. It removes invalid prices (step 2), duplicate rows of
// a name, and all rows of a name with different prices. It returns the number of removed
// points.
func (r *Response) Normalize() int {
	before := len(r.Points)
	points := slices.DeleteFunc(r.Points, func(p Point) bool { return !r.valid(p.Amount) })
	slices.SortFunc(points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Amount, b.Amount))
	})
	kept := points[:0]
	for i := 0; i < len(points); {
		end := i + 1
		for end < len(points) && points[end].Key == points[i].Key {
			end++
		}
		if points[end-1].Amount == points[i].Amount {
			kept = append(kept, points[i])
		}
		i = end
	}
	r.Points = kept
	return before - len(kept)
}

func (r *Response) valid(amount money.Micro) bool {
	if amount <= 0 {
		return false
	}
	if r.Rate != money.RateScale {
		converted, ok := money.Convert(amount, r.Rate)
		if !ok {
			return false
		}
		amount = converted
	}
	return amount > 0 && amount <= maxPrice
}

// log converts an amount to the base currency and returns its logarithm.
func (r *Response) log(amount money.Micro) Log { return Ln(amount) + r.offset() }

func (r *Response) offset() Log {
	if r.Rate == money.RateScale {
		return 0
	}
	return lnRate(r.Rate)
}

// same reports whether two normalized responses have the same keys and amounts.
func (r *Response) same(o *Response) bool {
	return slices.EqualFunc(r.Points, o.Points, func(a, b Point) bool { return a.Key == b.Key && a.Amount == b.Amount })
}
