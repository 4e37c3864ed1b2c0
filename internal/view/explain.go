package view

import (
	"cmp"
	"context"
	"sync"
	"time"

	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
)

// Explanation states why an item has its price. It contains sentences for people and all figures
// needed to recompute the price exactly: the level that each quote is divided by, the group
// that decides, its median, and the guard. Factors and shares are exact decimals with at most
// six places.
type Explanation struct {
	Sentences []string `json:"sentences"`
	// Complete is true if the estimate could be recomputed from the stored snapshots. It is
	// false after newer quotes have been fetched.
	Complete  bool            `json:"complete"`
	Class     string          `json:"class"` // star or rest
	ClassMove money.Micro     `json:"classMove"`
	LastPrice *money.Micro    `json:"lastPrice"` // before the estimate
	DecidedBy string          `json:"decidedBy"` // majority, lastPrice, size, market or lowerPrice
	Compared  int             `json:"comparedQuotes"`
	Agreeing  int             `json:"agreeingQuotes"`
	Near      int             `json:"nearQuotes"`
	GroupLow  *money.Micro    `json:"groupLow"`
	GroupHigh *money.Micro    `json:"groupHigh"`
	Usual     *money.Micro    `json:"usualDistance"`
	Kappa     money.Micro     `json:"kappa"`
	Width     *money.Micro    `json:"intervalFactor"`
	Guard     *PriceGuard     `json:"guard"` // null: no recent move beyond a limit
	Refused   []RefusedMarket `json:"refusedMarkets"`
}

// PriceGuard is the decision of the price guard in the last estimate, with its stored state.
type PriceGuard struct {
	Decision     string       `json:"decision"` // accepted, takenAtOnce, held or released
	Window       string       `json:"window"`   // last, day or week; empty: within all limits
	Reference    *money.Micro `json:"reference"`
	Factor       *money.Micro `json:"factor"` // size of the move beyond the move of the item's class
	Limit        *money.Micro `json:"limit"`
	ClassMove    *money.Micro `json:"classMove"`
	Earlier      *money.Micro `json:"earlierReading"`
	Supporters   int          `json:"supporters"`
	Moved        int          `json:"movedSupporters"`
	Needed       int          `json:"neededResponses"`
	Readings     int          `json:"changedResponses"`
	EvidenceFrom *time.Time   `json:"evidenceFrom"` // a response of a supporting market counts if it changed at this time or later
	ReleaseFrom  *time.Time   `json:"releaseFrom"`
	SuspectUntil *time.Time   `json:"suspectUntil"`
	AcceptedAt   *time.Time   `json:"acceptedAt"` // the guard ignores reference prices before this time
}

// DecisionAccepted is the decision for an estimate within all limits.
const DecisionAccepted = "accepted"

// RefusedMarket is a market whose newest response is quarantined.
type RefusedMarket struct {
	Provider string    `json:"provider"`
	Market   string    `json:"market"`
	Since    time.Time `json:"since"`
	Detail   string    `json:"detail"`
}

// explanations explains prices.
type explanations struct {
	o    *Options
	sets sets
}

// sets caches recently used level sets. A stored set never changes.
type sets struct {
	mu   sync.Mutex
	byID map[int64]*pricing.Set
}

// mostSets is the maximum number of cached sets. It covers the last runs of several games.
const mostSets = 16

func (c *sets) get(ctx context.Context, s *db.DB, id int64) (*pricing.Set, error) {
	if id == 0 {
		return nil, nil
	}
	c.mu.Lock()
	set := c.byID[id]
	c.mu.Unlock()
	if set != nil {
		return set, nil
	}
	set, err := refresh.ReadLevels(ctx, s, id)
	if err != nil || set == nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byID) >= mostSets || c.byID == nil {
		c.byID = map[int64]*pricing.Set{}
	}
	c.byID[id] = set
	return set, nil
}

// explainer explains one item.
type explainer struct {
	item    *StoredItem
	snaps   []StoredSnapshot
	set     *pricing.Set
	policy  pricing.Policy
	last    money.Micro
	refused []refresh.Refused
	now     time.Time

	priced  pricing.Priced
	state   pricing.State
	move    pricing.Move
	results map[int64]pricing.QuoteResult // compared quotes by market ID
}

// of recomputes an item's last estimate from its stored state.
func (x *explanations) of(ctx context.Context, i *StoredItem, snaps []StoredSnapshot, rates pricing.Rates, now time.Time) (*explainer, error) {
	e := &explainer{item: i, snaps: snaps, now: now, policy: pricing.Policy{Currency: x.o.Currency, Rates: rates}}
	e.policy.Method, e.policy.Level = pricing.ParseLabel(i.Method)
	var err error
	if e.set, err = x.sets.get(ctx, x.o.Store, i.LevelSet); err != nil {
		return nil, err
	}
	if e.set == nil {
		e.set = pricing.NewSet(rates.Dollar(x.o.Currency))
	}
	if e.last, err = refresh.PriceBefore(ctx, x.o.Store, i.ID, i.EstimatedAt); err != nil {
		return nil, err
	}
	e.recompute()
	e.state = pricing.State{Price: i.Price, Held: pricing.HeldPrice{Candidate: i.Candidate, At: i.CandidateAt}}
	if e.move, err = pricing.DecodeGuard(i.Guard, &e.state); err != nil {
		x.o.Logger.Warn("price guard state unreadable", "item", i.ID, "error", err)
	}
	return e, nil
}

