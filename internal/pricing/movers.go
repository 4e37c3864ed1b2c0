package pricing

import (
	"cmp"
	"errors"
	"slices"
)

// Mover is a quote that moved by more than a factor of 1.41 in about a day. The guard
// needs such moves as support for a large move of a price (step 11).
//
// A Mover with the market apartMarker describes a name instead: at least half of its quotes
// moved away from the others. Move is then the distance between the two sides.
type Mover struct {
	Key    uint64
	Market int64
	Move   Log
}

// apartMarker is the Market of a Mover that describes a name.
const apartMarker = -1

// Movers are the quotes that moved, sorted by key and market.
type Movers []Mover

// movedEnough is the smallest move of a Mover: half of the smallest move that the guard
// examines.
const movedEnough = log2 / 2

// newMovers returns the quotes of the used markets that moved, and the names with quotes
// that moved apart.
func newMovers(keys []uint64, live, used []*entry) Movers {
	var out Movers
	for _, e := range used {
		for i, key := range keys {
			was, is := at(e.before, i), at(e.next, i)
			if was == none || is == none || abs(is-was) < movedEnough {
				continue
			}
			out = append(out, Mover{key, e.ID, is - was})
		}
	}
	out = out.addApart(keys, live)
	slices.SortFunc(out, func(a, b Mover) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Market, b.Market))
	})
	return out
}

// side is how a price moved since the oldest price of its name in the history of its market.
type side uint8

// The sides.
const (
	neither side = iota // no older price, or a move between still and the others
	fell                // by more than 1.35x
	still
	rose // by more than 1.35x
	sides
)

func sideOf(from, to Log) side {
	switch move := to - from; {
	case to == none:
		return neither
	case move > log1_35:
		return rose
	case move < -log1_35:
		return fell
	case abs(move) > log1_35/2:
		return neither
	default:
		return still
	}
}

// addApart adds the names with quotes that moved apart in the last eight days: at least
// half of the quotes moved by more than 1.35x in one direction, and at least a third stood
// still. It is then unknown which quotes are correct. If only one quote moved, the two
// sides must now be more than 1.25x apart at their learned levels, because a single quote
// often returns from an absurd price. Late markets count if they stand still, but not if
// they repeat another market.
func (m Movers) addApart(keys []uint64, live []*entry) Movers {
	for i, key := range keys {
		var n, sum [sides]int64
		quotes := int64(0)
		for _, e := range live {
			is := at(e.next, i)
			if is == none || e.repeats != 0 {
				continue
			}
			if quotes++; i < len(e.sides) {
				n[e.sides[i]]++
				sum[e.sides[i]] += int64(is - e.State.Level)
			}
		}
		for _, way := range [2]side{fell, rose} {
			if 2*n[way] < quotes || 3*n[still] < quotes || n[still] == 0 {
				continue
			}
			if far := Log(sum[way]/n[way] - sum[still]/n[still]); n[way] > 1 || abs(far) > log1_25 {
				m = append(m, Mover{key, apartMarker, far})
			}
		}
	}
	return m
}

// Annotate sets the fields Moved and Apart in the quotes of one item.
func (m Movers) Annotate(key uint64, quotes []Quote) {
	of := m.Of(key)
	if len(of) == 0 {
		return
	}
	for k := range quotes {
		q := &quotes[k]
		q.Apart = of.Move(apartMarker) != 0
		if move := of.Move(q.ID); move != 0 {
			q.Moved = move
		}
	}
}

// Of returns the movers of one item.
func (m Movers) Of(key uint64) Movers {
	from, _ := slices.BinarySearchFunc(m, key, func(v Mover, key uint64) int { return cmp.Compare(v.Key, key) })
	to := from
	for to < len(m) && m[to].Key == key {
		to++
	}
	return m[from:to]
}

// Move returns the move of a market's quote, or 0 if it is not in m.
func (m Movers) Move(market int64) Log {
	for i := range m {
		if m[i].Market == market {
			return m[i].Move
		}
	}
	return 0
}

const moversVersion = 1

var errMovers = errors.New("stored moves are damaged or have another version")

// MarshalBinary encodes the movers in format 1. With row ids as keys, a mover takes 6 to 8
// bytes. The maximum is 22 bytes.
func (m Movers) MarshalBinary() ([]byte, error) { return encode(moversVersion, m.code), nil }

// UnmarshalBinary decodes the output of MarshalBinary.
func (m *Movers) UnmarshalBinary(b []byte) error {
	var out Movers
	if !decode(b, moversVersion, out.code) {
		return errMovers
	}
	*m = out
	return nil
}

func (m *Movers) code(r *record) {
	n := uint64(len(*m))
	if r.count(&n, uint64(len(r.b))); !r.writing {
		*m = make(Movers, n)
	}
	var last uint64
	for i := range *m {
		v := (*m)[i]
		key := v.Key - last
		r.count(&key, 1<<64-1)
		number(r, &v.Market, 1<<63-1)
		number(r, &v.Move, 1<<30)
		last += key
		if v.Key = last; !r.writing {
			(*m)[i] = v
		}
	}
}
