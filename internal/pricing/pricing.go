package pricing

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"assay/internal/money"
)

const (
	// MethodVersion numbers the rules of this package. It is stored with every price,
	// so that one can be recomputed by the rules that it was computed with.
	MethodVersion = 2

	defaultMaxAge        = 24 * time.Hour
	defaultNoSalesWindow = 720 * time.Hour
)

// Method chooses which figure becomes the price.
type Method string

// The methods of MARKET_PRICE_ESTIMATE.
const (
	Consensus Method = "consensus" // steps 5 to 10; the default
	Average   Method = "average"   // mean of all valid, fresh quotes
	Median    Method = "median"    // their median
)

// Guard says what happens to a price that moved suspiciously.
type Guard string

// The guards of MARKET_PRICE_GUARD.
const (
	Flag Guard = "flag" // take it, as suspect, if two markets moved themselves; else hold it
	Hold Guard = "hold" // hold it until new evidence
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

// The reasons. All but Outlier and LateMarket keep a quote out of every figure;
// these two only out of the consensus.
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
	NotConfigured  Reason = "notConfigured"  // the market is no longer configured; not of an estimate
	Awaiting       Reason = "awaiting"       // fetched since the last estimate; takes part in the next; not of an estimate
	Confirmed      Reason = "confirmed"      // the same, with the amounts that it had before
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
	Provider    string
	Market      string // the same key from two providers is the same market
	Pool        string // markets with the same non-empty pool share their listings
	Currency    money.Currency
	Ask         money.Micro
	Sale        money.Micro
	Sales       int64         // within SalesWindow; negative: unknown
	SalesWindow time.Duration // what Sales covers
	FetchedAt   time.Time     // when we last fetched it successfully; in the future (the clock was set back): just now
	MarketTime  time.Time     // when the market says it was so; zero or in the future: not stated
	MaxAge      time.Duration // longest time since FetchedAt; 0: Policy.MaxAge

	// The market as the Set knows it, its quote's own move since about a day ago
	// (Movers), and, of quotes that were requested by name, when their amounts last
	// changed (zero: when the market's response did).
	ID        int64
	Moved     Log
	Apart     bool // half of the item's quotes left the others (Movers)
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

// Label names the method with the market at whose level prices are stated, as it is
// stored with each price: "consensus", or "consensus:12" for the market 12.
func (p *Policy) Label() string {
	method := cmp.Or(p.Method, Consensus)
	if p.Level == 0 || method != Consensus {
		return string(method)
	}
	return string(method) + ":" + strconv.FormatInt(p.Level, 10)
}

// ParseLabel returns the method and level that a label names.
func ParseLabel(label string) (method Method, level int64) {
	name, market, _ := strings.Cut(label, ":")
	level, _ = strconv.ParseInt(market, 10, 64)
	return Method(name), level
}

// complete sets defaults.
func (p *Policy) complete() {
	switch p.Method {
	case Average, Median:
	default:
		p.Method = Consensus
	}
	if p.Guard != Hold {
		p.Guard = Flag
	}
	p.MaxAge = cmp.Or(p.MaxAge, defaultMaxAge)
	p.NoSalesWindow = cmp.Or(p.NoSalesWindow, defaultNoSalesWindow)
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
