package pricing

import (
	"cmp"
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

// movedEnough is half of the smallest move that the guard considers.
const movedEnough = log2 / 2

// newMovers lists the quotes of the used markets that moved, and the names whose quotes
// moved apart.
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

// addApart adds the names of which half of the quotes or more moved by more than 1.35x in
// one direction over the last eight days, while a third or more stood still: nothing shows
// which are right. Of two quotes one often returns from an absurd price to the other, so
// they must be more than 1.25x apart now, at their remembered levels. Markets that stand
// still count, though they are late; those that repeat another follow it.
func (m Movers) addApart(keys []uint64, live []*entry) Movers {
	for i, key := range keys {
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
				m = append(m, Mover{key, leftApart, far})
			}
		}
	}
	return m
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

var errMovers = errors.New("stored moves are damaged or of another version")

// MarshalBinary encodes the movers, format 1: 6 to 8 bytes per quote that moved with row
// ids as keys, at most 22.
func (m Movers) MarshalBinary() ([]byte, error) { return encode(moversVersion, m.code), nil }

// UnmarshalBinary reads what MarshalBinary wrote.
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
