package sim

import (
	"fmt"
	"strconv"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// venue is one simulated market: what it is like, and how it writes.
type venue struct {
	key, title string
	index      int   // its place among the venues
	listings   int   // index of the venue whose listings it shows: usually its own
	bias       int64 // what it asks, in thousandths of the middle value
	coverage   int64 // how many items it knows, in thousandths
	wildness   int64 // how far its asks stray, in thousandths of the usual
	style      style
	days       int  // window of its sales counts; 0: it counts none
	bids       bool // it takes bids
	phases     bool // it distinguishes phases
	polled     bool // it states a time with every row
	nulls      bool // it writes null where others leave a member out
	pool       string
}

// style is how a venue writes amounts.
type style uint8

const (
	dollars     style = iota // 12.34
	dollarText               // "12.345"
	cents                    // 1234
	centText                 // "1234"
	thousandths              // 12345
)

// unit is how many of what a style counts make a dollar.
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

// step is the smallest amount that a style can write.
func (s style) step() mil {
	if s == dollarText || s == thousandths {
		return 1
	}
	return 10
}

// append writes an amount.
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

// table is the ten venues that the simulator has by default. Iris
// resells what Harbor lists.
var table = [DefaultMarkets]venue{
	{key: "sim-amber", title: "Amber Exchange", bias: 1000, coverage: 980, wildness: 800, style: dollars, days: 30},
	{key: "sim-birch", title: "Birch & Sons", bias: 930, coverage: 910, wildness: 1000, style: cents, bids: true, phases: true},
	{key: "sim-cobalt", title: "Cobalt Market", bias: 1080, coverage: 860, wildness: 1000, style: thousandths, phases: true},
	{key: "sim-delta", title: "Delta Bazaar", bias: 900, coverage: 800, wildness: 1100, style: dollarText, days: 7, bids: true, nulls: true},
	{key: "sim-ember", title: "Ember", bias: 1140, coverage: 700, wildness: 1200, style: centText, nulls: true},
	{key: "sim-fjord", title: "Fjord Trading", bias: 860, coverage: 620, wildness: 1300, style: dollars, polled: true},
	{key: "sim-garnet", title: "Garnet", bias: 1010, coverage: 940, wildness: 900, style: thousandths, days: 30, bids: true, phases: true},
	{key: "sim-harbor", title: "Harbor Skins", bias: 960, coverage: 880, wildness: 1000, style: cents, pool: "sim-harbor"},
	{key: "sim-iris", title: "Iris", bias: 960, coverage: 830, wildness: 1000, style: dollarText, pool: "sim-harbor"},
	{key: "sim-juniper", title: "Juniper & Co", bias: 1040, coverage: 760, wildness: 1100, style: centText, days: 7, polled: true, phases: true},
}

// harbor and iris are the places of the two that share listings.
const harbor, iris = 7, 8

// venues returns the first n venues. Those beyond the table are like those in
// it, but for their leanings.
func venues(n int) []venue {
	all := make([]venue, n)
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

// checkMarkets fails unless n can be a number of markets; 0 is the default.
func checkMarkets(n int) (int, error) {
	if n == 0 {
		return DefaultMarkets, nil
	}
	if n < 0 || n > MaxMarkets {
		return 0, fmt.Errorf("%d markets: want 1 to %d", n, MaxMarkets)
	}
	return n, nil
}

// market describes a venue as a provider's market.
func (v *venue) market() provider.Market {
	return provider.Market{
		Key: v.key, Title: v.title, AppIDs: []int32{catalog.CS2},
		SalesWindow: time.Duration(v.days) * 24 * time.Hour, Pool: v.pool, Currencies: []money.Currency{Currency},
	}
}
