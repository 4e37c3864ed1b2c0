package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
)

// explained contains all figures of an item's price.
type explained struct {
	MarketHashName, Status                   string
	CurrentPrice, Average, Median, Consensus json.Number
	Min, Max                                 json.Number
	CandidatePrice, Spread                   *json.Number
	Interval                                 *struct{ Low, High json.Number }
	Markets, UsedMarkets                     int
	RateSet, LevelSet                        int64
	Explanation                              *explanation
	Snapshots                                []explainedQuote
}

type explanation struct {
	Sentences                                  []string
	Complete                                   bool
	Class, DecidedBy                           string
	ClassMove, Kappa                           json.Number
	LastPrice, GroupLow, GroupHigh             *json.Number
	UsualDistance, IntervalFactor              *json.Number
	ComparedQuotes, AgreeingQuotes, NearQuotes int
	Guard                                      *struct {
		Decision, Window                                               string
		Reference, Factor, Limit, ClassMove, EarlierReading            *json.Number
		Supporters, MovedSupporters, NeededResponses, ChangedResponses int
		SuspectUntil                                                   *string
	}
}

type explainedQuote struct {
	Market, Reason, Explanation      string
	Used                             bool
	Price                            *json.Number
	Level, Levelled, Noise, FarShare *json.Number
}

// compared is a quote in the consensus.
type compared struct {
	explainedQuote
	price *big.Rat // divided by the level
	at    float64  // logarithm of the price
	noise float64  // logarithm of the noise; 0: unknown
	far   float64
}

// check recomputes an item's price from its explanation.
func (e *explained) check(seen map[string]int) error {
	x := e.Explanation
	if x == nil || !x.Complete || len(x.Sentences) == 0 {
		return fmt.Errorf("got explanation %+v, want a complete one with sentences", x)
	}
	seen[e.Status]++
	var plain []*big.Rat
	var quotes []compared
	for _, q := range e.Snapshots {
		switch q.Reason {
		case "", "outlier", "lateMarket":
			plain = append(plain, exact(*q.Price))
		}
		if q.Reason != "" {
			seen[q.Reason]++
		}
		if (q.Reason == "") != q.Used || q.Used != (q.Explanation == "") {
			return fmt.Errorf("quote of %s: got used %t, reason %q, explanation %q, want a reason and an explanation only for an unused quote", q.Market, q.Used, q.Reason, q.Explanation)
		}
		if q.Level == nil {
			continue
		}
		c := compared{explainedQuote: q, price: rounded(new(big.Rat).Quo(exact(*q.Price), exact(*q.Level))), far: 2}
		if c.price.Cmp(exact(*q.Levelled)) != 0 {
			return fmt.Errorf("quote of %s: got the levelled price %s, want %s / %s", q.Market, *q.Levelled, *q.Price, *q.Level)
		}
		c.at = math.Log(approx(*q.Levelled))
		if q.Noise != nil {
			c.noise = math.Log(approx(*q.Noise))
		}
		if q.FarShare != nil {
			c.far = approx(*q.FarShare)
		}
		quotes = append(quotes, c)
	}
	if len(plain) == 0 { // the last price is kept
		last := new(big.Rat)
		if x.LastPrice != nil {
			last = exact(*x.LastPrice)
		}
		if seen["no quote"]++; e.UsedMarkets != 0 || last.Cmp(exact(e.CurrentPrice)) != 0 {
			return fmt.Errorf("without a quote: got price %s from %d markets, want the last price %s from 0", e.CurrentPrice, e.UsedMarkets, last.FloatString(6))
		}
		return nil
	}
	if err := e.checkPlain(plain); err != nil {
		return err
	}
	slices.SortFunc(quotes, func(a, b compared) int { return a.price.Cmp(b.price) })
	group, by, close := e.decide(quotes)
	if close {
		seen["close"]++
		return nil
	}
	seen[by]++
	if by != x.DecidedBy || len(quotes) != x.ComparedQuotes || len(group) != x.AgreeingQuotes || len(group) != e.UsedMarkets {
		return fmt.Errorf("got %d of %d quotes by %s for %d markets, want %d of %d by %s", x.AgreeingQuotes, x.ComparedQuotes, x.DecidedBy, e.UsedMarkets, len(group), len(quotes), by)
	}
	for _, q := range quotes {
		if q.Used != slices.ContainsFunc(group, func(g compared) bool { return g.Market == q.Market }) {
			return fmt.Errorf("quote of %s: got used %t, want %t", q.Market, q.Used, !q.Used)
		}
	}
	if group[0].price.Cmp(exact(*x.GroupLow)) != 0 || group[len(group)-1].price.Cmp(exact(*x.GroupHigh)) != 0 {
		return fmt.Errorf("group: got %s to %s, want %s to %s", *x.GroupLow, *x.GroupHigh, group[0].price.FloatString(6), group[len(group)-1].price.FloatString(6))
	}
	want := middleOf(group)
	if want.Cmp(exact(e.Consensus)) != 0 {
		return fmt.Errorf("consensus: got %s, want %s", e.Consensus, want.FloatString(6))
	}
	if err := e.checkInterval(group); err != nil {
		return err
	}
	return e.checkGuard(group, by, seen)
}

