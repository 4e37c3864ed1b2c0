package sim

import "assay/internal/catalog"

// model computes a market's quote of an item at a tick. It is immutable and stores no
// prices.
type model struct {
	seed    uint64
	cat     *Catalog
	markets []market
	week    int64 // ticks per week
	exp     *exponential
}

// Salts for derive. Each random property of an item has its own salt in the lowest eight
// bits. If a property is drawn several times, the bits above hold the number of the draw.
const (
	saltVariant uint64 = iota
	saltDeviation
	saltActivity
	saltTrend
	saltAbsurd
	saltAbsurdAsk
	saltSold
	saltSales
	saltMarket
	saltOffered
	saltMarketDeviation
	saltOffset
	saltEpoch
	saltListings
	saltBid
	saltSale
	saltAge
	saltStale
)

// subject is an item, or one phase of an item, with the properties that all markets share.
type subject struct {
	hash      uint64
	value     mil   // median of the asks, without the trend
	deviation int64 // standard deviation of asks between markets, log2 in fixed point
	period    int64 // ticks between two price changes at a market
	sold      int64 // age of the last sale: soldRecently to notSold
	trait     trait
}

// Ages of an item's last sale. Their shares in soldClass match real trades.
const (
	soldRecently  = iota // within two days
	soldThisWeek         // within two to seven days
	soldThisMonth        // within seven to thirty days
	notSold              // more than thirty days ago, or never
)

// subject returns the i-th item of the catalog.
func (m *model) subject(i int) subject {
	it := &m.cat.items[i%len(m.cat.items)]
	h := derive(mix(m.seed), uint64(i))
	value := int64(it.value)
	if i >= len(m.cat.items) { // the value is similar to that of the name without the suffix
		value = max(m.exp.scale(value, gauss(derive(h, saltVariant))/2), minValue)
	}
	s := subject{hash: h, value: value, trait: it.trait}
	s.deviation = drawDeviation(derive(h, saltDeviation), value)
	s.period = m.period(derive(h, saltActivity))
	s.sold = soldClass(derive(h, saltSold))
	if it.trait&pinned != 0 {
		s.deviation, s.sold = one/8, soldRecently
	}
	if it.trait&unwanted != 0 {
		s.sold = notSold
	}
	return s
}

// phaseFactors holds the price of each phase in thousandths of the item's median. The
// order is that of catalog.Phases. 0 means that the finish does not have the phase.
var phaseFactors = map[phases][8]int64{
	nebula:  {960, 1080, 920, 1020, 4_200, 5_100, 6_300, 0},
	verdant: {940, 1120, 950, 1010, 0, 0, 0, 5_600},
}

// phase returns the n-th phase of a subject. The result ok is false if the subject does
// not have the phase.
func (m *model) phase(s subject, p phases, n int) (phased subject, name string, ok bool) {
	factor := phaseFactors[p][n]
	if factor == 0 {
		return subject{}, "", false
	}
	s.hash = derive(s.hash, saltVariant+uint64(n+1)<<8)
	s.value = s.value * factor / 1000
	return s, catalog.Phases[n], true
}

// drawDeviation draws the standard deviation of an item's price between markets, as log2
// in fixed point. It is small for most items and tends to be larger for cheap ones.
func drawDeviation(h uint64, value mil) int64 {
	u := uniform(h)
	if value < 1_000 {
		u = u * 19 / 20
		u += one / 20
	}
	switch {
	case u < one*66/100:
		return one * 21 / 100
	case u < one*85/100:
		return one * 46 / 100
	case u < one*95/100:
		return one * 95 / 100
	default:
		return one * 180 / 100
	}
}

// period draws the number of ticks between two changes of an item's price at a market.
// With these shares, 55-60 % of the rounded prices change in a week.
func (m *model) period(h uint64) int64 {
	switch u := uniform(h); {
	case u < one*40/100:
		return max(m.week/20, 1)
	case u < one*57/100:
		return m.week
	default:
		return m.week * 8
	}
}

func soldClass(h uint64) int64 {
	switch u := uniform(h); {
	case u < one*76/100:
		return soldRecently
	case u < one*89/100:
		return soldThisWeek
	case u < one*957/1000:
		return soldThisMonth
	default:
		return notSold
	}
}

// trend returns the deviation of an item's price from its median on all markets at a tick,
// as log2 in fixed point. It interpolates linearly between random points four weeks apart.
func (m *model) trend(s *subject, tick int64) int64 {
	span := 4 * m.week
	k, part := tick/span, tick%span
	from := gauss(derive(s.hash, saltTrend+uint64(k)<<8)) / 5
	to := gauss(derive(s.hash, saltTrend+uint64(k+1)<<8)) / 5
	return from + (to-from)*part/span
}

// absurdQuote returns the index of the market that has an absurd price for the item at a
// tick, and that price. The index is -1 if there is none.
func (m *model) absurdQuote(s *subject, tick int64) (market int, ask mil) {
	switch {
	case s.trait&pinned != 0:
		return -1, 0
	case s.trait&absurd != 0:
		return len(m.markets) / 2, absurdPrice
	}
	week := (tick + int64(derive(s.hash, saltAbsurd)%uint64(m.week))) / m.week
	h := derive(s.hash, saltAbsurdAsk+uint64(week)<<8)
	if uniform(h) >= one*36/10_000 {
		return -1, 0
	}
	ask = max(s.value*20, 150_000) + int64(h>>8%1_000_000)
	return int(h >> 4 % uint64(len(m.markets))), ask
}
