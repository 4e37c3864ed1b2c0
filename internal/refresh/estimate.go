package refresh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/pricing"
	"assay/internal/provider"
)

// Estimate does one piece of estimating: it estimates a batch whose answers are
// there, or lets a job go on to its next stage.
func (e *Engine) Estimate(ctx context.Context) (bool, error) {
	if err := e.reclaim(ctx); err != nil {
		return false, err
	}
	if err := e.leaveSilent(ctx); err != nil {
		return false, err
	}
	job, err := ReadFetchedJob(ctx, e.store)
	if err != nil {
		return false, err
	}
	if job != nil && e.validating.TryLock() { // the other slots have batches to estimate
		defer e.validating.Unlock()
		defer e.wake(WorkEstimate) // for those slots, if they found none
		return true, e.validate(ctx, job)
	}
	batch, err := e.claimBatch(ctx, nil)
	if err != nil {
		return false, err
	}
	if batch != nil {
		return true, e.estimateChain(ctx, batch)
	}
	if job, err = ReadEstimatedJob(ctx, e.store); err != nil || job == nil {
		return false, err
	}
	defer e.wake(WorkApply)
	return true, e.store.InTx(ctx, func(tx *db.Tx) error { return EndEstimating(tx, job.ID) })
}

// chainLength is how many batches are estimated before there is a look for other
// work.
const chainLength = 8

// estimateChain estimates a claimed batch and those that come after it. Each but the
// first is claimed as the one before is written: to claim by itself would mean
// to wait, with nothing to do, until another slot has written its batch.
func (e *Engine) estimateChain(ctx context.Context, b *Batch) (err error) {
	for left := chainLength - 1; b != nil && err == nil; left-- {
		b, err = e.estimate(ctx, *b, left > 0)
	}
	return err
}

// estimate estimates a claimed batch and writes it, and claims the next one if
// there are to be more. A batch that cannot be estimated now is given back.
func (e *Engine) estimate(ctx context.Context, b Batch, more bool) (next *Batch, err error) {
	var written bool // estimated or given back
	defer func() { e.releaseBatch(b, written) }()
	s, _ := e.batchEstimators.Get().(*batchEstimator)
	if s == nil {
		s = &batchEstimator{engine: e, decoder: newDecoder()}
	}
	defer e.batchEstimators.Put(s)
	err = s.load(ctx, b)
	if err == nil {
		err = e.adopt(ctx, s.found)
	}
	if err == nil {
		err = s.estimate(ctx, e.now())
	}
	if err == nil {
		result := s.result
		write := func(tx *db.Tx) error {
			_, err := StoreEstimates(tx, b, result)
			return err
		}
		if more && !e.priority.Busy() {
			next, err = e.claimBatch(ctx, write)
		} else {
			err = e.store.InTx(ctx, write)
		}
	}
	if err == nil {
		written = true
		return next, nil
	}
	back := e.giveBack(ctx, func(tx *db.Tx) error { return ReturnBatch(tx, b) })
	written = back == nil
	if errors.Is(err, ErrConflict) || ctx.Err() != nil {
		return nil, back
	}
	return nil, errors.Join(fmt.Errorf("estimate batch %d of job %d: %w", b.Batch, b.JobID, err), back)
}

// batchEstimator estimates one batch at a time. It keeps its memory for the next one.
type batchEstimator struct {
	engine  *Engine
	decoder *decoder

	estimators map[int32]*estimator // by game, of the job
	rates      int64
	items      []Item
	fresh      [][]fetched          // quotes of this job, by item
	requested  []requested          // by item
	files      map[gameMarket]reply // of markets that are in files
	first      map[string]int32
	next       []int32 // the next item of the same name, or -1
	found      map[catalog.Key]struct{}

	quotes    []pricing.Quote
	rows      []Snapshot
	kept      []Snapshot
	estimated pricing.Priced
	moved     []int64 // items whose price moved so far that its past matters
	past      map[int64]PastPrices
	result    Estimates
}

