package pricing

import (
	"cmp"
	"math/bits"
	"slices"

	"assay/internal/money"
)

// vote is a quote at the consensus level, as it takes part in step 8.
type vote struct {
	at    int         // which quote, as the caller counts
	price money.Micro // levelled, in the base currency
	log   Log         // of price
	noise Log         // of its market; 0: unknown
	far   money.Micro // of its market; -1: unknown
}

func newVote(i int, price money.Micro, m *SetMarket) vote {
	return vote{at: i, price: price, log: Ln(price), noise: m.Noise, far: m.Far}
}

// DecidedBy is why one group of quotes decides a price and not another.
type DecidedBy string

// The reasons, as they are tried one after another.
const (
	ByMajority   DecidedBy = "majority"   // more than half of the quotes agree
	ByLastPrice  DecidedBy = "lastPrice"  // it is the nearest within 2x of the last price
	BySize       DecidedBy = "size"       // it is larger
	ByMarket     DecidedBy = "market"     // one of its markets is off by more than 2x least often
	ByLowerPrice DecidedBy = "lowerPrice" // it is the lower one
)

// choice is the group of votes that decides a price. The votes it was made of are
// in order of price afterwards; the group is those from from up to to.
type choice struct {
	from, to int
	price    money.Micro
	by       DecidedBy
}

// decide finds the group that decides (step 8): the largest within a factor of 2
// if it holds more than half of the votes. Without a majority it is the group that
// is within a factor of 2 of the last price, else the larger one, else the one of
// the market that is far off least often, else the lower one. last is the
// logarithm of the last price, moved as its class moved, and 0 without one. A
// price between two groups is never the result.
func decide(votes []vote, last Log) choice {
	slices.SortFunc(votes, func(a, b vote) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.noise, b.noise), cmp.Compare(a.far, b.far), cmp.Compare(a.at, b.at))
	})
	from, to := largest(votes)
	c := choice{from: from, to: to, by: ByMajority}
	if 2*(to-from) <= len(votes) {
		c = withoutMajority(votes, last)
	}
	c.price = middleVote(votes[c.from:c.to])
	return c
}

// largest returns the largest run of sorted votes within a factor of 2; of equally
// large ones the tighter, then the lower.
func largest(v []vote) (from, to int) {
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

// withoutMajority picks one of the groups that the sorted votes fall into.
func withoutMajority(v []vote, last Log) choice {
	var best, second group
	for i := 0; i < len(v); {
		end := i
		for end < len(v) && v[end].price <= 2*v[i].price {
			end++
		}
		g := newGroup(v, i, end, last)
		switch {
		case g.before(&best):
			best, second = g, best
		case g.before(&second):
			second = g
		}
		i = end
	}
	return choice{from: best.from, to: best.to, by: best.because(&second)}
}

// group is one of several that contradict each other.
type group struct {
	from, to int
	near     Log         // distance from the last price; beyond log2: none
	far      money.Micro // least share of its markets
}

func newGroup(v []vote, from, to int, last Log) group {
	g := group{from: from, to: to, near: log2 + 1, far: money.Scale + 1}
	if last != 0 {
		g.near = min(g.near, abs(Ln(middleVote(v[from:to]))-last))
	}
	for _, o := range v[from:to] {
		if o.far >= 0 {
			g.far = min(g.far, o.far)
		}
	}
	return g
}

// before reports whether a group decides, and not one that is lower or none.
func (g *group) before(o *group) bool {
	return o.to == 0 || cmp.Or(
		cmp.Compare(g.near, o.near),
		cmp.Compare(o.to-o.from, g.to-g.from),
		cmp.Compare(g.far, o.far),
	) < 0
}

// because returns why a group decides and not the second one.
func (g *group) because(o *group) DecidedBy {
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

// middleVote returns the median of sorted votes; of the two middle ones of an even
// number that of the market with clearly less noise, else their mean.
func middleVote(v []vote) money.Micro {
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

// meanOf returns the mean of two prices.
func meanOf(a, b money.Micro) money.Micro { return median([]money.Micro{a, b}) }

// halfWidth is h of step 9: the logarithm of how far the interval reaches to each
// side of a price, made of some votes; usual is the usual distance in its price
// band.
func halfWidth(v []vote, price money.Micro, usual Log, kappa money.Micro) Log {
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
