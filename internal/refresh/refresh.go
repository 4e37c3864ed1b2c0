package refresh

import (
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

// Live reports whether the job has not ended.
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
	ItemUpdated   = "updated" // priced in this job, changed or not
	ItemSkipped   = "skipped"
	ItemNoQuote   = "noQuote" // all providers responded, none with a usable quote
	ItemFailed    = "failed"  // no evidence of its price, and a provider failed or none quotes the game
	ItemCancelled = "cancelled"
)

// Why an item was skipped.
const (
	SkipTTL     = "ttl"
	SkipNoSales = "noSales"
	SkipBudget  = "budget"  // a limit or quota left no request
	SkipPaused  = "paused"  // an operator paused the provider
	SkipBackoff = "backoff" // a circuit breaker was open, or the provider demanded a wait
)

// Job is one refresh.
type Job struct {
	ID              int64
	Kind            Kind
	Forced          bool
	State           State
	Stage           Stage
	CancelRequested bool
	RequestedBy     string
	RetryOf         int64 // the job whose failed items this one retries; 0: none
	CreatedAt       time.Time
	StartedAt       time.Time
	FinishedAt      time.Time
	Batches         int
	ApplyCursor     int64
	RateSet         int64 // exchange rates that it is estimated with, from its plan on; 0: none
	LastError       string
	Outcome         JobOutcome        // empty while the job is live
	MarketGaps      []event.MarketGap // of an ended job
	Counts          Counts
}

// Counts holds the items of a job by state. All but Total and Changed add up to Total.
type Counts struct {
	Total, Pending, Updated, NoQuote, Failed, Cancelled int64
	SkippedTTL, SkippedNoSales                          int64
	SkippedBudget, SkippedPaused, SkippedBackoff        int64
	Changed                                             int64 // of Updated, those with a new price
}

// skip counts an item that a job could not price.
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

// Rules decide which items are due.
type Rules struct {
	Now          time.Time
	Forced       bool // ignore TTL and the no-sales pause
	ScopeAll     bool // all known items, not only those in inventories
	TTL          time.Duration
	NoSalesRetry time.Duration
	Missing      bool  // due entries of the missing-price queue instead
	RetryOf      int64 // failed items of this job instead
	Limit        int64 // most items; 0: no limit
}

// Due counts the items of a plan.
type Due struct {
	Due, TTL, NoSales int64
}

// CandidateName is an item that a provider with a budget could be queried for by name.
type CandidateName struct {
	PlannedName
	AppID       int32
	Item        int64
	Price       money.Micro // of one; 0: unknown
	Amount      int64       // in all inventories
	RequestedAt time.Time   // when the provider was last queried for the name; zero: never
	QueuedAt    time.Time   // since when its price is missing; zero: it is not queued
}

// BackgroundName is a name to be requested from a provider in the background, the lowest place
// first. A name whose price is missing has no place. Such names come before all others, the
// longest missing first.
type BackgroundName struct {
	AppID int32
	Name  string
	Rank  int64
	// Missing is since when the price is missing.
	Missing time.Time
}

// WaitingItem is an item whose entry in the missing-price queue is due later.
type WaitingItem struct {
	ID  int64
	Key catalog.Key
}

// Listed is a price that a response quotes for a waiting item.
type Listed struct {
	ItemID, MarketID int64
	Ask, Sale        money.Micro
}

// NamedItem is one of the items of a name.
type NamedItem struct {
	ID     int64
	Name   string
	Phase  string
	Rev    int64      // changes when the item is estimated
	Quotes []Snapshot // by market
}

// Blob is an encoded part of a response.
type Blob struct {
	Unit   int64
	Bucket int
	Data   []byte
}

// MarketFetch is what one unit returned of one market.
type MarketFetch struct {
	MarketID int64
	Quotes   int64
	Rejected int64
	Outcome  Outcome
}

// Outcome is the outcome of a market's part of a response.
type Outcome string

