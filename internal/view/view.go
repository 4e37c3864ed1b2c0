// Package view is the read side that the API and the operator page share: what
// runs, what an item is worth and why, how the providers are. Its types are the
// JSON that clients see (contract, sections 4 to 6); amounts are decimal
// numbers of the base currency, times RFC 3339 in UTC.
package view

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"assay/internal/catalog"
	"assay/internal/event"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/provider"
)

// Job is one refresh, as the contract's section 4 describes it.
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
	ChangedItems   int64      `json:"changedItems"` // of the updated ones, those whose price differs from before
	LastError      *string    `json:"lastError"`
	Outcome        *string    `json:"outcome"` // complete, partial, failed; null while it lives
	Gaps           event.Gaps `json:"gaps"`    // what it lacks; its markets as soon as it has ended
	Usage          Usage      `json:"usage"`
	// Deferred lists markets, as provider/market, that a budget, a breaker or an order to wait kept
	// from being asked in this job.
	Deferred []string `json:"deferred"`
	// Providers counts quotes by provider, and what was deferred.
	Providers []JobProvider `json:"providers"`
}

// JobProvider counts the requests and quotes of a provider in a job. The numbers of a
// background fetch still grow when the job has ended.
type JobProvider struct {
	Provider   string      `json:"provider"`
	Requests   int64       `json:"requests"`
	LaterNames int64       `json:"laterNames"` // names that its budget left for later
	Markets    []JobMarket `json:"markets"`
}

// JobMarket counts what a market brought to a job.
type JobMarket struct {
	Market   string `json:"market"`
	Quotes   int64  `json:"quotes"`   // of answers that are believed
	Rejected int64  `json:"rejected"` // rows that were no quotes
}

// Skipped counts items that a job did not price, by reason. The plan leaves out the
// first two; of the others nothing was learned, and they stay due.
type Skipped struct {
	TTL     int64 `json:"ttl"`
	NoSales int64 `json:"noSales"`
	Budget  int64 `json:"budget"`  // a limit or quota left no request
	Paused  int64 `json:"paused"`  // an operator paused the provider
	Backoff int64 `json:"backoff"` // a circuit breaker was open, or the provider demanded a wait
}

// Total is the number of items skipped for any reason.
func (s Skipped) Total() int64 { return s.TTL + s.NoSales + s.Budget + s.Paused + s.Backoff }

// Percent writes a part of 1 in percent, with at most two places.
func Percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1e4)/1e2, 'f', -1, 64) + " %"
}

// Usage counts every HTTP request of a job, retries included.
type Usage struct {
	RequestCount int64            `json:"requestCount"`
	ByProvider   map[string]int64 `json:"byProvider"`
}

// Status answers GET /api/market-prices/status.
type Status struct {
	Status       RunStatus     `json:"status"`
	PendingItems int64         `json:"pendingItems"`
	UpdatedItems int64         `json:"updatedItems"`
	SkippedItems Skipped       `json:"skippedItems"`
	NoQuoteItems int64         `json:"noQuoteItems"`
	FailedItems  int64         `json:"failedItems"`
	TotalItems   int64         `json:"totalItems"`
	LastError    *string       `json:"lastError"`
	Usage        Usage         `json:"usage"`
	Missing      MissingStatus `json:"missing"`
	Freshness    Freshness     `json:"freshness"`
}

// RunStatus describes the running or last bulk job.
type RunStatus struct {
	Running    bool       `json:"running"`
	JobID      *string    `json:"jobId"`
	Kind       *string    `json:"kind"`
	Forced     bool       `json:"forced"`
	State      *string    `json:"state"`
	Stage      *string    `json:"stage"`
	StartedAt  *time.Time `json:"startedAt"`
	FinishedAt *time.Time `json:"finishedAt"`
	Outcome    *string    `json:"outcome"` // complete, partial, failed; null while it runs
	Gaps       event.Gaps `json:"gaps"`    // of the job
	EtaSeconds *int64     `json:"etaSeconds"`
}

// MissingStatus describes the queue of items without a price.
type MissingStatus struct {
	Running       bool  `json:"running"`
	PendingItems  int64 `json:"pendingItems"`  // due or in work
	WaitingItems  int64 `json:"waitingItems"`  // to be tried again later
	OldestSeconds int64 `json:"oldestSeconds"` // since the oldest due entry was queued
}

