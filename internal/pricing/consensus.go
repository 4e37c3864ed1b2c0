package pricing

import (
	"cmp"
	"math/bits"
	"slices"

	"assay/internal/money"
)

// levelledQuote is a quote at the consensus level (step 8).
type levelledQuote struct {
	at    int         // index of the quote
	price money.Micro // levelled price in the base currency
	log   Log         // logarithm of price
	noise Log         // SetMarket.Noise; 0: unknown
	far   money.Micro // SetMarket.Far; -1: unknown
}

func newLevelledQuote(i int, price money.Micro, m *SetMarket) levelledQuote {
	return levelledQuote{at: i, price: price, log: Ln(price), noise: m.Noise, far: m.Far}
}

// DecidedBy is the reason why a group of quotes determines the price.
type DecidedBy string

// The reasons, in the order in which they apply.
const (
	ByMajority   DecidedBy = "majority"   // the group has more than half of the quotes
	ByLastPrice  DecidedBy = "lastPrice"  // the group is within 2x of the last price and nearest to it
	BySize       DecidedBy = "size"       // the group has more quotes
	ByMarket     DecidedBy = "market"     // the group contains the market with the smallest share of quotes more than 2x off
	ByLowerPrice DecidedBy = "lowerPrice" // the group has the lower price
)

// choice is the group of quotes that determines the price. It consists of quotes[from:to]
// of the sorted quotes.
type choice struct {
	from, to int
	price    money.Micro
	by       DecidedBy
}

// decideGroup sorts the quotes by price and finds the group that determines the price (step 8).
// A group spans at most a factor of 2. The largest group wins if it has more than half of
// the quotes. Otherwise the rules of DecidedBy apply in order. last is the logarithm of the
// last price plus the move of its class, or 0 without a last price. The result is never a
// price between two groups.
func decideGroup(quotes []levelledQuote, last Log) choice {
	slices.SortFunc(quotes, func(a, b levelledQuote) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.noise, b.noise), cmp.Compare(a.far, b.far), cmp.Compare(a.at, b.at))
	})
	from, to := largest(quotes)
	c := choice{from: from, to: to, by: ByMajority}
	if 2*(to-from) <= len(quotes) {
		c = decideWithoutMajority(quotes, last)
	}
	c.price = middlePrice(quotes[c.from:c.to])
	return c
}

// largest returns the largest group of sorted quotes within a factor of 2. Among groups of
// equal size it prefers the tightest one, then the lowest one.
func largest(v []levelledQuote) (from, to int) {
	end := 0
	for i := range v {
		for end < len(v) && v[end].price <= 2*v[i].price {
			end++
		}
		tighter := end-i == to-from && v[end-1].log-v[i].log < v[to-1].log-v[from].log
		if end-i > to-from || tighter {
			from, to = i, end
		}
	}
	return from, to
}

// decideWithoutMajority divides the sorted quotes into groups and chooses one of them.
func decideWithoutMajority(v []levelledQuote, last Log) choice {
	var best, second group
	for i := 0; i < len(v); {
		end := i
		for end < len(v) && v[end].price <= 2*v[i].price {
			end++
		}
		g := newGroup(v, i, end, last)
		switch {
		case g.beats(&best):
			best, second = g, best
		case g.beats(&second):
			second = g
		}
		i = end
	}
	return choice{from: best.from, to: best.to, by: best.decidedBy(&second)}
}

// group is one of several groups of quotes that contradict each other.
type group struct {
	from, to int
	near     Log         // distance from the last price; above log2: no last price, or too far
	far      money.Micro // smallest SetMarket.Far of its markets
}

func newGroup(v []levelledQuote, from, to int, last Log) group {
	g := group{from: from, to: to, near: log2 + 1, far: money.Scale + 1}
	if last != 0 {
		g.near = min(g.near, abs(Ln(middlePrice(v[from:to]))-last))
	}
	for _, o := range v[from:to] {
		if o.far >= 0 {
			g.far = min(g.far, o.far)
		}
	}
	return g
}

// beats reports whether g wins against o. o is a lower group or the zero value.
func (g *group) beats(o *group) bool {
	return o.to == 0 || cmp.Or(
		cmp.Compare(g.near, o.near),
		cmp.Compare(o.to-o.from, g.to-g.from),
		cmp.Compare(g.far, o.far),
	) < 0
}

// decidedBy returns the first rule by which g wins against o.
func (g *group) decidedBy(o *group) DecidedBy {
	switch {
	case g.near != o.near:
		return ByLastPrice
	case g.to-g.from != o.to-o.from:
		return BySize
	case g.far != o.far:
		return ByMarket
	default:
		return ByLowerPrice
	}
}

// middlePrice returns the median of sorted quotes. For an even number of quotes, it returns
// the middle quote of the market with clearly less noise (1.25x), or else the mean of both
// middle quotes.
func middlePrice(v []levelledQuote) money.Micro {
	n := len(v)
	a, b := v[(n-1)/2], v[n/2]
	quiet, loud := min(a.noise, b.noise), max(a.noise, b.noise)
	switch {
	case a.price == b.price:
		return a.price
	case quiet <= 0 || 4*int64(loud) < 5*int64(quiet):
		return meanOf(a.price, b.price)
	case a.noise < b.noise:
		return a.price
	default:
		return b.price
	}
}

// meanOf returns the mean of two prices, rounded half to even.
func meanOf(a, b money.Micro) money.Micro { return median([]money.Micro{a, b}) }

// halfWidth returns h of step 9, the logarithm of half the width of the interval around a
// price. v are the quotes behind the price. usual is the median distance in its price band.
func halfWidth(v []levelledQuote, price money.Micro, usual Log, kappa money.Micro) Log {
	l := Ln(price)
	var sum int64
	for i := range v {
		sum += int64(abs(v[i].log - l))
	}
	k := int64(len(v))
	d := uint64((sum + 3*int64(usual)) / (k + 2))
	// sqrt(1 + 1/k) in units of 2^-16.
	wider := root(uint64(k+1) << 32 / uint64(k))
	hi, lo := bits.Mul64(d*wider>>16, uint64(kappa))
	h, _ := bits.Div64(hi, lo, money.Scale)
	return Log(min(h, uint64(10*logOne)))
}