// fetched is a quote of this job, and when its answer came.
type fetched struct {
	Snapshot
	at     time.Time
	reused bool // the answer to an earlier job
	byName bool // it was requested by name
}

// requested is how the requests about an item went.
type requested struct {
	answered  bool
	skip      string // why a request was not sent; "": all were sent
	errs      []string
	providers []respondedBy // by name
	silent    []int64       // markets of theirs without anything in the response
	rejected  []int64       // markets whose row of the item was rejected
}

// respondedBy is a provider that responded to a request for an item by name.
type respondedBy struct {
	provider string
	at       time.Time
}

// reply is what the files of a market brought.
type reply struct {
	answered bool      // all of them
	at       time.Time // when the first of them was fetched
	problem  string    // why one of them does not count
}

// gameMarket is a market's part of a game.
type gameMarket struct {
	app    int32
	market int64
}

func (s *batchEstimator) load(ctx context.Context, b Batch) error {
	st := s.engine.store
	estimators, err := s.engine.estimators(ctx, &b)
	if err != nil {
		return err
	}
	s.estimators, s.rates = estimators, b.RateSet
	items, err := BatchItems(ctx, st, b)
	if err != nil {
		return err
	}
	units, err := BatchUnits(ctx, st, b)
	if err != nil {
		return err
	}
	outcomes, err := ReadOutcomes(ctx, st, b.JobID)
	if err != nil {
		return err
	}
	s.reset(items)
	s.noteUnits(units, outcomes)
	return s.readResponses(ctx, units, outcomes)
}

// reset begins a batch.
func (s *batchEstimator) reset(items []Item) {
	n := len(items)
	s.items = items
	s.requested = slices.Grow(s.requested[:0], n)[:n]
	s.next = slices.Grow(s.next[:0], n)[:n]
	for len(s.fresh) < n {
		s.fresh = append(s.fresh, nil)
	}
	if s.first == nil {
		s.first = make(map[string]int32, n)
	}
	clear(s.first)
	clear(s.found)
	for i := range items {
		s.fresh[i] = s.fresh[i][:0]
		s.requested[i] = requested{}
		s.next[i] = -1
		if at, ok := s.first[items[i].Key.Name]; ok {
			s.next[i] = at
		}
		s.first[items[i].Key.Name] = int32(i)
	}
}

// noteUnits notes which items each unit asked about, and how that ended.
func (s *batchEstimator) noteUnits(units []Unit, outcomes map[UnitMarket]MarketFetch) {
	s.files = map[gameMarket]reply{}
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
			s.noteLeft(&u)
		}
	}
}

func (s *batchEstimator) noteFile(u *Unit, outcomes map[UnitMarket]MarketFetch) {
	usable := false
	for _, id := range s.engine.marketsOf(*u) {
		outcome := outcomes[UnitMarket{u.ID, id}].Outcome
		r := reply{answered: u.counts() && outcome == OutcomeOK, at: u.FetchedAt}
		usable = usable || r.answered
		if u.counts() && !r.answered {
			r.problem = u.Provider + ": " + string(outcome) + ": " + s.engine.known[id].Key
		}
		key := gameMarket{u.AppID, id}
		if before, several := s.files[key]; several {
			r.answered = r.answered && before.answered
			r.problem = cmp.Or(before.problem, r.problem)
			if before.at.Before(r.at) {
				r.at = before.at
			}
		}
		s.files[key] = r
	}
	for i := range s.items {
		if s.items[i].Key.AppID == u.AppID {
			s.requested[i].note(u, usable, nil)
		}
	}
}

// noteNames notes how a unit of names ended. Its response is checked quote by quote.
func (s *batchEstimator) noteNames(u *Unit, outcomes map[UnitMarket]MarketFetch) {
	var silent []int64
	for _, id := range s.engine.requestedMarkets(u) {
		if outcomes[UnitMarket{0, id}].Outcome == OutcomeSilent { // of all that was asked by name
			silent = append(silent, id)
		}
	}
	for _, name := range u.Names {
		for i, ok := s.first[name]; ok && i >= 0; i = s.next[i] {
			if s.items[i].Key.AppID == u.AppID {
				s.requested[i].note(u, u.counts(), silent)
			}
		}
	}
}

