package refresh

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
)

// marketResponse holds one market's responses of a game during a validation round.
type marketResponse struct {
	pricing.Market
	last, next *pricing.Response
	names      int64                    // names in last, and the expected number in next
	lastSeen   map[uint64]pointPosition // positions of names in last, if the market has several files
	nextSeen   map[uint64]pointPosition
}

// add reads the last good and the new responses of a provider's markets and adds them to the
// round. Markets in the same files are read together, other markets in parallel. This keeps
// only the markets of a few files in memory at a time.
func (g *game) add(ctx context.Context, round *pricing.Round, now time.Time, provider string, states map[int64]pricing.ValidationState) error {
	targets, markets, err := g.targets(ctx, provider, states)
	if err != nil || len(markets) == 0 {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type response struct {
		markets []*marketResponse
		err     error
	}
	together := grouped(targets, markets)
	groups, read := make(chan []int64), make(chan response)
	held := make(chan struct{}, g.groupsHeld()) // one value for each group in memory
	var readers sync.WaitGroup
	for range min(len(together), maxReaders) {
		readers.Go(func() {
			for group := range groups {
				r := response{}
				for _, id := range group {
					r.markets = append(r.markets, markets[id])
				}
				r.err = g.read(ctx, now, targets, r.markets)
				for _, m := range r.markets {
					m.normalize()
				}
				read <- r
			}
		})
	}
	go func() {
		for _, group := range together {
			held <- struct{}{}
			groups <- group
		}
		close(groups)
		readers.Wait()
		close(read)
	}()
	for r := range read {
		if err = cmp.Or(err, r.err); err == nil {
			err = g.addMarkets(ctx, round, r.markets)
		}
		if err != nil {
			cancel() // stop the other readers
		}
		<-held
	}
	return err
}

// addMarkets adds markets to a round and frees their responses.
func (g *game) addMarkets(ctx context.Context, round *pricing.Round, markets []*marketResponse) (err error) {
	for _, m := range markets {
		if m.History, err = marketHistory(ctx, g.fetcher.store, g.app, m.ID); err != nil {
			return err
		}
		if err := round.Add(m.Market, m.last, m.next); err != nil {
			known := g.fetcher.marketsByID[m.ID]
			g.fetcher.log.Warn("stored responses unreadable", "provider", known.provider, "market", known.Key, "error", err)
		}
		m.History, m.last, m.next = nil, nil, nil
		admission.Yield(ctx)
	}
	return nil
}

// normalize sorts the responses. Doing this here lets several markets be sorted in parallel.
// The round would sort them one by one.
func (m *marketResponse) normalize() {
	for _, r := range []*pricing.Response{m.last, m.next} {
		if r != nil {
			r.Normalize()
		}
	}
}

// grow allocates memory for the expected number of names. Growth by append would produce
// about as much garbage.
func (m *marketResponse) grow() {
	for _, r := range []*pricing.Response{m.last, m.next} {
		if r != nil {
			r.Points = slices.Grow(r.Points, int(m.names))
		}
	}
}

// maxReaders is how many groups of markets are read in parallel.
const maxReaders = 2

// groupsHeld returns how many groups of markets may be in memory with all their quotes. Usually the
// next ones are read while one is added to the round.
func (g *game) groupsHeld() int {
	if g.large {
		return 1
	}
	return maxReaders + 1
}

// grouped divides the markets of a provider into groups without common units, ordered by id.
func grouped(targets map[int64][]target, markets map[int64]*marketResponse) [][]int64 {
	first := map[int64]int64{} // links from a market to another market of its group
	var of func(int64) int64
	of = func(id int64) int64 {
		if g, ok := first[id]; ok && g != id {
			return of(g)
		}
		return id
	}
	for _, into := range targets {
		for _, t := range into[1:] {
			first[of(t.market)] = of(into[0].market)
		}
	}
	groups := map[int64][]int64{}
	for _, id := range slices.Sorted(maps.Keys(markets)) {
		groups[of(id)] = append(groups[of(id)], id)
	}
	return slices.SortedFunc(maps.Values(groups), slices.Compare)
}

// sameTime is the maximum difference between the fetch times of quotes that are compared.
const sameTime = 2 * time.Hour

// named adds the quotes of a provider that is queried by name. These are the new quotes of
// this job, and the stored quotes that were fetched at about the same time as the newest good
// response of a file. Without such a response, all stored quotes are added.
func (g *game) named(ctx context.Context, provider string, market func(int64) *marketResponse, targets map[int64][]target) error {
	var ids []int64
	for id, m := range g.fetcher.marketsByID {
		if m.provider == provider {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	var newest time.Time
	for _, f := range g.files {
		if f.AppID == g.app && f.FetchedAt.After(newest) {
			newest = f.FetchedAt
		}
	}
	err := storedQuotes(ctx, g.fetcher.store, g.app, func(q *NamedSnapshot) {
		if _, found := slices.BinarySearch(ids, q.MarketID); !found {
			return
		}
		price := g.convert.price(&quoteRecord{Currency: q.Currency, Ask: q.Ask, Sale: q.Sale})
		if price <= 0 || !newest.IsZero() && newest.Sub(q.FetchedAt).Abs() > sameTime {
			return
		}
		m := market(q.MarketID)
		m.last = fetchedAt(m.last, q.FetchedAt)
		m.last.Points = append(m.last.Points, pointOf(q.Name, q.Phase, price))
	})
	if err != nil {
		return err
	}
	for _, u := range g.units {
		if u.Provider != provider || u.AppID != g.app || u.File != "" {
			continue
		}
		for _, id := range ids {
			m := market(id)
			m.next = fetchedAt(m.next, u.FetchedAt)
			m.next.Partial = true
			targets[u.ResponseUnitID] = append(targets[u.ResponseUnitID], target{market: id, next: true})
		}
	}
	return nil
}

func pointOf[T ~string | ~[]byte](name T, phase string, price money.Micro) pricing.Point {
	return pricing.Point{Key: pricing.KeyOf(name, phase), Traits: pricing.TraitsOf(string(name)), Amount: price}
}

// target is where a unit's quotes of a market belong: to the last good response, the new
// response, or both.
type target struct {
	market     int64
	last, next bool
}

// targets returns where the quotes of each unit belong, and the provider's markets. A market
// may have several files, and its response consists of all of them. A file without a new
// response is represented by its last one.
func (g *game) targets(ctx context.Context, prov string, states map[int64]pricing.ValidationState) (map[int64][]target, map[int64]*marketResponse, error) {
	targets, markets := map[int64][]target{}, map[int64]*marketResponse{}
	responded := map[MarketFile]*marketInFile{} // by market and file
	isNew := map[int64]bool{}
	for _, p := range g.parts {
		if p.Unit.Provider == prov && p.Unit.AppID == g.app && p.isNew {
			responded[MarketFile{MarketID: p.Fetch.MarketID, File: p.Unit.File}] = p
			isNew[p.Fetch.MarketID] = true
		}
	}
	market := func(id int64) *marketResponse {
		m := markets[id]
		if m == nil {
			known := g.fetcher.marketsByID[id]
			m = &marketResponse{Market: pricing.Market{ID: id, ByName: known.byName, MaxAge: known.MaxAge, State: states[id]}}
			markets[id] = m
		}
		return m
	}
	for _, f := range g.files {
		if known, ok := g.fetcher.marketsByID[f.MarketID]; !ok || known.provider != prov || f.AppID != g.app {
			continue
		}
		m := market(f.MarketID)
		if f.AcceptedAt.After(m.State.AcceptedAt) {
			m.State.AcceptedAt = f.AcceptedAt
		}
		if f.UnitID == 0 {
			continue
		}
		reuse := isNew[f.MarketID] && responded[MarketFile{MarketID: f.MarketID, File: f.File}] == nil
		targets[f.UnitID] = append(targets[f.UnitID], target{f.MarketID, true, reuse})
		m.last = fetchedAt(m.last, f.FetchedAt)
		m.names += f.Quotes
		if reuse {
			m.next = fetchedAt(m.next, f.FetchedAt)
		}
	}
	for _, p := range responded {
		targets[p.Unit.ResponseUnitID] = append(targets[p.Unit.ResponseUnitID], target{market: p.Fetch.MarketID, next: true})
		m := market(p.Fetch.MarketID)
		m.next = fetchedAt(m.next, p.Unit.FetchedAt)
	}
	if d := g.fetcher.providers[prov].Describe(); d.Shape != provider.Bulk {
		if err := g.named(ctx, prov, market, targets); err != nil {
			return nil, nil, err
		}
	}
	return targets, markets, nil
}

// fetchedAt sets the time of a response to at if at is later. It creates the response if r is
// nil. So the time of a response becomes the time of its newest file.
func fetchedAt(r *pricing.Response, at time.Time) *pricing.Response {
	if r == nil {
		r = &pricing.Response{Rate: money.RateScale}
	}
	if at.After(r.At) {
		r.At = at
	}
	return r
}

// read reads the quotes of some markets into their responses, converted to the base currency.
func (g *game) read(ctx context.Context, now time.Time, all map[int64][]target, markets []*marketResponse) error {
	dec := newDecoder()
	defer dec.close()
	stated, fetched := map[int64]time.Time{}, map[int64]time.Time{}
	for _, p := range g.parts {
		stated[p.Unit.ResponseUnitID], fetched[p.Unit.ResponseUnitID] = p.Unit.StatedAt, p.Unit.FetchedAt
	}
	for _, f := range g.files {
		fetched[f.UnitID] = f.FetchedAt
	}
	buckets := make([]int64, catalog.Buckets)
	for i := range buckets {
		buckets[i] = int64(i)
	}
	wanted := map[int64]*marketResponse{}
	for _, m := range markets {
		m.grow()
		wanted[m.ID] = m
		// Positions of names are needed only if a name can occur in several units of a response.
		// Units of names have no name in common. A market with one file has at most two units,
		// which belong to different responses.
		if byName := m.next != nil && m.next.Partial; !byName && files(all, m.ID) > 2 {
			m.lastSeen, m.nextSeen = map[uint64]pointPosition{}, map[uint64]pointPosition{}
		}
	}
	var units []int64
	for unit, into := range all {
		if slices.ContainsFunc(into, func(t target) bool { return wanted[t.market] != nil }) {
			units = append(units, unit)
		}
	}
	slices.Sort(units)
	return g.fetcher.readBlobs(ctx, units, buckets, func(b Blob) error {
		admission.Yield(ctx)
		into := all[b.Unit]
		return g.fetcher.decode(dec, b, func(q *quoteRecord) {
			for _, t := range into {
				if t.market != q.Market {
					continue
				}
				price, marketTime := g.convert.price(q), q.MarketTime
				if marketTime.IsZero() {
					marketTime = stated[b.Unit]
				}
				switch {
				case price <= 0:
				case pricing.Outdated(now, marketTime):
					wanted[t.market].addOld(t)
				default:
					wanted[t.market].add(t, pointOf(q.Name, q.Phase, price), fetched[b.Unit], marketTime)
				}
			}
		})
	})
}

// files counts the units that contain quotes of a market.
func files(targets map[int64][]target, market int64) (n int) {
	for _, into := range targets {
		for _, t := range into {
			if t.market == market {
				n++
			}
		}
	}
	return n
}

// addOld counts a quote that is outdated by the market's own time.
func (m *marketResponse) addOld(t target) {
	if t.last {
		m.last.Old++
	}
	if t.next {
		m.next.Old++
	}
}

// pointPosition is the position of a name in a response, with the times of its quote.
type pointPosition struct {
	at                  int
	fetched, marketTime time.Time
}

// add adds a quote. If several files of a market contain a name, the newest quote counts, as
// in an estimate (see addQuote). So validation checks the quotes that estimates use.
func (m *marketResponse) add(t target, p pricing.Point, fetched, marketTime time.Time) {
	if t.last {
		m.last.Points = addFresher(m.last.Points, m.lastSeen, p, pointPosition{len(m.last.Points), fetched, marketTime})
	}
	if t.next {
		m.next.Points = addFresher(m.next.Points, m.nextSeen, p, pointPosition{len(m.next.Points), fetched, marketTime})
	}
}

// addFresher adds a point, or replaces the point of the same name if the new one is fresher.
func addFresher(points []pricing.Point, seen map[uint64]pointPosition, p pricing.Point, here pointPosition) []pricing.Point {
	if seen == nil {
		return append(points, p)
	}
	before, known := seen[p.Key]
	switch {
	case !known:
		seen[p.Key] = here
		return append(points, p)
	case cmp.Or(here.fetched.Compare(before.fetched), here.marketTime.Compare(before.marketTime)) > 0:
		here.at = before.at
		seen[p.Key], points[before.at] = here, p
	}
	return points
}
