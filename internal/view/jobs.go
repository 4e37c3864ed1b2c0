package view

import (
	"context"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/event"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/refresh"
	"assay/internal/view/prices"
)

// Job is a refresh job.
type Job struct {
	ID             string     `json:"id"`
	Kind           string     `json:"kind"` // bulk, missing, items
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
	Outcome        *string    `json:"outcome"` // complete, partial or failed; null until the job ends
	Gaps           event.Gaps `json:"gaps"`    // missing items; also missing markets once the job has ended
	Usage          Usage      `json:"usage"`
	// Deferred lists markets (provider/market) that were not requested because of a budget, an
	// open circuit breaker or a retry-after.
	Deferred []string `json:"deferred"`
	// Providers counts quotes and deferred names by provider.
	Providers []JobProvider `json:"providers"`
}

// JobProvider counts the requests and quotes of one provider in a job. A background fetch can
// increase the counts after the job has ended.
type JobProvider struct {
	Provider      string      `json:"provider"`
	Requests      int64       `json:"requests"`
	DeferredNames int64       `json:"deferredNames"` // names deferred by its budget
	Markets       []JobMarket `json:"markets"`
}

// JobMarket counts the quotes of a market in a job.
type JobMarket struct {
	Market   string `json:"market"`
	Quotes   int64  `json:"quotes"`   // in responses that passed validation
	Rejected int64  `json:"rejected"` // invalid rows
}

// Skipped counts items that a job skipped, by reason. The plan stage skips items for the first
// two reasons. Items skipped for the other reasons had no new quotes and remain due.
type Skipped struct {
	TTL     int64 `json:"ttl"`
	NoSales int64 `json:"noSales"`
	Budget  int64 `json:"budget"`  // a limit or quota is used up
	Paused  int64 `json:"paused"`  // an operator paused the provider
	Backoff int64 `json:"backoff"` // a circuit breaker is open or a retry-after applies
}

// Total returns the number of skipped items.
func (s Skipped) Total() int64 { return s.TTL + s.NoSales + s.Budget + s.Paused + s.Backoff }

// Usage counts the HTTP requests of a job, including retries.
type Usage struct {
	RequestCount int64            `json:"requestCount"`
	ByProvider   map[string]int64 `json:"byProvider"`
}

// JobItem is an item in a job.
type JobItem struct {
	AppID          int32        `json:"appId"`
	MarketHashName string       `json:"marketHashName"`
	Phase          string       `json:"phase"`
	State          string       `json:"state"`    // pending, updated, skipped, noQuote, failed, cancelled
	Reason         string       `json:"reason"`   // of a skipped item: ttl, noSales, budget, paused or backoff
	Attempts       int64        `json:"attempts"` // 1 after an estimate, otherwise 0; Usage counts requests
	Error          *string      `json:"error"`
	PriceBefore    money.Micro  `json:"priceBefore"`
	PriceAfter     *money.Micro `json:"priceAfter"`
}

// Jobs lists jobs of a kind ("": all kinds), newest first.
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

// LastOutcome returns the outcome of the last bulk job that ended, or "" if there is none.
func (r *JobReader) LastOutcome(ctx context.Context) (refresh.JobOutcome, error) {
	return LastOutcome(ctx, r.o.Store, refresh.Bulk)
}

// Job returns a job. It returns a fault.NotFound if the job does not exist.
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

