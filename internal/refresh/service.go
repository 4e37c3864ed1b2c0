package refresh

import (
	"context"
	"errors"
	"slices"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/fault"
)

// Started is the result of a request to start a job.
type Started struct {
	JobID         int64
	Started       bool // false: JobID is the job that is already live
	ForcedIgnored bool // the request is forced, but the live job is not
}

// Start starts a bulk job, unless a bulk job is live.
func (e *Engine) Start(ctx context.Context, forced bool, by string) (Started, error) {
	return e.start(ctx, Job{Kind: Bulk, Forced: forced, RequestedBy: by})
}

// RetryFailed starts a bulk job for the items that an ended job failed to price. These are
// the failed items and the items that were skipped because of a budget, a pause or a backoff.
// Their TTL is ignored. With a cause, the job has only the items that failed with exactly this
// error.
func (e *Engine) RetryFailed(ctx context.Context, id int64, cause, by string) (Started, error) {
	old, err := ReadJob(ctx, e.store, id)
	if err != nil {
		return Started{}, err
	}
	if old.State.Live() {
		return Started{}, fault.New(fault.Conflict, "job_running", "Job %d has not ended. Wait until it ends, or cancel it.", id)
	}
	if c := &old.Counts; c.Failed+c.SkippedBudget+c.SkippedPaused+c.SkippedBackoff == 0 {
		return Started{}, fault.New(fault.Conflict, "nothing_failed", "No item of job %d failed or was skipped because of a budget, a pause or a backoff. Start a refresh instead.", id)
	}
	if cause != "" {
		found, err := failedWith(ctx, e.store, id, cause)
		if err != nil {
			return Started{}, err
		}
		if !found {
			return Started{}, fault.New(fault.Conflict, "nothing_failed", "No item of job %d failed with this error. GET /api/market-prices/jobs/%d/items lists the errors.", id, id)
		}
	}
	return e.start(ctx, Job{Kind: Bulk, RequestedBy: by, RetryOf: id, RetryCause: cause})
}

// MaxChosen is the maximum number of items of RefreshItems and AcceptItems.
const MaxChosen = 500

// RefreshItems starts a job for the given items, even if they are within their TTL, unless such
// a job is live. It runs in parallel with other jobs. It does not request a file again that was
// requested recently.
func (e *Engine) RefreshItems(ctx context.Context, keys []catalog.Key, by string) (Started, error) {
	if err := checkChosen(keys); err != nil {
		return Started{}, err
	}
	ids, err := itemIDs(ctx, e.store, keys)
	if err != nil {
		return Started{}, err
	}
	return e.start(ctx, Job{Kind: Chosen, RequestedBy: by, Items: ids})
}

func checkChosen(keys []catalog.Key) error {
	switch {
	case len(keys) == 0:
		return fault.New(fault.Invalid, "invalid_body", "The request has no items. Send at least one.")
	case len(keys) > MaxChosen:
		return fault.New(fault.TooLarge, "too_many_items", "The request has too many items. Send at most %d.", MaxChosen)
	}
	return nil
}

// acceptedAtOnce is the maximum number of prices that one transaction accepts.
const acceptedAtOnce = 100

// AcceptItems publishes the held prices of the given items and applies them to all inventory rows.
// It ignores items without a held price. If an item is unknown, it returns an error and accepts
// nothing. It returns how many prices it accepted, also with another error.
func (e *Engine) AcceptItems(ctx context.Context, keys []catalog.Key) (accepted int, err error) {
	if err := checkChosen(keys); err != nil {
		return 0, err
	}
	ids, err := itemIDs(ctx, e.store, keys)
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(ids, acceptedAtOnce) {
		n, err := e.accept(ctx, func(*db.Tx) ([]int64, error) { return some, nil })
		if accepted += n; err != nil {
			return accepted, err
		}
	}
	return accepted, nil
}

// AcceptHeld accepts all held prices, but at most the given number. It returns how many it
// accepted, also with an error.
func (e *Engine) AcceptHeld(ctx context.Context, most int) (accepted int, err error) {
	for accepted < most {
		n, err := e.accept(ctx, func(tx *db.Tx) ([]int64, error) { return heldItems(tx, min(acceptedAtOnce, most-accepted)) })
		if accepted += n; err != nil || n == 0 {
			return accepted, err
		}
	}
	return accepted, nil
}

