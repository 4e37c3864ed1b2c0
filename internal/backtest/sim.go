package backtest

import (
	"fmt"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// Quotes are the asks of one market by name, in the market's currency. 0 means no ask.
type Quotes []money.Micro

// Sim simulates an installation in memory. It calls the production code of internal/pricing
// like a refresh, with a virtual clock. It is not safe for concurrent use.
type Sim struct {
	policy  pricing.Policy
	names   []string
	traits  []pricing.Traits
	set     *pricing.Set
	markets []simMarket
	items   []simItem

	points [2][]pricing.Point
	quotes []pricing.Quote
	priced pricing.Priced
}

type simMarket struct {
	id       int64
	name     string
	currency money.Currency
	state    pricing.ValidationState
	history  pricing.History
	last     Quotes    // last accepted response, or nil
	at       time.Time // time of the last accepted response
}

type simItem struct {
	state pricing.State
	past  []pricing.Reference // accepted prices with the time of their change, oldest first
}

// Item is the price of one item after a run.
type Item struct {
	Price, Estimated money.Micro
	Low, High        money.Micro
	Status           pricing.Status
	Decision         pricing.Decision
}

// Outcome is the result of one run.
type Outcome struct {
	At      time.Time
	Items   []Item
	Markets []pricing.Outcome
}

// NewSim returns a Sim without prices. Its base currency is the currency of the policy.
func NewSim(names []string, markets []MarketInfo, policy pricing.Policy) *Sim {
	s := &Sim{
		policy: policy, names: names, set: pricing.NewSet(money.Scale),
		traits: make([]pricing.Traits, len(names)), items: make([]simItem, len(names)),
	}
	for i, n := range names {
		s.traits[i] = pricing.TraitsOf(n)
	}
	for i, m := range markets {
		s.markets = append(s.markets, simMarket{id: int64(i + 1), name: m.Name, currency: m.Currency})
	}
	return s
}

// MarketInfo is the name and the currency of a market.
type MarketInfo struct {
	Name     string
	Currency money.Currency
}

// Run processes the responses of one run, by market. A response is nil if the market did
// not respond.
func (s *Sim) Run(now time.Time, responses []Quotes) (*Outcome, error) {
	round := pricing.NewRound(now, s.set)
	for i := range s.markets {
		m := &s.markets[i]
		in := pricing.Market{ID: m.id, State: m.state, History: m.history}
		rate, err := s.rate(m.currency)
		if err != nil {
			return nil, err
		}
		last := s.response(0, m.last, m.at, rate)
		if err := round.Add(in, last, s.response(1, responses[i], now, rate)); err != nil {
			return nil, fmt.Errorf("market %s: %w", m.name, err)
		}
	}
	res := round.Finish(func() {})
	if err := s.store(res, responses, now); err != nil {
		return nil, err
	}
	return s.price(now, res), nil
}

func (s *Sim) rate(c money.Currency) (money.Rate, error) {
	if c == s.policy.Currency {
		return money.RateScale, nil
	}
	rate, ok := s.policy.Rates.Of(c)
	if !ok {
		return 0, fmt.Errorf("no exchange rate for %s: add one, for example --rate %s=0.14@2026-10-05", c, c)
	}
	return rate.Value, nil
}

// response converts quotes to a response. It reuses the buffer with the index buf.
func (s *Sim) response(buf int, q Quotes, at time.Time, rate money.Rate) *pricing.Response {
	if q == nil {
		return nil
	}
	points := s.points[buf][:0]
	for i, amount := range q {
		if amount > 0 {
			points = append(points, pricing.Point{Key: uint64(i), Traits: s.traits[i], Amount: amount})
		}
	}
	s.points[buf] = points
	return &pricing.Response{At: at, Rate: rate, Points: points}
}

// store saves the result of a round. It encodes and decodes all state, as a restart does.
func (s *Sim) store(res pricing.Result, responses []Quotes, now time.Time) error {
	encoded, err := res.Set.MarshalBinary()
	if err != nil {
		return err
	}
	s.set = new(pricing.Set)
	if err := s.set.UnmarshalBinary(encoded); err != nil {
		return err
	}
	for i, o := range res.Markets { // sorted by ID, like s.markets
		m := &s.markets[i]
		encoded, err := o.State.MarshalBinary()
		if err != nil {
			return err
		}
		if err := m.state.UnmarshalBinary(encoded); err != nil {
			return err
		}
		if o.History != nil {
			m.history = o.History
		}
		if responses[i] != nil && o.Refusal == nil {
			m.last, m.at = responses[i], now
		}
	}
	return nil
}

// quote returns the last accepted quote of a name.
func (m *simMarket) quote(name int) pricing.Quote {
	return pricing.Quote{
		Provider: "file", Market: m.name, ID: m.id, Currency: m.currency, Ask: m.last[name],
		Sales: -1, FetchedAt: m.at,
	}
}

// price computes the prices of all items.
func (s *Sim) price(now time.Time, res pricing.Result) *Outcome {
	run := &Outcome{At: now, Items: make([]Item, len(s.names)), Markets: res.Markets}
	pricer := pricing.NewPricer(s.policy, s.set)
	movers := res.Movers
	for i := range s.names {
		s.quotes = s.quotes[:0]
		for k := range s.markets {
			m := &s.markets[k]
			if m.last == nil || m.last[i] == 0 {
				continue
			}
			s.quotes = append(s.quotes, m.quote(i))
		}
		movers.Annotate(uint64(i), s.quotes)
		it := &s.items[i]
		pricer.Price(now, s.traits[i].Class, s.quotes, it.state, it.references(now), &s.priced)
		it.store(now, &s.priced)
		run.Items[i] = Item{
			Price: s.priced.Price, Estimated: s.priced.Estimated, Low: s.priced.Interval.Low, High: s.priced.Interval.High,
			Status: s.priced.Status, Decision: s.priced.Move.Decision,
		}
	}
	return run
}

// references returns the earlier prices that the guard compares the price with.
func (it *simItem) references(now time.Time) pricing.References {
	if len(it.past) == 0 {
		return pricing.References{}
	}
	priceAt := func(at time.Time) (price money.Micro) {
		for _, p := range it.past {
			if !p.At.After(at) {
				price = p.Price
			}
		}
		return price
	}
	return pricing.ReferencesOf(now, it.past[0], priceAt(now.Add(-24*time.Hour)), priceAt(now.Add(-7*24*time.Hour)))
}

// store saves the state, and the price if it changed. It deletes prices that are too old to
// be references.
func (it *simItem) store(now time.Time, p *pricing.Priced) {
	it.state = p.State
	if p.Price <= 0 {
		return
	}
	if n := len(it.past); n == 0 || it.past[n-1].Price != p.Price {
		it.past = append(it.past, pricing.Reference{Price: p.Price, At: now})
	}
	for len(it.past) > 1 && now.Sub(it.past[1].At) > 8*24*time.Hour {
		it.past = it.past[1:]
	}
}

// historyBytes returns the size of the stored responses of eight days, per name and market.
func (s *Sim) historyBytes() float64 {
	bytes, names := 0, 0
	for i := range s.markets {
		bytes += len(s.markets[i].history)
		for _, q := range s.markets[i].last {
			if q > 0 {
				names++
			}
		}
	}
	return float64(bytes) / float64(max(1, names))
}
