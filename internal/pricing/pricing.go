package pricing

import (
	"cmp"
	"time"

	"assay/internal/money"
)

// Version numbers the rules of this package. It is stored with every price, so
// that one can be recomputed by the rules that made it.
const Version = 1

// Method chooses which figure becomes the price.
type Method string

// The methods of MARKET_PRICE_ESTIMATE.
const (
	Robust    Method = "robust"    // mean of what the outlier rule leaves
	Average   Method = "average"   // mean of all valid, fresh quotes
	Median    Method = "median"    // their median
	Consensus Method = "consensus" // steps 5 to 10
)

// Guard says what happens to a price that moved suspiciously.
type Guard string

// The guards of MARKET_PRICE_GUARD.
const (
	Flag Guard = "flag" // take it and say so
	Hold Guard = "hold" // keep the last accepted price until a second run agrees
)

// Status grades a price. A greater one is worse.
type Status uint8

// The statuses, best first.
const (
	OK Status = iota
	Thin
	Suspect
	Disputed
	Stale
	NoPrice
)

// Reason says why a quote takes no part in a figure; empty: it does.
type Reason string

// The reasons. All but Outlier keep a quote out of every figure; Outlier only
// out of the robust one.
const (
	Used           Reason = ""
	NotOffered     Reason = "notOffered"     // neither ask nor sale
	InvalidAmount  Reason = "invalidAmount"  // not within (0, 10,000,000] units
	NoRate         Reason = "noRate"         // no exchange rate for its currency
	StaleFetch     Reason = "staleFetch"     // we fetched it too long ago
	StaleMarket    Reason = "staleMarket"    // the market's own time is too long ago
	Duplicate      Reason = "duplicate"      // a fresher quote of the same market counts
	SharedListings Reason = "sharedListings" // another market with the same listings counts
	Outlier        Reason = "outlier"        // outside the group that decides
	LateMarket     Reason = "lateMarket"     // its market repeats another or stands still; the average counts it
	NotConfigured  Reason = "notConfigured"  // nobody asks the market any more; not of an estimate
	Awaiting       Reason = "awaiting"       // came since the last estimate, and takes part in the next; not of an estimate
)

// Basis says which figure of a market is its price.
type Basis string

// The bases.
const (
	Ask  Basis = "ask"
	Sale Basis = "sale" // nothing is offered; the median or last sale serves
)

// Quote is one market's snapshot, as last fetched. Amounts are micro-units of
// Currency, 0 is none.
type Quote struct {
	Source      string
	Market      string // the same key from two sources is the same market
	Pool        string // markets with the same non-empty pool share their listings
	Currency    money.Currency
	Ask         money.Micro
	Sale        money.Micro
	Sales       int64         // within SalesWindow; negative: unknown
	SalesWindow time.Duration // what Sales covers
	FetchedAt   time.Time     // when we last fetched it successfully; in the future (the clock was set back): just now
	MarketTime  time.Time     // when the market says it was so; zero or in the future: not stated
	MaxAge      time.Duration // longest time since FetchedAt; 0: Policy.MaxAge

	// For method 2: the market as the Set knows it, its quote's own move since
	// about a day ago (Movers), and, of quotes that were requested by name, when
	// what they say last changed (zero: when the market's response did).
	ID        int64
	Moved     Log
	ChangedAt time.Time
}

// Policy is how an operator wants prices made.
type Policy struct {
	Method        Method
	Guard         Guard
	Currency      money.Currency
	MaxAge        time.Duration // default 24 h when zero
	NoSalesWindow time.Duration // default 720 h when zero
	Rates         Rates
	Level         int64 // the market at whose level prices are stated; 0: the consensus
}

// complete sets defaults.
func (p *Policy) complete() {
	p.MaxAge = cmp.Or(p.MaxAge, defaultMaxAge)
	p.NoSalesWindow = cmp.Or(p.NoSalesWindow, defaultNoSalesWindow)
}

// Last is what is known of an item before this estimate.
//
// UpdatedAt is the age of Price for the rule of moves within a day: the last
// time that an estimate from quotes had Price as its result, changed or not (the
// contract's priceCheckedAt, not priceUpdatedAt, or a price that stood still for
// a month could double overnight unnoticed). A run that held its new price back,
// or that found no usable quote, does not move it. Zero, and a time in the
// future, count as within a day.
type Last struct {
	Price       money.Micro // accepted price, 0: none
	UpdatedAt   time.Time   // when an estimate last yielded it
	Candidate   money.Micro // price held back, 0: none
	CandidateAt time.Time   // when it was first held back
}

// SalesSignal is what all markets together say of an item's sales.
type SalesSignal uint8

// The signals. Unknown is not none.
const (
	SalesUnknown SalesSignal = iota
	SalesSome
	SalesNone
)

// Verdict is what became of one quote.
type Verdict struct {
	Price  money.Micro // in the base currency; 0 where it has none
	Basis  Basis
	Reason Reason
}

// Estimate is a price with everything that led to it. All amounts are
// micro-units of the base currency.
type Estimate struct {
	Price     money.Micro // the new current price; the last one where no quote is usable
	Estimated money.Micro // what Method yields from the quotes; 0: no usable quote
	Status    Status
	Method    Method // that made Estimated; Median where Robust was asked for and the outlier rule gave up

	// Figures of the quotes that steps 1-4 leave; 0 without one. Robust is the
	// median where the outlier rule gave up.
	Average, Median, Robust, Min, Max money.Micro
	Markets                           int // quotes given
	UsedMarkets                       int // quotes behind Estimated

	Candidate   money.Micro // held back, 0: none
	CandidateAt time.Time

	Sales    SalesSignal
	Verdicts []Verdict // one for each quote given, in its order
}

// Spread returns how far the usable quotes lie apart: Max - Min.
func (e *Estimate) Spread() money.Micro { return e.Max - e.Min }
