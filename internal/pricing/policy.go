package pricing

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"assay/internal/money"
)

const (
	// MethodVersion is the version of the method. It is stored with every price, because
	// recomputing a price requires the same version.
	MethodVersion = 2

	// MaxMissingRetry is the longest pause before a missing price is retried.
	MaxMissingRetry = 72 * time.Hour

	defaultMaxAge        = 24 * time.Hour
	defaultNoSalesWindow = 720 * time.Hour
)

// Method selects the figure that becomes the price.
type Method string

// The methods of MARKET_PRICE_ESTIMATE.
const (
	Consensus Method = "consensus" // steps 5 to 10; the default
	Average   Method = "average"   // mean of all valid, fresh quotes
	Median    Method = "median"    // median of all valid, fresh quotes
)

// Guard selects the treatment of a price with a suspicious move.
type Guard string

// The guards of MARKET_PRICE_GUARD.
const (
	Flag Guard = "flag" // accept the price as suspect if the quotes of two markets moved; otherwise hold it
	Hold Guard = "hold" // hold the price until there is new evidence
)

// Policy contains the settings for computing prices.
type Policy struct {
	Method        Method
	Guard         Guard
	Currency      money.Currency
	MaxAge        time.Duration // maximum age of a quote; 0: 24 h
	NoSalesWindow time.Duration // minimum window of a market that can report no sales; 0: 720 h
	Rates         Rates
	Level         int64 // market that defines the price level; 0: the consensus level
}

// Label returns the method and the level in the form that is stored with each price:
// "consensus", or "consensus:12" for the level of market 12.
func (p *Policy) Label() string {
	method := cmp.Or(p.Method, Consensus)
	if p.Level == 0 || method != Consensus {
		return string(method)
	}
	return string(method) + ":" + strconv.FormatInt(p.Level, 10)
}

// ParseLabel returns the method and level of a label.
func ParseLabel(label string) (method Method, level int64) {
	name, market, _ := strings.Cut(label, ":")
	level, _ = strconv.ParseInt(market, 10, 64)
	return Method(name), level
}

// complete replaces zero and invalid fields by defaults.
func (p *Policy) complete() {
	if p.Method != Average && p.Method != Median {
		p.Method = Consensus
	}
	if p.Guard != Hold {
		p.Guard = Flag
	}
	p.MaxAge = cmp.Or(p.MaxAge, defaultMaxAge)
	p.NoSalesWindow = cmp.Or(p.NoSalesWindow, defaultNoSalesWindow)
}

// ParseMethod parses a value of MARKET_PRICE_ESTIMATE.
func ParseMethod(text string) (Method, error) {
	switch m := Method(text); m {
	case Consensus, Average, Median:
		return m, nil
	}
	return "", fmt.Errorf("unknown estimate %.20q: use consensus, average or median", text)
}

// ParseGuard parses a value of MARKET_PRICE_GUARD.
func ParseGuard(text string) (Guard, error) {
	switch g := Guard(text); g {
	case Flag, Hold:
		return g, nil
	}
	return "", fmt.Errorf("unknown guard %.20q: use flag or hold", text)
}