// emptyFor is how long a provider that is asked in the background counts as having
// answered that it does not list an item.
const emptyFor = 24 * time.Hour

// noteLeft notes that a provider left names of a game for later, without a list of
// them: all that it did not answer for, in this job or in the background.
func (s *batchEstimator) noteLeft(u *Unit) {
	now := s.engine.now()
	for i := range s.items {
		a := &s.requested[i]
		if s.items[i].Key.AppID != u.AppID || a.by(u.Provider) != nil {
			continue
		}
		if slices.ContainsFunc(s.items[i].Quotes, func(v Snapshot) bool {
			return s.engine.known[v.MarketID].provider == u.Provider && (awaits(&v) || !quoted(&v) && now.Sub(v.FetchedAt) < emptyFor)
		}) {
			a.answered = true
			continue
		}
		a.skipFor(u)
	}
}

// awaits reports whether a quote was fetched since the item's last estimate.
func awaits(v *Snapshot) bool { return v.Reason == pricing.Awaiting || v.Reason == pricing.Confirmed }

// quoted reports whether a market offered an item, or had sold it.
func quoted(v *Snapshot) bool { return v.Ask > 0 || v.Sale > 0 }

// by returns the response of a provider to a request for the item by name, or nil.
func (a *requested) by(provider string) *respondedBy {
	for k := range a.providers {
		if a.providers[k].provider == provider {
			return &a.providers[k]
		}
	}
	return nil
}

func (a *requested) note(u *Unit, usable bool, silent []int64) {
	switch {
	case usable:
		a.answered = true
		if u.File == "" {
			a.providers, a.silent = append(a.providers, respondedBy{u.Provider, u.FetchedAt}), append(a.silent, silent...)
		}
	case u.skipped():
		a.skipFor(u)
	case u.counts():
		a.errs = append(a.errs, u.Provider+": "+string(provider.KindQuarantine)+": "+u.File)
	default:
		a.errs = append(a.errs, u.Error)
	}
}

// skipFor notes why a request was not sent. An outage says more than a lack of
// budget, and that more than what an operator did.
func (a *requested) skipFor(u *Unit) {
	order := []string{"", SkipPaused, SkipBudget, SkipBackoff}
	if reason := u.skipReason(); slices.Index(order, reason) > slices.Index(order, a.skip) {
		a.skip = reason
	}
}

// buckets returns the name buckets that hold an item of the batch: for a few
// missing prices a few of them, of files that hold a whole game.
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
		if u.counts() {
			byBlob[u.BlobUnit] = u
			ids = append(ids, u.BlobUnit)
		}
	}
	return s.engine.blobs(ctx, ids, s.buckets(), func(blob Blob) error {
		admission.Rest(ctx)
		u := byBlob[blob.Unit]
		return s.engine.decodeRows(s.decoder, blob, func(q *quoteRecord) {
			if _, configured := s.engine.known[q.Market]; !configured {
				return
			}
			if u.File != "" && outcomes[UnitMarket{u.ID, q.Market}].Outcome != OutcomeOK {
				return
			}
			known, taken := false, false
			for i, ok := s.first[string(q.Name)]; ok && i >= 0; i = s.next[i] {
				k := s.items[i].Key
				if q.Rejected {
					if k.AppID == u.AppID && !slices.Contains(s.requested[i].rejected, q.Market) {
						s.requested[i].rejected = append(s.requested[i].rejected, q.Market)
					}
					continue
				}
				known = known || k.AppID == u.AppID
				if k.AppID == u.AppID && k.Phase == q.Phase {
					s.take(int(i), q, &u)
					taken = true
				}
			}
			if known && !taken {
				s.find(q, u.AppID)
			}
		})
	})
}

