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

// Guard is what happens to a price that moved suspiciously.
type Guard string

// The guards of MARKET_PRICE_GUARD.
const (
	Flag Guard = "flag" // accept it, as suspect, if two markets moved themselves; else hold it
	Hold Guard = "hold" // hold it until new evidence
)

// Policy is how prices are computed.
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
	if p.Method != Average && p.Method != Median {
		p.Method = Consensus
	}
	if p.Guard != Hold {
		p.Guard = Flag
	}
	p.MaxAge = cmp.Or(p.MaxAge, defaultMaxAge)
	p.NoSalesWindow = cmp.Or(p.NoSalesWindow, defaultNoSalesWindow)
}

// ParseMethod reads a value of MARKET_PRICE_ESTIMATE.
func ParseMethod(text string) (Method, error) {
	switch m := Method(text); m {
	case Consensus, Average, Median:
		return m, nil
	}
	return "", fmt.Errorf("unknown estimate %.20q: use consensus, average or median", text)
}

// ParseGuard reads a value of MARKET_PRICE_GUARD.
func ParseGuard(text string) (Guard, error) {
	switch g := Guard(text); g {
	case Flag, Hold:
		return g, nil
	}
	return "", fmt.Errorf("unknown guard %.20q: use flag or hold", text)
}
