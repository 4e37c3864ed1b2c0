package pricing

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"assay/internal/money"
)

// bands is the number of price bands: below 0.3, below 3, below 30 dollars, and above.
const bands = 4

// Window is a period for which the moves of classes are known.
type Window uint8

// The windows of the references of the guard.
const (
	SinceLast Window = iota // since the last good responses
	SinceDay
	SinceWeek
	windows
)

// SetMarket contains the learned figures of one market.
type SetMarket struct {
	ID    int64
	Known bool        // the level was learned from at least 100 shared names
	Level Log         // usual level against the others
	Bands [bands]Log  // usual level by price band
	Noise Log         // median distance from the others; 0: unknown
	Far   money.Micro // share of names more than 2x from the others, in millionths; -1: unknown

	Late             bool      // the market repeats another or stands still, and is not used
	Repeats          int64     // market that a late market repeats; 0: none
	ChangedAt        time.Time // when the good response last changed
	MarketMovedUntil time.Time // all prices of the market moved; its items are suspect until this time

	AcceptedAt    time.Time    // when an accepted response was first used; zero: none, or no class moved by more than 2x
	AcceptedMoves [classes]Log // moves of the classes in the accepted response
}

// Set contains the learned figures that prices of one game depend on, in addition to
// quotes, rates and policy. A run learns one Set and stores it under a number. A stored Set
// never changes.
type Set struct {
	Unit    money.Micro           // price of one US dollar in the base currency
	Kappa   money.Micro           // width of the interval, in millionths
	Median  [bands]Log            // median distance of a quote from the others, by price band
	Moves   [windows][classes]Log // moves of each class
	Markets []SetMarket           // sorted by ID

	edges   [bands - 1]Log // logarithms of the limits between bands
	unknown SetMarket      // result for markets that are not in the set
}

const (
	setVersion = 1
	maxMarkets = 10_000

	kappaDefault  money.Micro = 1_860_000
	medianDefault Log         = 1677722 // 0.10
)

// NewSet returns a Set without learned figures. unit is the price of one US dollar in the
// base currency.
func NewSet(unit money.Micro) *Set {
	s := &Set{Unit: cmp.Or(unit, money.Scale), Kappa: kappaDefault}
	for b := range s.Median {
		s.Median[b] = medianDefault
	}
	s.complete()
	return s
}

// Market returns the figures of a market. A market that is not in the set has the consensus
// level.
func (s *Set) Market(id int64) SetMarket {
	m := *s.market(id)
	m.ID = id
	return m
}

func (s *Set) market(id int64) *SetMarket {
	if i, ok := s.find(id); ok {
		return &s.Markets[i]
	}
	return &s.unknown
}

func (s *Set) find(id int64) (int, bool) {
	return slices.BinarySearchFunc(s.Markets, id, func(m SetMarket, id int64) int { return cmp.Compare(m.ID, id) })
}

// complete computes the limits between bands, which are 0.3, 3 and 30 dollars.
func (s *Set) complete() {
	s.edges = [bands - 1]Log{Ln(max(1, s.Unit*3/10)), Ln(s.Unit * 3), Ln(s.Unit * 30)}
	s.unknown = SetMarket{Far: -1}
}

// band returns the price band of the logarithm of a price.
func (s *Set) band(l Log) int {
	b := 0
	for b < bands-1 && l >= s.edges[b] {
		b++
	}
	return b
}

// between returns the weights for interpolating levels at a price. low is the lower of two
// neighboring bands. part is the weight of the upper band, in units of 2^-24. Levels are
// interpolated linearly within a quarter of a decade of a limit between bands. Elsewhere the
// level of one band applies.
func (s *Set) between(l Log) (low int, part int64) {
	const reach = 9657742 // ln(10)/4
	for low = range bands - 1 {
		over := int64(l) - int64(s.edges[low]) + reach
		if over <= 0 {
			return low, 0
		}
		if over < 2*reach {
			return low, over << 24 / (2 * reach)
		}
	}
	return bands - 2, int64(logOne)
}

// level interpolates the level of a market with the result of Set.between.
func (m *SetMarket) level(low int, part int64) Log {
	a, b := int64(m.Bands[low]), int64(m.Bands[low+1])
	return Log(a + (b-a)*part>>24)
}

var errSet = errors.New("stored level set is damaged or has another version")

// MarshalBinary encodes the set in format 1: a version byte and variable-length numbers. A
// market takes 30 to 60 bytes, and 15 more for a week after an acceptance.
func (s *Set) MarshalBinary() ([]byte, error) {
	c := *s
	return encode(setVersion, c.code), nil
}

