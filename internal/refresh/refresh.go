package refresh

import (
	"slices"
	"time"

	"assay/internal/catalog"
	"assay/internal/event"
	"assay/internal/money"
	"assay/internal/pricing"
)

// Kind is the reason for a job.
type Kind string

// The kinds of job.
const (
	Bulk    Kind = "bulk"    // all items in scope that are due
	Missing Kind = "missing" // items that a sync found without a price
	Chosen  Kind = "items"   // items that an operator chose
)

// State is the state of a job.
type State string

// The states of a job.
const (
	Queued    State = "queued"
	Running   State = "running"
	Finished  State = "finished"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Live reports whether the job is queued or running.
func (s State) Live() bool { return s == Queued || s == Running }

// Stage is the stage of a live job.
type Stage string

// The stages of a job, in their order.
const (
	StagePlan     Stage = "plan"
	StageFetch    Stage = "fetch"
	StageEstimate Stage = "estimate"
	StageApply    Stage = "apply"
	StageDone     Stage = "done"
)

// The states of an item within a job.
const (
	ItemPending   = "pending"
	ItemUpdated   = "updated" // has a price from this job, changed or not
	ItemSkipped   = "skipped"
	ItemNoQuote   = "noQuote" // all providers responded, but none with a usable quote
	ItemFailed    = "failed"  // no evidence of its price: a provider failed, or none quotes the game
	ItemCancelled = "cancelled"
)

// Reasons why an item was skipped.
const (
	SkipTTL     = "ttl"
	SkipNoSales = "noSales"
	SkipBudget  = "budget"  // a limit or quota is spent
	SkipPaused  = "paused"  // the provider is paused
	SkipBackoff = "backoff" // a circuit breaker was open, or a retry-after was in force
)

// Job is a refresh job.
type Job struct {
	ID              int64
	Kind            Kind
	Forced          bool
	State           State
	Stage           Stage
	CancelRequested bool
	RequestedBy     string
	RetryOf         int64   // the job whose failed items are retried; 0: none
	RetryCause      string  // retry only the items that failed with this error; "": all. For InsertJob only
	Items           []int64 // items of a job of the kind Chosen. For InsertJob only
	CreatedAt       time.Time
	StartedAt       time.Time
	FinishedAt      time.Time
	Batches         int
	ApplyCursor     int64
	RateSet         int64 // exchange rates for its estimates; 0: not planned yet
	LastError       string
	Outcome         JobOutcome        // empty while the job is live
	MarketGaps      []event.MarketGap // set when the job has ended
	Counts          Counts
}

// Counts is the number of a job's items by state. Total is the sum of all other fields except
// Changed. Changed items are counted in Updated too.
type Counts struct {
	Total, Pending, Updated, NoQuote, Failed, Cancelled int64
	SkippedTTL, SkippedNoSales                          int64
	SkippedBudget, SkippedPaused, SkippedBackoff        int64
	Changed                                             int64 // updated items with a new price
}

// skip counts a skipped item.
func (c *Counts) skip(reason string) {
	switch reason {
	case SkipPaused:
		c.SkippedPaused++
	case SkipBackoff:
		c.SkippedBackoff++
	default:
		c.SkippedBudget++
	}
}

// Rules select the items that are due.
type Rules struct {
	Now          time.Time
	Forced       bool // ignore the TTL and the no-sales pause
	ScopeAll     bool // all known items, not only items in inventories
	TTL          time.Duration
	NoSalesRetry time.Duration
	Missing      bool    // select due entries of the missing-price queue instead
	RetryOf      int64   // select the failed items of this job instead
	RetryCause   string  // with RetryOf: only items that failed with this error; "": all
	Items        []int64 // select these items instead; nil: see the other rules
	Limit        int64   // maximum number of items; 0: no limit
}

// Due is the number of items that are due, within their TTL, or in a no-sales pause.
type Due struct {
	Due, TTL, NoSales int64
}

// CandidateName is an item whose name can be requested from a provider with a budget.
type CandidateName struct {
	PlannedName
	AppID       int32
	Item        int64
	Price       money.Micro // 0: unknown
	Amount      int64       // number of pieces in all inventories
	RequestedAt time.Time   // last request of the name from the provider; zero: never
	QueuedAt    time.Time   // since when the price is missing; zero: not queued
}

// BackgroundName is a name that the background fetch requests. Names with a missing price
// have no rank and come first, the longest missing price before the others. All other names
// follow by rank, the lowest first.
type BackgroundName struct {
	AppID int32
	Name  string
	Rank  int64
	// Missing is when the price began to be missing; zero: it is not missing.
	Missing time.Time
}

// WaitingItem is an item in the missing-price queue that is due later.
type WaitingItem struct {
	ID  int64
	Key catalog.Key
}

// Listed is a quote of a waiting item in a response.
type Listed struct {
	ItemID, MarketID int64
	Ask, Sale        money.Micro
}

// NamedItem is an item with a requested name, and its stored quotes.
type NamedItem struct {
	ID     int64
	Name   string
	Phase  string
	Rev    int64            // row version; increases with each estimate
	Quotes []MarketSnapshot // by market
}

// Blob is one bucket of an encoded response.
type Blob struct {
	Unit   int64
	Bucket int
	Data   []byte
}

// MarketFetch counts the quotes of one market in the response of a unit.
type MarketFetch struct {
	MarketID int64
	Quotes   int64
	Rejected int64
	Outcome  Outcome
}

// Outcome is the outcome of a market in a response.
type Outcome string

// The outcomes of a market.
const (
	OutcomeOK          Outcome = "ok"
	OutcomeSilent      Outcome = "silent"      // the response lacks the market
	OutcomeQuarantined Outcome = "quarantined" // refused by validation; see docs/contribute/pricing.md, step 5
)

// MarketFile is a market's newest good response of a file.
type MarketFile struct {
	MarketID   int64
	AppID      int32
	File       string
	UnitID     int64 // 0: no good response yet
	FetchedAt  time.Time
	Quotes     int64
	Quarantine string    // why the last response was refused; "": accepted
	AcceptedAt time.Time // when an operator accepted a refused response; zero: never
}

// Batch is a claimed batch: the items of a job in a range of name buckets.
type Batch struct {
	JobID int64
	Kind  Kind
	Batch int
	Token int64
	// RateSet is the id of the job's exchange rates.
	RateSet int64
}

// Item is an item as read for its estimate.
type Item struct {
	ID           int64
	Key          catalog.Key
	Price        money.Micro
	Status       pricing.Status
	Figures      Figures
	Candidate    money.Micro
	CandidateAt  time.Time
	Guard        string // further state of the guard, encoded by pricing.EncodeGuard
	Range        pricing.Range
	CheckedAt    time.Time
	UpdatedAt    time.Time
	EstimatedAt  time.Time
	QuotesAt     time.Time
	NoSalesSince time.Time
	Failures     int64
	Rev          int64
	Quotes       []MarketSnapshot // by market
}

// Figures are published with a price on request. They are zero if the estimate had no usable quote.
type Figures struct {
	Average     money.Micro
	Interval    pricing.Interval
	UsedMarkets int

	// Inputs of the interval, which are not published.
	Consensus money.Micro
	LevelSet  int64
}

// MarketSnapshot is the stored quote of one market for an item.
type MarketSnapshot struct {
	MarketID    int64
	Currency    money.Currency
	Ask         money.Micro
	Bid         money.Micro
	Sale        money.Micro
	Listings    int64 // negative: not stated
	Sales       int64 // negative: not stated
	SalesWindow time.Duration
	MarketTime  time.Time
	FetchedAt   time.Time // zero: same as the item's QuotesAt
	Reason      pricing.Reason
}

// Estimates is the result of estimating a batch.
type Estimates struct {
	Items  []EstimatedItem
	Counts Counts
	// MissingRetry is the first pause before a missing price is retried.
	MissingRetry time.Duration
	RateSet      int64  // id of the exchange rates
	Method       string // result of pricing.Policy.Label
}

// EstimatedItem is the result of estimating an item.
type EstimatedItem struct {
	Item                          // the item before the estimate
	State        string           // ItemUpdated, ItemNoQuote, ItemFailed, ItemSkipped
	Reason       string           // with ItemSkipped
	Error        string           // with ItemFailed
	Responded    bool             // a market responded, so Estimate is set
	Estimate     pricing.Priced   // without Quotes
	Bounds       pricing.Range    // price range of the item including the new price
	LevelSet     int64            // id of the level set; 0: none yet
	Used         string           // ids of the used markets, if AddsPoint
	AsOf         time.Time        // fetch time of the quotes, from which the TTL counts
	QuotedAt     time.Time        // time of the newest used quote; zero: none
	NoSalesSince time.Time        // since when the markets report no sales; zero: they report sales, or it is unknown
	RetryAt      time.Time        // end of the no-sales pause; zero: no pause
	NewQuotes    []MarketSnapshot // quotes to store, by market; nil: unchanged
}

// PriceAfter returns the item's price after the estimate; 0: unknown.
func (s *EstimatedItem) PriceAfter() money.Micro {
	if s.Responded {
		return s.Estimate.Price
	}
	return s.Price
}

// Changed reports whether the item has a new price.
func (s *EstimatedItem) Changed() bool { return s.PriceAfter() != s.Price }

// Published reports whether the estimate changed the price or its status.
func (s *EstimatedItem) Published() bool {
	return s.Changed() || s.Responded && s.Price > 0 && s.Estimate.Status != s.Status
}

// tolerance returns the smallest move of an end of the interval that alone adds a point: a quarter of
// the interval. Each run learns new market levels, which move nearly all intervals a little.
func (f *Figures) tolerance() money.Micro { return (f.Interval.High - f.Interval.Low) / 4 }

// newFigures reports whether the estimate changed the figures of an item with a price. An end of the
// interval must move by at least tolerance.
func (s *EstimatedItem) newFigures(tolerance money.Micro) bool {
	e, before := &s.Estimate, &s.Figures
	moved := func(from, to money.Micro) bool { return from != to && max(to-from, from-to) >= tolerance }
	return s.Responded && e.Price > 0 && (e.UsedMarkets > 0 || before.UsedMarkets > 0) && (e.Average != before.Average || e.UsedMarkets != before.UsedMarkets ||
		moved(before.Interval.Low, e.Interval.Low) || moved(before.Interval.High, e.Interval.High))
}

// kept returns the interval that the item gets, with its inputs. If the estimate changes nothing that
// is published, these are the ones before: a reader who follows the changes has the same ones.
func (s *EstimatedItem) kept() Figures {
	if s.Price > 0 && !s.AddsPoint() {
		return s.Figures
	}
	return Figures{Interval: s.Estimate.Interval, Consensus: s.Estimate.Consensus, LevelSet: s.LevelSet}
}

// AddsPoint reports whether the estimate adds a point to the history. It does so if the price,
// its status, its figures, or the amounts or the use of a quote changed.
func (s *EstimatedItem) AddsPoint() bool {
	return s.Published() || s.newFigures(s.Figures.tolerance()) || s.PriceAfter() > 0 && s.NewQuotes != nil && !slices.EqualFunc(s.Quotes, s.NewQuotes, func(a, b MarketSnapshot) bool {
		return a.MarketID == b.MarketID && a.Currency == b.Currency && a.Ask == b.Ask && a.Bid == b.Bid && a.Sale == b.Sale &&
			(a.Reason == b.Reason || a.Reason == pricing.Confirmed) // the reason before a confirmation is not stored
	})
}

// Levels is the learned data for the prices of one game in a job.
type Levels struct {
	ID     int64 // id of the level set
	Set    *pricing.Set
	Movers pricing.Movers
}

// PastPrices are the past prices of an item that the guard compares a new price with.
type PastPrices struct {
	First     pricing.Reference // the oldest accepted price
	Day, Week money.Micro       // prices 24 hours and 7 days ago; 0: none yet
	Range     pricing.Range     // prices of the last 7 days
}
