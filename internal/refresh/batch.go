package refresh

import (
	"cmp"
	"context"
	"slices"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
)

// jobQuote is a quote of this job with the fetch time of its response.
type jobQuote struct {
	MarketSnapshot
	at     time.Time
	reused bool // the response is of an earlier job
	byName bool // the item was requested by name
}

// requestOutcome is the outcome of all requests for an item.
type requestOutcome struct {
	responded bool
	skip      string // why a request was not sent; "": all were sent
	errs      []string
	providers []providerResponse // providers that were queried by name and responded
	silent    []int64            // markets of these providers that the response lacks
	rejected  []int64            // markets whose row of the item was rejected
}

// providerResponse is the response of a provider to a request for an item by name.
type providerResponse struct {
	provider string
	at       time.Time
}

// fileOutcome is the outcome of all files of a market.
type fileOutcome struct {
	responded bool      // all files have a usable response
	at        time.Time // fetch time of the oldest file
	problem   string    // why one of the files is unusable
}

// gameMarket identifies a market's quotes of one game.
type gameMarket struct {
	app    int32
	market int64
}

// load reads everything that the estimates of a batch need.
func (s *batchEstimator) load(ctx context.Context, b Batch) error {
	st := s.estimator.store
	pricers, err := s.estimator.pricers(ctx, &b)
	if err != nil {
		return err
	}
	s.pricers, s.rates = pricers, b.RateSet
	items, err := BatchItems(ctx, st, b)
	if err != nil {
		return err
	}
	units, err := batchUnits(ctx, st, b)
	if err != nil {
		return err
	}
	outcomes, err := readOutcomes(ctx, st, b.JobID)
	if err != nil {
		return err
	}
	s.reset(items)
	s.noteUnits(units, outcomes)
	return s.readResponses(ctx, units, outcomes)
}

// reset prepares the estimator for the items of another batch.
func (s *batchEstimator) reset(items []Item) {
	n := len(items)
	s.items = items
	s.requests = slices.Grow(s.requests[:0], n)[:n]
	s.nextSameName = slices.Grow(s.nextSameName[:0], n)[:n]
	for len(s.jobQuotes) < n {
		s.jobQuotes = append(s.jobQuotes, make([]jobQuote, 0, min(len(s.estimator.marketsByID), 16)))
	}
	if s.firstByName == nil {
		s.firstByName = make(map[string]int32, n)
	}
	clear(s.firstByName)
	clear(s.newItems)
	for i := range items {
		s.jobQuotes[i] = s.jobQuotes[i][:0]
		s.requests[i] = requestOutcome{}
		s.nextSameName[i] = -1
		if at, ok := s.firstByName[items[i].Key.Name]; ok {
			s.nextSameName[i] = at
		}
		s.firstByName[items[i].Key.Name] = int32(i)
	}
}

// recycle keeps the buffers of a batch estimator for the next batch. It frees the items first.
// Otherwise the items of two batches would be in memory while the next batch is read.
func (e *estimator) recycle(s *batchEstimator) {
	s.items = nil
	clear(s.result.Items)
	e.batchEstimators.Put(s)
}

// noteUnits adds the outcome of each unit to the items that the unit requested.
func (s *batchEstimator) noteUnits(units []FetchUnit, outcomes map[UnitMarket]MarketFetch) {
	s.files = map[gameMarket]fileOutcome{}
	for _, u := range units {
		switch {
		case u.File != "":
			s.noteFile(&u, outcomes)
		case len(u.Names) > 0:
			s.noteNames(&u)
		}
	}
	for _, u := range units {
		if u.File == "" && len(u.Names) == 0 && u.State == UnitDeferred {
			s.noteDeferred(&u)
		}
	}
}

// noteFile adds the outcome of a file to all items of its game.
func (s *batchEstimator) noteFile(u *FetchUnit, outcomes map[UnitMarket]MarketFetch) {
	usable := false
	for _, id := range s.estimator.marketsOf(*u) {
		outcome := outcomes[UnitMarket{u.ID, id}].Outcome
		r := fileOutcome{responded: u.isUsable() && outcome == OutcomeOK, at: u.FetchedAt}
		usable = usable || r.responded
		if u.isUsable() && !r.responded {
			r.problem = u.Provider + ": " + outcome.text() + ": " + s.estimator.marketsByID[id].Key
		}
		key := gameMarket{u.AppID, id}
		if before, several := s.files[key]; several {
			r.responded = r.responded && before.responded
			r.problem = cmp.Or(before.problem, r.problem)
			if before.at.Before(r.at) {
				r.at = before.at
			}
		}
		s.files[key] = r
	}
	for i := range s.items {
		if s.items[i].Key.AppID == u.AppID {
			s.requests[i].addUnit(u, usable)
		}
	}
}

// noteNames adds the outcome of a unit of names to the items with these names.
func (s *batchEstimator) noteNames(u *FetchUnit) {
	for _, name := range u.Names {
		for i, ok := s.firstByName[name]; ok && i >= 0; i = s.nextSameName[i] {
			if s.items[i].Key.AppID == u.AppID {
				s.requests[i].addUnit(u, u.isUsable())
			}
		}
	}
}

// absenceValid is how long the response of a background provider remains evidence that a
// market does not list an item.
const absenceValid = 24 * time.Hour

