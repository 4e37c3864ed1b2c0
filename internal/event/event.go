// Package event defines the events for operators and platforms. Each kind of event has
// its own JSON payload. An event is written to the outbox in the transaction that causes
// it. A payload never contains a secret.
package event

import (
	"time"

	"assay/internal/money"
)

// Kind is the type of an event.
type Kind string

// The kinds of events. A PriceChanged event lists all price changes of its transaction.
const (
	PriceChanged     Kind = "price.changed"
	JobFinished      Kind = "job.finished"
	JobPartial       Kind = "job.partial"
	JobFailed        Kind = "job.failed"
	Degraded         Kind = "provider.degraded"
	WentDown         Kind = "provider.down"
	Quarantined      Kind = "provider.quarantined"
	CameUp           Kind = "provider.up"
	BudgetIsLow      Kind = "budget.low"
	LedgerHasProblem Kind = "ledger.problem"
	TradeIsOverdue   Kind = "trade.overdue"

	InventoryIsPriced Kind = "inventory.priced"

	ListingSold      Kind = "listing.sold"
	ListingCancelled Kind = "listing.cancelled"
	ListingExpired   Kind = "listing.expired"
	TradeCompleted   Kind = "trade.completed"
	TradeReversed    Kind = "trade.reversed"
	TradeSettled     Kind = "trade.settled"
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return append([]Kind{PriceChanged, JobFinished, JobPartial, JobFailed, Degraded, WentDown, Quarantined, CameUp, BudgetIsLow, LedgerHasProblem, TradeIsOverdue}, marketKinds()...)
}

// marketKinds returns the kinds of events of single inventories, listings and trades.
func marketKinds() []Kind {
	return []Kind{InventoryIsPriced, ListingSold, ListingCancelled, ListingExpired, TradeCompleted, TradeReversed, TradeSettled}
}

// Data is the payload of an event: one of the structs below, encoded as JSON.
type Data interface{ Kind() Kind }

// PricesChanged lists the items whose price or price status changed in a transaction, and those of
// which only other figures changed. These are at most the items of one batch of a job. The event and
// the price points of the items have the same time.
type PricesChanged struct {
	Items   []int64 `json:"items"`             // ids in the table item
	Figures []int64 `json:"figures,omitempty"` // ids of items whose average, interval or used markets changed
}

// BudgetLow reports that less than a tenth of a budget is left and that it will be used
// up before it resets, at the current rate. It is written once per budget window.
type BudgetLow struct {
	Provider  string    `json:"provider"`
	Host      string    `json:"host"`   // empty if the provider has a single host
	Budget    string    `json:"budget"` // limit, day, month, reported
	Left      int64     `json:"left"`
	Limit     int64     `json:"limit"`
	RunsOutAt time.Time `json:"runsOutAt"`
	ResetsAt  time.Time `json:"resetsAt"`
}

// JobEnded reports that a job has ended and that its prices, if any, are applied. A
// cancelled job has no event.
type JobEnded struct {
	JobID        string     `json:"jobId"`
	JobKind      string     `json:"jobKind"` // bulk, missing, items
	Forced       bool       `json:"forced"`
	RequestedBy  string     `json:"requestedBy"`
	StartedAt    *time.Time `json:"startedAt"` // null if planning failed
	TotalItems   int64      `json:"totalItems"`
	UpdatedItems int64      `json:"updatedItems"`
	ChangedItems int64      `json:"changedItems"` // updated items with a new price
	NoQuoteItems int64      `json:"noQuoteItems"`
	FailedItems  int64      `json:"failedItems"`
	LastError    *string    `json:"lastError"`
	Outcome      string     `json:"outcome"` // complete, partial, failed
	Gaps         Gaps       `json:"gaps"`
}

// Gaps lists the items and markets for which a job got no data. Shares are fractions of 1
// with four decimal places.
type Gaps struct {
	Items   []ItemGap   `json:"items"`
	Markets []MarketGap `json:"markets"`
}

// ItemGap counts due items that got no new quotes, by reason.
type ItemGap struct {
	Reason string  `json:"reason"` // failed, backoff, budget, paused, cancelled
	Items  int64   `json:"items"`
	Share  float64 `json:"share"` // share of the due items
}

// MarketGap describes a market with missing data.
type MarketGap struct {
	Provider string  `json:"provider"`
	Market   string  `json:"market"` // empty if the provider is no longer configured
	Reason   string  `json:"reason"` // failed, backoff, budget, paused, cancelled, silent, quarantined
	Share    float64 `json:"share"`  // share of the planned requests
	Detail   string  `json:"detail"` // text for people; may be empty
}

// Reasons why a provider is down or degraded.
const (
	WhyBreaker    = "breaker"    // its host fails repeatedly and gets no requests for a while
	WhyQuarantine = "quarantine" // a market's response failed validation
	WhyFetch      = "fetch"      // two consecutive fetches of a file failed
)

