package pricing

import (
	"slices"
	"sync"
	"time"

	"assay/internal/money"
)

// Pricer computes the prices of one game with one policy and one Set. It is safe for
// concurrent use. It reuses memory, so that Price usually allocates nothing.
type Pricer struct {
	policy Policy
	set    *Set
	level  SetMarket // market that defines the price level
	items  sync.Pool // of *item
}

// item contains the arguments and buffers of one call of Price.
type item struct {
	now    time.Time
	class  Class
	quotes []Quote
	refs   References
	out    *Priced

	markets  []*SetMarket // one per quote
	prices   []money.Micro
	logs     []Log
	levelled []levelledQuote
	evidence evidence
}

// Interval is the range in which the price of another reliable market lies with a
// probability of about 80 %.
type Interval struct{ Low, High money.Micro }

// QuoteResult is the result for one quote. Factors and shares are in millionths.
type QuoteResult struct {
	QuoteCheck             // Reason may also be LateMarket or Outlier
	Level      money.Micro // level of the market at this price, as a factor; 0: not compared
	Levelled   money.Micro // Price / Level
	Noise      money.Micro // median distance of the market from the others, as a factor; 0: unknown
	Far        money.Micro // share of the market's quotes more than 2x off; -1: unknown
}

// Priced is the estimate of one item with its explanation. Amounts are micro-units of the
// base currency. Factors are in millionths.
type Priced struct {
	Price     money.Micro // current price after the guard; without a usable quote the last one
	Estimated money.Micro // result of the policy's method; 0: no usable quote
	Status    Status

	// Figures of the quotes that remain after steps 1 to 4, or 0 without such quotes.
	// Consensus is also 0 if all their markets are late.
	Average, Median, Min, Max money.Micro
	Consensus                 money.Micro
	Interval                  Interval    // interval around Consensus
	Width                     money.Micro // factor between Consensus and an end of Interval
	MedianDistance            money.Micro // median distance of quotes in the price band, as a factor
	ClassMove                 money.Micro // move of the class since the last responses, as a factor; step 8 multiplies the last price by it
	DecidedBy                 DecidedBy   // rule that determined Consensus

	Markets     int  // number of all quotes
	UsedMarkets int  // number of quotes behind Estimated
	Majority    bool // more than half of the usable quotes agree within 2x
	Near        int  // number of used quotes within 1.25x of Estimated

	Move   Move
	State  State // the caller stores it with the item
	Sales  SalesSignal
	Quotes []QuoteResult // in the order of the quotes
}

// NewPricer returns a Pricer. Zero fields of the policy get their defaults. The set and
// the rates must not change while the Pricer is in use.
func NewPricer(policy Policy, set *Set) *Pricer {
	policy.complete()
	p := &Pricer{policy: policy, set: set, items: sync.Pool{New: func() any { return new(item) }}}
	if policy.Level != 0 {
		p.level = set.Market(policy.Level)
	}
	return p
}

// Price computes the price of one item at the time now. Its inputs are the quotes, the
// state and the references of the item. Price overwrites into and reuses the memory of
// into.Quotes. It does not retain its arguments. The order of quotes affects only the order
// of results.
func (p *Pricer) Price(now time.Time, class Class, quotes []Quote, state State, refs References, into *Priced) {
	it, _ := p.items.Get().(*item)
	it.now, it.class, it.quotes, it.refs, it.out = dbPrecision(now), class, quotes, refs, into
	defer func() {
		it.quotes, it.out = nil, nil
		p.items.Put(it)
	}()
	results := into.Quotes[:0]
	*into = Priced{Markets: len(quotes), State: state, Price: state.Price, Sales: p.policy.sales(it.now, quotes), Quotes: results}
	p.checkQuotes(it)
	it.figures()
	last, moved := Log(0), p.set.Moves[SinceLast][class]
	if into.ClassMove = Exp(moved); state.Price > 0 {
		last = Ln(state.Price) + moved
	}
	c, ok := p.consensus(it, last)
	if !ok {
		into.Status = Stale
		if state.Price <= 0 {
			into.Status = NoPrice
		}
		return
	}
	used := it.levelled[c.from:c.to]
	usual := p.set.median(c.price)
	h := halfWidth(used, c.price, usual, p.set.Kappa)
	into.Width, into.MedianDistance = Exp(h), Exp(usual)
	into.Interval = intervalAround(c.price, into.Width)
	into.Estimated, into.DecidedBy, into.Majority = into.Consensus, c.by, c.by == ByMajority
	if p.policy.Method == Consensus {
		into.markOutliers(used)
	} else {
		used = p.rawQuotes(it)
		h = halfWidth(used, into.Estimated, usual, p.set.Kappa)
	}
	into.UsedMarkets = len(used)
	p.applyGuard(it, used, h)
}