// The outcomes.
const (
	OutcomeOK          Outcome = "ok"
	OutcomeSilent      Outcome = "silent"      // the response should have contained the market and did not
	OutcomeQuarantined Outcome = "quarantined" // refused: see docs/explanation/pricing.md, step 7
)

// MarketFile is the newest good response of a market's file.
type MarketFile struct {
	MarketID   int64
	AppID      int32
	File       string
	UnitID     int64 // 0: none yet
	FetchedAt  time.Time
	Quotes     int64
	Quarantine string    // why the last response was refused; "": it was not
	AcceptedAt time.Time // when an operator accepted the refused response; zero: never
}

// Batch is a range of name buckets of a job, claimed to be estimated.
type Batch struct {
	JobID int64
	Kind  Kind
	Batch int
	Token int64
	// RateSet is the job's set of rates.
	RateSet int64
}

// Item is what estimating needs of an item.
type Item struct {
	ID           int64
	Key          catalog.Key
	Price        money.Micro
	Status       pricing.Status
	Candidate    money.Micro
	CandidateAt  time.Time
	Guard        string // the rest of the guard's state: pricing.EncodeGuard
	Range        pricing.Range
	CheckedAt    time.Time
	UpdatedAt    time.Time
	QuotesAt     time.Time
	NoSalesSince time.Time
	Failures     int64
	Rev          int64
	Quotes       []Snapshot // by market
}

// Snapshot is one market's last quote of an item.
type Snapshot struct {
	MarketID    int64
	Currency    money.Currency
	Ask         money.Micro
	Bid         money.Micro
	Sale        money.Micro
	Listings    int64 // negative: not stated
	Sales       int64 // negative: not stated
	SalesWindow time.Duration
	MarketTime  time.Time
	FetchedAt   time.Time // zero: the item's QuotesAt
	Reason      pricing.Reason
}

// Estimates is everything that estimating a batch writes.
type Estimates struct {
	Items  []EstimatedItem
	Counts Counts
	// MissingRetry is the first pause before a missing price is retried.
	MissingRetry time.Duration
	RateSet      int64  // the rates of the estimates
	Method       string // pricing.Policy.Label
}

// EstimatedItem is the result of estimating one item.
type EstimatedItem struct {
	Item                      // before the estimate
	State      string         // ItemUpdated, ItemNoQuote, ItemFailed, ItemSkipped
	Reason     string         // of ItemSkipped
	Error      string         // of ItemFailed
	Responded  bool           // a market responded, so that Estimate counts
	Estimate   pricing.Priced // its Quotes are not used
	Bounds     pricing.Range  // the item's range with the new price
	LevelSet   int64          // of the estimate; 0: nothing was learned yet
	Used       string         // ids of the markets behind Estimate, if the price or its status changed
	AsOf       time.Time      // fetch of the quotes behind it: its TTL counts from here
	QuotedAt   time.Time      // time of the newest of these quotes; zero: none is usable
	QuietSince time.Time      // since when no market saw a sale; zero: one did, or none counts sales
	RetryAt    time.Time      // end of the no-sales pause; zero: none
	NewQuotes  []Snapshot     // all quotes from now on, by market; nil: unchanged
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

// AddsPoint reports whether the price history gets a point: the price or its status changed.
func (s *EstimatedItem) AddsPoint() bool {
	return s.Changed() || s.Responded && s.Price > 0 && s.Estimate.Status != s.Status
}

// Levels is the data that a job computes the prices of one game with.
type Levels struct {
	ID     int64 // of the level set
	Set    *pricing.Set
	Movers pricing.Movers
}

// PastPrices is the data that the guard compares an item's price with.
type PastPrices struct {
	First     pricing.Reference // the oldest accepted price
	Day, Week money.Micro       // in force 24 hours and 7 days before; 0: none was yet
	Range     pricing.Range     // of the last 7 days
}
