package pricing

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

// Mover is a quote that moved by more than a factor of 1.41 since about a day ago:
// without such moves nothing supports a large move of a price (step 11). With the
// market leftApart it is a name of which half of the quotes left the others, and Move is
// how far they are from them.
type Mover struct {
	Key    uint64
	Market int64
	Move   Log
}

// leftApart stands for a name instead of a market.
const leftApart = -1

// Movers are the quotes that moved, by key and market.
type Movers []Mover

// movedEnough is half of the smallest move that the guard asks about.
const movedEnough = log2 / 2

// movers lists the quotes of the used markets that moved, and the names whose quotes
// moved apart.
func (r *Round) movers(live, used []*entry) Movers {
	var out Movers
	for _, e := range used {
		for i, key := range r.keys {
			was, is := at(e.before, i), at(e.next, i)
			if was == none || is == none || abs(is-was) < movedEnough {
				continue
			}
			out = append(out, Mover{key, e.ID, is - was})
		}
	}
	out = r.apart(live, out)
	slices.SortFunc(out, func(a, b Mover) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Market, b.Market))
	})
	return out
}

// apart adds the names of which half of the quotes or more moved by more than 1.35x in
// one direction over the last eight days, while a third or more stood still: nothing shows
// which are right. Of two quotes one often returns from an absurd price to the other, so
// they must be more than 1.25x apart now, at their remembered levels. Markets that stand
// still count, though they are late; those that repeat another follow it.
func (r *Round) apart(live []*entry, out Movers) Movers {
	for i, key := range r.keys {
		var n [3]int64 // fell, stood still, rose
		var sum [3]int64
		quotes := int64(0)
		for _, e := range live {
			is, was := at(e.next, i), at(e.oldest, i)
			if is == none || e.repeats != 0 {
				continue
			}
			if quotes++; was == none {
				continue
			}
			way := 1
			switch move := is - was; {
			case move > log1_35:
				way = 2
			case move < -log1_35:
				way = 0
			case abs(move) > log1_35/2:
				continue
			}
			n[way]++
			sum[way] += int64(is - e.State.Level)
		}
		for _, way := range [2]int{0, 2} {
			if 2*n[way] < quotes || 3*n[1] < quotes || n[1] == 0 {
				continue
			}
			if far := Log(sum[way]/n[way] - sum[1]/n[1]); n[way] > 1 || abs(far) > log1_25 {
				out = append(out, Mover{key, leftApart, far})
			}
		}
	}
	return out
}

// Note notes in the quotes of one item how they moved.
func (m Movers) Note(key uint64, quotes []Quote) {
	of := m.Of(key)
	if len(of) == 0 {
		return
	}
	for k := range quotes {
		q := &quotes[k]
		q.Apart = of.Move(leftApart) != 0
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

// Move returns by how much a market's quote moved, 0 if little.
func (m Movers) Move(market int64) Log {
	for i := range m {
		if m[i].Market == market {
			return m[i].Move
		}
	}
	return 0
}

const moversVersion = 1

var errMovers = errors.New("stored moves are damaged")

// AppendBinary appends the encoding, format 1: 6 to 8 bytes per quote that moved
// with row ids as keys, at most 22.
func (m Movers) AppendBinary(b []byte) ([]byte, error) {
	b = binary.AppendUvarint(append(b, moversVersion), uint64(len(m)))
	var key uint64
	for _, v := range m {
		b = binary.AppendUvarint(b, v.Key-key)
		b = binary.AppendVarint(b, v.Market)
		b = binary.AppendVarint(b, int64(v.Move))
		key = v.Key
	}
	return b, nil
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (m Movers) MarshalBinary() ([]byte, error) { return m.AppendBinary(nil) }

// UnmarshalBinary reads what AppendBinary wrote.
func (m *Movers) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || b[0] != moversVersion {
		return errMovers
	}
	d := &decoder{b: b[1:]}
	n := d.uint(uint64(len(b)))
	out := make(Movers, 0, n)
	var key uint64
	for range n {
		key += d.uint(1<<64 - 1)
		v := Mover{Key: key, Market: d.int(1<<63 - 1)}
		v.Move = d.log()
		out = append(out, v)
	}
	if d.bad || len(d.b) > 0 {
		return errMovers
	}
	*m = out
	return nil
}

// classWindows learns how each class moved by itself: the median of the used
// markets' own moves.
func (r *Round) classWindows(used []*entry, set *Set) {
	var v []Log
	for w := range windows {
		for c := range classes {
			v = v[:0]
			for _, e := range used {
				if e.hasMoves[w] {
					v = append(v, e.moves[w][c])
				}
			}
			if len(v) > 0 {
				set.Moves[w][c] = middleOf(v)
			}
		}
	}
}
