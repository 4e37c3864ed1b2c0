package pricing

import (
	"cmp"
	"slices"
	"time"

	"assay/internal/money"
)

// Point is the price of one name in a response.
type Point struct {
	// Key stands for the item and is the same in every response of a game: its
	// row id, or a hash of name and phase.
	Key    uint64
	Traits Traits
	Amount money.Micro // as quoted, of the response's currency; above 0
}

// Response is what one market, as one provider carries it, quotes for one game.
type Response struct {
	At   time.Time  // when it was fetched
	Rate money.Rate // of its currency in the base currency; money.RateScale for the base currency
	// Partial marks quotes that were requested by name: the size is not
	// checked, since missing names mean nothing.
	Partial bool
	// Old counts further names whose quotes are older than a week by the market's own
	// time: the response has them, and they take part in nothing.
	Old    int
	Points []Point
}

// Normalize sorts the points by key and removes those that are no valid price in
// the base currency (step 2), repeated rows of a name, and every row of a name
// that has two different prices. It returns how many points it removed.
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

// log returns the logarithm of an amount of the response in the base currency.
func (r *Response) log(amount money.Micro) Log { return Ln(amount) + r.offset() }

func (r *Response) offset() Log {
	if r.Rate == money.RateScale {
		return 0
	}
	return lnRate(r.Rate)
}

// same reports whether two normalized responses quote the same amounts.
func (r *Response) same(o *Response) bool {
	return slices.EqualFunc(r.Points, o.Points, func(a, b Point) bool { return a.Key == b.Key && a.Amount == b.Amount })
}
