package refresh

import (
	"cmp"
	"context"
	"slices"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/provider"
)

// fetched is a quote of this job and the time of its response.
type fetched struct {
	Snapshot
	at     time.Time
	reused bool // from the response to an earlier job
	byName bool // from a request by name
}

// requestOutcome is the outcome of the requests for an item.
type requestOutcome struct {
	responded bool
	skip      string // why a request was not sent; "": all were sent
	errs      []string
	providers []providerResponse // that responded, of those queried by name
	silent    []int64            // their markets without anything in the response
	rejected  []int64            // their markets whose row of the item was rejected
}

// providerResponse is a provider that responded to a request for an item by name.
type providerResponse struct {
	provider string
	at       time.Time
}

// fileOutcome is what the files of a market returned.
type fileOutcome struct {
	responded bool      // by all files
	at        time.Time // when the first file was fetched
	problem   string    // why one of the files does not count
}

// gameMarket is a market's part of a game.
type gameMarket struct {
	app    int32
	market int64
}

func (s *batchEstimator) load(ctx context.Context, b Batch) error {
	st := s.stage.store
	pricers, err := s.stage.pricers(ctx, &b)
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

// reset prepares for the items of another batch.
func (s *batchEstimator) reset(items []Item) {
	n := len(items)
	s.items = items
	s.requests = slices.Grow(s.requests[:0], n)[:n]
	s.nextSameName = slices.Grow(s.nextSameName[:0], n)[:n]
	for len(s.jobQuotes) < n {
		s.jobQuotes = append(s.jobQuotes, nil)
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

// noteUnits stores which items each unit requested, and its outcome.
func (s *batchEstimator) noteUnits(units []Unit, outcomes map[UnitMarket]MarketFetch) {
	s.files = map[gameMarket]fileOutcome{}
	for _, u := range units {
		switch {
		case u.File != "":
			s.noteFile(&u, outcomes)
		case len(u.Names) > 0:
			s.noteNames(&u, outcomes)
		}
	}
	for _, u := range units {
		if u.File == "" && len(u.Names) == 0 && u.State == UnitDeferred {
			s.noteDeferred(&u)
		}
	}
}

func (s *batchEstimator) noteFile(u *Unit, outcomes map[UnitMarket]MarketFetch) {
	usable := false
	for _, id := range s.stage.marketsOf(*u) {
		outcome := outcomes[UnitMarket{u.ID, id}].Outcome
		r := fileOutcome{responded: u.isUsable() && outcome == OutcomeOK, at: u.FetchedAt}
		usable = usable || r.responded
		if u.isUsable() && !r.responded {
			r.problem = u.Provider + ": " + string(outcome) + ": " + s.stage.known[id].Key
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
			s.requests[i].addUnit(u, usable, nil)
		}
	}
}

// noteNames stores the outcome of a unit of names. Its response is checked quote by quote.
func (s *batchEstimator) noteNames(u *Unit, outcomes map[UnitMarket]MarketFetch) {
	var silent []int64
	for _, id := range s.stage.requestedMarkets(u) {
		if outcomes[UnitMarket{0, id}].Outcome == OutcomeSilent { // of all that was queried by name
			silent = append(silent, id)
		}
	}
	for _, name := range u.Names {
		for i, ok := s.firstByName[name]; ok && i >= 0; i = s.nextSameName[i] {
			if s.items[i].Key.AppID == u.AppID {
				s.requests[i].addUnit(u, u.isUsable(), silent)
			}
		}
	}
}

// absenceValid is how long a response without an item, from a provider in the background, counts
// as evidence that the item is not listed.
const absenceValid = 24 * time.Hour

// noteDeferred stores that a provider left names of a game for later. There is no list of them:
// they are all names that it returned no response for, in this job or in the background.
func (s *batchEstimator) noteDeferred(u *Unit) {
	now := s.stage.now()
	for i := range s.items {
		o := &s.requests[i]
		if s.items[i].Key.AppID != u.AppID || o.responseOf(u.Provider) != nil {
			continue
		}
		if slices.ContainsFunc(s.items[i].Quotes, func(v Snapshot) bool {
			return s.stage.known[v.MarketID].provider == u.Provider && (fetchedAfterEstimate(&v) || !quoted(&v) && now.Sub(v.FetchedAt) < absenceValid)
		}) {
			o.responded = true
			continue
		}
		o.addSkip(u)
	}
}

// responseOf returns the response of a provider that was queried for the item by name, or nil.
func (o *requestOutcome) responseOf(provider string) *providerResponse {
	for k := range o.providers {
		if o.providers[k].provider == provider {
			return &o.providers[k]
		}
	}
	return nil
}

func (o *requestOutcome) addUnit(u *Unit, usable bool, silent []int64) {
	switch {
	case usable:
		o.responded = true
		if u.File == "" {
			o.providers, o.silent = append(o.providers, providerResponse{u.Provider, u.FetchedAt}), append(o.silent, silent...)
		}
	case u.skipped():
		o.addSkip(u)
	case u.isUsable():
		o.errs = append(o.errs, u.Provider+": "+string(provider.KindQuarantine)+": "+u.File)
	default:
		o.errs = append(o.errs, u.Error)
	}
}

// addSkip stores why a request was not sent. An outage outranks a lack of budget, which
// outranks a pause.
func (o *requestOutcome) addSkip(u *Unit) {
	order := []string{"", SkipPaused, SkipBudget, SkipBackoff}
	if reason := u.skipReason(); slices.Index(order, reason) > slices.Index(order, o.skip) {
		o.skip = reason
	}
}

// buckets returns the name buckets of the batch's items. A few missing prices need only a few
// buckets of files that hold a whole game.
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

// readResponses collects the quotes of the batch's items.
func (s *batchEstimator) readResponses(ctx context.Context, units []Unit, outcomes map[UnitMarket]MarketFetch) error {
	byBlob := map[int64]Unit{}
	var ids []int64
	for _, u := range units {
		if u.isUsable() {
			byBlob[u.ResponseUnit] = u
			ids = append(ids, u.ResponseUnit)
		}
	}
	return s.stage.blobs(ctx, ids, s.buckets(), func(blob Blob) error {
		admission.Rest(ctx)
		u := byBlob[blob.Unit]
		return s.stage.decodeRows(s.decoder, blob, func(q *quoteRecord) {
			if _, configured := s.stage.known[q.Market]; !configured {
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

// addNewItem stores a phase of a known name that is not yet an item, if all known items are
// refreshed. It becomes an item, and the next job plans it.
func (s *batchEstimator) addNewItem(q *quoteRecord, app int32) {
	if !s.stage.cfg.ScopeAll || q.Phase == "" || q.Ask == 0 && q.Sale == 0 {
		return
	}
	if s.newItems == nil {
		s.newItems = map[catalog.Key]struct{}{}
	}
	s.newItems[catalog.Key{AppID: app, Name: string(q.Name), Phase: q.Phase}] = struct{}{}
}

// addQuote adds a quote to an item. Of two quotes of the same market the later one counts. A
// quote without a time of its own has the time of its response. The stored quote keeps its
// time if several providers offer the market, because they are ranked by it, or if the
// response is older than this job.
func (s *batchEstimator) addQuote(i int, q *quoteRecord, u *Unit) {
	f := fetched{at: u.FetchedAt, reused: u.ResponseUnit != u.ID, byName: u.File == "", Snapshot: q.snapshot()}
	if f.MarketTime.IsZero() && !u.StatedAt.IsZero() {
		f.MarketTime = u.StatedAt.UTC().Truncate(time.Hour)
	}
	if f.reused || s.stage.shared[s.stage.known[q.Market].Key] {
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
