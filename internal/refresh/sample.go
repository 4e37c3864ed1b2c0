package refresh

import (
	"context"
	"slices"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/pricing"
)

const (
	// sampleBuckets is how many name buckets are compared at a time.
	sampleBuckets = 8
	// sampleNames is how many shared names are enough to judge an answer by its
	// median ratio. Names are spread over buckets by hash, so the first buckets
	// are a fair sample.
	sampleNames = 2_000
)

// panel is what a job's first answers are held against: one another, the other
// files, what sources that are asked by name say, and the stored medians. The
// voters are the suspects by their order, and then the markets of those sources.
type panel struct {
	pricing.Panel
	maker   *maker
	markets []int64                                  // by voter
	games   map[int64]int32                          // of answers to names, by the unit whose blobs hold them
	voters  map[gameMarket]pricing.Voter             // of those answers
	prices  map[pricing.Voter]map[string]money.Micro // of those answers, of some buckets
}

func newPanel(suspects []*suspect, units []Unit, m *maker) *panel {
	p := &panel{
		maker: m,
		Panel: pricing.Panel{Former: map[pricing.Voter]bool{}},
		games: map[int64]int32{}, voters: map[gameMarket]pricing.Voter{}, prices: map[pricing.Voter]map[string]money.Micro{},
	}
	for i, s := range suspects {
		p.markets = append(p.markets, s.Fetch.MarketID)
		p.Former[pricing.Voter(i)] = s.base.UnitID != 0
	}
	if !slices.ContainsFunc(suspects, (*suspect).first) {
		return p
	}
	for _, u := range units {
		if u.File == "" {
			p.games[u.BlobUnit] = u.AppID
		}
	}
	return p
}

// pricesOf returns where the prices of an answer to names belong, nil if nowhere.
func (p *panel) pricesOf(unit, market int64) map[string]money.Micro {
	app, ok := p.games[unit]
	if !ok {
		return nil
	}
	key := gameMarket{app, market}
	v, ok := p.voters[key]
	if !ok {
		v = pricing.Voter(len(p.markets))
		p.voters[key], p.Former[v] = v, true
		p.markets = append(p.markets, market)
	}
	if p.prices[v] == nil {
		p.prices[v] = map[string]money.Micro{}
	}
	return p.prices[v]
}

// compare reads answers some buckets at a time until every suspect has enough
// shared names.
func (e *Engine) compare(ctx context.Context, suspects []*suspect, p *panel) error {
	unpack := newUnpacker()
	defer unpack.close()
	first := slices.ContainsFunc(suspects, (*suspect).first)
	for from := 0; from < catalog.Buckets; from += sampleBuckets {
		if !slices.ContainsFunc(suspects, func(s *suspect) bool { return s.open }) {
			return nil
		}
		if err := e.readSample(ctx, unpack, suspects, p, from); err != nil {
			return err
		}
		for _, s := range suspects {
			if s.open && !s.first() {
				s.addSample()
			}
		}
		if first {
			known, err := e.medians(ctx, from)
			if err != nil {
				return err
			}
			p.addSample(suspects, known)
		}
		for _, s := range suspects {
			s.open = s.open && s.shared < sampleNames
		}
	}
	return nil
}

// readSample reads the prices of some buckets from the new answers and from the
// last good ones.
func (e *Engine) readSample(ctx context.Context, unpack *unpacker, suspects []*suspect, p *panel, from int) error {
	type part struct {
		unit, market int64
	}
	into := map[part]map[string]money.Micro{}
	var ids []int64
	for _, s := range suspects {
		s.prices, s.before = map[string]money.Micro{}, map[string]money.Micro{}
		into[part{s.Unit.BlobUnit, s.Fetch.MarketID}] = s.prices
		if s.open && s.base.UnitID != 0 {
			into[part{s.base.UnitID, s.Fetch.MarketID}] = s.before
			ids = append(ids, s.base.UnitID)
		}
		ids = append(ids, s.Unit.BlobUnit)
	}
	clear(p.prices)
	for unit := range p.games {
		ids = append(ids, unit)
	}
	slices.Sort(ids)
	var buckets []int64
	for bucket := from; bucket < from+sampleBuckets; bucket++ {
		buckets = append(buckets, int64(bucket))
	}
	return e.store.Blobs(ctx, slices.Compact(ids), buckets, func(b Blob) error {
		return e.unpack(unpack, b, func(q *packed) {
			prices := into[part{b.Unit, q.Market}]
			if prices == nil {
				prices = p.pricesOf(b.Unit, q.Market)
			}
			if prices == nil {
				return
			}
			if price := p.maker.price(q); price > 0 {
				prices[string(q.Name)+"\x00"+q.Phase] = price
			}
		})
	})
}

// gameName is an item's name and phase within a game.
type gameName struct {
	app  int32
	name string
}

// Median is the median of an item's last estimate, and on how many markets it
// rests.
type Median struct {
	Price   money.Micro
	Markets int
}

// medians returns the stored medians of some buckets' items: what all markets,
// however they are asked, said before this job.
func (e *Engine) medians(ctx context.Context, from int) (map[gameName]Median, error) {
	out := map[gameName]Median{}
	err := e.store.Medians(ctx, from, from+sampleBuckets, func(key catalog.Key, m Median) {
		out[gameName{key.AppID, key.Name + "\x00" + key.Phase}] = m
	})
	return out, err
}

// addSample compares the prices just read with the market's own before.
func (s *suspect) addSample() {
	s.check.Count(len(s.before), len(s.prices))
	for name, price := range s.prices {
		if before := s.before[name]; before > 0 {
			s.check.Add(before, price)
			s.shared++
		}
	}
}

// addSample takes the prices just read of all names that a first answer shares
// with any other, or with the stored medians.
func (p *panel) addSample(suspects []*suspect, known map[gameName]Median) {
	ballots := map[gameName]*pricing.Ballot{}
	for _, s := range suspects {
		for name := range s.prices {
			if key := (gameName{s.Unit.AppID, name}); s.first() && s.open && ballots[key] == nil {
				m := known[key]
				ballots[key] = &pricing.Ballot{Known: m.Price, Markets: m.Markets}
			}
		}
	}
	vote := func(app int32, v pricing.Voter, prices map[string]money.Micro) {
		for name, price := range prices {
			if b := ballots[gameName{app, name}]; b != nil {
				b.Votes = append(b.Votes, pricing.Vote{Voter: v, Price: price})
			}
		}
	}
	for i, s := range suspects {
		vote(s.Unit.AppID, pricing.Voter(i), s.prices)
	}
	for key, v := range p.voters {
		vote(key.app, v, p.prices[v])
	}
	for key, b := range ballots {
		if len(b.Votes) < 2 && b.Known == 0 {
			continue
		}
		p.Add(*b)
		for _, v := range b.Votes {
			if i := int(v.Voter); i < len(suspects) && suspects[i].first() && key.app == suspects[i].Unit.AppID {
				suspects[i].shared++
			}
		}
	}
}
