package view

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/exchange"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/user"
	"assay/internal/view/prices"
	"assay/internal/view/ranking"
	"assay/internal/wallet"
)

// Reader answers questions about the state of things. It changes nothing and
// sends no request to a provider. Its methods may be called concurrently.
type Reader struct {
	o       Options
	fresh   freshness
	prices  *prices.Table
	sets    sets
	ranking *ranking.Ranking
	status  *admission.Coalescer[counted]
}

// Options are what a Reader is made of.
type Options struct {
	Store        *db.DB
	Providers    []provider.Provider
	Clients      map[string]provider.Clients // by provider; one without has no record of calls
	Unconfigured []Unconfigured
	ScopeAll     bool
	Currency     money.Currency
	Ledger       *wallet.Ring     // verifies what balances rest on; nil: nothing does
	Rates        *exchange.Keeper // nil: there are none
	RatesClient  *provider.Client // that fetches them; nil: nothing is fetched
	Inventories  *provider.Client // that pulls them; nil: nothing is pulled
	SteamHost    provider.Host    // where they are
	Scheduled    func() map[string]time.Time
	Owner        string // names this process in claims
	Version      string
	Started      time.Time
	Now          func() time.Time
	Logger       *slog.Logger // nil: nothing is logged
}

// NewReader makes a Reader.
func NewReader(o Options) *Reader {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Reader{
		o: o, prices: prices.New(o.Store), status: admission.NewCoalescer[counted](false),
		ranking: ranking.New(ranking.Options{Store: o.Store, Now: o.Now, Logger: o.Logger}),
	}
}

// Status returns what runs and how fresh prices are. Concurrent callers are coalesced
// and share the result, which must not be changed.
func (r *Reader) Status(ctx context.Context) (Status, error) {
	c, err := r.status.Do(ctx, r.readStatus)
	if err == nil {
		c.Freshness, err = r.fresh.get(ctx, c.key, r.o.Now, r.countFresh)
	}
	return c.Status, err
}

// counted is a status without freshness, and what that is of.
type counted struct {
	Status
	key freshKey
}

func (r *Reader) readStatus(ctx context.Context) (counted, error) {
	now := r.o.Now()
	var s Status
	jobs, err := Jobs(ctx, r.o.Store, refresh.Bulk, 1<<62, 1)
	if err != nil {
		return counted{}, err
	}
	s.Usage.ByProvider = map[string]int64{}
	var key freshKey
	if len(jobs) > 0 {
		job, err := r.jobs(ctx, jobs)
		if err != nil {
			return counted{}, err
		}
		s = status(job[0], jobs[0], now)
		key.job, key.state, key.updated = jobs[0].ID, jobs[0].State, jobs[0].Counts.Updated
	}
	q, err := ReadMissingQueue(ctx, r.o.Store, now)
	if err != nil {
		return counted{}, err
	}
	s.Missing = MissingStatus{Running: q.Running, PendingItems: q.Due, WaitingItems: q.Waiting}
	if !q.Oldest.IsZero() {
		s.Missing.OldestSeconds = seconds(now.Sub(q.Oldest))
	}
	key.queued = q.Due + q.Waiting
	return counted{s, key}, nil
}

func status(job Job, j refresh.Job, now time.Time) Status {
	s := Status{
		Status: RunStatus{
			Running: j.State.Live(), JobID: &job.ID, Kind: &job.Kind, Forced: job.Forced, State: &job.State, Stage: &job.Stage,
			StartedAt: job.StartedAt, FinishedAt: job.FinishedAt, Outcome: job.Outcome, Gaps: job.Gaps,
		},
		PendingItems: job.PendingItems, UpdatedItems: job.UpdatedItems, SkippedItems: job.SkippedItems,
		NoQuoteItems: job.NoQuoteItems, FailedItems: job.FailedItems, TotalItems: job.TotalItems,
		LastError: job.LastError, Usage: job.Usage,
	}
	if j.State == refresh.Running {
		s.Status.EtaSeconds = eta(j, now)
	}
	return s
}

// eta guesses when a running job ends from how fast it has estimated items; nil
// while nothing is estimated.
func eta(j refresh.Job, now time.Time) *int64 {
	c := j.Counts
	work := c.Total - c.SkippedTTL - c.SkippedNoSales
	done := work - c.Pending
	if done <= 0 || work <= 0 {
		return nil
	}
	s := seconds(now.Sub(j.StartedAt) / time.Duration(done) * time.Duration(c.Pending))
	return &s
}

