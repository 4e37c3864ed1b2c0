package refresh

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
)

// part is a market's part of a file's response in a job.
type part struct {
	Verdict
	base  MarketFile // its newest good response, if any
	isNew bool       // a response to be validated, not an earlier one again
}

// validate checks the new responses of a job's files as a whole, learns the levels
// of each game's markets from the good ones (pricing.md, steps 5 to 7), and lets
// the job estimate. Rejecting a response requires reading all of it, so this comes
// between fetching and estimating. Where several processes validate the same job,
// the first to write decides.
func (e *Engine) validate(ctx context.Context, job *Job) error {
	all, err := JobUnits(ctx, e.store, job.ID)
	if err != nil {
		return err
	}
	units := slices.DeleteFunc(slices.Clone(all), func(u Unit) bool { return u.State != UnitDone })
	parts, files, err := e.parts(ctx, job, units)
	if err != nil {
		return err
	}
	convert, err := e.converter(ctx, job.RateSet)
	if err != nil {
		return err
	}
	games := games(job, all, parts)
	var learned []Learned
	for _, app := range slices.Sorted(maps.Keys(games)) {
		if !games[app] {
			learned = append(learned, Learned{AppID: app})
			continue
		}
		g := &game{engine: e, convert: convert, app: app, units: units, parts: parts, files: files}
		same, err := g.unchanged(ctx, e.now())
		result := Learned{AppID: app}
		if err == nil && !same {
			result, err = g.validate(ctx, e.now())
		}
		if err != nil {
			return fmt.Errorf("validate responses of job %d, game %d: %w", job.ID, app, err)
		}
		learned = append(learned, result)
	}
	verdicts := make([]Verdict, 0, len(parts))
	for _, p := range parts {
		verdicts = append(verdicts, p.Verdict)
	}
	listed, err := e.newlyListed(ctx, job, verdicts)
	if err != nil {
		return fmt.Errorf("missing prices listed for job %d: %w", job.ID, err)
	}
	first, due := false, false
	err = e.store.InTx(ctx, func(tx *db.Tx) (err error) {
		if first, err = StoreValidation(tx, job.ID, verdicts, learned); err != nil || !first {
			return err
		}
		due, err = dueListed(tx, listed)
		return err
	})
	if !first {
		return err
	}
	if due {
		e.wake(WorkMissing)
	}
	for _, v := range verdicts {
		if v.Quarantine != "" {
			e.log.Warn("response quarantined", "job", job.ID, "file", v.Unit.File, "reason", v.Quarantine)
		}
	}
	return err
}

// games returns the games that a job requested, and whether there is something to
// learn of each: a file's new response or, in a bulk job, quotes that were requested
// by name. A job of missing prices has too few of these to be worth a reading of the
// whole game.
func games(job *Job, units []Unit, parts []*part) map[int32]bool {
	games := map[int32]bool{}
	for i := range units {
		u := &units[i]
		games[u.AppID] = games[u.AppID] || u.File == "" && job.Kind == Bulk
	}
	for _, p := range parts {
		games[p.Unit.AppID] = games[p.Unit.AppID] || p.isNew
	}
	return games
}

// parts lists what a job's files brought, market by market, and the newest good
// responses of all markets' files.
func (e *Engine) parts(ctx context.Context, job *Job, units []Unit) ([]*part, []MarketFile, error) {
	outcomes, err := ReadOutcomes(ctx, e.store, job.ID)
	if err != nil {
		return nil, nil, err
	}
	files, err := MarketFiles(ctx, e.store)
	if err != nil {
		return nil, nil, err
	}
	var out []*part
	for _, u := range units {
		for _, id := range e.marketsOf(u) {
			p := &part{Verdict: Verdict{Unit: u, Fetch: MarketFetch{MarketID: id, Outcome: OutcomeOK}}}
			if f, ok := outcomes[UnitMarket{u.ID, id}]; ok {
				p.Fetch = f
			}
			for _, f := range files {
				if f.MarketID == id && f.AppID == u.AppID && f.File == u.File {
					p.base = f
				}
			}
			repeated := p.base.UnitID == u.BlobUnit
			// An earlier response that was not the newest good one is validated
			// again: its own job may not have come to that yet. Only its outcome in
			// this job is stored.
			p.Reused = repeated || u.BlobUnit != u.ID
			p.isNew = p.Fetch.Outcome == OutcomeOK && !repeated
			out = append(out, p)
		}
	}
	return out, files, nil
}

