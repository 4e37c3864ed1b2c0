package pricing

import (
	"cmp"
	"slices"

	"assay/internal/money"
)

const (
	sampleNames = 4096 // names that levels are learned from, spread over all
	kappaNames  = 1024
)

// sample holds the quotes of some names of the used markets.
type sample struct {
	markets []*entry
	rows    [][]Log // by name; none where a market has no quote
	pairs   bool    // names that two markets quote are among them: each then moves half of the way
}

// newSample picks names with at least so many quotes, evenly by key, so that the
// order of responses does not matter.
func newSample(keys []uint64, used []*entry, fewest int) *sample {
	s := &sample{markets: used}
	var names []int
	for i := range keys {
		n := 0
		for _, e := range used {
			if at(e.next, i) != none {
				n++
			}
		}
		if n >= max(fewest, 2) {
			names = append(names, i)
		}
	}
	slices.SortFunc(names, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	step := (len(names) + sampleNames - 1) / sampleNames
	flat := make([]Log, 0, min(len(names), sampleNames)*len(used))
	for i := 0; i < len(names); i += step {
		from := len(flat)
		for _, e := range used {
			flat = append(flat, at(e.next, names[i]))
		}
		s.rows = append(s.rows, flat[from:len(flat):len(flat)])
	}
	return s
}

// anchor measures each market against the others at the learned levels, as the next
// round's check will.
func (s *sample) anchor(set *Set) {
	levels := make([]Log, len(s.markets))
	for k, m := range s.in(set) {
		levels[k] = m.Level
	}
	of := s.distances(levels)
	for k, e := range s.markets {
		if e.anchored = len(of[k]) >= fewestShared; e.anchored {
			e.anchor = middleOf(of[k])
		}
	}
}

// towards returns a market's next level, from the one before and the one that its distances
// suggest. Two markets that both moved all the way would pass each other.
func (s *sample) towards(before, level Log) Log {
	if s.pairs {
		return before + (level-before)/2
	}
	return level
}

// covers reports whether each market has enough names in the sample to learn its level:
// one that shares few names with two others is compared with one of them.
func (s *sample) covers() bool {
	quotes := make([]int, len(s.markets))
	for _, row := range s.rows {
		for k, l := range row {
			if l != none {
				quotes[k]++
			}
		}
	}
	return slices.Min(quotes) >= fewestShared
}

// pair levels two markets: each moves half of what is left of their distance at the
// stored levels, so that what was learned of price bands while there were more
// markets stays.
func (s *sample) pair(prev *Set, levels []SetMarket) {
	of := s.in(prev)
	at := make([]Log, len(levels))
	var d []Log
	for _, row := range s.rows {
		prev.levelsOf(of, row, at)
		d = append(d, row[0]-at[0]-(row[1]-at[1]))
	}
	if len(d) < fewestShared {
		return
	}
	half := middleOf(d) / 2
	for k, move := range []Log{half, -half} {
		m := prev.Market(levels[k].ID)
		levels[k].Known, levels[k].Level = true, m.Level+move
		for b := range m.Bands {
			levels[k].Bands[b] = m.Bands[b] + move
		}
		s.markets[k].anchor, s.markets[k].anchored = levels[k].Level, true
	}
}

// residuals calls fn for every quote of the sample with its levelled value and the
// median of the others' levelled values; level gives the levels of a row.
func (s *sample) residuals(level func(row int, into []Log), fn func(row int, market int, value, others Log)) {
	n := len(s.markets)
	levels, values, sorted := make([]Log, n), make([]Log, n), make([]Log, 0, n)
	for i, row := range s.rows {
		level(i, levels)
		sorted = sorted[:0]
		for k, l := range row {
			values[k] = none
			if l != none {
				values[k] = l - levels[k]
				sorted = append(sorted, values[k])
			}
		}
		slices.Sort(sorted)
		for k, v := range values {
			if v == none {
				continue
			}
			if m, ok := medianWithout(sorted, v); ok {
				fn(i, k, v, m)
			}
		}
	}
}

// distances returns how far the quotes of each market are from the others', at fixed
// levels of the markets.
func (s *sample) distances(levels []Log) [][]Log {
	of := make([][]Log, len(levels))
	s.residuals(func(_ int, into []Log) { copy(into, levels) }, func(_, k int, v, others Log) {
		of[k] = append(of[k], v+levels[k]-others)
	})
	return of
}

// global learns each market's level over all prices: the median of its distances
// from the others, moved so that the median level is 0, again and again until no
// level moves by more than a thousandth.
func (s *sample) global(levels []SetMarket) {
	const steps, still = 20, logOne / 1000
	now := make([]Log, len(levels))
	for step, moved := 0, true; moved && step < steps; step++ {
		for k := range levels {
			now[k] = levels[k].Level
		}
		of := s.distances(now)
		var learned []Log
		for k := range levels {
			if levels[k].Known = len(of[k]) >= fewestShared; levels[k].Known {
				levels[k].Level = s.towards(levels[k].Level, middleOf(of[k]))
				learned = append(learned, levels[k].Level)
			}
		}
		if len(learned) == 0 {
			return
		}
		middle := middleOf(learned)
		moved = false
		for k := range levels {
			if levels[k].Known {
				levels[k].Level -= middle
				moved = moved || abs(levels[k].Level-now[k]) > still
			}
		}
	}
	for k := range levels {
		if levels[k].Known {
			levels[k].set(levels[k].Level)
		}
	}
}

// byBand learns the levels of the price bands, shrunk to the market's.
func (s *sample) byBand(set *Set, levels []SetMarket) {
	middles := make([]Log, len(s.rows)) // of the quotes at the markets' levels
	var buf []Log
	for i, row := range s.rows {
		buf = buf[:0]
		for k, l := range row {
			if l != none {
				buf = append(buf, l-levels[k].Level)
			}
		}
		middles[i] = agreed(buf)
	}
	for range 6 {
		var of [bands][][]Log
		for b := range of {
			of[b] = make([][]Log, len(levels))
		}
		s.residuals(func(i int, into []Log) {
			low, part := set.between(middles[i])
			for k := range into {
				into[k] = levels[k].level(low, part)
			}
		}, func(i, k int, v, others Log) {
			b := set.band(middles[i])
			of[b][k] = append(of[b][k], v+levels[k].Bands[b]-others)
		})
		for b := range of {
			s.bandLevels(levels, b, of[b])
		}
	}
}

// bandLevels sets the levels of one band, and moves them so that their median is 0.
func (s *sample) bandLevels(levels []SetMarket, b int, of [][]Log) {
	var learned []Log
	for k := range levels {
		m := &levels[k]
		if !m.Known {
			continue
		}
		m.Bands[b] = s.towards(m.Bands[b], shrunk(m.Level, of[k]))
		learned = append(learned, m.Bands[b])
	}
	if len(learned) == 0 {
		return
	}
	middle := middleOf(learned)
	for k := range levels {
		if levels[k].Known {
			levels[k].Bands[b] -= middle
		}
	}
}

// noise learns how far each market lies from the others, and how far quotes lie
// from the others in each price band.
func (s *sample) noise(set *Set) {
	n := len(s.markets)
	of := make([][]Log, n)
	far := make([]int, n)
	var band [bands][]Log
	markets := s.in(set)
	s.residuals(func(i int, into []Log) { set.levelsOf(markets, s.rows[i], into) }, func(_, k int, v, others Log) {
		d := abs(v - others)
		of[k] = append(of[k], d)
		if d > log2 {
			far[k]++
		}
		b := set.band(others)
		band[b] = append(band[b], d)
	})
	for k, m := range markets {
		if len(of[k]) >= fewestShared {
			m.Noise, m.Far = middleOf(of[k]), share(far[k], len(of[k]))
		}
	}
	for b := range band {
		if len(band[b]) >= fewestClass {
			set.Median[b] = middleOf(band[b])
		}
	}
}

// in returns what a set holds of the sample's markets.
func (s *sample) in(set *Set) []*SetMarket {
	out := make([]*SetMarket, len(s.markets))
	for k, e := range s.markets {
		out[k] = set.market(e.ID)
	}
	return out
}

// learnKappa learns how wide an interval must be for 80 % of the quotes of one
// market, left out, to lie in it.
func (s *sample) learnKappa(set *Set) {
	const fewest = 1000
	markets := s.in(set)
	n := len(s.markets)
	levels, all, rest := make([]Log, n), make([]vote, 0, n), make([]vote, 0, n)
	var widths []Log // |error| / half width for kappa 1, in units of 2^-16
	step := (len(s.rows) + kappaNames - 1) / kappaNames
	for i := 0; i < len(s.rows); i += step {
		all = all[:0]
		set.levelsOf(markets, s.rows[i], levels)
		for k, l := range s.rows[i] {
			if l != none {
				all = append(all, newVote(k, Exp(l-levels[k]-Ln(money.Scale)), markets[k]))
			}
		}
		for out := range all {
			rest = append(append(rest[:0], all[:out]...), all[out+1:]...)
			if len(rest) == 0 {
				continue
			}
			c := decide(rest, 0)
			h := halfWidth(rest[c.from:c.to], c.price, set.median(c.price), money.Scale)
			e := int64(abs(all[out].log - Ln(c.price)))
			widths = append(widths, Log(min(e<<16/max(1, int64(h)), 1<<30)))
		}
	}
	if len(widths) < fewest {
		return
	}
	k := money.Micro(int64(nth(widths, len(widths)*4/5)) * money.Scale >> 16)
	set.Kappa = max(money.Scale/2, min(k, 6*money.Scale))
}
