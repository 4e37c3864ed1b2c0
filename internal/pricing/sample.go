package pricing

import (
	"cmp"
	"slices"

	"assay/internal/money"
)

const (
	sampleNames = 4096 // maximum number of names from which levels are learned
	kappaNames  = 1024 // maximum number of names from which kappa is learned
)

// sample contains the quotes of the used markets for a selection of names.
type sample struct {
	markets []*entry
	rows    [][]Log // one row per name, with one value per market; none: no quote
	pairs   bool    // some names have only two quotes; see towards
}

// newSample selects names with at least minQuotes quotes. The names are evenly distributed
// over the sorted keys, so the result does not depend on the order of responses.
func newSample(keys []uint64, used []*entry, minQuotes int) *sample {
	s := &sample{markets: used}
	var names []int
	for i := range keys {
		n := 0
		for _, e := range used {
			if at(e.next, i) != none {
				n++
			}
		}
		if n >= max(minQuotes, 2) {
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

// anchor computes the level of each market against the others at the learned levels. The
// check of the next round compares with this level.
func (s *sample) anchor(set *Set) {
	levels := make([]Log, len(s.markets))
	for k, m := range s.marketsOf(set) {
		levels[k] = m.Level
	}
	of := s.distances(levels)
	for k, e := range s.markets {
		if e.anchored = len(of[k]) >= minShared; e.anchored {
			e.anchor = middleOf(of[k])
		}
	}
}

// towards returns the next level of a market in an iteration. before is its current level, and
// level is the one that its distances suggest. If some names have only two quotes, towards
// returns the mean of both. Otherwise the two markets would exchange their levels in each
// iteration.
func (s *sample) towards(before, level Log) Log {
	if s.pairs {
		return before + (level-before)/2
	}
	return level
}

// covers reports whether each market has at least 100 names in the sample.
func (s *sample) covers() bool {
	quotes := make([]int, len(s.markets))
	for _, row := range s.rows {
		for k, l := range row {
			if l != none {
				quotes[k]++
			}
		}
	}
	return slices.Min(quotes) >= minShared
}

// pair learns the levels of two markets. It moves each level by half of the distance between
// the two markets at their stored levels. The differences between the levels of price bands
// stay, because they were learned with more markets.
func (s *sample) pair(prev *Set, levels []SetMarket) {
	of := s.marketsOf(prev)
	at := make([]Log, len(levels))
	var d []Log
	for _, row := range s.rows {
		prev.levelsOf(of, row, at)
		d = append(d, row[0]-at[0]-(row[1]-at[1]))
	}
	if len(d) < minShared {
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

// residuals calls fn for every quote of the sample. value is the levelled quote and others
// is the median of the other levelled quotes of the name. level writes the levels of the
// markets for a row.
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

// distances returns for each market the distances of its quotes from the levelled quotes of
// the others.
func (s *sample) distances(levels []Log) [][]Log {
	of := make([][]Log, len(levels))
	s.residuals(func(_ int, into []Log) { copy(into, levels) }, func(_, k int, v, others Log) {
		of[k] = append(of[k], v+levels[k]-others)
	})
	return of
}

// global learns the level of each market for all prices. The level is the median of its
// distances from the others, shifted so that the median level is 0. global iterates until
// no level changes by more than 0.001, at most 20 times.
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
			if levels[k].Known = len(of[k]) >= minShared; levels[k].Known {
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

// byBand learns the levels of the price bands. Bands with few quotes stay close to the
// level of the market; see shrunk.
func (s *sample) byBand(set *Set, levels []SetMarket) {
	middles := make([]Log, len(s.rows)) // consensus of each row at the levels of the markets
	var buf []Log
	for i, row := range s.rows {
		buf = buf[:0]
		for k, l := range row {
			if l != none {
				buf = append(buf, l-levels[k].Level)
			}
		}
		middles[i] = groupMedian(buf)
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

// bandLevels sets the levels of one band and shifts them so that their median is 0.
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

// noise learns the median distance of each market from the others, and the median distance
// of quotes in each price band.
func (s *sample) noise(set *Set) {
	n := len(s.markets)
	of := make([][]Log, n)
	far := make([]int, n)
	var band [bands][]Log
	markets := s.marketsOf(set)
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
		if len(of[k]) >= minShared {
			m.Noise, m.Far = middleOf(of[k]), share(far[k], len(of[k]))
		}
	}
	for b := range band {
		if len(band[b]) >= minClass {
			set.Median[b] = middleOf(band[b])
		}
	}
}

// marketsOf returns the markets of the sample in a set.
func (s *sample) marketsOf(set *Set) []*SetMarket {
	out := make([]*SetMarket, len(s.markets))
	for k, e := range s.markets {
		out[k] = set.market(e.ID)
	}
	return out
}

// learnKappa learns the width of intervals. It leaves out one quote after another and computes
// the interval from the others. It chooses kappa so that 80 % of the left-out quotes lie in
// their interval.
func (s *sample) learnKappa(set *Set) {
	const fewest = 1000
	markets := s.marketsOf(set)
	n := len(s.markets)
	levels, all, rest := make([]Log, n), make([]levelledQuote, 0, n), make([]levelledQuote, 0, n)
	var widths []Log // |error| / half width for kappa 1, in units of 2^-16
	step := (len(s.rows) + kappaNames - 1) / kappaNames
	for i := 0; i < len(s.rows); i += step {
		all = all[:0]
		set.levelsOf(markets, s.rows[i], levels)
		for k, l := range s.rows[i] {
			if l != none {
				all = append(all, newLevelledQuote(k, Exp(l-levels[k]-Ln(money.Scale)), markets[k]))
			}
		}
		for out := range all {
			rest = append(append(rest[:0], all[:out]...), all[out+1:]...)
			if len(rest) == 0 {
				continue
			}
			c := decideGroup(rest, 0)
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