// marketsOf returns the markets of a unit's file.
func (e *Engine) marketsOf(u Unit) []int64 {
	src, ok := e.providers[u.Provider]
	if !ok || u.File == "" {
		return nil
	}
	d := src.Describe()
	keys := d.MarketsOf(u.File)
	var out []int64
	for id, m := range e.known {
		if m.provider == u.Provider && slices.Contains(keys, m.Key) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// game is the validation of one game's responses in a job. Providers that take
// names take part with the quotes that are stored of them and those of this job:
// they have levels and vote on others, but what they answer is never refused as a
// whole.
type game struct {
	engine  *Engine
	convert *converter
	app     int32
	units   []Unit       // of all games, that responded
	parts   []*part      // of all games
	files   []MarketFile // of all games
}

// learnAgain is how long after a set was learned the same responses teach nothing
// new: what they are compared with is a day old or more.
const learnAgain = time.Hour

// unchanged reports whether all new responses are byte for byte the newest good ones,
// of which a set was learned within the hour. They are good then, and that set
// counts.
func (g *game) unchanged(ctx context.Context, now time.Time) (bool, error) {
	at, err := learnedAt(ctx, g.engine.store, g.app)
	if age := now.Sub(at); err != nil || at.IsZero() || age < 0 || age > learnAgain {
		return false, err
	}
	if slices.ContainsFunc(g.units, func(u Unit) bool { return u.AppID == g.app && u.File == "" }) {
		return false, nil
	}
	compared := map[[2]int64]bool{}
	for _, p := range g.parts {
		if p.Unit.AppID != g.app || !p.isNew {
			continue
		}
		pair := [2]int64{p.Unit.BlobUnit, p.base.UnitID}
		if p.base.UnitID == 0 || p.base.Quarantine != "" {
			return false, nil
		}
		if compared[pair] {
			continue
		}
		compared[pair] = true
		if same, err := sameResponse(ctx, g.engine.store, p.Unit.BlobUnit, p.base.UnitID); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// validate decides about the game's parts and returns what was learned.
func (g *game) validate(ctx context.Context, now time.Time) (Learned, error) {
	e := g.engine
	set, err := LevelSet(ctx, e.store, g.app)
	if err != nil {
		return Learned{}, err
	}
	if set == nil {
		set = pricing.NewSet(g.convert.rates.Dollar(g.convert.currency))
	}
	states, err := MarketMemories(ctx, e.store, g.app)
	if err != nil {
		return Learned{}, err
	}
	round := pricing.NewRound(now, set)
	for _, provider := range slices.Sorted(maps.Keys(e.providers)) {
		if err := g.add(ctx, round, now, provider, states); err != nil {
			return Learned{}, err
		}
	}
	result := round.Finish(func() { admission.Rest(ctx) })
	return g.apply(&result), nil
}

// marketResponse is one market of the game on its way into the round.
type marketResponse struct {
	pricing.Market
	last, next *pricing.Response
	names      int64            // that last has, and next may have
	lastSeen   map[uint64]place // of names in last, where several files make it up
	nextSeen   map[uint64]place
}

// add reads the responses of a provider's markets, the last good ones and the new
// ones, and adds them to the round. Markets of one file are read together, those of
// several files beside each other: it holds those of a few files at a time.
func (g *game) add(ctx context.Context, round *pricing.Round, now time.Time, provider string, states map[int64]pricing.MarketState) error {
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
	var readers sync.WaitGroup
	for range min(len(together), readersAtOnce) {
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
			groups <- group
		}
		close(groups)
		readers.Wait()
		close(read)
	}()
	for r := range read {
		if err = cmp.Or(err, r.err); err != nil {
			cancel() // and the others end soon
			continue
		}
		for _, m := range r.markets {
			if err := round.Add(m.Market, m.last, m.next); err != nil {
				g.engine.log.Warn("stored responses unreadable", "provider", provider, "market", g.engine.known[m.ID].Key, "error", err)
			}
			m.History, m.last, m.next = nil, nil, nil
			admission.Rest(ctx)
		}
	}
	return err
}

// normalize sorts the responses here, beside other readers: the round does it one
// after another, and has nothing left to do.
func (m *marketResponse) normalize() {
	for _, r := range []*pricing.Response{m.last, m.next} {
		if r != nil {
			r.Normalize()
		}
	}
}

// grow makes room for the names that its responses probably have: room that grows name
// by name would leave as much behind.
func (m *marketResponse) grow() {
	for _, r := range []*pricing.Response{m.last, m.next} {
		if r != nil {
			r.Points = slices.Grow(r.Points, int(m.names))
		}
	}
}

// readersAtOnce is how many groups of markets are read at once.
const readersAtOnce = 2

// grouped returns the markets of a provider such that those that share a unit are
// together, by id.
func grouped(targets map[int64][]target, markets map[int64]*marketResponse) [][]int64 {
	first := map[int64]int64{} // the group of a market, named by one of its markets
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

// sameTime is how far apart quotes of markets may have been fetched to be compared
// with each other.
const sameTime = 2 * time.Hour

// named adds what is known of a provider's markets by name: those of the stored
// quotes that were fetched together with the newest good response of a file, if there
// is one, and those of this job.
func (g *game) named(ctx context.Context, provider string, market func(int64) *marketResponse, targets map[int64][]target) error {
	var ids []int64
	for id, m := range g.engine.known {
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
	err := storedQuotes(ctx, g.engine.store, g.app, func(q *StoredQuote) {
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
			targets[u.BlobUnit] = append(targets[u.BlobUnit], target{market: id, next: true})
		}
	}
	return nil
}

func pointOf[T ~string | ~[]byte](name T, phase string, price money.Micro) pricing.Point {
	return pricing.Point{Key: pricing.KeyOf(name, phase), Traits: pricing.TraitsOf(string(name)), Amount: price}
}

// target says that a unit's quotes of a market belong to its last good response,
// its new one, or both.
type target struct {
	market     int64
	last, next bool
}

// targets lists, by unit, which markets of a provider its blobs are read for. A
// market may have several files: its response is all of them together, those that
// did not respond as they were last.
func (g *game) targets(ctx context.Context, prov string, states map[int64]pricing.MarketState) (map[int64][]target, map[int64]*marketResponse, error) {
	targets, markets := map[int64][]target{}, map[int64]*marketResponse{}
	responded := map[MarketFile]*part{} // by market and file
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
			known := g.engine.known[id]
			m = &marketResponse{Market: pricing.Market{ID: id, ByName: known.byName, MaxAge: known.MaxAge, State: states[id]}}
			markets[id] = m
		}
		return m
	}
	for _, f := range g.files {
		if known, ok := g.engine.known[f.MarketID]; !ok || known.provider != prov || f.AppID != g.app {
			continue
		}
		m := market(f.MarketID)
		if f.AcceptedAt.After(m.State.AcceptedAt) {
			m.State.AcceptedAt = f.AcceptedAt
		}
		if f.UnitID == 0 {
			continue
		}
		again := isNew[f.MarketID] && responded[MarketFile{MarketID: f.MarketID, File: f.File}] == nil
		targets[f.UnitID] = append(targets[f.UnitID], target{f.MarketID, true, again})
		m.last = fetchedAt(m.last, f.FetchedAt)
		m.names += f.Quotes
		if again {
			m.next = fetchedAt(m.next, f.FetchedAt)
		}
	}
	for _, p := range responded {
		targets[p.Unit.BlobUnit] = append(targets[p.Unit.BlobUnit], target{market: p.Fetch.MarketID, next: true})
		m := market(p.Fetch.MarketID)
		m.next = fetchedAt(m.next, p.Unit.FetchedAt)
	}
	if d := g.engine.providers[prov].Describe(); d.Shape != provider.Bulk {
		if err := g.named(ctx, prov, market, targets); err != nil {
			return nil, nil, err
		}
	}
	return targets, markets, nil
}

// fetchedAt returns the response with a part of that time: the newest part counts.
func fetchedAt(r *pricing.Response, at time.Time) *pricing.Response {
	if r == nil {
		r = &pricing.Response{Rate: money.RateScale}
	}
	if at.After(r.At) {
		r.At = at
	}
	return r
}

// read reads the quotes of some markets into their responses, in the base currency.
func (g *game) read(ctx context.Context, now time.Time, all map[int64][]target, markets []*marketResponse) error {
	unpack := newDecoder()
	defer unpack.close()
	stated, fetched := map[int64]time.Time{}, map[int64]time.Time{}
	for _, p := range g.parts {
		stated[p.Unit.BlobUnit], fetched[p.Unit.BlobUnit] = p.Unit.StatedAt, p.Unit.FetchedAt
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
		var err error
		if m.History, err = MarketHistory(ctx, g.engine.store, g.app, m.ID); err != nil {
			return err
		}
		m.grow()
		wanted[m.ID] = m
		// Of requests by name each name is in one unit. A last response and a new one
		// are two.
		if byName := m.next != nil && m.next.Partial; !byName && files(all, m.ID) > 2 {
			m.lastSeen, m.nextSeen = map[uint64]place{}, map[uint64]place{}
		}
	}
	var units []int64
	for unit, into := range all {
		if slices.ContainsFunc(into, func(t target) bool { return wanted[t.market] != nil }) {
			units = append(units, unit)
		}
	}
	slices.Sort(units)
	return g.engine.blobs(ctx, units, buckets, func(b Blob) error {
		admission.Rest(ctx)
		into := all[b.Unit]
		return g.engine.decode(unpack, b, func(q *quoteRecord) {
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

// files counts the units that a market is read from.
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

// addOld counts a quote that is too old by the market's own time.
func (m *marketResponse) addOld(t target) {
	if t.last {
		m.last.Old++
	}
	if t.next {
		m.next.Old++
	}
}

// place is where a name stands in a response, and how fresh its quote is.
type place struct {
	at                  int
	fetched, marketTime time.Time
}

// add adds a quote. Of a name in several files of a market the fresher quote counts, as
// it does in an estimate (see take): what is validated is what is used.
func (m *marketResponse) add(t target, p pricing.Point, fetched, marketTime time.Time) {
	if t.last {
		m.last.Points = addFresher(m.last.Points, m.lastSeen, p, place{len(m.last.Points), fetched, marketTime})
	}
	if t.next {
		m.next.Points = addFresher(m.next.Points, m.nextSeen, p, place{len(m.next.Points), fetched, marketTime})
	}
}

func addFresher(points []pricing.Point, seen map[uint64]place, p pricing.Point, here place) []pricing.Point {
	if seen == nil {
		return append(points, p)
	}
	before, again := seen[p.Key]
	switch {
	case !again:
		seen[p.Key] = here
		return append(points, p)
	case cmp.Or(here.fetched.Compare(before.fetched), here.marketTime.Compare(before.marketTime)) > 0:
		here.at = before.at
		seen[p.Key], points[before.at] = here, p
	}
	return points
}

// apply notes refusals in the game's parts, and returns what is to be stored.
func (g *game) apply(r *pricing.Result) Learned {
	out := Learned{AppID: g.app, Set: r.Set, Movers: r.Movers}
	for i := range r.Markets {
		o := &r.Markets[i]
		store := g.engine.known[o.ID].byName
		for _, p := range g.parts {
			if p.Unit.AppID != g.app || p.Fetch.MarketID != o.ID || !p.isNew {
				continue
			}
			store = store || !p.Reused
			if o.Refusal != nil {
				m := g.engine.known[o.ID]
				rival := cmp.Or(g.engine.known[o.Refusal.Rival].Key, strconv.FormatInt(o.Refusal.Rival, 10))
				p.Quarantine = fmt.Sprintf("%s: %s: quarantined: %s", m.provider, m.Key, o.Refusal.Text(rival))
				p.Fetch.Outcome = OutcomeQuarantined
			}
		}
		if store {
			out.Memories = append(out.Memories, MarketMemory{MarketID: o.ID, State: o.State, History: o.History})
		}
	}
	return out
}