// noteDeferred marks the items whose names were deferred because the provider's budget is
// spent. The unit does not list these names. They are the names of the game without a response
// of the provider, in this job and in the background fetch.
func (s *batchEstimator) noteDeferred(u *FetchUnit) {
	now := s.estimator.now()
	for i := range s.items {
		o := &s.requests[i]
		if s.items[i].Key.AppID != u.AppID || o.responseOf(u.Provider) != nil {
			continue
		}
		if slices.ContainsFunc(s.items[i].Quotes, func(v MarketSnapshot) bool {
			return s.estimator.marketsByID[v.MarketID].provider == u.Provider && (fetchedAfterEstimate(&v) || !quoted(&v) && now.Sub(v.FetchedAt) < absenceValid)
		}) {
			o.responded = true
			continue
		}
		o.addSkip(u)
	}
}

// responseOf returns the response of a provider that was queried by name, or nil.
func (o *requestOutcome) responseOf(provider string) *providerResponse {
	for k := range o.providers {
		if o.providers[k].provider == provider {
			return &o.providers[k]
		}
	}
	return nil
}

// addUnit adds the outcome of a unit.
func (o *requestOutcome) addUnit(u *FetchUnit, usable bool) {
	switch {
	case usable:
		o.responded = true
		if u.File == "" {
			o.providers, o.silent = append(o.providers, providerResponse{u.Provider, u.FetchedAt}), append(o.silent, u.Silent...)
		}
	case u.skipped():
		o.addSkip(u)
	case u.isUsable():
		o.errs = append(o.errs, u.Provider+": "+OutcomeQuarantined.text()+": "+u.File)
	default:
		o.errs = append(o.errs, u.Error)
	}
}

// addSkip stores why a request was not sent. A backoff takes precedence over a spent budget,
// and a spent budget over a pause.
func (o *requestOutcome) addSkip(u *FetchUnit) {
	order := []string{"", SkipPaused, SkipBudget, SkipBackoff}
	if reason := u.skipReason(); slices.Index(order, reason) > slices.Index(order, o.skip) {
		o.skip = reason
	}
}

// buckets returns the name buckets of the batch's items. A few missing prices need only a few
// buckets of a large file.
func (s *batchEstimator) buckets() []int64 {
	var held [catalog.Buckets]bool
	for i := range s.items {
		held[catalog.Bucket(s.items[i].Key.Name)] = true
	}
	var out []int64
	for bucket := range int64(catalog.Buckets) {
		if held[bucket] {
			out = append(out, bucket)
		}
	}
	return out
}

// readResponses decodes the stored responses and collects the quotes of the batch's items.
func (s *batchEstimator) readResponses(ctx context.Context, units []FetchUnit, outcomes map[UnitMarket]MarketFetch) error {
	byBlob := map[int64]FetchUnit{}
	var ids []int64
	for _, u := range units {
		if u.isUsable() {
			byBlob[u.ResponseUnitID] = u
			ids = append(ids, u.ResponseUnitID)
		}
	}
	return s.estimator.readBlobs(ctx, ids, s.buckets(), func(blob Blob) error {
		admission.Yield(ctx)
		u := byBlob[blob.Unit]
		return s.estimator.decodeRows(s.decoder, blob, func(q *quoteRecord) {
			if _, configured := s.estimator.marketsByID[q.Market]; !configured {
				return
			}
			if u.File != "" && outcomes[UnitMarket{u.ID, q.Market}].Outcome != OutcomeOK {
				return
			}
			known, taken := false, false
			for i, ok := s.firstByName[string(q.Name)]; ok && i >= 0; i = s.nextSameName[i] {
				k := s.items[i].Key
				if q.Rejected {
					if k.AppID == u.AppID && !slices.Contains(s.requests[i].rejected, q.Market) {
						s.requests[i].rejected = append(s.requests[i].rejected, q.Market)
					}
					continue
				}
				known = known || k.AppID == u.AppID
				if k.AppID == u.AppID && k.Phase == q.Phase {
					s.addQuote(int(i), q, &u)
					taken = true
				}
			}
			if known && !taken {
				s.addNewItem(q, u.AppID)
			}
		})
	})
}

// addNewItem notes a phase of a known name that is not an item yet. It does nothing unless
// the engine refreshes all known items. insertNewItems adds the item to the catalog, and the
// next job plans it.
func (s *batchEstimator) addNewItem(q *quoteRecord, app int32) {
	if !s.estimator.cfg.ScopeAll || q.Phase == "" || q.Ask == 0 && q.Sale == 0 {
		return
	}
	if s.newItems == nil {
		s.newItems = map[catalog.Key]struct{}{}
	}
	s.newItems[catalog.Key{AppID: app, Name: string(q.Name), Phase: q.Phase}] = struct{}{}
}

// addQuote adds a quote to an item. Of several quotes of one market, the newest counts. A
// quote without a market time gets the time that the response states. The stored quote has
// its own fetch time in two cases: several providers carry the market and are ranked by that
// time, or the response is older than this job.
func (s *batchEstimator) addQuote(i int, q *quoteRecord, u *FetchUnit) {
	f := jobQuote{at: u.FetchedAt, reused: u.ResponseUnitID != u.ID, byName: u.File == "", MarketSnapshot: q.snapshot()}
	if f.MarketTime.IsZero() && !u.StatedAt.IsZero() {
		f.MarketTime = u.StatedAt.UTC().Truncate(time.Hour)
	}
	if f.reused || s.estimator.shared[s.estimator.marketsByID[q.Market].Key] {
		f.FetchedAt = f.at
	}
	for k := range s.jobQuotes[i] {
		current := &s.jobQuotes[i][k]
		if current.MarketID != f.MarketID {
			continue
		}
		if cmp.Or(f.at.Compare(current.at), f.MarketTime.Compare(current.MarketTime)) > 0 {
			*current = f
		}
		return
	}
	s.jobQuotes[i] = append(s.jobQuotes[i], f)
}