// UnmarshalBinary decodes the output of MarshalBinary.
func (s *Set) UnmarshalBinary(b []byte) error {
	var out Set
	sorted := func(a, b SetMarket) int { return cmp.Compare(a.ID, b.ID) }
	if !decode(b, setVersion, out.code) || out.Unit <= 0 || out.Kappa <= 0 || !slices.IsSortedFunc(out.Markets, sorted) {
		return errSet
	}
	out.complete()
	*s = out
	return nil
}

func (s *Set) code(r *record) {
	number(r, &s.Unit, 1<<50)
	number(r, &s.Kappa, 1<<50)
	r.logs(s.Median[:])
	for w := range s.Moves {
		r.logs(s.Moves[w][:])
	}
	n := uint64(len(s.Markets))
	r.count(&n, maxMarkets)
	for i := uint64(0); i < n && !r.bad; i++ {
		var m SetMarket
		if r.writing {
			m = s.Markets[i]
		}
		if m.code(r); !r.writing {
			s.Markets = append(s.Markets, m)
		}
	}
}

func (m *SetMarket) code(r *record) {
	number(r, &m.ID, 1<<63-1)
	accepted := !m.AcceptedAt.IsZero()
	r.flags(&m.Known, &m.Late, &accepted)
	number(r, &m.Level, 1<<30)
	for b := range m.Bands {
		apart := m.Bands[b] - m.Level
		number(r, &apart, 1<<30)
		m.Bands[b] = m.Level + apart
	}
	number(r, &m.Noise, 1<<30)
	number(r, &m.Far, money.Scale)
	number(r, &m.Repeats, 1<<63-1)
	r.times(&m.ChangedAt, &m.MarketMovedUntil)
	if accepted {
		r.times(&m.AcceptedAt)
		r.logs(m.AcceptedMoves[:])
	}
}

// LevelAt returns the level of a market at a consensus price, as a factor in millionths.
func (s *Set) LevelAt(market int64, price money.Micro) money.Micro {
	return Exp(s.market(market).level(s.between(Ln(max(price, 1)))))
}

// clone returns a deep copy of the set.
func (s *Set) clone() *Set {
	c := *s
	c.Markets = slices.Clone(s.Markets)
	return &c
}

// levelStep is the smallest change of a stored level: 1 %. Levels cannot be learned more
// precisely, and each response moves them by some thousandths. Without this limit, each run
// would change the last digits of all prices and add a point to every history.
const levelStep = logOne / 100

// put adds a market to the set, or updates its levels. It keeps the stored levels if those
// of m are not known, and each level that differs by less than levelStep.
func (s *Set) put(m SetMarket) {
	if i, ok := s.find(m.ID); !ok {
		s.Markets = slices.Insert(s.Markets, i, m)
	} else if stored := &s.Markets[i]; m.Known {
		keep := func(old *Log, learned Log) {
			if !stored.Known || abs(learned-*old) >= levelStep {
				*old = learned
			}
		}
		keep(&stored.Level, m.Level)
		for b := range m.Bands {
			keep(&stored.Bands[b], m.Bands[b])
		}
		stored.Known = true
	}
}

// set sets the same level for all bands.
func (m *SetMarket) set(l Log) {
	m.Known, m.Level = true, l
	for b := range m.Bands {
		m.Bands[b] = l
	}
}

// levelsOf writes the levels of markets at the price of one name to into. quotes are the
// quotes of the name in the base currency, or none. Without any quote, into is unchanged.
func (s *Set) levelsOf(markets []*SetMarket, quotes, into []Log) {
	var few [16]Log
	v := few[:0]
	for k, l := range quotes {
		if l != none {
			v = append(v, l-markets[k].Level)
		}
	}
	if len(v) == 0 {
		return
	}
	low, part := s.between(groupMedian(v))
	for k, m := range markets {
		into[k] = m.level(low, part)
	}
}

// groupMedian returns a consensus that single outliers do not affect. If more than half of the
// values are within a factor of 2, it is the median of the largest such group. Otherwise it is
// the median of all values. groupMedian sorts v.
func groupMedian(v []Log) Log {
	slices.Sort(v)
	from, to, end := 0, 0, 0
	for i := range v {
		for end < len(v) && v[end]-v[i] <= log2 {
			end++
		}
		if end-i > to-from || (end-i == to-from && v[end-1]-v[i] < v[to-1]-v[from]) {
			from, to = i, end
		}
	}
	if 2*(to-from) <= len(v) {
		from, to = 0, len(v)
	}
	return middleOf(v[from:to])
}

// median returns the median distance of quotes in the price band of a price.
func (s *Set) median(price money.Micro) Log { return s.Median[s.band(Ln(price))] }
