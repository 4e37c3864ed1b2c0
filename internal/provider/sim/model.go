package sim

import "assay/internal/catalog"

// model computes each venue's quote of each item at each tick. It is immutable and stores
// only the catalogue: every figure is computed on request.
type model struct {
	seed   uint64
	cat    *Catalogue
	venues []venue
	week   int64 // ticks per week
	exp    *exponential
}

// Salts separate the figures of one item. They take the lowest eight bits; repeated draws
// have their number above them.
const (
	saltVariant uint64 = iota
	saltWild
	saltActivity
	saltTrend
	saltJoke
	saltJokeAsk
	saltSold
	saltSales
	saltVenue
	saltOffered
	saltStray
	saltOffset
	saltEpoch
	saltListings
	saltBid
	saltSale
	saltPolled
	saltFrozen
)

// subject is one item, or one phase of it, with the figures that all venues share.
type subject struct {
	hash   uint64
	value  mil   // median of asks, without drift
	wild   int64 // deviation of asks between venues, in octaves
	period int64 // ticks between two changes at a venue
	sold   int64 // ticks since the last sale: see soldClass
	trait  trait
}

// Classes of the last sale, oldest last. The shares are those of real trades.
const (
	soldLately    = iota
	soldThisWeek  // but not within two days
	soldThisMonth // but not within seven days
	notSold       // not within thirty days
)

// subject returns the i-th item of the catalogue.
func (m *model) subject(i int) subject {
	it := &m.cat.items[i%len(m.cat.items)]
	h := derive(mix(m.seed), uint64(i))
	value := int64(it.value)
	if i >= len(m.cat.items) { // with a suffix: similar to its original, but not equal
		value = max(m.exp.scale(value, gauss(derive(h, saltVariant))/2), minValue)
	}
	s := subject{hash: h, value: value, trait: it.trait}
	s.wild = wildness(derive(h, saltWild), value)
	s.period = m.period(derive(h, saltActivity))
	s.sold = soldClass(derive(h, saltSold))
	if it.trait&pinned != 0 {
		s.wild, s.sold = one/8, soldLately
	}
	if it.trait&unwanted != 0 {
		s.sold = notSold
	}
	return s
}

// phaseFactors are the prices of phases, in thousandths of the median, in the order of
// catalog.Phases; 0: the finish does not have the phase.
var phaseFactors = map[phases][8]int64{
	nebula:  {960, 1080, 920, 1020, 4_200, 5_100, 6_300, 0},
	verdant: {940, 1120, 950, 1010, 0, 0, 0, 5_600},
}

// phase returns a phase of a subject; ok is false if it does not have the phase.
func (m *model) phase(s subject, p phases, n int) (phased subject, name string, ok bool) {
	factor := phaseFactors[p][n]
	if factor == 0 {
		return subject{}, "", false
	}
	s.hash = derive(s.hash, saltVariant+uint64(n+1)<<8)
	s.value = s.value * factor / 1000
	return s, catalog.Phases[n], true
}

// wildness draws how much venues disagree about an item. Most agree within a fifth, a few
// hardly at all, with cheap items least.
func wildness(h uint64, value mil) int64 {
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

// period draws how often a venue's price of an item changes. Together with the rounding of
// prices, 55-60 % of them change in a week.
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
		return soldLately
	case u < one*89/100:
		return soldThisWeek
	case u < one*957/1000:
		return soldThisMonth
	default:
		return notSold
	}
}

// trend returns how far all venues' prices of an item have moved from the median at a tick,
// in octaves: a slow wave between points four weeks apart.
func (m *model) trend(s *subject, tick int64) int64 {
	span := 4 * m.week
	k, part := tick/span, tick%span
	from := gauss(derive(s.hash, saltTrend+uint64(k)<<8)) / 5
	to := gauss(derive(s.hash, saltTrend+uint64(k+1)<<8)) / 5
	return from + (to-from)*part/span
}

// joke returns the venue with an absurd price for the item at a tick, and the price; -1 if
// there is none.
func (m *model) joke(s *subject, tick int64) (venue int, ask mil) {
	switch {
	case s.trait&pinned != 0:
		return -1, 0
	case s.trait&absurd != 0:
		return len(m.venues) / 2, absurdJoke
	}
	week := (tick + int64(derive(s.hash, saltJoke)%uint64(m.week))) / m.week
	h := derive(s.hash, saltJokeAsk+uint64(week)<<8)
	if uniform(h) >= one*36/10_000 {
		return -1, 0
	}
	ask = max(s.value*20, 150_000) + int64(h>>8%1_000_000)
	return int(h >> 4 % uint64(len(m.venues))), ask
}