// Freshness sorts all items in scope by the age of their price.
type Freshness struct {
	Fresh         int64 `json:"fresh"`   // up to 24 h
	Stale         int64 `json:"stale"`   // older
	Unknown       int64 `json:"unknown"` // no price
	OldestSeconds int64 `json:"oldestSeconds"`
}

// DryRun answers a refresh with dryRun=1: what it would do.
type DryRun struct {
	DryRun       bool          `json:"dryRun"`
	Forced       bool          `json:"forced"`
	TotalItems   int64         `json:"totalItems"`
	DueItems     int64         `json:"dueItems"`
	SkippedItems Skipped       `json:"skippedItems"`
	Providers    []PlannedCost `json:"providers"`
	Requests     int64         `json:"requests"`
	Seconds      float64       `json:"seconds"` // at the providers' limits
}

// PlannedCost is the planned requests of one provider.
type PlannedCost struct {
	Provider string `json:"provider"`
	Requests int64  `json:"requests"`
	Deferred int64  `json:"deferred"` // more, which would be put off
	// Background says that the run does not wait for the provider: what is put off is
	// asked beside it, as its budget allows.
	Background bool          `json:"background"`
	Seconds    float64       `json:"seconds"` // at its limit, after what counts already
	Hosts      []PlannedHost `json:"hosts"`   // each has limits of its own; none of a paused provider
}

// PlannedHost is the planned requests of one host of a provider. What is put off is what
// does not fit into one of its budgets now.
type PlannedHost struct {
	Host          string     `json:"host"` // empty where the provider has one
	Requests      int64      `json:"requests"`
	Deferred      int64      `json:"deferred"`
	DeferredFiles []string   `json:"deferredFiles"`
	DeferredNames int64      `json:"deferredNames"` // of a provider that is requested by name: those of the lowest priority
	Why           *string    `json:"why"`           // limit, day, month, reported, hold, background; null: nothing is put off
	FreeAt        *time.Time `json:"freeAt"`        // when some of it can be requested; null: nothing is put off, or it goes on beside the run
	Seconds       float64    `json:"seconds"`
}

// JobItem is one item within a job.
type JobItem struct {
	AppID          int32        `json:"appId"`
	MarketHashName string       `json:"marketHashName"`
	Phase          string       `json:"phase"`
	State          string       `json:"state"`    // pending, updated, skipped, noQuote, failed, cancelled
	Reason         string       `json:"reason"`   // of a skip: ttl, noSales, budget, paused, backoff
	Attempts       int64        `json:"attempts"` // 1 once it was estimated, else 0; what providers were asked is in usage of the job
	Error          *string      `json:"error"`
	PriceBefore    money.Micro  `json:"priceBefore"`
	PriceAfter     *money.Micro `json:"priceAfter"`
}

