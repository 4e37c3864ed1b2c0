package refresh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/pricing"
	"assay/internal/provider"
)

// Estimate does one piece of work. It validates a job's responses, estimates a batch, or
// moves a job on to the apply stage. It reports whether there may be more work.
func (e *estimator) Estimate(ctx context.Context) (bool, error) {
	if err := e.reclaim(ctx); err != nil {
		return false, err
	}
	if err := e.fetcher.detachUnresponsive(ctx); err != nil {
		return false, err
	}
	fetching, estimating, err := jobsToEstimate(ctx, e.store, e.owner)
	if err != nil {
		return false, err
	}
	job, err := readFetchedJob(ctx, e.store, fetching)
	if err != nil {
		return false, err
	}
	if job != nil { // other slots estimate batches in the meantime
		if claimed, err := e.fetcher.tryValidate(ctx, job); err != nil || claimed {
			return claimed, err
		}
	}
	if len(estimating) == 0 {
		return false, nil // without the transaction of a claim
	}
	batch, err := e.claimBatch(ctx, nil)
	if err != nil {
		return false, err
	}
	if batch != nil {
		return true, e.estimateChain(ctx, batch)
	}
	if job, err = readEstimatedJob(ctx, e.store); err != nil || job == nil {
		return false, err
	}
	defer e.wake(WorkApply)
	e.forgetPricers(job.ID)
	return true, e.store.InTx(ctx, func(tx *db.Tx) error { return EndEstimating(tx, job.ID) })
}

// chainLength is how many batches a worker estimates before it looks for other work.
const chainLength = 8

// estimateChain estimates a claimed batch and the batches after it. The transaction that
// writes a batch also claims the next one. A separate claim would have to wait until other
// slots have written their batches.
func (e *estimator) estimateChain(ctx context.Context, b *Batch) (err error) {
	for left := chainLength - 1; b != nil && err == nil; left-- {
		b, err = e.estimate(ctx, *b, left > 0)
	}
	return err
}

// estimate estimates and writes a claimed batch. If more is set, it claims the next batch in
// the same transaction. After an error it releases the batch.
func (e *estimator) estimate(ctx context.Context, b Batch, more bool) (next *Batch, err error) {
	var written bool // the estimates or the release are stored
	defer func() { e.releaseBatch(b, written) }()
	s, _ := e.batchEstimators.Get().(*batchEstimator)
	if s == nil {
		s = &batchEstimator{estimator: e, decoder: newDecoder()}
	}
	defer e.recycle(s)
	if err = catalog.AnnouncePrices(ctx, e.store); err == nil { // now, so that the transaction need not wait
		err = s.load(ctx, b)
	}
	if len(s.items) > 2*batchItems {
		defer e.garbage.limit(batchGC)()
	}
	if err == nil {
		err = e.insertNewItems(ctx, s.newItems)
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
			err = e.store.InSmallTx(ctx, write)
		}
	}
	if err == nil {
		written = true
		return next, nil
	}
	back := e.writeAfterCancel(ctx, func(tx *db.Tx) error { return returnBatch(tx, b) })
	written = back == nil
	if errors.Is(err, ErrConflict) || ctx.Err() != nil {
		return nil, back
	}
	return nil, errors.Join(fmt.Errorf("estimate batch %d of job %d: %w", b.Batch, b.JobID, err), back)
}

// batchEstimator estimates one batch at a time and reuses its memory for the next batch.
type batchEstimator struct {
	estimator *estimator
	decoder   *decoder

	pricers      map[int32]*gamePricer // of the batch's job, by game
	rates        int64
	items        []Item
	jobQuotes    [][]jobQuote               // quotes of this job, by item
	requests     []requestOutcome           // by item
	files        map[gameMarket]fileOutcome // of markets that are fetched as files
	firstByName  map[string]int32
	nextSameName []int32 // the next item of the same name, or -1
	newItems     map[catalog.Key]struct{}

	quotes    []pricing.Quote
	rows      []MarketSnapshot
	kept      []MarketSnapshot
	estimated pricing.Priced
	moved     []int64 // items for which the guard needs past prices
	past      map[int64]PastPrices
	result    Estimates
}

// insertNewItems adds new items to the catalog.
func (e *estimator) insertNewItems(ctx context.Context, newItems map[catalog.Key]struct{}) error {
	if len(newItems) == 0 {
		return nil
	}
	byApp := map[int32][]catalog.Key{}
	for key := range newItems {
		byApp[key.AppID] = append(byApp[key.AppID], key)
	}
	return e.store.InTx(ctx, func(tx *db.Tx) error {
		for _, app := range slices.Sorted(maps.Keys(byApp)) {
			if _, err := catalog.EnsureItems(tx, app, byApp[app]); err != nil {
				return fmt.Errorf("add items: %w", err)
			}
		}
		return nil
	})
}