func exact(n json.Number) *big.Rat {
	v, ok := new(big.Rat).SetString(n.String())
	if !ok {
		panic("not a number: " + n.String())
	}
	return v
}

func approx(n json.Number) float64 {
	f, _ := exact(n).Float64()
	return f
}

// checkPlain checks the figures computed from all valid quotes.
func (e *explained) checkPlain(prices []*big.Rat) error {
	slices.SortFunc(prices, func(a, b *big.Rat) int { return a.Cmp(b) })
	n := len(prices)
	sum := new(big.Rat)
	for _, p := range prices {
		sum.Add(sum, p)
	}
	median := new(big.Rat).Add(prices[(n-1)/2], prices[n/2])
	figures := map[string][2]*big.Rat{
		"average": {exact(e.Average), rounded(sum.Quo(sum, big.NewRat(int64(n), 1)))},
		"median":  {exact(e.Median), rounded(median.Quo(median, big.NewRat(2, 1)))},
	}
	if e.Spread != nil { // a past price has none of these
		figures["min"] = [2]*big.Rat{exact(e.Min), prices[0]}
		figures["max"] = [2]*big.Rat{exact(e.Max), prices[n-1]}
		figures["spread"] = [2]*big.Rat{exact(*e.Spread), rounded(new(big.Rat).Quo(prices[n-1], prices[0]))}
	}
	for what, pair := range figures {
		if pair[0].Cmp(pair[1]) != 0 {
			return fmt.Errorf("%s: got %s, want %s", what, pair[0].FloatString(6), pair[1].FloatString(6))
		}
	}
	return nil
}

func within(low, high *big.Rat, factor int64) bool {
	return high.Cmp(new(big.Rat).Mul(low, big.NewRat(factor, 1))) <= 0
}

// decide finds the deciding group of sorted quotes. It sets close if rounding decides between
// two groups.
func (e *explained) decide(q []compared) (group []compared, by string, close bool) {
	from, to := 0, 0
	for i := range q {
		end := i
		for end < len(q) && within(q[i].price, q[end].price, 2) {
			end++
		}
		wide, best := q[end-1].at-q[i].at, 0.0
		if to > 0 {
			best = q[to-1].at - q[from].at
		}
		if end-i == to-from && math.Abs(wide-best) < 1e-6 {
			close = true
		}
		if end-i > to-from || end-i == to-from && wide < best {
			from, to = i, end
			close = false
		}
	}
	if 2*(to-from) > len(q) {
		return q[from:to], "majority", close
	}
	type candidate struct {
		q    []compared
		near float64
		far  float64
	}
	var all []candidate
	for i := 0; i < len(q); {
		end := i
		for end < len(q) && within(q[i].price, q[end].price, 2) {
			end++
		}
		c := candidate{q: q[i:end], near: math.Log(2) + 1, far: 2}
		if e.Explanation.LastPrice != nil {
			middle, _ := middleOf(c.q).Float64()
			last := math.Log(approx(*e.Explanation.LastPrice) * approx(e.Explanation.ClassMove))
			if d := math.Abs(math.Log(middle) - last); d <= math.Log(2) {
				c.near = d
			}
		}
		for _, o := range c.q {
			c.far = math.Min(c.far, o.far)
		}
		all = append(all, c)
		i = end
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.near, b.near), cmp.Compare(len(b.q), len(a.q)), cmp.Compare(a.far, b.far))
	})
	a, b := all[0], all[1]
	switch {
	case a.near != b.near:
		return a.q, "lastPrice", math.Abs(a.near-b.near) < 1e-6
	case len(a.q) != len(b.q):
		return a.q, "size", false
	case a.far != b.far:
		return a.q, "market", false
	default:
		return a.q, "lowerPrice", false
	}
}

