package view

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/admission"
	"assay/internal/event"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/refresh"
)

// Job is a refresh.
type Job struct {
	ID             string     `json:"id"`
	Kind           string     `json:"kind"` // bulk, missing
	Forced         bool       `json:"forced"`
	State          string     `json:"state"` // queued, running, finished, failed, cancelled
	Stage          string     `json:"stage"` // plan, fetch, estimate, apply, done
	RequestedBy    string     `json:"requestedBy"`
	CreatedAt      time.Time  `json:"createdAt"`
	StartedAt      *time.Time `json:"startedAt"`
	FinishedAt     *time.Time `json:"finishedAt"`
	RetryOf        *string    `json:"retryOf"`
	TotalItems     int64      `json:"totalItems"`
	PendingItems   int64      `json:"pendingItems"`
	UpdatedItems   int64      `json:"updatedItems"`
	SkippedItems   Skipped    `json:"skippedItems"`
	NoQuoteItems   int64      `json:"noQuoteItems"`
	FailedItems    int64      `json:"failedItems"`
	CancelledItems int64      `json:"cancelledItems"`
	ChangedItems   int64      `json:"changedItems"` // updated items whose price changed
	LastError      *string    `json:"lastError"`
	Outcome        *string    `json:"outcome"` // complete, partial, failed; null while it lives
	Gaps           event.Gaps `json:"gaps"`    // what is missing; its markets once it has ended
	Usage          Usage      `json:"usage"`
	// Deferred lists markets, as provider/market, that were not requested because of a
	// budget, a circuit breaker or a retry-after.
	Deferred []string `json:"deferred"`
	// Providers counts quotes by provider, and what was deferred.
	Providers []JobProvider `json:"providers"`
}

// JobProvider counts the requests and quotes of a provider in a job. The numbers of a
// background fetch still grow when the job has ended.
type JobProvider struct {
	Provider   string      `json:"provider"`
	Requests   int64       `json:"requests"`
	LaterNames int64       `json:"laterNames"` // names that its budget deferred
	Markets    []JobMarket `json:"markets"`
}

// JobMarket counts the quotes of a market in a job.
type JobMarket struct {
	Market   string `json:"market"`
	Quotes   int64  `json:"quotes"`   // of responses that passed validation
	Rejected int64  `json:"rejected"` // invalid rows
}

// Skipped counts items that a job did not price, by reason. The plan leaves out the
// first two. The others had no new quotes and stay due.
type Skipped struct {
	TTL     int64 `json:"ttl"`
	NoSales int64 `json:"noSales"`
	Budget  int64 `json:"budget"`  // a limit or quota left no request
	Paused  int64 `json:"paused"`  // an operator paused the provider
	Backoff int64 `json:"backoff"` // a circuit breaker was open, or the provider demanded a wait
}

// Total is the number of items skipped for any reason.
func (s Skipped) Total() int64 { return s.TTL + s.NoSales + s.Budget + s.Paused + s.Backoff }

// Usage counts every HTTP request of a job, retries included.
type Usage struct {
	RequestCount int64            `json:"requestCount"`
	ByProvider   map[string]int64 `json:"byProvider"`
}

// JobItem is one item within a job.
type JobItem struct {
	AppID          int32        `json:"appId"`
	MarketHashName string       `json:"marketHashName"`
	Phase          string       `json:"phase"`
	State          string       `json:"state"`    // pending, updated, skipped, noQuote, failed, cancelled
	Reason         string       `json:"reason"`   // of a skip: ttl, noSales, budget, paused, backoff
	Attempts       int64        `json:"attempts"` // 1 once it was estimated, else 0; the usage of the job counts requests
	Error          *string      `json:"error"`
	PriceBefore    money.Micro  `json:"priceBefore"`
	PriceAfter     *money.Micro `json:"priceAfter"`
}

// Jobs lists jobs of a kind ("": any), the newest first.
func (r *JobReader) Jobs(ctx context.Context, kind, after string, limit int) (Page[Job], error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return Page[Job]{}, err
	}
	defer leave()
	before := int64(1) << 62
	if err := readCursor(after, "jobs", &before); err != nil {
		return Page[Job]{}, err
	}
	rows, err := Jobs(ctx, r.o.Store, refresh.Kind(kind), before, limit+1)
	if err != nil {
		return Page[Job]{}, err
	}
	jobs, err := r.jobs(ctx, rows)
	return page(jobs, limit, func(j *Job) Job { return *j }, func(j *Job) *string {
		id, _ := strconv.ParseInt(j.ID, 10, 64)
		return cursor("jobs", id)
	}), err
}

// LastOutcome returns the outcome of the bulk job that ended last, "" for none.
func (r *JobReader) LastOutcome(ctx context.Context) (refresh.JobOutcome, error) {
	return LastOutcome(ctx, r.o.Store, refresh.Bulk)
}

// Job returns a job, or a fault.NotFound.
func (r *JobReader) Job(ctx context.Context, id int64) (Job, error) {
	row, err := refresh.ReadJob(ctx, r.o.Store, id)
	if err != nil {
		return Job{}, err
	}
	jobs, err := r.jobs(ctx, []refresh.Job{row})
	if err != nil {
		return Job{}, err
	}
	return jobs[0], nil
}

