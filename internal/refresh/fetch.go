package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/provider"
)

const (
	// Patience is the longest retry-after that a unit waits for. If a provider demands more,
	// the job continues without the provider.
	Patience = 2 * time.Minute
	// maxAttempts is how often a unit is attempted.
	maxAttempts = 10
)

// Fetch requests one unit from a host of a provider and stores the response. The host is ""
// if the provider has one host, and for files on this machine.
func (f *fetcher) Fetch(ctx context.Context, provider, host string) (bool, error) {
	for _, q := range f.queues {
		if q.provider == provider && q.host == host {
			return f.fetch(ctx, q)
		}
	}
	return false, nil
}

// fetch claims a unit of a host queue, sends its requests, and stores the result.
func (f *fetcher) fetch(ctx context.Context, q *hostQueue) (bool, error) {
	if err := f.reclaim(ctx); err != nil {
		return false, err
	}
	c := q.claim(f.owner, f.now())
	if found, err := hasWork(ctx, f.store, c); err != nil || !found {
		return false, err
	}
	var unit *FetchUnit
	var requestCtx context.Context
	_, err := f.priority.Run(ctx, func(context.Context) (claimed bool, err error) {
		unit, requestCtx, err = f.claimUnit(ctx, c)
		return unit != nil, err
	})
	if err != nil || unit == nil {
		return false, err
	}
	written := false
	defer func() { f.releaseUnit(unit, written) }()
	r, failure := f.request(f.priority.Paced(requestCtx), unit)
	defer f.recycle(r)
	keepRank := failure != nil && unit.Background && (ctx.Err() != nil || isProviderFailure(failure))
	if keepRank {
		q.until.Store(db.Micros(f.now().Add(pauseFor(failure))))
	}
	begun := false
	store := func(ctx context.Context) (bool, error) {
		begun = true
		if err := f.persist(ctx, f.endWrite(ctx, unit, r, keepRank)); err != nil {
			return false, fmt.Errorf("store response of %s: %w", q.provider, err)
		}
		written = true
		f.cacheResponse(unit.ID, r.stored)
		if f.unblocks(ctx, unit) {
			f.wake(WorkEstimate)
		}
		return ctx.Err() == nil && !keepRank, nil
	}
	more, err := f.priority.Run(ctx, store)
	if !begun { // the process stops; store the response because it cost requests
		more, err = store(ctx)
	}
	return more, err
}

// unblocks reports whether the end of a unit may unblock a validation or a batch. Every woken
// worker queries the database, in each process. A validation waits for all files of a job, and a
// batch usually for many units, so only the last one should wake the workers.
func (f *fetcher) unblocks(ctx context.Context, u *FetchUnit) bool {
	if u.Background && u.File == "" {
		return false
	}
	check := unblocksBatch
	if u.File != "" {
		check = endsFiles
	}
	free, err := check(ctx, f.store, *u)
	return free || err != nil
}

// endWrite returns the write that stores the result of a request. It releases the unit if it
// is to be retried or the process stops. Otherwise it ends the unit with its response. With
// keepRank, a name of the background fetch keeps its rank.
func (f *fetcher) endWrite(ctx context.Context, unit *FetchUnit, r *quoteSink, keepRank bool) func(*db.Tx) error {
	if unit.Background {
		return func(tx *db.Tx) error { return f.endBackground(tx, unit, r, keepRank) }
	}
	if unit.State == UnitPending || (unit.State != UnitDone && ctx.Err() != nil) {
		return func(tx *db.Tx) error { return returnUnit(tx, *unit) }
	}
	fetches, blobs := r.fetches(), r.encode()
	if unit.File != "" {
		f.recycle(r) // another response needs the buffers while this one is stored
	}
	return func(tx *db.Tx) error {
		r.stored = nil // of an attempt that was rolled back
		ended, detachment, err := endUnit(tx, *unit, fetches, blobs)
		if err != nil || !ended {
			return err
		}
		if unit.State == UnitDone {
			r.stored = blobs
		}
		if detachment != NotDetached {
			return f.storeDetached(tx, unit, r, detachment)
		}
		if unit.Requests > 0 {
			if err := splitUnit(tx, *unit, r.remaining); err != nil {
				return err
			}
		}
		if err := f.noteRequested(tx, append([]FetchUnit{*unit}, r.remaining...)); err != nil {
			return err
		}
		return f.noteOutcome(tx, unit, r.remaining)
	}
}

// storeDetached stores a response that arrived after its job had continued without it. If it
// is a file, the next plan uses it. If it is a response to names, the next estimate uses its
// quotes.
func (f *fetcher) storeDetached(tx *db.Tx, unit *FetchUnit, r *quoteSink, detachment Detachment) error {
	if unit.ConcernsProvider() && (unit.State == UnitDone || detachment != DetachedRunning) {
		if err := noteProvider(tx, unit.Provider, unit.File, unit.Error); err != nil {
			return err
		}
	}
	if unit.State != UnitDone || unit.File != "" {
		return nil
	}
	items, err := namedItems(tx, unit.AppID, unit.Names)
	if err != nil {
		return err
	}
	if err := f.mergeQuotes(unit, r, items, tx.Now()); err != nil {
		return err
	}
	return writeNamedQuotes(tx, items)
}