// accept accepts the held prices of the items that find returns, in one transaction.
func (e *Engine) accept(ctx context.Context, find func(*db.Tx) ([]int64, error)) (accepted int, err error) {
	err = e.store.InTx(ctx, func(tx *db.Tx) error {
		items, err := find(tx)
		if err != nil {
			return err
		}
		if accepted, err = acceptItems(tx, items); err == nil && accepted == 0 {
			err = errNothingHeld
		}
		return err
	})
	switch {
	case errors.Is(err, errNothingHeld):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return accepted, nil
}

// errNothingHeld rolls back a transaction that accepts no price, so that the audit log does not
// record it.
var errNothingHeld = errors.New("no item has a held price")

func (e *Engine) start(ctx context.Context, job Job) (Started, error) {
	var s Started
	err := e.store.InTx(ctx, func(tx *db.Tx) (err error) {
		s.JobID, s.Started, err = InsertJob(tx, job)
		return err
	})
	if err != nil {
		return Started{}, err
	}
	if !s.Started {
		live, err := ReadJob(ctx, e.store, s.JobID)
		if err != nil {
			return Started{}, err
		}
		s.ForcedIgnored = job.Forced && !live.Forced
		return s, nil
	}
	e.wake(WorkPlan)
	return s, nil
}

// Cancel ends a live job. Prices that are estimated already are applied to the inventory
// rows. All other items are cancelled, and requests in progress are aborted.
func (e *Engine) Cancel(ctx context.Context, id int64) error {
	if _, err := ReadJob(ctx, e.store, id); err != nil {
		return err
	}
	if err := e.store.InTx(ctx, func(tx *db.Tx) error { return cancelJob(tx, id, e.cfg.MissingRetry) }); err != nil {
		return err
	}
	e.interrupt(id)
	e.wake(WorkEstimate)
	e.wake(WorkApply)
	return nil
}

// PauseProvider stops requests to a provider until ResumeProvider is called. Requests in
// progress continue.
func (e *Engine) PauseProvider(ctx context.Context, provider string) error {
	return e.setPaused(ctx, provider, true)
}

// ResumeProvider allows requests to a paused provider again. It deletes the provider's
// reported quota. The configured limit, the quotas and a retry-after stay in force.
func (e *Engine) ResumeProvider(ctx context.Context, provider string) error {
	return e.setPaused(ctx, provider, false)
}

func (e *Engine) setPaused(ctx context.Context, provider string, paused bool) error {
	if err := e.checkProvider(provider); err != nil {
		return err
	}
	err := e.store.InTx(ctx, func(tx *db.Tx) error { return pauseProvider(tx, provider, paused) })
	if err == nil {
		e.wake(WorkEstimate) // after a pause, jobs continue without the deferred units
		e.wakeFetch()        // after a resume, requests are sent again
	}
	return err
}

// AcceptProvider ends the quarantine of a provider's market. With market "" it ends the
// quarantine of all markets of the provider. For 48 hours, validation accepts a response that
// resembles the refused one, and compares later responses with it.
func (e *Engine) AcceptProvider(ctx context.Context, provider, market string) error {
	if err := e.checkProvider(provider); err != nil {
		return err
	}
	if market != "" && !e.offers(provider, market) {
		return fault.New(fault.NotFound, "market_not_found", "Provider %s has no market %q. GET /api/market-prices/provider-debug lists its markets.", provider, market)
	}
	var accepted int64
	err := e.store.InTx(ctx, func(tx *db.Tx) (err error) {
		accepted, err = acceptProvider(tx, provider, market)
		return err
	})
	switch {
	case err != nil || accepted > 0:
		return err
	case market != "":
		return fault.New(fault.Conflict, "not_quarantined", "Market %s of %s is not in quarantine.", market, provider)
	default:
		return fault.New(fault.Conflict, "not_quarantined", "No market of %s is in quarantine.", provider)
	}
}

// offers reports whether a provider has a market with this key.
func (e *Engine) offers(provider, market string) bool {
	for _, m := range e.marketsByID {
		if m.provider == provider && m.Key == market {
			return true
		}
	}
	return false
}

func (e *Engine) checkProvider(provider string) error {
	if _, ok := e.providers[provider]; !ok {
		return fault.New(fault.NotFound, "provider_not_found", "No provider %q is configured. See MARKET_PRICE_PROVIDERS.", provider)
	}
	return nil
}

// AcceptItem is AcceptItems for one item. It returns an error if the item has no held price.
func (e *Engine) AcceptItem(ctx context.Context, key catalog.Key) error {
	accepted, err := e.AcceptItems(ctx, []catalog.Key{key})
	if err == nil && accepted == 0 {
		err = fault.New(fault.Conflict, "no_candidate", "This item has no held price.")
	}
	return err
}