// jobs adds to jobs their requests by provider.
func (r *JobReader) jobs(ctx context.Context, rows []refresh.Job) ([]Job, error) {
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	use, err := Use(ctx, r.o.Store, ids)
	if err != nil {
		return nil, err
	}
	yield, err := Yield(ctx, r.o.Store, ids)
	if err != nil {
		return nil, err
	}
	deferred, err := Deferred(ctx, r.o.Store, ids)
	if err != nil {
		return nil, err
	}
	out := make([]Job, len(rows))
	for i := range rows {
		out[i] = job(&rows[i])
		for _, u := range use {
			if u.JobID == rows[i].ID {
				out[i].Usage.RequestCount += u.Requests
				out[i].Usage.ByProvider[u.Provider] = u.Requests
				out[i].Providers = append(out[i].Providers, jobProvider(u, yield))
			}
		}
		for _, d := range deferred {
			if d.JobID == rows[i].ID {
				out[i].Deferred = append(out[i].Deferred, r.marketsOf(d.Provider, d.File)...)
			}
		}
		slices.Sort(out[i].Deferred)
		out[i].Deferred = slices.Compact(out[i].Deferred)
	}
	return out, nil
}

// jobProvider returns a provider's figures in a job.
func jobProvider(u ProviderUse, yield []MarketYield) JobProvider {
	s := JobProvider{Provider: u.Provider, Requests: u.Requests, LaterNames: u.Later, Markets: []JobMarket{}}
	for _, y := range yield {
		if y.JobID == u.JobID && y.Provider == u.Provider {
			s.Markets = append(s.Markets, JobMarket{Market: y.Market, Quotes: y.Quotes, Rejected: y.Rejected})
		}
	}
	return s
}

// marketsOf lists the markets of a provider's file, of all of them for a provider
// that is requested by name; the provider's own name stands for one that is not
// configured any more.
func (r *JobReader) marketsOf(provider, file string) []string {
	for _, s := range r.o.Providers {
		d := s.Describe()
		if d.Name != provider {
			continue
		}
		var out []string
		for _, key := range d.MarketsOf(file) {
			out = append(out, provider+"/"+key)
		}
		return out
	}
	return []string{provider}
}

func job(j *refresh.Job) Job {
	c := &j.Counts
	out := Job{
		ID: strconv.FormatInt(j.ID, 10), Kind: string(j.Kind), Forced: j.Forced, State: string(j.State), Stage: string(j.Stage),
		RequestedBy: j.RequestedBy, CreatedAt: j.CreatedAt, StartedAt: when(j.StartedAt), FinishedAt: when(j.FinishedAt),
		TotalItems: c.Total, PendingItems: c.Pending, UpdatedItems: c.Updated, NoQuoteItems: c.NoQuote,
		FailedItems: c.Failed, CancelledItems: c.Cancelled, ChangedItems: c.Changed,
		SkippedItems: Skipped{
			TTL: c.SkippedTTL, NoSales: c.SkippedNoSales, Budget: c.SkippedBudget, Paused: c.SkippedPaused, Backoff: c.SkippedBackoff,
		},
		LastError: text(j.LastError),
		Outcome:   text(string(j.Outcome)),
		Gaps:      j.Gaps(),
		Usage:     Usage{ByProvider: map[string]int64{}},
		Deferred:  []string{},
		Providers: []JobProvider{},
	}
	if j.RetryOf != 0 {
		s := strconv.FormatInt(j.RetryOf, 10)
		out.RetryOf = &s
	}
	return out
}

// itemStates are the states by which a job's items can be listed.
var itemStates = []string{
	refresh.ItemPending, refresh.ItemUpdated, refresh.ItemSkipped, refresh.ItemNoQuote, refresh.ItemFailed, refresh.ItemCancelled,
}

// JobItems lists a job's items in a state ("": any).
func (r *JobReader) JobItems(ctx context.Context, id int64, state, after string, limit int) (Page[JobItem], error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return Page[JobItem]{}, err
	}
	defer leave()
	var none Page[JobItem]
	if state != "" && !slices.Contains(itemStates, state) {
		return none, fault.New(fault.Invalid, "invalid_state", "The state must be one of %s.", strings.Join(itemStates, ", "))
	}
	batch, item := -1, int64(0)
	if err := readCursor(after, "jobItems", &batch, &item); err != nil {
		return none, err
	}
	if _, err := refresh.ReadJob(ctx, r.o.Store, id); err != nil {
		return none, err
	}
	rows, err := JobItems(ctx, r.o.Store, id, state, int64(batch), item, limit+1)
	if err != nil {
		return none, err
	}
	return page(rows, limit, jobItem, func(i *StoredJobItem) *string { return cursor("jobItems", i.Batch, i.ItemID) }), nil
}

func jobItem(i *StoredJobItem) JobItem {
	out := JobItem{
		AppID: i.Key.AppID, MarketHashName: i.Key.Name, Phase: i.Key.Phase,
		State: i.State, Reason: i.Reason, Attempts: i.Attempts, Error: text(i.Error), PriceBefore: i.PriceBefore,
	}
	if i.PriceAfter >= 0 {
		out.PriceAfter = &i.PriceAfter
	}
	return out
}