// Page is one page of a list; NextCursor is null at its end.
type Page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"nextCursor"`
}

// ItemPrice is an item with its price.
type ItemPrice struct {
	AppID               int32         `json:"appId"`
	MarketHashName      string        `json:"marketHashName"`
	Phase               string        `json:"phase"`
	CurrentPrice        money.Micro   `json:"currentPrice"`
	CurrentPriceDecimal money.Decimal `json:"currentPriceDecimal"`
	Status              string        `json:"status"`
	PriceUpdatedAt      *time.Time    `json:"priceUpdatedAt"`
}

// PricedItem is an item of a list.
type PricedItem struct {
	ItemPrice
	PriceCheckedAt *time.Time `json:"priceCheckedAt"`
	Held           bool       `json:"held"` // a suspicious new price waits for confirmation
	*Figures
}

// ItemDetail explains a price: every market's quote, used or not and why.
type ItemDetail struct {
	ItemPrice
	Currency       money.Currency   `json:"currency"`
	PriceCheckedAt *time.Time       `json:"priceCheckedAt"`
	AgeSeconds     *int64           `json:"ageSeconds"` // since priceCheckedAt
	EstimatedAt    *time.Time       `json:"estimatedAt"`
	Method         string           `json:"method"` // consensus, average, median
	MethodVersion  int64            `json:"methodVersion"`
	Average        money.Micro      `json:"average"`
	Median         money.Micro      `json:"median"`
	Consensus      money.Micro      `json:"consensus"`
	Interval       *Interval        `json:"interval"` // around consensus
	Min            money.Micro      `json:"min"`
	Max            money.Micro      `json:"max"`
	Spread         *money.Micro     `json:"spread"` // max / min
	Markets        int64            `json:"markets"`
	UsedMarkets    int64            `json:"usedMarkets"`
	CandidatePrice *money.Micro     `json:"candidatePrice"`
	CandidateAt    *time.Time       `json:"candidateAt"`
	NoSalesSince   *time.Time       `json:"noSalesSince"`
	RetryAt        *time.Time       `json:"retryAt"`  // the end of a no-sales pause or, of what is queued, the next attempt
	Failures       int64            `json:"failures"` // runs in a row in which no market answered
	Queued         bool             `json:"queued"`   // waits in the missing-price queue
	RateSet        int64            `json:"rateSet"`  // rates of the estimate; 0: none were configured
	LevelSet       int64            `json:"levelSet"` // levels of the estimate; 0: nothing was learned yet
	LevelMarket    *string          `json:"levelMarket"`
	Explanation    *Explanation     `json:"explanation"` // null: never estimated
	Snapshots      []MarketSnapshot `json:"snapshots"`
}

// MarketSnapshot is one market's last quote of an item.
type MarketSnapshot struct {
	Provider           string         `json:"provider"`
	Market             string         `json:"market"`
	Title              string         `json:"title"`
	Currency           money.Currency `json:"currency"` // as quoted
	LowestAsk          *money.Micro   `json:"lowestAsk"`
	HighestBid         *money.Micro   `json:"highestBid"`
	Sale               *money.Micro   `json:"sale"`
	Listings           *int64         `json:"listings"`
	Sales              *int64         `json:"sales"`
	SalesWindowSeconds *int64         `json:"salesWindowSeconds"`
	MarketTime         *time.Time     `json:"marketTime"`
	FetchedAt          time.Time      `json:"fetchedAt"`
	Price              *money.Micro   `json:"price"` // in the base currency
	Basis              string         `json:"basis"` // ask, sale
	Rate               *money.Rate    `json:"rate"`  // null: quoted in the base currency
	RateDate           *time.Time     `json:"rateDate"`
	RateOld            bool           `json:"rateOld"`  // it was of more than three days before the estimate
	Level              *money.Micro   `json:"level"`    // factor of its market at this price; null: not compared
	Levelled           *money.Micro   `json:"levelled"` // price / level
	Noise              *money.Micro   `json:"noise"`    // usual distance of its market from the others, as a factor
	FarShare           *money.Micro   `json:"farShare"` // of its market's quotes, those more than 2x off
	Used               bool           `json:"used"`
	Reason             string         `json:"reason"`      // why it is not used
	Explanation        string         `json:"explanation"` // the same in words
}

// ProvidersDebug answers GET /api/market-prices/provider-debug.
type ProvidersDebug struct {
	Providers []ProviderDebug `json:"providers"`
	// Unconfigured lists providers that get no requests, with the reason.
	Unconfigured []Unconfigured `json:"unconfigured"`
	Rates        RatesDebug     `json:"exchangeRates"`
	Inventories  InventoryDebug `json:"inventories"`
}

// InventoryDebug is how Steam responds when this instance pulls
// inventories. The budget is that of all instances and of the provider steam.
type InventoryDebug struct {
	HostDebug
	Requests []RequestDebug `json:"requests"` // the last 50, newest first
}

// RatesDebug describes where exchange rates come from, and which would serve a run
// that begins now.
type RatesDebug struct {
	From        string         `json:"from"` // ecb, file, fixed, none
	Old         bool           `json:"old"`  // one of them is
	Rates       []RateDebug    `json:"rates"`
	ReadAt      *time.Time     `json:"readAt"` // when they were read
	NextAt      *time.Time     `json:"nextAt"` // when they are read again, at the earliest; null: at each run
	LastError   *string        `json:"lastError"`
	LastErrorAt *time.Time     `json:"lastErrorAt"`
	Requests    []RequestDebug `json:"requests"` // the last 50 of the instance that answers, newest first
}

// RateDebug is what one unit of a currency costs in the base currency.
type RateDebug struct {
	Currency money.Currency `json:"currency"`
	Rate     money.Rate     `json:"rate"`
	Date     time.Time      `json:"date"`
	Old      bool           `json:"old"` // of more than three days before
}

// Unconfigured is a provider that gets no requests.
type Unconfigured struct {
	Provider string `json:"provider"`
	Reason   string `json:"reason"`
}

// ProviderDebug is the state of one provider, from recorded calls only. Where a
// provider has several hosts, budget, breaker and order to wait are those of the
// host that may be asked soonest.
type ProviderDebug struct {
	Provider          string             `json:"provider"`
	Title             string             `json:"title"`
	Configured        bool               `json:"configured"`
	Paused            bool               `json:"paused"`
	Health            provider.Health    `json:"health"` // unknown, healthy, degraded, down
	Shape             string             `json:"shape"`
	Background        bool               `json:"background"` // no run waits for it: it is fetched as its budget allows
	LaterNames        int64              `json:"laterNames"` // names that the last full run left for later
	BatchSize         int                `json:"batchSize"`
	IntervalSeconds   int64              `json:"intervalSeconds"`
	Terms             string             `json:"terms"`
	Budget            Budget             `json:"budget"`
	Breaker           string             `json:"breaker"` // closed, open, halfOpen
	BlockedUntil      *time.Time         `json:"blockedUntil"`
	LastSuccess       *time.Time         `json:"lastSuccess"`
	LastError         *string            `json:"lastError"`
	LastErrorAt       *time.Time         `json:"lastErrorAt"`
	LatencyMs         Latency            `json:"latencyMs"`
	ResponsesByStatus map[string]int64   `json:"responsesByStatus"`
	Instances         []ProviderInstance `json:"instances"` // that can ask it; what stands beside is of the one that answers
	Workers           []Worker           `json:"workers"`   // requests in progress
	Hosts             []HostDebug        `json:"hosts"`
	Files             []FileDebug        `json:"files"` // none of a provider that is queried by name
	Markets           []MarketDebug      `json:"markets"`
	Requests          []RequestDebug     `json:"requests"` // the last 50, newest first
}

// FileDebug is how the last fetches of one file, such as a price list, ended.
type FileDebug struct {
	File        string          `json:"file"`
	AppID       int32           `json:"appId"`
	Markets     []string        `json:"markets"`
	Health      provider.Health `json:"health"`   // unknown, healthy, degraded, down
	Failures    int64           `json:"failures"` // in a row, up to now
	LastSuccess *time.Time      `json:"lastSuccess"`
	LastError   *string         `json:"lastError"`
	LastErrorAt *time.Time      `json:"lastErrorAt"`
}

// HostDebug is the state of one host of a provider, since the start. Each
// has a limit, a breaker and orders to wait of its own.
type HostDebug struct {
	Host              string           `json:"host"`  // empty where the provider has one
	Files             []string         `json:"files"` // that it serves; none of a provider that is asked by name
	Budget            Budget           `json:"budget"`
	Breaker           string           `json:"breaker"` // closed, open, halfOpen
	BlockedUntil      *time.Time       `json:"blockedUntil"`
	LastSuccess       *time.Time       `json:"lastSuccess"`
	LastError         *string          `json:"lastError"`
	LastErrorAt       *time.Time       `json:"lastErrorAt"`
	LatencyMs         Latency          `json:"latencyMs"`
	ResponsesByStatus map[string]int64 `json:"responsesByStatus"`

	Took provider.Histogram `json:"-"` // for metrics
}

// Budget is what a provider allows all instances together; a limit of 0 is none.
type Budget struct {
	Limit         int64          `json:"limit"` // in any stretch of the period
	PeriodSeconds int64          `json:"periodSeconds"`
	Used          int64          `json:"used"`
	Left          *int64         `json:"left"`
	ResetsAt      *time.Time     `json:"resetsAt"` // when the oldest of the used ones stops counting
	Quotas        []Quota        `json:"quotas"`   // of the calendar, UTC
	Reported      *ReportedQuota `json:"reported"` // the reported quota; the smaller counts
	Forecast                     // of the limit, where its period is longer than an hour
	Low           bool           `json:"low"` // some part of it is: limit, quota or reported quota
}

// Forecast is when a budget runs out at the present pace.
type Forecast struct {
	Pace      *Pace      `json:"pace"`      // null: there is no forecast
	RunsOutAt *time.Time `json:"runsOutAt"` // null: not before it is renewed
}

// Pace is how many requests were sent lately, over how long.
type Pace struct {
	Requests int64 `json:"requests"`
	Seconds  int64 `json:"seconds"`
}

// ReportedQuota is the reported quota of a provider: its last report, less what was sent
// since.
type ReportedQuota struct {
	Period     *string   `json:"period"` // day, month: of a quota; null: of a limit
	Limit      *int64    `json:"limit"`  // null: not reported
	Left       int64     `json:"left"`
	ReportedAt time.Time `json:"reportedAt"`
	ResetsAt   time.Time `json:"resetsAt"`
	Forecast
	Low bool `json:"low"` // less than a tenth is left, and it runs out before its reset
}

// Quota is what a provider allows in a day or a month of the calendar.
type Quota struct {
	Period   string    `json:"period"` // day, month
	Limit    int64     `json:"limit"`
	Used     int64     `json:"used"`
	Left     int64     `json:"left"`
	ResetsAt time.Time `json:"resetsAt"`
	Forecast
	Low bool `json:"low"` // less than a tenth is left, and it runs out before its end
}

// Latency holds quantiles of the recorded answers, in milliseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// MarketDebug is the state of one market of a provider.
type MarketDebug struct {
	Market             string     `json:"market"`
	Title              string     `json:"title"`
	AppIDs             []int32    `json:"appIds"`
	SalesWindowSeconds int64      `json:"salesWindowSeconds"`
	Pool               string     `json:"pool"`
	LastFetchedAt      *time.Time `json:"lastFetchedAt"`
	LastOutcome        string     `json:"lastOutcome"`
	Quotes             int64      `json:"quotes"`
	Rejected           int64      `json:"rejected"`
	Files              []string   `json:"files"` // that quote it; none of a provider that is asked by name
	Hosts              []string   `json:"hosts"` // that serve those
	Breaker            string     `json:"breaker"`
	BlockedUntil       *time.Time `json:"blockedUntil"`
	LastSuccess        *time.Time `json:"lastSuccess"` // also after the jobs are removed, as the errors
	LastError          *string    `json:"lastError"`
	LastErrorAt        *time.Time `json:"lastErrorAt"`
	Quarantine         *string    `json:"quarantine"` // why the last answer was not taken
	QuarantinedSince   *time.Time `json:"quarantinedSince"`
}

// RequestDebug is one recorded request, its secrets masked.
type RequestDebug struct {
	At         time.Time `json:"at"`
	Method     string    `json:"method"`
	Host       string    `json:"host"`
	Path       string    `json:"path"`
	Status     int       `json:"status"` // 0: no answer
	DurationMs float64   `json:"durationMs"`
	Bytes      int64     `json:"bytes"`
	Attempt    int       `json:"attempt"`
	Error      string    `json:"error"`
}

// JobDebug answers GET /api/market-prices/job-debug.
type JobDebug struct {
	Queues           []QueueDepth    `json:"queues"`
	OldestPendingSec int64           `json:"oldestPendingSeconds"`
	Instances        []Instance      `json:"instances"`
	Workers          []Worker        `json:"workers"`
	Scheduled        []ScheduledRun  `json:"scheduled"`
	Jobs             []JobSummary    `json:"jobs"`
	Failures         []FailureReason `json:"failures"`
	Events           []Event         `json:"events"` // the newest 50, newest first
}

// Event is something that happened: see docs/reference/events.md.
type Event struct {
	ID   string          `json:"id"`
	Kind string          `json:"kind"` // job.finished, job.partial, job.failed, provider.down, provider.quarantined, provider.up, budget.low, ledger.problem, trade.overdue, price.changed
	At   time.Time       `json:"at"`
	Data json.RawMessage `json:"data"` // an object; its fields are those of the kind
}

// QueueDepth counts the work of one kind in one state.
type QueueDepth struct {
	Kind  string `json:"kind"`  // plan, fetch, estimate, apply, missing
	State string `json:"state"` // pending, running; of missing also waiting: for another try
	Count int64  `json:"count"`
}

// Instance is a process that works on the database. Its counter moves on twice a
// second where there can be several; one that stands still for three seconds is
// taken for dead, and its work taken over.
type Instance struct {
	Owner       string     `json:"owner"`
	Version     string     `json:"version"`
	Answering   bool       `json:"answering"` // it served this request
	StartedAt   time.Time  `json:"startedAt"`
	Providers   []string   `json:"providers"`
	Heartbeat   int64      `json:"heartbeat"`
	HeartbeatAt *time.Time `json:"heartbeatAt"` // by its own clock
	Working     int        `json:"working"`     // pieces of work in its hands
}

// Worker is one claim: its owner, and since when. A process that takes it over gets
// a greater fencing token; writes with the old one are refused.
type Worker struct {
	Owner string    `json:"owner"`
	Kind  string    `json:"kind"`
	Work  string    `json:"work"`
	Since time.Time `json:"since"`
	Token int64     `json:"token"`
}

// ScheduledRun is a run that will start by itself.
type ScheduledRun struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

// JobSummary is a job with how long it took.
type JobSummary struct {
	Job
	DurationSeconds *float64 `json:"durationSeconds"`
}

// FailureReason groups failed items of the last jobs by what went wrong.
type FailureReason struct {
	Cause       string   `json:"cause"`
	Count       int64    `json:"count"`
	SampleNames []string `json:"sampleNames"`

	Items []catalog.Key `json:"-"` // the samples
}

// Inventory is one page of a user's inventory.
type Inventory struct {
	Items             []InventoryRow `json:"items"`
	TotalValue        money.Sum      `json:"totalValue"` // of all rows of the game, not of this page
	TotalValueDecimal string         `json:"totalValueDecimal" format:"decimal"`
	Currency          money.Currency `json:"currency"`
	Rows              int64          `json:"rows"`
	UnpricedRows      int64          `json:"unpricedRows"`
	NextCursor        *string        `json:"nextCursor"`
}

// InventoryRow is one asset.
type InventoryRow struct {
	AssetID           string       `json:"assetId"`
	AppID             int32        `json:"appId"`
	ContextID         string       `json:"contextId"`
	MarketHashName    string       `json:"marketHashName"` // empty: unmarketable, without a name
	Phase             string       `json:"phase"`
	PhaseUnknown      bool         `json:"phaseUnknown"`
	ClassID           string       `json:"classId"`
	InstanceID        string       `json:"instanceId"`
	Amount            int64        `json:"amount"`
	Tradable          bool         `json:"tradable"`
	Marketable        bool         `json:"marketable"`
	InTransfer        bool         `json:"inTransfer"`     // sold, and no sync has shown yet where it went
	EstimatedValue    *money.Micro `json:"estimatedValue"` // of one; null: unknown
	TotalValue        *money.Sum   `json:"totalValue"`     // value x amount
	TotalValueDecimal *string      `json:"totalValueDecimal" format:"decimal"`
	PriceUpdatedAt    *time.Time   `json:"priceUpdatedAt"`
	PriceStatus       string       `json:"priceStatus"` // noPrice without a value
	PriceCheckedAt    *time.Time   `json:"priceCheckedAt"`
	*Figures
	// What is known of this very thing; null and empty: nothing.
	Wear       *string             `json:"wear"`
	Seed       *int64              `json:"seed"`
	Finish     *int64              `json:"finish"`
	NameTag    *string             `json:"nameTag"`
	Stickers   []inventory.Sticker `json:"stickers"`
	Charms     []inventory.Sticker `json:"charms"`
	Inspection *Inspection         `json:"inspection"`
}

// Inspection is the inspection of an asset, and the provider of its values.
type Inspection struct {
	State       string  `json:"state"`       // none, pending, done, failed, contradiction
	Code        *string `json:"code"`        // why it failed, or what contradicts
	Source      *string `json:"source"`      // property, link, pushed
	Certificate *string `json:"certificate"` // or link, undecoded
	// Phase is what the finish means. The asset is priced by it only where its own
	// phase says the same.
	Phase         *string `json:"phase"`
	DefIndex      *int64  `json:"defIndex"`
	Quality       *int64  `json:"quality"`
	Rarity        *int64  `json:"rarity"`
	Kills         *int64  `json:"kills"` // counted by StatTrak
	CharmTemplate *int64  `json:"charmTemplate"`
}

// SyncResult answers an inventory sync.
type SyncResult struct {
	Added       int64 `json:"added"`
	Removed     int64 `json:"removed"`
	Changed     int64 `json:"changed"`
	Unchanged   int64 `json:"unchanged"`
	PricedRows  int64 `json:"pricedRows"`
	QueuedNames int64 `json:"queuedNames"` // names that this sync put into the missing-price queue
	Hidden      int64 `json:"hidden,omitzero"`
}

// User is a user of the platform.
type User struct {
	UserID      string  `json:"userId"`
	SteamID     *string `json:"steamId"`
	DisplayName *string `json:"displayName"`
	Leaderboard bool    `json:"leaderboard"`
}

// Health answers GET /api/health.
type Health struct {
	Status        string            `json:"status"` // ok, failing
	Version       string            `json:"version"`
	UptimeSeconds int64             `json:"uptimeSeconds"`
	Checks        map[string]string `json:"checks"` // database, schema, queue: ok or failing
	Details       map[string]any    `json:"details,omitempty"`
}