// ProviderDown reports that requests to a provider's host are suspended, that the responses of
// a market are quarantined, or that fetches of a file fail. It is written once until the
// matching ProviderUp.
type ProviderDown struct {
	Provider string `json:"provider"`
	Why      string `json:"why"`              // breaker, quarantine, fetch
	Host     string `json:"host"`             // set for a breaker; empty if the provider has a single host
	Market   string `json:"market,omitempty"` // Market and AppID are set for a quarantine, File also for fetches
	AppID    int32  `json:"appId,omitempty"`
	File     string `json:"file,omitempty"`
	Detail   string `json:"detail"` // text for people
}

// ProviderUp reports the end of a ProviderDown. All fields except Detail are the same.
type ProviderUp ProviderDown

// LedgerProblem reports that a verification of the whole ledger found failures for a user,
// or that it was incomplete.
type LedgerProblem struct {
	UserID       string   `json:"userId"`
	Status       string   `json:"status"` // failed, incomplete
	Checks       []string `json:"checks"` // checks that did not pass
	FailureCount int64    `json:"failureCount"`
}

// TradeOverdue reports that a trade is pending for too long, or was not settled after its
// hold ended. It is written once per trade.
type TradeOverdue struct {
	TradeID   string    `json:"tradeId"`
	ListingID string    `json:"listingId"`
	SellerID  string    `json:"sellerId"`
	BuyerID   string    `json:"buyerId"`
	State     string    `json:"state"` // pending or completed
	Since     time.Time `json:"since"` // time of the purchase, or end of the hold
}

// InventoryPriced reports that an inventory no longer has rows that wait for a first price. A
// sync left such rows before. Rows of names that no market quotes have no price and count as
// UnpricedRows.
type InventoryPriced struct {
	UserID            string    `json:"userId"`
	AppID             int32     `json:"appId"`
	ContextID         string    `json:"contextId"`
	Rows              int64     `json:"rows"`
	UnpricedRows      int64     `json:"unpricedRows"`
	TotalValue        money.Sum `json:"totalValue"`
	TotalValueDecimal string    `json:"totalValueDecimal"`
	Currency          string    `json:"currency"`
	Since             time.Time `json:"since"` // time of the first sync that left rows without a price
}

// ListingEnded reports that a listing was sold or cancelled, or that it expired.
type ListingEnded struct {
	ListingID      string `json:"listingId"`
	TradeID        string `json:"tradeId"` // empty if it was not sold
	SellerID       string `json:"sellerId"`
	AppID          int32  `json:"appId"`
	MarketHashName string `json:"marketHashName"`
	Phase          string `json:"phase"`
	ContextID      string `json:"contextId"`
	AssetID        string `json:"assetId"`
	Price          int64  `json:"price"` // minor units
	Currency       string `json:"currency"`
	State          string `json:"state"` // sold, cancelled, expired
}

// TradeMoved reports that a trade was completed, reversed or settled.
type TradeMoved struct {
	TradeID        string `json:"tradeId"`
	ListingID      string `json:"listingId"`
	SellerID       string `json:"sellerId"`
	BuyerID        string `json:"buyerId"`
	AppID          int32  `json:"appId"`
	MarketHashName string `json:"marketHashName"`
	Phase          string `json:"phase"`
	ContextID      string `json:"contextId"`
	AssetID        string `json:"assetId"`
	Price          int64  `json:"price"` // minor units, as are Fee and Net
	Fee            int64  `json:"fee"`
	Net            int64  `json:"net"` // the seller's credit
	Currency       string `json:"currency"`
	State          string `json:"state"` // completed, reversed, settled
}

// Kind implements Data.
func (InventoryPriced) Kind() Kind { return InventoryIsPriced }

// Kind implements Data.
func (l ListingEnded) Kind() Kind { return Kind("listing." + l.State) }

// Kind implements Data.
func (t TradeMoved) Kind() Kind { return Kind("trade." + t.State) }

// Kind implements Data.
func (TradeOverdue) Kind() Kind { return TradeIsOverdue }

// Kind implements Data.
func (PricesChanged) Kind() Kind { return PriceChanged }

// Kind implements Data.
func (BudgetLow) Kind() Kind { return BudgetIsLow }

// Kind implements Data.
func (j JobEnded) Kind() Kind {
	switch j.Outcome {
	case "failed":
		return JobFailed
	case "partial":
		return JobPartial
	default:
		return JobFinished
	}
}

// Kind implements Data.
func (d ProviderDown) Kind() Kind {
	switch d.Why {
	case WhyQuarantine:
		return Quarantined
	case WhyFetch:
		return Degraded
	default:
		return WentDown
	}
}

// Kind implements Data.
func (ProviderUp) Kind() Kind { return CameUp }

// Kind implements Data.
func (LedgerProblem) Kind() Kind { return LedgerHasProblem }