// find notes a phase of a known name that is not among the batch's items, where all
// known items are refreshed: it is an item from then on, planned by the next job.
func (s *batchEstimator) find(q *quoteRecord, app int32) {
	if !s.engine.cfg.ScopeAll || q.Phase == "" || q.Ask == 0 && q.Sale == 0 {
		return
	}
	if s.found == nil {
		s.found = map[catalog.Key]struct{}{}
	}
	s.found[catalog.Key{AppID: app, Name: string(q.Name), Phase: q.Phase}] = struct{}{}
}

// adopt makes items of those that are none yet.
func (e *Engine) adopt(ctx context.Context, found map[catalog.Key]struct{}) error {
	if len(found) == 0 {
		return nil
	}
	byApp := map[int32][]catalog.Key{}
	for key := range found {
		byApp[key.AppID] = append(byApp[key.AppID], key)
	}
	return e.store.InTx(ctx, func(tx *db.Tx) error {
		for _, app := range slices.Sorted(maps.Keys(byApp)) {
			if err := catalog.AddItems(tx, app, byApp[app]); err != nil {
				return fmt.Errorf("add items: %w", err)
			}
		}
		return nil
	})
}

// take adds a quote to an item. Of two of the same market the fresher counts. A
// quote without a time of its own has that of its answer. Where several providers
// offer the market, the snapshot keeps its time, by which they are ranked; so it does
// where its answer is older than this job.
func (s *batchEstimator) take(i int, q *quoteRecord, u *Unit) {
	f := fetched{at: u.FetchedAt, reused: u.BlobUnit != u.ID, byName: u.File == "", Snapshot: q.snapshot()}
	if f.MarketTime.IsZero() && !u.StatedAt.IsZero() {
		f.MarketTime = u.StatedAt.UTC().Truncate(time.Hour)
	}
	if f.reused || s.engine.shared[s.engine.known[q.Market].Key] {
		f.FetchedAt = f.at
	}
	for k := range s.fresh[i] {
		have := &s.fresh[i][k]
		if have.MarketID != f.MarketID {
			continue
		}
		if cmp.Or(f.at.Compare(have.at), f.MarketTime.Compare(have.MarketTime)) > 0 {
			*have = f
		}
		return
	}
	s.fresh[i] = append(s.fresh[i], f)
}

// estimate decides about every item of the batch. Those whose price moved far are
// estimated again once their past prices are read, which for most items are never
// needed.
func (s *batchEstimator) estimate(ctx context.Context, now time.Time) error {
	r := &s.result
	r.Items = r.Items[:0]
	r.Counts = Counts{}
	r.MissingRetry, r.RateSet, r.Method = s.engine.cfg.MissingRetry, s.rates, s.engine.cfg.Policy.Label()
	s.moved, s.past = s.moved[:0], nil
	for i := range s.items {
		admission.Rest(ctx)
		r.Items = append(r.Items, s.estimateItem(i, now))
	}
	if len(s.moved) > 0 {
		var err error
		if s.past, err = ReadPastPrices(ctx, s.engine.store, s.moved, now); err != nil {
			return fmt.Errorf("past prices: %w", err)
		}
		for i := range s.items {
			if _, far := s.past[s.items[i].ID]; far {
				r.Items[i] = s.estimateItem(i, now)
			}
		}
	}
	for i := range r.Items {
		r.Counts.note(&r.Items[i])
	}
	return nil
}

// note counts an item that was estimated.
func (c *Counts) note(i *EstimatedItem) {
	switch i.State {
	case ItemUpdated:
		c.Updated++
		if i.Changed() {
			c.Changed++
		}
	case ItemNoQuote:
		c.NoQuote++
	case ItemSkipped:
		c.skip(i.Reason)
	default:
		c.Failed++
	}
}

