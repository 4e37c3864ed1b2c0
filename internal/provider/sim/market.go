package sim

import (
	"fmt"
	"strconv"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// market is one simulated market: its prices and its response format.
type market struct {
	key, title string
	index      int   // index in model.markets
	listings   int   // index of the market whose listings it shows, usually its own index
	bias       int64 // typical asking price, in thousandths of the median
	coverage   int64 // share of all items that it quotes, in thousandths
	deviation  int64 // how far its asks differ from the bias, in thousandths of the default
	style      style
	days       int    // window of its sales counts, in days; 0 if it reports none
	bids       bool   // reports bids
	phases     bool   // quotes each phase separately
	timestamps bool   // reports a time for each row
	nulls      bool   // writes null for a missing amount instead of omitting the member
	pool       string // see provider.Market
}

// style is the format in which a market writes amounts.
type style uint8

const (
	dollars     style = iota // 12.34
	dollarText               // "12.345"
	cents                    // 1234
	centText                 // "1234"
	thousandths              // 12345
)

// unit returns the number of units per dollar in which a style counts.
func (s style) unit() int {
	switch s {
	case cents, centText:
		return 100
	case thousandths:
		return 1000
	default:
		return 1
	}
}

// step returns the smallest amount that a style can write.
func (s style) step() mil {
	if s == dollarText || s == thousandths {
		return 1
	}
	return 10
}

// append appends m to b in this style.
func (s style) append(b []byte, m mil) []byte {
	switch s {
	case dollars:
		b = strconv.AppendInt(b, m/1000, 10)
		return append(b, '.', byte('0'+m/100%10), byte('0'+m/10%10))
	case dollarText:
		b = append(b, '"')
		b = strconv.AppendInt(b, m/1000, 10)
		return append(b, '.', byte('0'+m/100%10), byte('0'+m/10%10), byte('0'+m%10), '"')
	case cents:
		return strconv.AppendInt(b, m/10, 10)
	case centText:
		b = strconv.AppendInt(append(b, '"'), m/10, 10)
		return append(b, '"')
	default:
		return strconv.AppendInt(b, m, 10)
	}
}

// table holds the ten default markets. Iris resells the listings of Harbor.
var table = [DefaultMarkets]market{
	{key: "sim-amber", title: "Amber Exchange", bias: 1000, coverage: 980, deviation: 800, style: dollars, days: 30},
	{key: "sim-birch", title: "Birch & Sons", bias: 930, coverage: 910, deviation: 1000, style: cents, bids: true, phases: true},
	{key: "sim-cobalt", title: "Cobalt Market", bias: 1080, coverage: 860, deviation: 1000, style: thousandths, phases: true},
	{key: "sim-delta", title: "Delta Bazaar", bias: 900, coverage: 800, deviation: 1100, style: dollarText, days: 7, bids: true, nulls: true},
	{key: "sim-ember", title: "Ember", bias: 1140, coverage: 700, deviation: 1200, style: centText, nulls: true},
	{key: "sim-fjord", title: "Fjord Trading", bias: 860, coverage: 620, deviation: 1300, style: dollars, timestamps: true},
	{key: "sim-garnet", title: "Garnet", bias: 1010, coverage: 940, deviation: 900, style: thousandths, days: 30, bids: true, phases: true},
	{key: "sim-harbor", title: "Harbor Skins", bias: 960, coverage: 880, deviation: 1000, style: cents, pool: "sim-harbor"},
	{key: "sim-iris", title: "Iris", bias: 960, coverage: 830, deviation: 1000, style: dollarText, pool: "sim-harbor"},
	{key: "sim-juniper", title: "Juniper & Co", bias: 1040, coverage: 760, deviation: 1100, style: centText, days: 7, timestamps: true, phases: true},
}

// harbor and iris are the indices of the two markets that share listings.
const harbor, iris = 7, 8

// firstMarkets returns n markets. When the table is exhausted, it repeats the
// table's markets with other keys, titles, prices and coverage.
func firstMarkets(n int) []market {
	all := make([]market, n)
	for i := range all {
		v := table[i%len(table)]
		v.index, v.listings = i, i
		switch {
		case i == iris:
			v.listings = harbor
		case i >= len(table):
			h := derive(uint64(i), 0)
			v.key = "sim-m" + strconv.Itoa(i+1)
			v.title = "Market " + strconv.Itoa(i+1)
			v.bias = 850 + int64(h%300)
			v.coverage = 600 + int64(h>>16%380)
			v.pool = ""
		}
		all[i] = v
	}
	return all
}

// checkMarkets returns the number of markets for a configured n. It returns the
// default for 0 and an error when n is out of range.
func checkMarkets(n int) (int, error) {
	if n == 0 {
		return DefaultMarkets, nil
	}
	if n < 0 || n > MaxMarkets {
		return 0, fmt.Errorf("%d markets: use 1 to %d", n, MaxMarkets)
	}
	return n, nil
}

// describe returns the market's description for Provider.Describe.
func (v *market) describe() provider.Market {
	return provider.Market{
		Key: v.key, Title: v.title, AppIDs: []int32{catalog.CS2},
		SalesWindow: time.Duration(v.days) * 24 * time.Hour, Pool: v.pool, Currencies: []money.Currency{Currency},
	}
}
