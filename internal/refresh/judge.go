package refresh

import (
	"context"
	"fmt"
	"slices"
	"time"

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

// suspect is a market's part of a file's answer, to be judged.
type suspect struct {
	Judgement
	base   MarketFile       // its newest good answer, if any
	check  *pricing.Checkup // nil: nothing to be compared with
	shared int
	open   bool // more shared names are wanted
	prices map[string]money.Micro
	before map[string]money.Micro
}

// judge holds every file's answer against the market's own last one, or a first
// one against the other markets (pricing.md, step 7), and lets the job settle
// with the good ones. One who does not believe a whole answer must see all of
// it, so this comes between fetching and settling. Where several processes judge
// the same job, the verdicts of the first to write them count.
func (e *Engine) judge(ctx context.Context, job *Job) error {
	suspects, units, err := e.suspects(ctx, job)
	if err != nil {
		return err
	}
	if err := e.compare(ctx, suspects, units); err != nil {
		return fmt.Errorf("judge answers of job %d: %w", job.ID, err)
	}
	now := e.now()
	verdicts := make([]Judgement, 0, len(suspects))
	for _, s := range suspects {
		if d := s.diagnose(); d.Sick() && !s.vouchedFor(d, now) {
			m := e.known[s.Fetch.MarketID]
			s.Refused = pricing.Refused{Names: int(s.Fetch.Quotes), Ratio: d.Ratio}
			s.Quarantine = fmt.Sprintf("%s: %s: quarantined: %s", m.source, m.Key, d)
			s.Fetch.Outcome = OutcomeQuarantined
		}
		verdicts = append(verdicts, s.Judgement)
	}
	judged := false
	err = e.store.InTx(ctx, func(tx Tx) (err error) {
		judged, err = tx.Judge(job.ID, verdicts)
		return err
	})
	if !judged {
		return err // another process was first
	}
	for _, v := range verdicts {
		if v.Quarantine != "" {
			e.log.Warn("answer quarantined", "job", job.ID, "file", v.Unit.File, "reason", v.Quarantine)
		}
	}
	return err
}

// suspects lists what a job's files brought, and all its answered units.
func (e *Engine) suspects(ctx context.Context, job *Job) ([]*suspect, []Unit, error) {
	all, err := e.store.JobUnits(ctx, job.ID)
	if err != nil {
		return nil, nil, err
	}
	outcomes, err := e.store.Outcomes(ctx, job.ID)
	if err != nil {
		return nil, nil, err
	}
	files, err := e.store.MarketFiles(ctx)
	if err != nil {
		return nil, nil, err
	}
	var out []*suspect
	var units []Unit
	for _, u := range all {
		if u.State != UnitDone {
			continue
		}
		units = append(units, u)
		for _, id := range e.marketsOf(u) {
			s := &suspect{Judgement: Judgement{Unit: u, Fetch: MarketFetch{MarketID: id, Outcome: OutcomeOK}}}
			if f, ok := outcomes[UnitMarket{u.ID, id}]; ok {
				s.Fetch = f
			}
			for _, f := range files {
				if f.MarketID == id && f.AppID == u.AppID && f.File == u.File {
					s.base = f
				}
			}
			e.prepare(s)
			out = append(out, s)
		}
	}
	return out, units, nil
}

// prepare decides what a market's part of an answer is to be compared with. One
// that an earlier unit brought is held against the newest good one like any
// other, since its own job may not have been judged yet; but it never becomes
// the newest itself.
func (e *Engine) prepare(s *suspect) {
	s.Reused = s.Unit.BlobUnit != s.Unit.ID
	switch {
	case s.base.UnitID == s.Unit.BlobUnit && s.base.UnitID != 0:
		s.Reused = true
	case s.Fetch.Outcome != OutcomeOK:
	default:
		s.check, s.open = &pricing.Checkup{}, true
	}
}

// acceptedFor is how long an operator's word for a refused answer holds: for the
// next run, also where that is a day away.
const acceptedFor = 48 * time.Hour

// vouchedFor reports whether an operator accepted what this answer repeats.
func (s *suspect) vouchedFor(d pricing.Diagnosis, now time.Time) bool {
	age := now.Sub(s.base.AcceptedAt)
	return !s.Reused && !s.base.AcceptedAt.IsZero() && age >= 0 && age < acceptedFor &&
		s.base.Refused.Covers(int(s.Fetch.Quotes), d)
}

// diagnose judges what was compared.
func (s *suspect) diagnose() pricing.Diagnosis {
	switch {
	case s.check == nil:
		return pricing.Diagnosis{}
	case s.base.UnitID == 0:
		return s.check.AgainstOthers()
	default:
		return s.check.AgainstOwn(int(s.base.Quotes), int(s.Fetch.Quotes))
	}
}

// marketsOf returns the markets of a unit's file.
func (e *Engine) marketsOf(u Unit) []int64 {
	src, ok := e.sources[u.Source]
	if !ok || u.File == "" {
		return nil
	}
	d := src.Describe()
	keys := d.MarketsOf(u.File)
	var out []int64
	for id, m := range e.known {
		if m.source == u.Source && slices.Contains(keys, m.Key) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// compare reads answers some buckets at a time until every suspect has enough
// shared names.
func (e *Engine) compare(ctx context.Context, suspects []*suspect, units []Unit) error {
	unpack := newUnpacker()
	defer unpack.close()
	first := slices.ContainsFunc(suspects, func(s *suspect) bool { return s.open && s.base.UnitID == 0 })
	for from := 0; from < catalog.Buckets; from += sampleBuckets {
		if !slices.ContainsFunc(suspects, func(s *suspect) bool { return s.open }) {
			return nil
		}
		others := sample{}
		if first {
			others = newSample(units)
		}
		if err := e.readSample(ctx, unpack, suspects, others, from); err != nil {
			return err
		}
		medians, err := e.medians(ctx, first, from)
		if err != nil {
			return err
		}
		for _, s := range suspects {
			if s.open {
				s.addSample(suspects, others, medians)
			}
		}
		for _, s := range suspects {
			s.open = s.open && s.shared < sampleNames
		}
	}
	return nil
}

// sample is what the sources that are asked by name say of some buckets in this
// job: their answers are not judged, but first answers are held against them.
type sample struct {
	games  map[int64]int32 // by the unit whose blobs hold the answer
	prices map[gameMarket]map[string]money.Micro
}

func newSample(units []Unit) sample {
	s := sample{games: map[int64]int32{}, prices: map[gameMarket]map[string]money.Micro{}}
	for _, u := range units {
		if u.File == "" {
			s.games[u.BlobUnit] = u.AppID
		}
	}
	return s
}

// pricesOf returns where the prices of a unit's market belong, nil if nowhere.
func (s *sample) pricesOf(unit, market int64) map[string]money.Micro {
	app, ok := s.games[unit]
	if !ok {
		return nil
	}
	key := gameMarket{app, market}
	if s.prices[key] == nil {
		s.prices[key] = map[string]money.Micro{}
	}
	return s.prices[key]
}

// readSample reads the prices of some buckets from the new answers and from the
// last good ones.
func (e *Engine) readSample(ctx context.Context, unpack *unpacker, suspects []*suspect, others sample, from int) error {
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
	for unit := range others.games {
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
				prices = others.pricesOf(b.Unit, q.Market)
			}
			if prices == nil {
				return
			}
			if p := e.basePrice(q); p > 0 {
				prices[string(q.Name)+"\x00"+q.Phase] = p
			}
		})
	})
}