// Jobs lists jobs of a kind ("": any), the newest first.
func (r *Reader) Jobs(ctx context.Context, kind, after string, limit int) (Page[Job], error) {
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
func (r *Reader) LastOutcome(ctx context.Context) (refresh.JobOutcome, error) {
	return LastOutcome(ctx, r.o.Store, refresh.Bulk)
}

// Job returns a job, or a fault.NotFound.
func (r *Reader) Job(ctx context.Context, id int64) (Job, error) {
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
func (r *Reader) jobs(ctx context.Context, rows []refresh.Job) ([]Job, error) {
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
func (r *Reader) marketsOf(provider, file string) []string {
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
func (r *Reader) JobItems(ctx context.Context, id int64, state, after string, limit int) (Page[JobItem], error) {
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

// Users lists users whose ids begin with prefix, in byte order of the ids.
func (r *Reader) Users(ctx context.Context, prefix, after string, limit int) (Page[User], error) {
	var id string
	if err := readCursor(after, "users", &id); err != nil {
		return Page[User]{}, err
	}
	rows, err := user.List(ctx, r.o.Store, prefix, id, limit+1)
	if err != nil {
		return Page[User]{}, err
	}
	return page(rows, limit, UserOf, func(u *user.User) *string { return cursor("users", u.ID) }), nil
}

// UserOf shows a user.
func UserOf(u *user.User) User {
	return User{UserID: u.ID, SteamID: text(u.SteamID), DisplayName: text(u.DisplayName), Leaderboard: u.Leaderboard}
}

func itemPrice(i *StoredItem, now time.Time) ItemPrice {
	return ItemPrice{
		AppID: i.Key.AppID, MarketHashName: i.Key.Name, Phase: i.Key.Phase,
		CurrentPrice: i.Price, CurrentPriceDecimal: money.Decimal(i.Price), Status: currentStatus(i.Price, i.Status, i.CheckedAt, now).String(), PriceUpdatedAt: when(i.UpdatedAt),
	}
}

// currentStatus is the status of the last estimate, or stale where that was too
// long ago: no run has found a price since.
func currentStatus(price money.Micro, status pricing.Status, checked, now time.Time) pricing.Status {
	return prices.Current(price, status, checked, now.Add(-freshFor))
}

// Item explains an item's price, or is a fault.NotFound.
func (r *Reader) Item(ctx context.Context, key catalog.Key) (ItemDetail, error) {
	i, err := ReadItem(ctx, r.o.Store, key)
	if err != nil {
		return ItemDetail{}, err
	}
	if i == nil {
		return ItemDetail{}, key.NotFound()
	}
	snaps, err := Snapshots(ctx, r.o.Store, i.ID)
	if err != nil {
		return ItemDetail{}, err
	}
	rates, err := exchange.ReadRates(ctx, r.o.Store, i.RateSet)
	if err != nil {
		return ItemDetail{}, err
	}
	now := r.o.Now()
	e, err := r.explain(ctx, i, snaps, rates, now)
	if err != nil {
		return ItemDetail{}, err
	}
	d := ItemDetail{
		ItemPrice: itemPrice(i, now), Currency: r.o.Currency,
		PriceCheckedAt: when(i.CheckedAt), EstimatedAt: when(i.EstimatedAt),
		Method: string(e.policy.Method), MethodVersion: i.MethodVersion, RateSet: i.RateSet, LevelSet: i.LevelSet,
		Average: i.Average, Median: i.Median, Consensus: i.Consensus, Interval: intervalOf(i.Interval), Min: i.Min, Max: i.Max,
		Markets: i.Markets, UsedMarkets: i.UsedMarkets,
		CandidatePrice: amount(i.Candidate), CandidateAt: when(i.CandidateAt),
		NoSalesSince: when(i.NoSalesSince), RetryAt: when(i.RetryAt), Failures: i.Failures, Queued: i.Queued,
		Snapshots: []MarketSnapshot{},
	}
	if i.Max > 0 {
		spread, _ := money.Ratio(i.Max, i.Min)
		d.Spread = &spread
	}
	if e.policy.Level != 0 {
		d.LevelMarket = text(e.marketName(e.policy.Level))
	}
	if !i.EstimatedAt.IsZero() {
		d.Explanation = e.detail()
	}
	if !i.CheckedAt.IsZero() {
		age := seconds(now.Sub(i.CheckedAt))
		d.AgeSeconds = &age
	}
	if i.Queued { // no pause applies to it
		d.RetryAt = when(nextAttempt(i.DueAt, now))
	}
	for k := range snaps {
		d.Snapshots = append(d.Snapshots, r.snapshot(&snaps[k], e))
	}
	return d, nil
}

// snapshot shows a stored quote; one that was confirmed by the last run carries
// that run's time. It is converted with the rates of the last estimate.
func (r *Reader) snapshot(s *StoredSnapshot, e *explainer) MarketSnapshot {
	i := e.item
	out := MarketSnapshot{
		Provider: s.Provider, Market: s.Market, Title: s.Title, Currency: s.Currency,
		LowestAsk: amount(s.Ask), HighestBid: amount(s.Bid), Sale: amount(s.Sale),
		Listings: count(s.Listings), Sales: count(s.Sales),
		MarketTime: when(s.MarketTime), FetchedAt: s.FetchedAt,
		Used: s.Reason == pricing.Used, Reason: string(s.Reason), Explanation: e.why(s),
	}
	if q, ok := e.results[s.MarketID]; ok {
		out.Level, out.Levelled, out.Noise = amount(q.Level), amount(q.Levelled), amount(q.Noise)
		if q.Far >= 0 {
			out.FarShare = &q.Far
		}
	}
	if s.Sales >= 0 {
		window := seconds(s.SalesWindow)
		out.SalesWindowSeconds = &window
	}
	if s.FetchedAt.IsZero() {
		out.FetchedAt = i.QuotesAt
	}
	price, basis := pricing.Quoted(s.Ask, s.Sale)
	if price == 0 {
		return out
	}
	out.Basis = string(basis)
	if s.Currency == r.o.Currency {
		out.Price = &price
		return out
	}
	rate, ok := e.policy.Rates.Of(s.Currency)
	if !ok {
		return out
	}
	if converted, ok := money.Convert(price, rate.Value); ok {
		out.Price, out.Rate, out.RateDate, out.RateOld = &converted, &rate.Value, when(rate.Date), rate.Old(i.EstimatedAt)
	}
	return out
}

// Inventory lists a user's rows of a game (0: all) with the figures that are requested,
// or is a fault.NotFound.
func (r *Reader) Inventory(ctx context.Context, userID string, app int32, fields Fields, after string, limit int) (Inventory, error) {
	var last int64
	if err := readCursor(after, "inventory", &last); err != nil {
		return Inventory{}, err
	}
	key, ok, err := user.Key(ctx, r.o.Store, userID)
	if err != nil {
		return Inventory{}, err
	}
	if !ok {
		return Inventory{}, user.NotFound()
	}
	total, err := ReadInventoryTotal(ctx, r.o.Store, key, app)
	if err != nil {
		return Inventory{}, err
	}
	rows, err := ReadInventory(ctx, r.o.Store, key, app, last, limit+1)
	if err != nil {
		return Inventory{}, err
	}
	now := r.o.Now()
	p := page(rows, limit, func(v *PricedRow) InventoryRow { return inventoryRow(v, fields, now) }, func(v *PricedRow) *string { return cursor("inventory", v.ID) })
	return Inventory{
		Items: p.Items, NextCursor: p.NextCursor, Currency: r.o.Currency,
		TotalValue: total.Value, TotalValueDecimal: total.Value.String(), Rows: total.Rows, UnpricedRows: total.Unpriced,
	}, nil
}

func inventoryRow(v *PricedRow, fields Fields, now time.Time) InventoryRow {
	out := InventoryRow{
		AssetID: v.AssetID, AppID: v.AppID, ContextID: v.ContextID, MarketHashName: v.Name, Phase: v.Phase,
		PhaseUnknown: v.Phase == "" && catalog.Phased(v.Name),
		ClassID:      v.ClassID, InstanceID: v.InstanceID, Amount: v.Amount, Tradable: v.Tradable, Marketable: v.Marketable, InTransfer: v.Moving,
		PriceStatus: pricing.NoPrice.String(),
	}
	if v.Value > 0 {
		out.PriceStatus, out.PriceCheckedAt = currentStatus(v.Value, v.Status, v.CheckedAt, now).String(), when(v.CheckedAt)
		out.Figures = fields.figures(&v.Figures)
		total := money.Sum{}.Add(v.Value, v.Amount)
		out.EstimatedValue, out.TotalValue, out.TotalValueDecimal, out.PriceUpdatedAt = &v.Value, &total, new(total.String()), when(v.UpdatedAt)
	}
	n := &v.Inspection
	out.Wear, out.Seed, out.Finish, out.NameTag = text(n.Wear), nonNegative(n.Seed), nonNegative(n.Finish), text(n.NameTag)
	out.Stickers, out.Charms, out.Inspection = n.Stickers, n.Charms, inspection(v)
	return out
}

// inspection returns how an asset was inspected; nil where there is nothing to
// inspect.
func inspection(v *PricedRow) *Inspection {
	n := &v.Inspection
	if n.State == "" {
		return nil
	}
	return &Inspection{
		State: string(n.State), Code: text(n.Code), Source: text(string(n.Source)), Certificate: text(cmp.Or(v.Certificate, v.Inspect)),
		Phase:    text(catalog.PhaseOf(v.Name, n.Finish)),
		DefIndex: nonNegative(n.DefIndex), Quality: nonNegative(n.Quality), Rarity: nonNegative(n.Rarity), Kills: nonNegative(n.Kills), CharmTemplate: nonNegative(n.Charm),
	}
}

// nonNegative returns n, or nil for a negative number: the inspection had no value.
func nonNegative(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// seconds cuts to whole ones. What lies ahead, by a clock that was set back
// since, is 0 seconds old.
func seconds(d time.Duration) int64 { return int64(max(d, 0) / time.Second) }

// when is a time as JSON has it: null where there is none.
func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func amount(m money.Micro) *money.Micro {
	if m == 0 {
		return nil
	}
	return &m
}

func count(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}