// middleOf returns the price of a sorted group.
func middleOf(q []compared) *big.Rat {
	a, b := q[(len(q)-1)/2], q[len(q)/2]
	quiet, loud := min(a.noise, b.noise), max(a.noise, b.noise)
	switch {
	case a.price.Cmp(b.price) == 0 || quiet > 0 && loud >= 1.25*quiet && a.noise < b.noise:
		return a.price
	case quiet > 0 && loud >= 1.25*quiet:
		return b.price
	}
	sum := new(big.Rat).Add(a.price, b.price)
	return rounded(sum.Quo(sum, big.NewRat(2, 1)))
}

// checkInterval recomputes the interval and its factor.
func (e *explained) checkInterval(group []compared) error {
	x, consensus := e.Explanation, exact(e.Consensus)
	factor := exact(*x.IntervalFactor)
	low, high := rounded(new(big.Rat).Quo(consensus, factor)), rounded(new(big.Rat).Mul(consensus, factor))
	if low.Cmp(exact(e.Interval.Low)) != 0 || high.Cmp(exact(e.Interval.High)) != 0 {
		return fmt.Errorf("interval: got %+v, want %s to %s", *e.Interval, low.FloatString(6), high.FloatString(6))
	}
	sum, k := 3*math.Log(approx(*x.UsualDistance)), float64(len(group))
	for _, q := range group {
		sum += math.Abs(q.at - math.Log(approx(e.Consensus)))
	}
	h := approx(x.Kappa) * sum / (k + 2) * math.Sqrt(1+1/k)
	if got := math.Log(approx(*x.IntervalFactor)); math.Abs(got-h) > 1e-4*math.Max(1, h) {
		return fmt.Errorf("interval factor: got %s, want %.6f", *x.IntervalFactor, math.Exp(h))
	}
	return nil
}

// checkGuard recomputes the current price and the status.
func (e *explained) checkGuard(group []compared, by string, seen map[string]int) error {
	x, consensus := e.Explanation, exact(e.Consensus)
	near := 0
	for _, q := range group {
		lower, higher := q.price, consensus
		if lower.Cmp(higher) > 0 {
			lower, higher = higher, lower
		}
		if higher.Cmp(new(big.Rat).Mul(lower, big.NewRat(5, 4))) <= 0 {
			near++
		}
	}
	if near != x.NearQuotes {
		return fmt.Errorf("got %d near quotes, want %d", x.NearQuotes, near)
	}
	status := "thin"
	if near >= 2 && approx(*x.IntervalFactor) <= 1.3 {
		status = "ok"
	}
	price := e.Consensus
	if g := x.Guard; g != nil {
		if g.Decision != "accepted" {
			seen[g.Decision]++
		}
		if g.SuspectUntil != nil || g.Decision == "held" {
			status = "suspect"
		}
		reading := e.Consensus
		if early := g.EarlierReading; early != nil && (approx(*g.Factor) > 1) == (approx(*early) < approx(e.Consensus)) {
			seen["earlier "+g.Decision]++
			reading = *early
		}
		switch {
		case g.Decision == "held":
			price = *x.LastPrice
			if e.CandidatePrice == nil || exact(*e.CandidatePrice).Cmp(exact(reading)) != 0 {
				return fmt.Errorf("got candidate %v, want %s", e.CandidatePrice, reading)
			}
		case g.Decision == "released" && g.EarlierReading == nil:
			return fmt.Errorf("got a released price without an earlier reading, want one")
		case g.Decision == "released":
			price = reading
		}
		if g.Factor != nil {
			move := math.Abs(math.Log(approx(*g.Factor)))
			if move < math.Log(approx(*g.Limit)) {
				return fmt.Errorf("held move: got %s, want at least the limit %s", *g.Factor, *g.Limit)
			}
			if want := approx(e.Consensus) / approx(*g.Reference) / approx(*g.ClassMove); math.Abs(want-approx(*g.Factor)) > 1e-5*want+1e-6 { // six decimals
				return fmt.Errorf("held move: got %s, want %f", *g.Factor, want)
			}
			if taken := by == "majority" && g.MovedSupporters >= 2; taken != (g.Decision == "takenAtOnce") {
				return fmt.Errorf("%d supporters moved: got decision %s, want takenAtOnce: %t", g.MovedSupporters, g.Decision, taken)
			}
		}
	}
	if by != "majority" {
		status = "disputed"
	}
	if exact(price).Cmp(exact(e.CurrentPrice)) != 0 || status != e.Status {
		return fmt.Errorf("got status %s with price %s, want %s with %s", e.Status, e.CurrentPrice, status, price)
	}
	return nil
}
