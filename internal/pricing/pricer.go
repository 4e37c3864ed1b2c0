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
	policy  Policy
	set     *Set
	level   SetMarket // at whose level prices are stated
	scratch sync.Pool // of *pricerScratch
}

type pricerScratch struct {
	prices   []money.Micro
	votes    []vote
	plain    []vote
	at       []int // place in the set of each quote's market, or -1
	logs     []Log
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

// Spread returns Max / Min, in millionths; 0 without a usable quote.
func (p *Priced) Spread() money.Micro {
	r, _ := money.Ratio(p.Max, max(p.Min, 1))
	return r
}

// NewPricer returns a pricer; zero fields of the policy have their defaults. Set and
// rates must not be changed while it is in use.
func NewPricer(policy Policy, set *Set) *Pricer {
	policy.complete()
	p := &Pricer{policy: policy, set: set, scratch: sync.Pool{New: func() any { return new(pricerScratch) }}}
	if policy.Level != 0 {
		p.level = set.Market(policy.Level)
	}
	return p
}

// Price computes the price of one item at the time now from its quotes, its state
// and the references from its history, and writes it over into, whose Quotes are
// reused. It keeps nothing of its arguments. The order of quotes decides about the
// order of results and nothing else.
func (p *Pricer) Price(now time.Time, class Class, quotes []Quote, state State, refs References, into *Priced) {
	now = stored(now)
	results := into.Quotes
	*into = Priced{Markets: len(quotes), State: state, Price: state.Price, Sales: p.policy.sales(now, quotes)}
	s, _ := p.scratch.Get().(*pricerScratch)
	defer p.scratch.Put(s)
	into.Quotes = p.judged(now, quotes, results[:0], s)
	p.figures(s, into)
	last, moved := Log(0), p.set.Moves[SinceLast][class]
	if into.ClassMove = Exp(moved); state.Price > 0 {
		last = Ln(state.Price) + moved
	}
	c, ok := p.consensus(quotes, s, last, into)
	if !ok {
		into.Status = Stale
		if state.Price <= 0 {
			into.Status = NoPrice
		}
		return
	}
	votes := s.votes[c.from:c.to]
	usual := p.set.median(c.price)
	h := halfWidth(votes, c.price, usual, p.set.Kappa)
	into.Width, into.Usual = Exp(h), Exp(usual)
	into.Interval = intervalAround(c.price, into.Width)
	into.Estimated, into.DecidedBy, into.Majority = into.Consensus, c.by, c.by == ByMajority
	if p.policy.Method == Consensus {
		p.markOutliers(votes, into)
	} else {
		votes = p.plainVotes(s, into)
		h = halfWidth(votes, into.Estimated, usual, p.set.Kappa)
	}
	into.UsedMarkets = len(votes)
	p.decide(now, class, quotes, votes, h, refs, s, into)
}

// judged applies steps 1 to 4 to the quotes, and leaves late markets out.
func (p *Pricer) judged(now time.Time, quotes []Quote, into []QuoteResult, s *pricerScratch) []QuoteResult {
	s.at = s.at[:0]
	for i := range quotes {
		into = append(into, QuoteResult{Verdict: p.policy.verdict(now, &quotes[i]), Far: -1})
		at, ok := p.set.find(quotes[i].ID)
		if !ok {
			at = -1
		}
		s.at = append(s.at, at)
	}
	p.leaveOne(now, quotes, into, s, marketKey, fresher, Duplicate)
	p.leaveOne(now, quotes, into, s, poolKey, asFresh, SharedListings)
	return into
}

// late returns 1 for a quote of a late market, else 0.
func (p *Pricer) late(s *pricerScratch, i int) int {
	if at := s.at[i]; at >= 0 && p.set.Markets[at].Late {
		return 1
	}
	return 0
}

// figures computes the plain figures of what steps 1 to 4 leave.
func (p *Pricer) figures(s *pricerScratch, into *Priced) {
	s.prices = s.prices[:0]
	for i := range into.Quotes {
		if q := &into.Quotes[i]; q.Reason == Used {
			s.prices = append(s.prices, q.Price)
		}
	}
	if len(s.prices) == 0 {
		return
	}
	slices.Sort(s.prices)
	into.Min, into.Max = s.prices[0], s.prices[len(s.prices)-1]
	into.Average, into.Median = mean(s.prices), median(s.prices)
}

// consensus levels the quotes and decides (steps 6 to 8). It is false where no
// quote can be used.
func (p *Pricer) consensus(quotes []Quote, s *pricerScratch, last Log, into *Priced) (choice, bool) {
	s.logs, s.votes = s.logs[:0], s.votes[:0]
	for i := range quotes {
		q := &into.Quotes[i]
		if q.Reason != Used {
			continue
		}
		if p.late(s, i) > 0 {
			q.Reason = LateMarket
			continue
		}
		s.logs = append(s.logs, Ln(q.Price)-p.set.levelAt(s.at[i]))
	}
	if len(s.logs) == 0 {
		return choice{}, false
	}
	low, part := p.set.between(agreed(s.logs))
	base := p.level.level(low, part)
	for i := range quotes {
		q := &into.Quotes[i]
		if q.Reason != Used {
			continue
		}
		m := SetMarket{Far: -1}
		if s.at[i] >= 0 {
			m = p.set.Markets[s.at[i]]
		}
		q.Level, q.Far = Exp(m.level(low, part)-base), m.Far
		if m.Noise > 0 {
			q.Noise = Exp(m.Noise)
		}
		q.Levelled = levelled(q.Price, q.Level)
		s.votes = append(s.votes, newVote(i, q.Levelled, m))
	}
	c := decide(s.votes, last)
	into.Consensus = c.price
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
func (p *Pricer) markOutliers(group []vote, into *Priced) {
	low, high := group[0].price, group[len(group)-1].price
	for i := range into.Quotes {
		if q := &into.Quotes[i]; q.Reason == Used && (q.Levelled < low || q.Levelled > high) {
			q.Reason = Outlier
		}
	}
}

// plainVotes makes votes of all quotes that steps 1 to 4 leave, as they are
// quoted: for the plain average and median. It sets the estimate.
func (p *Pricer) plainVotes(s *pricerScratch, into *Priced) []vote {
	into.Estimated = into.Average
	if p.policy.Method == Median {
		into.Estimated = into.Median
	}
	s.plain = s.plain[:0]
	for i := range into.Quotes {
		if q := &into.Quotes[i]; q.Reason == Used || q.Reason == LateMarket {
			q.Reason = Used
			s.plain = append(s.plain, newVote(i, q.Price, SetMarket{Far: -1}))
		}
	}
	return s.plain
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
func (p *Pricer) decide(now time.Time, class Class, quotes []Quote, votes []vote, h Log, refs References, s *pricerScratch, into *Priced) {
	ev := &s.evidence
	ev.price, ev.majority, ev.supporter = into.Estimated, into.Majority, ev.supporter[:0]
	wide, torn := false, false
	for _, v := range votes {
		if within(v.price, into.Estimated, 5, 4) {
			into.Near++
		}
		q, m := &quotes[v.at], SetMarket{}
		if s.at[v.at] >= 0 {
			m = p.set.Markets[s.at[v.at]]
		}
		wide, torn = wide || pending(now, m.WideUntil, suspectFor), torn || q.Apart
		if within(v.price, into.Estimated, 3, 2) {
			changed := q.ChangedAt
			if changed.IsZero() {
				changed = m.ChangedAt
			}
			ev.supporter = append(ev.supporter, support{q.Moved, changed})
		}
	}
	var by Log
	moves := p.set.Moves
	move, accepted := p.acceptedMove(now, class, votes, s, into.State.ReleasedAt)
	if accepted {
		moves[SinceLast][class], refs = move, References{}
	}
	into.Move, by = worst(into.Estimated, &into.State, refs, &moves, class)
	into.Price = into.State.guard(now, ev, &into.Move, by, p.policy.Guard == Hold)
	into.State.Price = into.Price
	if torn {
		into.State.SuspectUntil = now.Add(suspectFor)
	}
	if accepted && into.Move.Decision != HeldBack {
		into.State.ReleasedAt, into.State.SuspectUntil = now, now.Add(suspectFor)
	}
	defer into.State.forget(now)
	into.Status = Thin
	if into.Near >= 2 && h <= log1_3 {
		into.Status = OK
	}
	lone := pending(now, into.State.LoneUntil, suspectForLong) && len(ev.supporter) < 2
	if wide || lone || pending(now, into.State.SuspectUntil, suspectFor) || into.Move.Decision == HeldBack {
		into.Status = Suspect
	}
	if !into.Majority {
		into.Status = Disputed
	}
}

// acceptedMove returns how the class moved with responses that an operator accepted, if
// half of the votes are of such markets and the item was not priced by them since: its
// prices from before the acceptance do not speak against it.
func (p *Pricer) acceptedMove(now time.Time, class Class, votes []vote, s *pricerScratch, since time.Time) (least Log, ok bool) {
	n := 0
	for _, v := range votes {
		if s.at[v.at] < 0 {
			continue
		}
		m := &p.set.Markets[s.at[v.at]]
		if move := m.AcceptedMoves[class]; abs(move) > log2 && since.Before(m.AcceptedAt) && now.Sub(m.AcceptedAt) < oldestReference {
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