func (s *batchEstimator) estimateItem(i int, now time.Time) EstimatedItem {
	item, a := &s.items[i], &s.requested[i]
	at, proved := s.evidence(i)
	out := EstimatedItem{Item: *item, AsOf: at}
	if !proved {
		out.AsOf = item.QuotesAt
		if out.State, out.Reason, out.Error = s.without(i); out.State != ItemNoQuote {
			return out
		}
	}
	a.answered = true
	s.gather(i)
	if !s.price(i, now, &out) {
		s.moved = append(s.moved, item.ID)
		return out
	}
	out.NewQuotes = s.newQuotes(i)
	out.Answered = true
	if out.Estimate = s.estimated; out.Noted() {
		out.Used = s.usedMarkets()
	}
	out.Estimate.Quotes = nil
	out.QuotedAt = s.quotedAt(now)
	out.State = ItemUpdated
	if s.estimated.Estimated == 0 {
		out.State = ItemNoQuote
	}
	if s.estimated.Sales == pricing.SalesNone {
		out.RetryAt = now.Add(s.engine.cfg.NoSalesRetry)
		out.QuietSince = item.NoSalesSince
		if out.QuietSince.IsZero() {
			out.QuietSince = now
		}
	}
	return out
}

// price estimates an item. It is false where the price moved so far that the
// guard needs the item's past prices, which are not read yet.
func (s *batchEstimator) price(i int, now time.Time, out *EstimatedItem) bool {
	item := &s.items[i]
	e := s.estimators[item.Key.AppID]
	if e == nil {
		e = s.estimators[noGame]
	}
	e.movers.Note(pricing.KeyOf(item.Key.Name, item.Key.Phase), s.quotes)
	state := pricing.State{Price: item.Price, Held: pricing.HeldPrice{Candidate: item.Candidate, At: item.CandidateAt}}
	if _, err := pricing.DecodeGuard(item.Guard, &state); err != nil {
		s.engine.log.Warn("price guard state unreadable", "item", item.ID, "error", err)
	}
	var refs pricing.References
	bounds := item.Range
	past, read := s.past[item.ID]
	if read {
		refs, bounds = pricing.ReferencesOf(now, past.First, past.Day, past.Week), past.Range
	}
	e.Price(now, pricing.ClassOf(item.Key.Name), s.quotes, state, refs, &s.estimated)
	if !read && item.Price > 0 && s.estimated.Estimated > 0 && !bounds.Near(s.estimated.Estimated) {
		return false
	}
	out.LevelSet, out.Bounds = e.levelSet, bounds.With(s.estimated.Price)
	return true
}

// usedMarkets lists the ids of the markets behind an estimate.
func (s *batchEstimator) usedMarkets() string {
	var b []byte
	for k := range s.rows {
		if s.estimated.Quotes[k].Reason != pricing.Used {
			continue
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, s.rows[k].MarketID, 10)
	}
	return string(b)
}

// evidence reports whether this job learned anything of an item, and when that was
// fetched: a market quoted it, or one that had quoted it answered and no longer
// lists it (contract, rule 5). Quotes of the background count where no estimate had
// them yet. Of several times the first of this job's own requests counts, else the
// newest.
func (s *batchEstimator) evidence(i int) (at time.Time, ok bool) {
	var first, newest time.Time
	note := func(t time.Time, own bool) {
		ok = true
		if own && (first.IsZero() || t.Before(first)) {
			first = t
		}
		if t.After(newest) {
			newest = t
		}
	}
	for k := range s.fresh[i] {
		note(s.fresh[i][k].at, !s.fresh[i][k].reused)
	}
	for k := range s.items[i].Quotes {
		old := &s.items[i].Quotes[k]
		if _, configured := s.engine.known[old.MarketID]; !configured || !quoted(old) {
			continue
		}
		if awaits(old) {
			note(old.FetchedAt, false)
		} else if t, answered := s.answered(i, old.MarketID); answered {
			note(t, true)
		}
	}
	if !first.IsZero() {
		return first, ok
	}
	return newest, ok
}

// answered reports whether a market answered in this job with all that it lists of
// an item's game, or with what it has of the item, and when. One whose row of the item
// was rejected did not: what it has of the item is not known.
func (s *batchEstimator) answered(i int, market int64) (at time.Time, ok bool) {
	if slices.Contains(s.requested[i].rejected, market) {
		return time.Time{}, false
	}
	if r := s.files[gameMarket{s.items[i].Key.AppID, market}]; r.answered {
		return r.at, true
	}
	a := &s.requested[i]
	if by := a.by(s.engine.known[market].provider); by != nil && !slices.Contains(a.silent, market) {
		return by.at, true
	}
	return time.Time{}, false
}

