package pricing

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"assay/internal/money"
)

// bands is how many price bands have levels of their own: below 0.3, 3 and 30
// dollars, and above.
const bands = 4

// Window is a span of time over which a class's own move is known.
type Window uint8

// The windows of the guard's references.
const (
	SinceLast Window = iota // since the last good responses
	SinceDay
	SinceWeek
	windows
)

// SetMarket is what was learned of one market.
type SetMarket struct {
	ID    int64
	Known bool        // its level was learned, from at least 100 shared names
	Level Log         // its usual level against the others
	Bands [bands]Log  // the same by price band
	Noise Log         // median distance from the others, 0: unknown
	Far   money.Micro // share of its names more than 2x from the others, in millionths; -1: unknown

	Late      bool      // repeats another market or stands still: not used
	Repeats   int64     // the market that it repeats, 0: none
	ChangedAt time.Time // when its good response last changed
	WideUntil time.Time // its items are suspect until then: all its prices moved

	AcceptedAt    time.Time    // when an operator's acceptance of a response took effect; zero: never, or its classes moved by less than 2x
	AcceptedMoves [classes]Log // how each class moved with it
}

// Set is everything that the prices of one game are computed with beside their
// quotes, rates and policy. It is learned once per run, numbered and stored, and
// not changed afterwards. NewSet makes the one before anything was learned.
type Set struct {
	Unit    money.Micro // one US dollar in the base currency
	Kappa   money.Micro // width of the interval, in millionths
	Median  [bands]Log  // median distance of a quote from the others, by price band
	Moves   [windows][classes]Log
	Markets []SetMarket // by ID

	edges [bands - 1]Log // logarithms of the bounds between bands
}

const (
	setVersion = 1
	maxMarkets = 10_000

	kappaDefault  money.Micro = 1_860_000
	medianDefault Log         = 1677722 // 0.10
)

// NewSet returns the set of a game of which nothing was learned; unit is what one
// US dollar costs in the base currency.
func NewSet(unit money.Micro) *Set {
	s := &Set{Unit: cmp.Or(unit, money.Scale), Kappa: kappaDefault}
	for b := range s.Median {
		s.Median[b] = medianDefault
	}
	s.findEdges()
	return s
}

// Market returns what was learned of a market; one that is not in the set is at
// the consensus level.
func (s *Set) Market(id int64) SetMarket {
	if i, ok := s.find(id); ok {
		return s.Markets[i]
	}
	return SetMarket{ID: id, Far: -1}
}

func (s *Set) find(id int64) (int, bool) {
	return slices.BinarySearchFunc(s.Markets, id, func(m SetMarket, id int64) int { return cmp.Compare(m.ID, id) })
}

// findEdges places the bounds between bands at 0.3, 3 and 30 dollars.
func (s *Set) findEdges() {
	s.edges = [bands - 1]Log{Ln(max(1, s.Unit*3/10)), Ln(s.Unit * 3), Ln(s.Unit * 30)}
}

// band returns the price band of a logarithm.
func (s *Set) band(l Log) int {
	b := 0
	for b < bands-1 && l >= s.edges[b] {
		b++
	}
	return b
}

// between returns which two neighboring bands' levels count at a price, and how
// much the upper one does, in units of 2^-24. Within a quarter of a decade of a bound
// the level goes evenly from one band's to the other's; elsewhere it is the band's.
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

// level returns the market's level at a price that lies so between two bands.
func (m *SetMarket) level(low int, part int64) Log {
	a, b := int64(m.Bands[low]), int64(m.Bands[low+1])
	return Log(a + (b-a)*part>>24)
}

var errSet = errors.New("stored level set is damaged")

// AppendBinary appends the encoding of the set, format 1: a version byte, and
// numbers of variable length. A market takes 30 to 60 bytes, and 15 more for a week
// after an acceptance.
func (s *Set) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, setVersion)
	b = binary.AppendVarint(b, int64(s.Unit))
	b = binary.AppendVarint(b, int64(s.Kappa))
	for _, l := range s.Median {
		b = binary.AppendVarint(b, int64(l))
	}
	for _, w := range s.Moves {
		for _, l := range w {
			b = binary.AppendVarint(b, int64(l))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(s.Markets)))
	for i := range s.Markets {
		b = s.Markets[i].append(b)
	}
	return b, nil
}

func (m *SetMarket) append(b []byte) []byte {
	b = binary.AppendVarint(b, m.ID)
	var flags byte
	if m.Known {
		flags |= 1
	}
	if m.Late {
		flags |= 2
	}
	if !m.AcceptedAt.IsZero() {
		flags |= 4
	}
	b = append(b, flags)
	b = binary.AppendVarint(b, int64(m.Level))
	for _, l := range m.Bands {
		b = binary.AppendVarint(b, int64(l-m.Level))
	}
	b = binary.AppendVarint(b, int64(m.Noise))
	b = binary.AppendVarint(b, int64(m.Far))
	b = binary.AppendVarint(b, m.Repeats)
	b = binary.AppendVarint(b, micros(m.ChangedAt))
	b = binary.AppendVarint(b, micros(m.WideUntil))
	if m.AcceptedAt.IsZero() {
		return b
	}
	b = binary.AppendVarint(b, micros(m.AcceptedAt))
	for _, l := range m.AcceptedMoves {
		b = binary.AppendVarint(b, int64(l))
	}
	return b
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (s *Set) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// UnmarshalBinary reads what AppendBinary wrote.
func (s *Set) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || b[0] != setVersion {
		return fmt.Errorf("%w: unknown version", errSet)
	}
	d := &decoder{b: b[1:]}
	var out Set
	out.Unit, out.Kappa = money.Micro(d.int(1<<50)), money.Micro(d.int(1<<50))
	for i := range out.Median {
		out.Median[i] = d.log()
	}
	for w := range out.Moves {
		for c := range out.Moves[w] {
			out.Moves[w][c] = d.log()
		}
	}
	n := d.uint(maxMarkets)
	for i := uint64(0); i < n && !d.bad; i++ {
		out.Markets = append(out.Markets, d.market())
	}
	sorted := slices.IsSortedFunc(out.Markets, func(a, b SetMarket) int { return cmp.Compare(a.ID, b.ID) })
	if d.bad || len(d.b) > 0 || out.Unit <= 0 || out.Kappa <= 0 || !sorted {
		return errSet
	}
	out.findEdges()
	*s = out
	return nil
}

func (d *decoder) market() SetMarket {
	m := SetMarket{ID: d.int(1<<63 - 1)}
	flags := d.byte()
	m.Known, m.Late = flags&1 != 0, flags&2 != 0
	m.Level = d.log()
	for i := range m.Bands {
		m.Bands[i] = m.Level + d.log()
	}
	m.Noise, m.Far = d.log(), money.Micro(d.int(money.Scale))
	m.Repeats = d.int(1<<63 - 1)
	m.ChangedAt, m.WideUntil = d.time(), d.time()
	if flags&4 != 0 {
		m.AcceptedAt = d.time()
		for c := range m.AcceptedMoves {
			m.AcceptedMoves[c] = d.log()
		}
	}
	return m
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	b := d.b[0]
	d.b = d.b[1:]
	return b
}

// LevelAt returns a market's level at a consensus price, as a factor in millionths.
func (s *Set) LevelAt(market int64, price money.Micro) money.Micro {
	m := s.Market(market)
	return Exp(m.level(s.between(Ln(max(price, 1)))))
}