// checkQuotes applies steps 1 to 4 to all quotes.
func (p *Pricer) checkQuotes(it *item) {
	it.markets = it.markets[:0]
	for i := range it.quotes {
		it.out.Quotes = append(it.out.Quotes, QuoteResult{QuoteCheck: p.policy.check(it.now, &it.quotes[i]), Far: -1})
		it.markets = append(it.markets, p.set.market(it.quotes[i].ID))
	}
	it.keepOne(marketKey, marketGrain, Duplicate)
	it.keepOne(poolKey, poolGrain, SharedListings)
}

// figures computes minimum, maximum, average and median of the quotes that remain after
// steps 1 to 4.
func (it *item) figures() {
	it.prices = it.prices[:0]
	for i := range it.out.Quotes {
		if q := &it.out.Quotes[i]; q.Reason == Used {
			it.prices = append(it.prices, q.Price)
		}
	}
	if len(it.prices) == 0 {
		return
	}
	slices.Sort(it.prices)
	it.out.Min, it.out.Max = it.prices[0], it.prices[len(it.prices)-1]
	it.out.Average, it.out.Median = mean(it.prices), median(it.prices)
}

// consensus levels the quotes and computes the consensus (steps 6 to 8). It returns false
// if no quote is usable.
func (p *Pricer) consensus(it *item, last Log) (choice, bool) {
	it.logs, it.levelled = it.logs[:0], it.levelled[:0]
	for i, m := range it.markets {
		q := &it.out.Quotes[i]
		if q.Reason == Used && m.Late {
			q.Reason = LateMarket
		}
		if q.Reason == Used {
			it.logs = append(it.logs, Ln(q.Price)-m.Level)
		}
	}
	if len(it.logs) == 0 {
		return choice{}, false
	}
	low, part := p.set.between(groupMedian(it.logs))
	base := p.level.level(low, part)
	for i, m := range it.markets {
		q := &it.out.Quotes[i]
		if q.Reason != Used {
			continue
		}
		q.Level, q.Far = Exp(m.level(low, part)-base), m.Far
		if m.Noise > 0 {
			q.Noise = Exp(m.Noise)
		}
		q.Levelled = levelled(q.Price, q.Level)
		it.levelled = append(it.levelled, newLevelledQuote(i, q.Levelled, m))
	}
	c := decideGroup(it.levelled, last)
	it.out.Consensus = c.price
	return c, true
}

// levelled returns price / level, limited to valid prices.
func levelled(price, level money.Micro) money.Micro {
	v, ok := money.Ratio(price, level)
	if !ok {
		return maxPrice
	}
	return max(1, min(v, maxPrice))
}

// markOutliers marks the quotes outside the group as outliers.
func (p *Priced) markOutliers(group []levelledQuote) {
	low, high := group[0].price, group[len(group)-1].price
	for i := range p.Quotes {
		if q := &p.Quotes[i]; q.Reason == Used && (q.Levelled < low || q.Levelled > high) {
			q.Reason = Outlier
		}
	}
}

