package pricing

import (
	"slices"
	"sync"
	"time"

	"assay/internal/money"
)

// Pricer computes the prices of one game with one policy, one set of rates and one
// level set. It is safe for concurrent use and allocates nothing per
// item once its memory is warm.
type Pricer struct {
	policy Policy
	set    *Set
	level  SetMarket // at whose level prices are stated
	items  sync.Pool // of *item
}

// item is one call of Price, and its memory.
type item struct {
	now    time.Time
	class  Class
	quotes []Quote
	refs   References
	out    *Priced

	markets  []*SetMarket // of each quote
	prices   []money.Micro
	logs     []Log
	votes    []vote
	evidence evidence
}

// Interval is where the price of a further honest market lies in about 80 % of
// cases.
type Interval struct{ Low, High money.Micro }

// QuoteResult is what became of one quote.
type QuoteResult struct {
	Verdict              // of steps 1 to 4, and then LateMarket or Outlier
	Level    money.Micro // of its market at this price, as a factor in millionths; 0: not compared
	Levelled money.Micro // Price / Level: what is compared
	Noise    money.Micro // usual distance of its market, as a factor in millionths; 0: unknown
	Far      money.Micro // share of its market's quotes more than 2x off, in millionths; -1: unknown
}

// Priced is an estimate of one item with everything that led to it. Amounts are
// micro-units of the base currency.
type Priced struct {
	Price     money.Micro // the current price after the guard; the last one without a usable quote
	Estimated money.Micro // what the policy's method yields from the quotes; 0: no usable quote
	Status    Status

	// Figures of the quotes that steps 1 to 4 leave; 0 without one. Consensus is 0
	// if all their markets are late.
	Average, Median, Min, Max money.Micro
	Consensus                 money.Micro
	Interval                  Interval    // around Consensus
	Width                     money.Micro // Consensus to an end of the interval, as a factor in millionths
	Usual                     money.Micro // usual distance of a quote at this price, as a factor in millionths
	ClassMove                 money.Micro // of its class since the last responses, as a factor in millionths: by it the last price is moved that decides between groups
	DecidedBy                 DecidedBy   // of Consensus

	Markets     int  // quotes given
	UsedMarkets int  // quotes behind Estimated
	Majority    bool // more than half of the used markets agree within 2x
	Near        int  // used quotes within 1.25x of Estimated

	Move   Move
	State  State // to be stored with the item
	Sales  SalesSignal
	Quotes []QuoteResult // one for each quote given, in its order
}

// NewPricer returns a pricer; zero fields of the policy have their defaults. Set and
// rates must not be changed while it is in use.
func NewPricer(policy Policy, set *Set) *Pricer {
	policy.complete()
	p := &Pricer{policy: policy, set: set, items: sync.Pool{New: func() any { return new(item) }}}
	if policy.Level != 0 {
		p.level = set.Market(policy.Level)
	}
	return p
}

// Price computes the price of one item at the time now from its quotes, its state
// and the references from its history, and writes it over into, whose Quotes are
// reused. It keeps nothing of its arguments. The order of quotes affects only the
// order of results.
func (p *Pricer) Price(now time.Time, class Class, quotes []Quote, state State, refs References, into *Priced) {
	it, _ := p.items.Get().(*item)
	it.now, it.class, it.quotes, it.refs, it.out = stored(now), class, quotes, refs, into
	defer func() {
		it.quotes, it.out = nil, nil
		p.items.Put(it)
	}()
	results := into.Quotes[:0]
	*into = Priced{Markets: len(quotes), State: state, Price: state.Price, Sales: p.policy.sales(it.now, quotes), Quotes: results}
	p.verdicts(it)
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
	votes := it.votes[c.from:c.to]
	usual := p.set.median(c.price)
	h := halfWidth(votes, c.price, usual, p.set.Kappa)
	into.Width, into.Usual = Exp(h), Exp(usual)
	into.Interval = intervalAround(c.price, into.Width)
	into.Estimated, into.DecidedBy, into.Majority = into.Consensus, c.by, c.by == ByMajority
	if p.policy.Method == Consensus {
		into.markOutliers(votes)
	} else {
		votes = p.plainVotes(it)
		h = halfWidth(votes, into.Estimated, usual, p.set.Kappa)
	}
	into.UsedMarkets = len(votes)
	p.decide(it, votes, h)
}

// verdicts applies steps 1 to 4 to the quotes.
func (p *Pricer) verdicts(it *item) {
	it.markets = it.markets[:0]
	for i := range it.quotes {
		it.out.Quotes = append(it.out.Quotes, QuoteResult{Verdict: p.policy.verdict(it.now, &it.quotes[i]), Far: -1})
		it.markets = append(it.markets, p.set.market(it.quotes[i].ID))
	}
	it.leaveOne(marketKey, fresher, Duplicate)
	it.leaveOne(poolKey, asFresh, SharedListings)
}

