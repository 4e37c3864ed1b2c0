// Package event defines the events for operators and platforms: a closed set of
// kinds, each with its JSON payload. An event is written to the outbox in the
// transaction that caused it, so neither exists without the other. No payload
// holds a secret.
package event

import "time"

// Kind is what happened.
type Kind string

// The kinds. PriceChanged is written in batches, of prices that were committed.
const (
	PriceChanged     Kind = "price.changed"
	JobFinished      Kind = "job.finished"
	JobPartial       Kind = "job.partial"
	JobFailed        Kind = "job.failed"
	WentDown         Kind = "provider.down"
	Quarantined      Kind = "provider.quarantined"
	CameUp           Kind = "provider.up"
	BudgetIsLow      Kind = "budget.low"
	LedgerHasProblem Kind = "ledger.problem"
	TradeIsOverdue   Kind = "trade.overdue"
)

// Kinds lists all of them.
func Kinds() []Kind {
	return []Kind{PriceChanged, JobFinished, JobPartial, JobFailed, WentDown, Quarantined, CameUp, BudgetIsLow, LedgerHasProblem, TradeIsOverdue}
}

// Data is the payload of an event: one of the structs below, as JSON.
type Data interface{ Kind() Kind }

// BudgetLow reports that less than a tenth of a budget is left and that, at the
// present pace, it runs out before it renews. It is written once per window.
type BudgetLow struct {
	Provider  string    `json:"provider"`
	Host      string    `json:"host"`   // empty where the provider has one
	Budget    string    `json:"budget"` // limit, day, month, reported
	Left      int64     `json:"left"`
	Limit     int64     `json:"limit"`
	RunsOutAt time.Time `json:"runsOutAt"`
	RenewedAt time.Time `json:"renewedAt"`
}

// JobEnded reports that a job has ended: its prices are applied, or there were
// none. A cancelled job causes no event.
type JobEnded struct {
	JobID        string     `json:"jobId"`
	JobKind      string     `json:"jobKind"` // bulk, missing
	Forced       bool       `json:"forced"`
	RequestedBy  string     `json:"requestedBy"`
	StartedAt    *time.Time `json:"startedAt"` // null: its plan could not be made
	TotalItems   int64      `json:"totalItems"`
	UpdatedItems int64      `json:"updatedItems"`
	ChangedItems int64      `json:"changedItems"` // of those
	NoQuoteItems int64      `json:"noQuoteItems"`
	FailedItems  int64      `json:"failedItems"`
	LastError    *string    `json:"lastError"`
	Outcome      string     `json:"outcome"` // complete, partial, failed
	Gaps         Gaps       `json:"gaps"`
}

// Gaps lists what a job did not get. Shares are fractions of 1 with four places.
type Gaps struct {
	Items   []ItemGap   `json:"items"`
	Markets []MarketGap `json:"markets"`
}

// ItemGap counts due items of which a job learned nothing.
type ItemGap struct {
	Reason string  `json:"reason"` // failed, backoff, budget, paused, cancelled
	Items  int64   `json:"items"`
	Share  float64 `json:"share"` // of the items that were due
}

// MarketGap is a market of which a job got nothing, or not all.
type MarketGap struct {
	Provider string  `json:"provider"`
	Market   string  `json:"market"` // empty where the provider is no longer configured
	Reason   string  `json:"reason"` // failed, backoff, budget, paused, cancelled, silent, quarantined
	Share    float64 `json:"share"`  // of the planned requests
	Detail   string  `json:"detail"` // for people; may be empty
}

// Why a provider is down.
const (
	WhyBreaker    = "breaker"    // its host keeps failing and gets no requests for a while
	WhyQuarantine = "quarantine" // a market's response failed validation
)

// ProviderDown reports that a provider's host gets no more requests, or that the
// responses of one of its markets are quarantined. It is written once until it is up.
type ProviderDown struct {
	Provider string `json:"provider"`
	Why      string `json:"why"`              // breaker, quarantine
	Host     string `json:"host"`             // of a breaker; empty where the provider has one
	Market   string `json:"market,omitempty"` // of a quarantine, with the game and file that it is in
	AppID    int32  `json:"appId,omitempty"`
	File     string `json:"file,omitempty"`
	Detail   string `json:"detail"` // for people
}

// ProviderUp ends a ProviderDown of the same fields but Detail.
type ProviderUp ProviderDown

// LedgerProblem reports that the verification of a user's ledger did not pass.
type LedgerProblem struct {
	UserID       string   `json:"userId"`
	Status       string   `json:"status"` // failed, incomplete
	Checks       []string `json:"checks"` // that did not pass
	FailureCount int64    `json:"failureCount"`
}

// TradeOverdue reports that a trade is pending for too long, or that its hold ended
// some time ago and it has not settled. It is written once per trade.
type TradeOverdue struct {
	TradeID   string    `json:"tradeId"`
	ListingID string    `json:"listingId"`
	SellerID  string    `json:"sellerId"`
	BuyerID   string    `json:"buyerId"`
	State     string    `json:"state"` // pending: it was never completed; completed: it has not settled
	Since     time.Time `json:"since"` // when it was bought, or when its hold ended
}

// Kind implements Data.
func (TradeOverdue) Kind() Kind { return TradeIsOverdue }

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
	if d.Why == WhyQuarantine {
		return Quarantined
	}
	return WentDown
}

// Kind implements Data.
func (ProviderUp) Kind() Kind { return CameUp }

// Kind implements Data.
func (LedgerProblem) Kind() Kind { return LedgerHasProblem }