// rawQuotes returns all quotes that remain after steps 1 to 4, without levelling.
// It sets the estimate to the plain average or median.
func (p *Pricer) rawQuotes(it *item) []levelledQuote {
	it.out.Estimated = it.out.Average
	if p.policy.Method == Median {
		it.out.Estimated = it.out.Median
	}
	it.levelled = it.levelled[:0]
	for i := range it.out.Quotes {
		if q := &it.out.Quotes[i]; q.Reason == Used || q.Reason == LateMarket {
			q.Reason = Used
			it.levelled = append(it.levelled, newLevelledQuote(i, q.Price, &SetMarket{Far: -1}))
		}
	}
	return it.levelled
}

// intervalAround returns the interval from price / width to price * width.
func intervalAround(price, width money.Micro) Interval {
	low, _ := money.Ratio(price, width)
	high, ok := money.Convert(price, money.Rate(width)*(money.RateScale/money.Scale))
	if !ok {
		high = maxPrice
	}
	return Interval{Low: low, High: high}
}

// applyGuard applies the guard to the estimate and sets the status (steps 10 and 11).
func (p *Pricer) applyGuard(it *item, used []levelledQuote, h Log) {
	now, into := it.now, it.out
	wide, apart := it.support(used)
	moves, refs := p.set.Moves, it.refs
	move, accepted := it.acceptedMove(used)
	if accepted {
		moves[SinceLast][it.class], refs = move, References{}
	}
	state := &into.State
	var by Log
	into.Move, by = largestMove(into.Estimated, state, refs, &moves, it.class)
	into.Price = state.guard(now, &it.evidence, &into.Move, by, p.policy.Guard == Hold)
	state.Price = into.Price
	if apart {
		state.SuspectUntil = now.Add(suspectFor)
	}
	if accepted && into.Move.Decision != HeldBack {
		state.ReleasedAt, state.SuspectUntil = now, now.Add(suspectFor)
	}
	lone := pending(now, state.SingleMarketUntil, suspectForLong) && len(it.evidence.supporters) < 2
	switch {
	case !into.Majority:
		into.Status = Disputed
	case wide || lone || pending(now, state.SuspectUntil, suspectFor) || into.Move.Decision == HeldBack:
		into.Status = Suspect
	case into.Near >= 2 && h <= log1_3:
		into.Status = OK
	default:
		into.Status = Thin
	}
	state.dropExpired(now)
}

// support collects the evidence of the used quotes about a move of the price. wide reports whether
// all prices of a used market moved. apart reports whether the quotes of the item moved
// apart.
func (it *item) support(used []levelledQuote) (wide, apart bool) {
	price := it.out.Estimated
	ev := &it.evidence
	ev.price, ev.majority, ev.supporters = price, it.out.Majority, ev.supporters[:0]
	for _, v := range used {
		q, m := &it.quotes[v.at], it.markets[v.at]
		wide, apart = wide || pending(it.now, m.MarketMovedUntil, suspectFor), apart || q.Apart
		if within(v.price, price, 5, 4) {
			it.out.Near++
		}
		if within(v.price, price, 3, 2) {
			changed := q.ChangedAt
			if changed.IsZero() {
				changed = m.ChangedAt
			}
			ev.supporters = append(ev.supporters, support{q.Moved, changed})
		}
	}
	return wide, apart
}

// acceptedMove returns the smallest move of the class in responses that an operator
// accepted. ok is true if at least half of the used quotes come from such responses and the
// item has not been priced with them yet. The guard must then not compare the new price with
// prices from before the acceptance.
func (it *item) acceptedMove(used []levelledQuote) (least Log, ok bool) {
	n := 0
	for _, v := range used {
		m := it.markets[v.at]
		move := m.AcceptedMoves[it.class]
		if abs(move) > log2 && it.out.State.ReleasedAt.Before(m.AcceptedAt) && it.now.Sub(m.AcceptedAt) < oldestReference {
			if n++; n == 1 || abs(move) < abs(least) {
				least = move
			}
		}
	}
	return least, n > 0 && 2*n >= len(used)
}

// within reports whether two prices differ by at most a factor of n/d.
func within(a, b money.Micro, n, d money.Micro) bool {
	return max(a, b)*d <= min(a, b)*n
}