// noteRequested stores which names were requested from a provider with a budget, so that
// later jobs request other names first.
func (f *fetcher) noteRequested(tx *db.Tx, units []FetchUnit) error {
	for _, u := range units {
		if u.File != "" || u.State != UnitDone && u.State != UnitFailed || !hasBudget(f.providers[u.Provider].Describe()) {
			continue
		}
		if err := noteRequested(tx, u); err != nil {
			return err
		}
	}
	return nil
}

// noteOutcome stores the outcome of a unit and its remaining units in the state of their
// provider and markets.
func (f *fetcher) noteOutcome(tx *db.Tx, unit *FetchUnit, rest []FetchUnit) error {
	for _, u := range append([]FetchUnit{*unit}, rest...) {
		if u.Error == "" || !u.ConcernsProvider() {
			continue
		}
		if err := noteMarkets(tx, f.requestedMarkets(&u), u.Error); err != nil {
			return err
		}
	}
	if !unit.ConcernsProvider() {
		return nil
	}
	return noteProvider(tx, unit.Provider, unit.File, unit.Error)
}

// requestedMarkets returns the ids of the markets that a unit requests, in order.
func (p *process) requestedMarkets(u *FetchUnit) []int64 {
	if u.File != "" {
		return p.marketsOf(*u)
	}
	var out []int64
	for id, m := range p.marketsByID {
		if m.provider == u.Provider && slices.Contains(m.AppIDs, u.AppID) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// request sends the requests of a unit and sets its state. The state is UnitDone, UnitFailed,
// UnitDeferred, or UnitPending if the unit is to be retried later.
func (f *fetcher) request(ctx context.Context, unit *FetchUnit) (*quoteSink, error) {
	src := f.providers[unit.Provider]
	d := src.Describe()
	r := f.newQuoteSink(ctx, d)
	meter := f.meter(unit, max(d.BatchSize, 1))
	var err error
	if unit.Background {
		err = f.call(ctx, r, src, unit, meter)
	} else {
		err = f.callForJob(waitKey{unit.JobID, d.Name, d.HostOf(unit.File)}, r, meter, func() error { return f.call(ctx, r, src, unit, meter) })
	}
	unit.Requests += meter.Requests()
	unit.Bytes += meter.Bytes()
	unit.FetchedAt = f.now()
	if err == nil {
		unit.State = UnitDone
		return r, nil
	}
	r.Restart()
	f.classifyFailure(unit, err)
	return r, err
}

// reserveStep is how many requests of a large unit are counted in one commit before they are
// sent. A commit for each request would cost more than most responses. If the process is
// killed, the count may be up to ten requests too high.
const reserveStep = 10

// errClaimLost means that another process holds the claim now, so this process must send no
// more requests for the unit.
var errClaimLost = errors.New("claim lost")

// meter returns a meter that counts a unit's requests in the database before they are sent.
// The claim counts the first request. Retries are counted one by one. Further calls for names
// are counted reserveStep at a time.
func (f *fetcher) meter(unit *FetchUnit, size int) *provider.Meter {
	calls := int64((len(unit.Names) + size - 1) / size)
	return provider.NewMeter(unit.Reserved, func(ctx context.Context) (int64, error) {
		more := max(1, min(reserveStep, calls-unit.Counted-unit.Reserved))
		counted := false
		err := f.store.InTx(ctx, func(tx *db.Tx) (err error) {
			counted, err = reserveRequests(tx, *unit, more)
			return err
		})
		if err == nil && !counted {
			err = errClaimLost
		}
		if err != nil {
			return 0, err
		}
		unit.Counted, unit.Reserved = unit.Counted+unit.Reserved, more
		return more, nil
	})
}

// call fetches a unit. If the provider's code panics, call returns an error that is not
// retried, because the same response would cause a panic again.
func (f *fetcher) call(ctx context.Context, r *quoteSink, src provider.Provider, unit *FetchUnit, meter *provider.Meter) (err error) {
	defer func() {
		if panicked := fault.Recovered(recover()); panicked != nil {
			f.log.Error("provider panicked", "provider", unit.Provider, "error", panicked, "stack", panicked.Stack)
			err = panicked
		}
	}()
	if unit.File != "" {
		return r.fetchFile(ctx, src, unit, meter)
	}
	return r.fetchNames(ctx, f, src, unit, meter)
}

// classifyFailure sets the state of a unit after a failed call.
func (f *fetcher) classifyFailure(unit *FetchUnit, err error) {
	pe, ok := errors.AsType[*provider.Error](err)
	if !ok { // an error in reading the response, or a panic
		pe = provider.Protocol(unit.Provider, "%s", strings.TrimPrefix(err.Error(), unit.Provider+": "))
	}
	unit.State, unit.ErrorKind, unit.Error = UnitFailed, string(pe.Kind), pe.Error()
	if pe.Kind == provider.KindCancelled && unit.Attempts < maxAttempts {
		unit.State, unit.ErrorKind, unit.Error = UnitPending, "", "" // not a failure of the provider
		return
	}
	if !pe.Deferred() {
		return
	}
	if pe.RetryAfter > 0 && pe.RetryAfter <= Patience && unit.Attempts < maxAttempts {
		unit.State = UnitPending
		unit.NotBefore = f.now().Add(pe.RetryAfter)
		return
	}
	unit.State = UnitDeferred
}