// without returns how an item ends of which this job learned nothing.
func (s *batchEstimator) without(i int) (state, reason, why string) {
	a := &s.requested[i]
	errs := a.errs
	for k := range s.items[i].Quotes { // a market that quoted it, and that a response should have held
		old := &s.items[i].Quotes[k]
		if !quoted(old) {
			continue
		}
		m := s.engine.known[old.MarketID]
		if r := s.files[gameMarket{s.items[i].Key.AppID, old.MarketID}]; r.problem != "" {
			errs = append(errs, r.problem)
		} else if slices.Contains(a.rejected, old.MarketID) {
			errs = append(errs, m.provider+": "+string(provider.KindProtocol)+": the row of this item was rejected: "+m.Key)
		} else if slices.Contains(a.silent, old.MarketID) {
			errs = append(errs, m.provider+": "+string(OutcomeSilent)+": "+m.Key)
		}
	}
	switch {
	case len(errs) > 0:
		return ItemFailed, "", summary(errs)
	case a.skip != "":
		return ItemSkipped, a.skip, ""
	case !a.answered:
		return ItemFailed, "", "no configured provider quotes this game"
	default:
		return ItemNoQuote, "", ""
	}
}

// quotedAt returns as of when the newest quote behind the estimate is: when it was
// fetched or, where the market states an older time, that. Market times are kept to
// the hour. Zero: there is none.
func (s *batchEstimator) quotedAt(now time.Time) time.Time {
	var newest time.Time
	for k := range s.quotes {
		q := &s.quotes[k]
		if s.estimated.Quotes[k].Reason != pricing.Used {
			continue
		}
		at := q.FetchedAt
		if end := q.MarketTime.Add(time.Hour); !q.MarketTime.IsZero() && end.Before(at) {
			at = end
		}
		if at.After(newest) {
			newest = at
		}
	}
	if newest.After(now) {
		return now // the clock was set back since
	}
	return newest
}

// gather lists what takes part in an item's estimate: this job's quotes, and of
// markets that did not answer the last snapshot, which counts while it is fresh.
// The snapshot of a market that responded without the item, or that is no longer
// configured, stays as it was and takes no part.
func (s *batchEstimator) gather(i int) {
	s.rows, s.quotes = s.rows[:0], s.quotes[:0]
	for k := range s.fresh[i] {
		f := &s.fresh[i][k]
		q := s.quote(f.Snapshot)
		q.FetchedAt = f.at
		if f.byName {
			q.ChangedAt, q.Moved = s.sinceLast(i, f)
		}
		s.rows, s.quotes = append(s.rows, f.Snapshot), append(s.quotes, q)
	}
	for _, old := range s.items[i].Quotes {
		if slices.ContainsFunc(s.fresh[i], func(f fetched) bool { return f.MarketID == old.MarketID }) {
			continue
		}
		if old.FetchedAt.IsZero() {
			old.FetchedAt = s.items[i].QuotesAt
		}
		if _, configured := s.engine.known[old.MarketID]; !configured {
			continue
		}
		q := s.quote(old)
		if _, answered := s.answered(i, old.MarketID); answered {
			q.Ask, q.Sale, q.Sales, q.SalesWindow = 0, 0, provider.Unknown, 0
		}
		if s.engine.known[old.MarketID].byName {
			q.ChangedAt = unchanged()
			if old.Reason == pricing.Awaiting {
				q.ChangedAt = old.FetchedAt
			}
		}
		s.rows, s.quotes = append(s.rows, old), append(s.quotes, q)
	}
}

// unchanged stands for the time at which a quote changed that is the same as in the
// last estimate: that estimate has seen the change already, so it is no evidence for
// a price that is held.
func unchanged() time.Time { return time.Unix(0, 0).UTC() }