// jobs converts job rows and adds their requests by provider.
func (r *JobReader) jobs(ctx context.Context, rows []refresh.Job) ([]Job, error) {
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	requests, err := RequestCounts(ctx, r.o.Store, ids)
	if err != nil {
		return nil, err
	}
	quotes, err := QuoteCounts(ctx, r.o.Store, ids)
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
		for _, u := range requests {
			if u.JobID == rows[i].ID {
				out[i].Usage.RequestCount += u.Requests
				out[i].Usage.ByProvider[u.Provider] = u.Requests
				out[i].Providers = append(out[i].Providers, jobProvider(u, quotes))
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

// jobProvider returns the counts of one provider in a job.
func jobProvider(u ProviderUse, quotes []MarketYield) JobProvider {
	s := JobProvider{Provider: u.Provider, Requests: u.Requests, DeferredNames: u.DeferredNames, Markets: []JobMarket{}}
	for _, y := range quotes {
		if y.JobID == u.JobID && y.Provider == u.Provider {
			s.Markets = append(s.Markets, JobMarket{Market: y.Market, Quotes: y.Quotes, Rejected: y.Rejected})
		}
	}
	return s
}

// marketsOf lists the markets of a provider's file as provider/market. For a provider that is
// requested by name, it lists all markets. For a provider that is no longer configured, it lists
// only the provider's name.
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

// itemStates are the valid values of the state filter of JobItems.
var itemStates = []string{
	refresh.ItemPending, refresh.ItemUpdated, refresh.ItemSkipped, refresh.ItemNoQuote, refresh.ItemFailed, refresh.ItemCancelled,
}

// JobItemFilter selects items of a job. An empty field does not filter.
type JobItemFilter struct {
	State  string // one of pending, updated, skipped, noQuote, failed and cancelled
	Cause  string // the exact error, as in FailureReason.Cause
	Search string // words that the name must contain, in any order and ignoring ASCII case
}

// JobItems lists the items of a job that match a filter.
func (r *JobReader) JobItems(ctx context.Context, id int64, f JobItemFilter, after string, limit int) (Page[JobItem], error) {
	class := admission.List
	if f.Search != "" {
		class = admission.Search // reads all items of the batches with a matching name
	}
	leave, err := r.o.enter(ctx, class)
	if err != nil {
		return Page[JobItem]{}, err
	}
	defer leave()
	var none Page[JobItem]
	if f.State != "" && !slices.Contains(itemStates, f.State) {
		return none, fault.New(fault.Invalid, "invalid_state", "The state must be one of %s.", strings.Join(itemStates, ", "))
	}
	words, ok := prices.WordsOf(f.Search)
	if !ok {
		return none, fault.InvalidParameter("q", "must have at most %d words", prices.MaxWords)
	}
	batch, item := -1, int64(0)
	if err := readCursor(after, "jobItems", &batch, &item); err != nil {
		return none, err
	}
	job, err := refresh.ReadJob(ctx, r.o.Store, id)
	if err != nil {
		return none, err
	}
	named, err := r.namedItems(ctx, words, job.Batches)
	if err != nil {
		return none, err
	}
	rows, err := findJobItems(ctx, r.o.Store, id, f, named, int64(batch), item, limit+1)
	if err != nil {
		return none, err
	}
	return page(rows, limit, jobItem, func(i *StoredJobItem) *string { return cursor("jobItems", i.Batch, i.ItemID) }), nil
}

// namedItems returns the IDs of the items whose name contains all words, by batch of a job. It returns
// nil if there are no words. Names of items with a price are in memory. A batch is a range of name
// buckets.
func (r *JobReader) namedItems(ctx context.Context, words prices.Words, batches int) (map[int64][]int64, error) {
	if len(words) == 0 {
		return nil, nil
	}
	named := map[int64][]int64{}
	add := func(id int64) {
		batch := id >> 32 * int64(batches) / catalog.Buckets
		named[batch] = append(named[batch], id)
	}
	// An item that gets its price between the two reads is in both results.
	if err := findUnpriced(ctx, r.o.Store, words, add); err != nil {
		return nil, err
	}
	return named, r.prices.Find(ctx, words, add)
}

// WriteJobItems writes the items of a job that match a filter as CSV, with a header line. It
// reads the items in pages, so that it needs little memory.
func (r *JobReader) WriteJobItems(ctx context.Context, w io.Writer, id int64, f JobItemFilter) error {
	const pageSize = 1000
	next := ""
	out := csv.NewWriter(w)
	for first := true; ; first = false {
		p, err := r.JobItems(ctx, id, f, next, pageSize)
		if err != nil {
			return err
		}
		if first {
			_ = out.Write([]string{"appId", "marketHashName", "phase", "state", "reason", "priceBefore", "priceAfter", "error"})
		}
		for i := range p.Items {
			_ = out.Write(p.Items[i].record())
		}
		out.Flush()
		if err := out.Error(); err != nil || p.NextCursor == nil {
			return err
		}
		next = *p.NextCursor
	}
}

// record returns the item as a line of a CSV file. Unknown prices are empty.
func (i *JobItem) record() []string {
	after, why := "", ""
	if i.PriceAfter != nil && *i.PriceAfter > 0 {
		after = i.PriceAfter.String()
	}
	if i.Error != nil {
		why = *i.Error
	}
	before := ""
	if i.PriceBefore > 0 {
		before = i.PriceBefore.String()
	}
	return []string{strconv.Itoa(int(i.AppID)), i.MarketHashName, i.Phase, i.State, i.Reason, before, after, why}
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