// estimate estimates all items of the batch. If the price of an item moves far, estimate
// reads the item's past prices and estimates the item again. Most items need no past prices.
func (s *batchEstimator) estimate(ctx context.Context, now time.Time) error {
	r := &s.result
	r.Items = r.Items[:0]
	r.Counts = Counts{}
	r.MissingRetry, r.RateSet, r.Method = s.estimator.cfg.MissingRetry, s.rates, s.estimator.cfg.Policy.Label()
	s.moved, s.past = s.moved[:0], nil
	for i := range s.items {
		admission.Yield(ctx)
		r.Items = append(r.Items, s.estimateItem(i, now))
	}
	if len(s.moved) > 0 {
		var err error
		if s.past, err = readPastPrices(ctx, s.estimator.store, s.moved, now); err != nil {
			return fmt.Errorf("read past prices: %w", err)
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

// note counts an estimated item.
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
	item, o := &s.items[i], &s.requests[i]
	at, proved := s.evidence(i)
	out := EstimatedItem{Item: *item, AsOf: at}
	if !proved {
		out.AsOf = item.QuotesAt
		if out.State, out.Reason, out.Error = s.stateWithoutEvidence(i); out.State != ItemNoQuote {
			return out
		}
	}
	o.responded = true
	s.collectQuotes(i)
	if !s.price(i, now, &out) {
		s.moved = append(s.moved, item.ID)
		return out
	}
	out.NewQuotes = s.newQuotes(i)
	out.Responded = true
	if out.Estimate = s.estimated; out.AddsPoint() {
		out.Used = s.usedMarkets()
	}
	out.Estimate.Quotes = nil
	out.QuotedAt = s.quotedAt(now)
	out.State = ItemUpdated
	if s.estimated.Estimated == 0 {
		out.State = ItemNoQuote
	}
	if s.estimated.Sales == pricing.SalesNone {
		out.RetryAt = now.Add(s.estimator.cfg.NoSalesRetry)
		out.NoSalesSince = item.NoSalesSince
		if out.NoSalesSince.IsZero() {
			out.NoSalesSince = now
		}
	}
	return out
}

// price estimates an item. It returns false if the guard needs past prices of the item that
// have not been read yet.
func (s *batchEstimator) price(i int, now time.Time, out *EstimatedItem) bool {
	item := &s.items[i]
	e := s.pricers[item.Key.AppID]
	if e == nil {
		e = s.pricers[noGame]
	}
	e.movers.Annotate(pricing.KeyOf(item.Key.Name, item.Key.Phase), s.quotes)
	state := pricing.State{Price: item.Price, Held: pricing.HeldPrice{Candidate: item.Candidate, At: item.CandidateAt}}
	if _, err := pricing.DecodeGuard(item.Guard, &state); err != nil {
		s.estimator.log.Warn("price guard state unreadable", "item", item.ID, "error", err)
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

// usedMarkets returns the ids of the markets that the estimate uses, separated by commas.
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

// evidence reports whether this job has evidence of an item's price. A job changes a price
// only if it has evidence. There are three kinds:
//
//   - a quote in a response of this job;
//   - a response without the item, from a market that quoted the item before;
//   - a quote of the background fetch that no estimate has used yet.
//
// The result at is the fetch time of the first of these responses that the job itself fetched.
// If it fetched none of them, at is the fetch time of the newest evidence.
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
	for k := range s.jobQuotes[i] {
		note(s.jobQuotes[i][k].at, !s.jobQuotes[i][k].reused)
	}
	for k := range s.items[i].Quotes {
		old := &s.items[i].Quotes[k]
		if _, configured := s.estimator.marketsByID[old.MarketID]; !configured || !quoted(old) {
			continue
		}
		if fetchedAfterEstimate(old) {
			note(old.FetchedAt, false)
		} else if t, responded := s.respondedAt(i, old.MarketID); responded {
			note(t, true)
		}
	}
	if !first.IsZero() {
		return first, ok
	}
	return newest, ok
}

// respondedAt returns when a market responded in this job, with a file of the item's game or
// to a request for the item by name. ok is false if the market did not respond. It is also
// false if the response's row of the item was rejected, because the quote is then unknown.
func (s *batchEstimator) respondedAt(i int, market int64) (at time.Time, ok bool) {
	if slices.Contains(s.requests[i].rejected, market) {
		return time.Time{}, false
	}
	if r := s.files[gameMarket{s.items[i].Key.AppID, market}]; r.responded {
		return r.at, true
	}
	o := &s.requests[i]
	if by := o.responseOf(s.estimator.marketsByID[market].provider); by != nil && !slices.Contains(o.silent, market) {
		return by.at, true
	}
	return time.Time{}, false
}

// stateWithoutEvidence returns the state of an item for which this job has no evidence. The
// result reason is set for ItemSkipped, and errText is the error for ItemFailed.
func (s *batchEstimator) stateWithoutEvidence(i int) (state, reason, errText string) {
	o := &s.requests[i]
	errs := o.errs
	for k := range s.items[i].Quotes { // errors of markets that quoted the item before
		old := &s.items[i].Quotes[k]
		if !quoted(old) {
			continue
		}
		m := s.estimator.marketsByID[old.MarketID]
		if r := s.files[gameMarket{s.items[i].Key.AppID, old.MarketID}]; r.problem != "" {
			errs = append(errs, r.problem)
		} else if slices.Contains(o.rejected, old.MarketID) {
			errs = append(errs, (&provider.Error{Provider: m.provider, Kind: provider.KindProtocol, Detail: "the row of this item was rejected: " + m.Key}).Error())
		} else if slices.Contains(o.silent, old.MarketID) {
			errs = append(errs, m.provider+": "+OutcomeSilent.text()+": "+m.Key)
		}
	}
	switch {
	case len(errs) > 0:
		return ItemFailed, "", summary(errs)
	case o.skip != "":
		return ItemSkipped, o.skip, ""
	case !o.responded:
		return ItemFailed, "", "no configured provider quotes this game"
	default:
		return ItemNoQuote, "", ""
	}
}

// quotedAt returns the time of the newest quote that the estimate uses, or the zero time
// without such a quote. The time of a quote is its fetch time, or the market's own time if
// that is older. Market times are precise to the hour.
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
		return now // the clock has been set back
	}
	return newest
}