// basePrice is a quote's price in the base currency, 0 if it has none.
func (e *Engine) basePrice(q *packed) money.Micro {
	p, _ := pricing.Quoted(q.Ask, q.Sale)
	if q.Currency == e.cfg.Policy.Currency || p == 0 {
		return p
	}
	rate, ok := e.cfg.Policy.Rates.Of(q.Currency)
	if !ok {
		return 0
	}
	converted, _ := money.Convert(p, rate.Micro)
	return converted
}

// medians returns the stored medians of some buckets' items by game and name,
// where first answers are to be held against them: what all markets, however
// they are asked, said before this job.
func (e *Engine) medians(ctx context.Context, first bool, from int) (map[gameName]money.Micro, error) {
	if !first {
		return nil, nil
	}
	out := map[gameName]money.Micro{}
	err := e.store.Medians(ctx, from, from+sampleBuckets, func(key catalog.Key, median money.Micro) {
		out[gameName{key.AppID, key.Name + "\x00" + key.Phase}] = median
	})
	return out, err
}

// gameName is an item's name and phase within a game.
type gameName struct {
	app  int32
	name string
}

// addSample compares the prices just read: with the market's own before, or
// those of a first answer with the stored medians, and where there is none with
// what the others, files and sources that are asked by name, say in this job.
func (s *suspect) addSample(all []*suspect, named sample, medians map[gameName]money.Micro) {
	if s.base.UnitID != 0 {
		for name, p := range s.prices {
			if before := s.before[name]; before > 0 {
				s.check.Add(before, p)
				s.shared++
			}
		}
		return
	}
	var others []money.Micro
	for name, p := range s.prices {
		if known := medians[gameName{s.Unit.AppID, name}]; known > 0 {
			s.check.Add(known, p)
			s.shared++
			continue
		}
		others = others[:0]
		for _, o := range all {
			if q := o.prices[name]; o != s && q > 0 && o.Unit.AppID == s.Unit.AppID {
				others = append(others, q)
			}
		}
		for key, prices := range named.prices {
			if q := prices[name]; q > 0 && key.app == s.Unit.AppID {
				others = append(others, q)
			}
		}
		if len(others) > 0 {
			slices.Sort(others)
			s.check.Add(others[len(others)/2], p)
			s.shared++
		}
	}
}