// findQuote returns the place of a market's quote in an item's quotes.
func findQuote(quotes []Snapshot, market int64) (at int, found bool) {
	return slices.BinarySearchFunc(quotes, market, func(q Snapshot, id int64) int { return cmp.Compare(q.MarketID, id) })
}

// quoteOf returns a market's quote of an item's quotes, or nil.
func quoteOf(quotes []Snapshot, market int64) *Snapshot {
	if at, found := findQuote(quotes, market); found {
		return &quotes[at]
	}
	return nil
}

// sinceLast compares a quote that was requested by name with the one before: when
// its amounts changed, and by how much its price moved.
func (s *batchEstimator) sinceLast(i int, f *fetched) (changedAt time.Time, moved pricing.Log) {
	old := quoteOf(s.items[i].Quotes, f.MarketID)
	switch {
	case old == nil || old.Currency != f.Currency || !quoted(old):
		return f.at, 0
	case old.Reason == pricing.Awaiting: // what it was in the last estimate is not known
		if old.Ask == f.Ask && old.Sale == f.Sale {
			return old.FetchedAt, 0
		}
		return f.at, 0
	case old.Ask == f.Ask && old.Sale == f.Sale:
		return unchanged(), 0
	}
	was, _ := pricing.Quoted(old.Ask, old.Sale)
	is, _ := pricing.Quoted(f.Ask, f.Sale)
	if was <= 0 || is <= 0 {
		return f.at, 0
	}
	return f.at, pricing.Ln(is) - pricing.Ln(was)
}

// quote is a snapshot as an estimate takes it. A market that counts sales and
// says nothing of this item's leaves its window open.
func (s *batchEstimator) quote(r Snapshot) pricing.Quote {
	m := s.engine.known[r.MarketID]
	q := pricing.Quote{
		ID: r.MarketID, Provider: m.provider, Market: m.Key, Pool: m.Pool, MaxAge: m.MaxAge,
		Currency: r.Currency, Ask: r.Ask, Sale: r.Sale,
		Sales: r.Sales, SalesWindow: r.SalesWindow,
		FetchedAt: r.FetchedAt, MarketTime: r.MarketTime,
	}
	if q.Sales < 0 {
		q.SalesWindow = m.SalesWindow
	}
	return q
}

// newQuotes returns all quotes of an item from now on, or nil if none changed.
func (s *batchEstimator) newQuotes(i int) []Snapshot {
	stored := s.items[i].Quotes
	all, changed := append(s.kept[:0], stored...), false
	for k := range all {
		if _, configured := s.engine.known[all[k].MarketID]; !configured && all[k].Reason != pricing.NotConfigured {
			all[k].Reason, changed = pricing.NotConfigured, true
			if all[k].FetchedAt.IsZero() {
				all[k].FetchedAt = s.items[i].QuotesAt
			}
		}
	}
	for k := range s.rows {
		r := s.rows[k]
		r.Reason = s.estimated.Quotes[k].Reason
		at, found := findQuote(all[:len(stored)], r.MarketID)
		if !found {
			all, changed = append(all, r), true
			continue
		}
		r.MarketTime = storedTime(all[at].MarketTime, r.MarketTime)
		if all[at] != r {
			all[at], changed = r, true
		}
	}
	s.kept = all
	if !changed {
		return nil
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Snapshot) int { return cmp.Compare(a.MarketID, b.MarketID) })
	return all
}

// storedTime keeps a market's stored time while the stated one moves on by
// less than some hours: a clock that ticks beside a quote that stands still must
// not rewrite its row. Against the week after which a quote is stale by that
// time, the difference is nothing.
func storedTime(stored, stated time.Time) time.Time {
	const tick = 6 * time.Hour
	if d := stated.Sub(stored); !stored.IsZero() && d > 0 && d < tick {
		return stored
	}
	return stated
}

// summary says why no market answered, in one line of bounded length.
func summary(errs []string) string {
	slices.Sort(errs)
	errs = slices.Compact(errs)
	const most = 3
	if len(errs) > most {
		errs = append(errs[:most], fmt.Sprintf("and %d more", len(errs)-most))
	}
	return strings.Join(errs, "; ")
}