// figures computes the plain figures of what steps 1 to 4 leave.
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

// consensus levels the quotes and decides (steps 6 to 8). It is false where no
// quote can be used.
func (p *Pricer) consensus(it *item, last Log) (choice, bool) {
	it.logs, it.votes = it.logs[:0], it.votes[:0]
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
	low, part := p.set.between(agreed(it.logs))
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
		it.votes = append(it.votes, newVote(i, q.Levelled, m))
	}
	c := decide(it.votes, last)
	it.out.Consensus = c.price
	return c, true
}

// levelled returns price / level, which is at least one micro-unit.
func levelled(price, level money.Micro) money.Micro {
	v, ok := money.Ratio(price, level)
	if !ok {
		return maxPrice
	}
	return max(1, min(v, maxPrice))
}

// markOutliers gives the quotes outside the group that decides their reason.
func (p *Priced) markOutliers(group []vote) {
	low, high := group[0].price, group[len(group)-1].price
	for i := range p.Quotes {
		if q := &p.Quotes[i]; q.Reason == Used && (q.Levelled < low || q.Levelled > high) {
			q.Reason = Outlier
		}
	}
}

// plainVotes makes votes of all quotes that steps 1 to 4 leave, as they are
// quoted: for the plain average and median. It sets the estimate.
func (p *Pricer) plainVotes(it *item) []vote {
	it.out.Estimated = it.out.Average
	if p.policy.Method == Median {
		it.out.Estimated = it.out.Median
	}
	it.votes = it.votes[:0]
	for i := range it.out.Quotes {
		if q := &it.out.Quotes[i]; q.Reason == Used || q.Reason == LateMarket {
			q.Reason = Used
			it.votes = append(it.votes, newVote(i, q.Price, &SetMarket{Far: -1}))
		}
	}
	return it.votes
}

// intervalAround returns price / width to price * width.
func intervalAround(price, width money.Micro) Interval {
	low, _ := money.Ratio(price, width)
	high, ok := money.Convert(price, money.Rate(width)*(money.RateScale/money.Scale))
	if !ok {
		high = maxPrice
	}
	return Interval{Low: low, High: high}
}

// decide grades the estimate and lets the guard decide about it (steps 10 and 11).
func (p *Pricer) decide(it *item, votes []vote, h Log) {
	now, into := it.now, it.out
	wide, apart := it.support(votes)
	moves, refs := p.set.Moves, it.refs
	move, accepted := it.acceptedMove(votes)
	if accepted {
		moves[SinceLast][it.class], refs = move, References{}
	}
	state := &into.State
	var by Log
	into.Move, by = worst(into.Estimated, state, refs, &moves, it.class)
	into.Price = state.guard(now, &it.evidence, &into.Move, by, p.policy.Guard == Hold)
	state.Price = into.Price
	if apart {
		state.SuspectUntil = now.Add(suspectFor)
	}
	if accepted && into.Move.Decision != HeldBack {
		state.ReleasedAt, state.SuspectUntil = now, now.Add(suspectFor)
	}
	lone := pending(now, state.LoneUntil, suspectForLong) && len(it.evidence.supporter) < 2
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
	state.forget(now)
}

// support collects what the votes say about a move of the price. It reports whether all
// prices of one of their markets moved, and whether the quotes of the item moved apart.
func (it *item) support(votes []vote) (wide, apart bool) {
	price := it.out.Estimated
	ev := &it.evidence
	ev.price, ev.majority, ev.supporter = price, it.out.Majority, ev.supporter[:0]
	for _, v := range votes {
		q, m := &it.quotes[v.at], it.markets[v.at]
		wide, apart = wide || pending(it.now, m.WideUntil, suspectFor), apart || q.Apart
		if within(v.price, price, 5, 4) {
			it.out.Near++
		}
		if within(v.price, price, 3, 2) {
			changed := q.ChangedAt
			if changed.IsZero() {
				changed = m.ChangedAt
			}
			ev.supporter = append(ev.supporter, support{q.Moved, changed})
		}
	}
	return wide, apart
}

// acceptedMove returns how the class moved with responses that an operator accepted, if
// half of the votes are of such markets and the item was not priced by them since: its
// prices from before the acceptance do not speak against it.
func (it *item) acceptedMove(votes []vote) (least Log, ok bool) {
	n := 0
	for _, v := range votes {
		m := it.markets[v.at]
		move := m.AcceptedMoves[it.class]
		if abs(move) > log2 && it.out.State.ReleasedAt.Before(m.AcceptedAt) && it.now.Sub(m.AcceptedAt) < oldestReference {
			if n++; n == 1 || abs(move) < abs(least) {
				least = move
			}
		}
	}
	return least, n > 0 && 2*n >= len(votes)
}

// within reports whether two prices are within a factor of n/d of each other.
func within(a, b money.Micro, n, d money.Micro) bool {
	return max(a, b)*d <= min(a, b)*n
}