// recompute repeats the estimate with the quotes that passed steps 1 to 4 of pricing.QuoteCheck.
func (e *explainer) recompute() {
	var quotes []pricing.Quote
	for k := range e.snaps {
		v := &e.snaps[k]
		switch v.Reason {
		case pricing.Used, pricing.Outlier, pricing.LateMarket:
			quotes = append(quotes, pricing.Quote{
				ID: v.MarketID, Provider: v.Provider, Market: v.Provider + "/" + v.Market, Currency: v.Currency,
				Ask: v.Ask, Sale: v.Sale, Sales: -1, FetchedAt: e.item.EstimatedAt,
			})
		}
	}
	pricer := pricing.NewPricer(e.policy, e.set)
	pricer.Price(e.item.EstimatedAt, pricing.ClassOf(e.item.Key.Name), quotes, pricing.State{Price: e.last}, pricing.References{}, &e.priced)
	e.results = make(map[int64]pricing.QuoteResult, len(quotes))
	for k := range quotes {
		e.results[quotes[k].ID] = e.priced.Quotes[k]
	}
}

// complete reports whether the recomputed figures equal the stored ones.
func (e *explainer) complete() bool {
	return e.priced.Consensus == e.item.Consensus && e.priced.Average == e.item.Average && e.priced.Median == e.item.Median
}

// detail returns the explanation of an item that has an estimate.
func (e *explainer) detail() *Explanation {
	p := &e.priced
	out := &Explanation{
		Complete: e.complete(), Class: pricing.ClassOf(e.item.Key.Name).String(), ClassMove: p.ClassMove, LastPrice: amount(e.last), DecidedBy: string(p.DecidedBy),
		Near: p.Near, Usual: amount(p.MedianDistance), Kappa: e.set.Kappa, Width: amount(p.Width), Guard: e.guard(), Refused: []RefusedMarket{},
	}
	var low, high money.Micro
	for _, q := range e.results {
		if q.Levelled == 0 {
			continue
		}
		out.Compared++
		if q.Reason != pricing.Used {
			continue
		}
		out.Agreeing++
		if low == 0 || q.Levelled < low {
			low = q.Levelled
		}
		high = max(high, q.Levelled)
	}
	out.GroupLow, out.GroupHigh = amount(low), amount(high)
	for _, m := range e.refused {
		out.Refused = append(out.Refused, RefusedMarket{Provider: m.Provider, Market: m.Market, Since: m.Since, Detail: m.Reason})
	}
	out.Sentences = e.sentences(out)
	return out
}

// guard returns the result and state of the guard, or nil if both are empty.
func (e *explainer) guard() *PriceGuard {
	m, s := &e.move, &e.state
	if e.item.Guard == "" {
		return nil
	}
	g := &PriceGuard{
		Decision: cmp.Or(string(m.Decision), DecisionAccepted), SuspectUntil: when(s.SuspectUntil), AcceptedAt: when(s.ReleasedAt),
		Earlier: amount(m.Earlier), Supporters: m.Supporters, Moved: m.Moved, Needed: m.Needed,
	}
	if s.SingleMarketUntil.After(s.SuspectUntil) {
		g.SuspectUntil = when(s.SingleMarketUntil)
	}
	if m.Reference > 0 {
		limit := m.Window.Limit()
		g.Window, g.Reference, g.Factor, g.Limit, g.ClassMove = m.Window.String(), &m.Reference, &m.Factor, &limit, &m.ClassMove
	}
	if s.Held.Candidate > 0 {
		g.Readings = s.Held.Readings
		g.EvidenceFrom = when(s.Held.EvidenceAt.Add(pricing.EvidenceAfter))
		if m.Needed > 1 {
			g.ReleaseFrom = when(s.Held.At.Add(pricing.SingleMarketWait))
		}
	}
	return g
}

// snapshot converts a stored quote at the exchange rates of the last estimate. A quote without a
// fetch time was confirmed by the last run and gets the time of that run.
func (e *explainer) snapshot(s *StoredSnapshot) MarketSnapshot {
	i := e.item
	out := MarketSnapshot{
		Provider: s.Provider, Market: s.Market, Title: s.Title, Currency: s.Currency,
		LowestAsk: amount(s.Ask), HighestBid: amount(s.Bid), Sale: amount(s.Sale),
		Listings: count(s.Listings), Sales: count(s.Sales),
		MarketTime: when(s.MarketTime), FetchedAt: s.FetchedAt,
		Used: s.Reason == pricing.Used, Reason: string(s.Reason), Explanation: e.why(s),
	}
	if q, ok := e.results[s.MarketID]; ok {
		out.Level, out.Levelled, out.Noise = amount(q.Level), amount(q.Levelled), amount(q.Noise)
		if q.Far >= 0 {
			out.FarShare = &q.Far
		}
	}
	if s.Sales >= 0 {
		window := seconds(s.SalesWindow)
		out.SalesWindowSeconds = &window
	}
	if s.FetchedAt.IsZero() {
		out.FetchedAt = i.QuotesAt
	}
	price, basis := pricing.Quoted(s.Ask, s.Sale)
	if price == 0 {
		return out
	}
	out.Basis = string(basis)
	if s.Currency == e.policy.Currency {
		out.Price = &price
		return out
	}
	rate, ok := e.policy.Rates.Of(s.Currency)
	if !ok {
		return out
	}
	if converted, ok := money.Convert(price, rate.Value); ok {
		out.Price, out.Rate, out.RateDate, out.RateOld = &converted, &rate.Value, when(rate.Date), rate.Old(i.EstimatedAt)
	}
	return out
}
