package pricing

import (
	"slices"

	"assay/internal/money"
)

const (
	sampleNames = 4096 // names that levels are learned from, spread over all
	kappaNames  = 1024

	shrink = 40 // a band's level counts n/(n+40) beside the market's
)

// sample holds the quotes of some names of the used markets.
type sample struct {
	markets []*entry
	rows    [][]Log // by name; none where a market has no quote
	pairs   bool    // names that two markets quote are among them: each then moves half of the way
}

// learn learns the set from the used markets: the levels of those that responded in
// this round against each other, and then those of markets that are requested by
// name. One that failed keeps its level: what it quoted before is not compared with
// what others quote now.
func (r *Round) learn(used []*entry) *Set {
	set := r.prev.clone()
	set.Moves = [windows][classes]Log{}
	byName := slices.DeleteFunc(slices.Clone(used), func(e *entry) bool { return !e.ByName })
	if len(byName) == len(used) {
		r.learnLevels(set, r.asStored(used))
	} else {
		responded := slices.DeleteFunc(slices.Clone(used), func(e *entry) bool { return e.ByName || !e.new || e.refusal != nil })
		if len(responded) < 3 {
			set.relevel(responded)
		}
		r.learnLevels(set, responded)
		for _, e := range byName {
			r.learnByName(set, e, used)
		}
	}
	r.classWindows(used, set)
	return set
}

// relevel moves accepted markets to the level of their new responses, where too few
// markets responded to learn it: else the other markets would seem to have moved.
func (s *Set) relevel(responded []*entry) {
	for _, e := range responded {
		i, ok := s.find(e.ID)
		if !ok || !e.vouched || e.shared < fewestShared {
			continue
		}
		m := &s.Markets[i]
		change := e.level - m.Level
		m.Level = e.level
		for b := range m.Bands {
			m.Bands[b] += change
		}
	}
}

// asStored returns markets that are requested by name as they were after the last
// run: which of their new quotes have come when a round begins is chance.
func (r *Round) asStored(markets []*entry) []*entry {
	out := make([]*entry, len(markets))
	for i, e := range markets {
		stored := *e
		if stored.next = e.last; e.last == nil {
			stored.next = r.empty()
		}
		out[i] = &stored
	}
	return out
}

// learnLevels learns the levels of markets against each other.
func (r *Round) learnLevels(set *Set, used []*entry) {
	levels := make([]SetMarket, len(used))
	for k, e := range used {
		levels[k] = SetMarket{ID: e.ID, Far: -1}
	}
	s := r.sampled(used, min(len(used), 3))
	if len(used) > 2 && !s.covers() {
		s = r.sampled(used, 2)
		s.pairs = true
	}
	if len(used) == 2 {
		s.pair(set, levels)
	} else if len(used) > 2 {
		s.global(levels)
		s.byBand(set, levels)
	}
	keepScale(set, levels)
	for k := range levels {
		set.put(levels[k])
	}
	if len(used) > 2 {
		s.anchor(set)
		s.noise(set)
		s.learnKappa(set)
	}
}

// learnByName learns the level of a market that is requested by name, from its
// stored quotes and the last responses of the others.
func (r *Round) learnByName(set *Set, e *entry, used []*entry) {
	s := &sample{}
	for _, o := range used {
		if !o.ByName && o.last != nil {
			s.markets = append(s.markets, o)
		}
	}
	var all, far []Log
	var band [bands][]Log
	index, levels, row := s.index(set), make([]Log, len(s.markets)), make([]Log, len(s.markets))
	for i := range r.keys {
		v := at(e.last, i)
		if v == none {
			continue
		}
		for k, o := range s.markets {
			row[k] = at(o.last, i)
		}
		set.levelsOf(row, index, levels)
		far = far[:0]
		for k, l := range row {
			if l != none {
				far = append(far, l-levels[k])
			}
		}
		if len(far) == 0 {
			continue
		}
		others := agreed(far)
		b := set.band(others)
		all, band[b] = append(all, v-others), append(band[b], v-others)
	}
	if len(all) < fewestShared {
		return
	}
	m := SetMarket{ID: e.ID, Far: -1}
	m.set(middleOf(slices.Clone(all)))
	for b := range band {
		if n := int64(len(band[b])); n > 0 {
			m.Bands[b] += Log(int64(middleOf(band[b])-m.Level) * n / (n + shrink))
		}
	}
	off := 0
	for i, d := range all {
		all[i] = abs(d - m.Level)
		if all[i] > log2 {
			off++
		}
	}
	set.put(m)
	at, _ := set.find(e.ID)
	set.Markets[at].Noise, set.Markets[at].Far = middleOf(all), share(off, len(all))
}

// anchor measures each market against the others at the learned levels, as the next
// round's check will.
func (s *sample) anchor(set *Set) {
	index := s.index(set)
	of := make([][]Log, len(s.markets))
	s.residuals(func(_, into []Log) {
		for k := range into {
			into[k] = set.levelAt(index[k])
		}
	}, func(_, k int, v, others Log) {
		of[k] = append(of[k], v+set.levelAt(index[k])-others)
	})
	for k, e := range s.markets {
		if e.anchored = len(of[k]) >= fewestShared; e.anchored {
			e.anchor = middleOf(of[k])
		}
	}
}

// clone returns a copy of the set that shares nothing with it.
func (s *Set) clone() *Set {
	c := *s
	c.Markets = slices.Clone(s.Markets)
	return &c
}

// put stores a market's levels; one whose level could not be learned keeps the
// stored one.
func (s *Set) put(m SetMarket) {
	i, ok := s.find(m.ID)
	if !ok {
		s.Markets = slices.Insert(s.Markets, i, m)
		return
	}
	if m.Known {
		s.Markets[i].Known, s.Markets[i].Level, s.Markets[i].Bands = true, m.Level, m.Bands
	}
}

// sampled picks names with at least so many quotes, evenly by key, so that the
// order of responses does not matter.
func (r *Round) sampled(used []*entry, fewest int) *sample {
	s := &sample{markets: used}
	var names []int32
	for i := range r.keys {
		n := 0
		for _, e := range used {
			if at(e.next, i) != none {
				n++
			}
		}
		if n >= max(fewest, 2) {
			names = append(names, int32(i))
		}
	}
	slices.SortFunc(names, func(a, b int32) int {
		if r.keys[a] < r.keys[b] {
			return -1
		}
		return 1
	})
	step := (len(names) + sampleNames - 1) / sampleNames
	flat := make([]Log, 0, min(len(names), sampleNames)*len(used))
	for i := 0; i < len(names); i += step {
		from := len(flat)
		for _, e := range used {
			flat = append(flat, at(e.next, int(names[i])))
		}
		s.rows = append(s.rows, flat[from:len(flat):len(flat)])
	}
	return s
}

// towards returns a market's next level, from the one before and what its distances from
// the others say. Two markets that both moved all the way would pass each other.
func (s *sample) towards(before, level Log) Log {
	if s.pairs {
		return before + (level-before)/2
	}
	return level
}

// covers reports whether each market has enough names in the sample to learn its level:
// one that shares few names with two others is compared with one of them.
func (s *sample) covers() bool {
	for k := range s.markets {
		n := 0
		for _, row := range s.rows {
			if row[k] != none {
				n++
			}
		}
		if n < fewestShared {
			return false
		}
	}
	return true
}

// pair levels two markets: each moves half of what is left of their distance at the
// stored levels, so that what was learned of price bands while there were more
// markets stays.
func (s *sample) pair(prev *Set, levels []SetMarket) {
	index := s.index(prev)
	at := make([]Log, len(levels))
	var d []Log
	for _, row := range s.rows {
		prev.levelsOf(row, index, at)
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

// set makes a level known, equal in all bands.
func (m *SetMarket) set(l Log) {
	m.Known, m.Level = true, l
	for b := range m.Bands {
		m.Bands[b] = l
	}
}

// residuals calls fn for every quote of the sample with its levelled value and the
// median of the others' levelled values; level gives the levels of a row.
func (s *sample) residuals(level func(row []Log, into []Log), fn func(row int, market int, value, others Log)) {
	n := len(s.markets)
	levels, values, sorted := make([]Log, n), make([]Log, n), make([]Log, 0, n)
	for i, row := range s.rows {
		level(row, levels)
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

// global learns each market's level over all prices: the median of its distances
// from the others, moved so that the median level is 0, again and again until no
// level moves by more than a thousandth.
func (s *sample) global(levels []SetMarket) {
	const steps, still = 20, logOne / 1000
	for step, moved := 0, true; moved && step < steps; step++ {
		before := slices.Clone(levels)
		of := make([][]Log, len(levels))
		s.residuals(func(_, into []Log) {
			for k := range into {
				into[k] = levels[k].Level
			}
		}, func(_, k int, v, others Log) {
			of[k] = append(of[k], v+levels[k].Level-others)
		})
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
				moved = moved || abs(levels[k].Level-before[k].Level) > still
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
	row := 0
	for range 6 {
		var of [bands][][]Log
		for b := range of {
			of[b] = make([][]Log, len(levels))
		}
		row = -1
		s.residuals(func(_, into []Log) {
			row++
			low, part := set.between(middles[row])
			for k := range into {
				into[k] = levels[k].level(low, part)
			}
		}, func(i, k int, v, others Log) {
			b := set.band(middles[i])
			of[b][k] = append(of[b][k], v+levels[k].Bands[b]-others)
		})
		for b := range of {
			s.shrunk(levels, b, of[b])
		}
	}
}

// shrunk sets the levels of one band, and moves them so that their median is 0.
func (s *sample) shrunk(levels []SetMarket, b int, of [][]Log) {
	var learned []Log
	for k := range levels {
		m := &levels[k]
		if !m.Known {
			continue
		}
		level := m.Level
		if n := int64(len(of[k])); n > 0 {
			d := int64(middleOf(of[k]) - m.Level)
			level += Log(d * n / (n + shrink))
		}
		m.Bands[b] = s.towards(m.Bands[b], level)
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

// keepScale moves learned levels so that the median change of the stored ones is
// 0: a new, failed or re-levelled market does not move prices.
func keepScale(prev *Set, levels []SetMarket) {
	var whole []Log
	var band [bands][]Log
	for k := range levels {
		old := prev.Market(levels[k].ID)
		if !old.Known || !levels[k].Known {
			continue
		}
		whole = append(whole, levels[k].Level-old.Level)
		for b := range band {
			band[b] = append(band[b], levels[k].Bands[b]-old.Bands[b])
		}
	}
	if len(whole) == 0 {
		return
	}
	middle := middleOf(whole)
	for b := range band {
		shift := middleOf(band[b])
		for k := range levels {
			levels[k].Bands[b] -= shift
		}
	}
	for k := range levels {
		levels[k].Level -= middle
	}
}

// noise learns how far each market lies from the others, and how far quotes lie
// from the others in each price band.
func (s *sample) noise(set *Set) {
	n := len(s.markets)
	of := make([][]Log, n)
	far := make([]int, n)
	var band [bands][]Log
	index := s.index(set)
	s.residuals(func(row, into []Log) { set.levelsOf(row, index, into) }, func(_, k int, v, others Log) {
		d := abs(v - others)
		of[k] = append(of[k], d)
		if d > log2 {
			far[k]++
		}
		b := set.band(others)
		band[b] = append(band[b], d)
	})
	for k, i := range index {
		if len(of[k]) >= fewestShared {
			set.Markets[i].Noise, set.Markets[i].Far = middleOf(of[k]), share(far[k], len(of[k]))
		}
	}
	for b := range band {
		if len(band[b]) >= fewestClass {
			set.Median[b] = middleOf(band[b])
		}
	}
}

// index returns the places of the sample's markets in the set; -1: not in it.
func (s *sample) index(set *Set) []int {
	out := make([]int, len(s.markets))
	for k, e := range s.markets {
		var ok bool
		if out[k], ok = set.find(e.ID); !ok {
			out[k] = -1
		}
	}
	return out
}

// levelsOf returns the level of each market at the price of one name, from its
// quotes in the base currency: none where there is no quote.
func (s *Set) levelsOf(quotes []Log, index []int, into []Log) {
	var few [16]Log
	v := few[:0]
	for k, l := range quotes {
		if l != none {
			v = append(v, l-s.levelAt(index[k]))
		}
	}
	if len(v) == 0 {
		return
	}
	low, part := s.between(agreed(v))
	for k := range into {
		into[k] = 0
		if index[k] >= 0 {
			into[k] = s.Markets[index[k]].level(low, part)
		}
	}
}

// agreed returns the median of the largest group of values within a factor of 2 if
// that holds more than half of them, else the median of all: the price at which
// levels are taken, which an outlier must not move. It sorts them.
func agreed(v []Log) Log {
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

// levelAt returns the level of a market by its place in the set, 0 without one.
func (s *Set) levelAt(i int) Log {
	if i < 0 {
		return 0
	}
	return s.Markets[i].Level
}

// learnKappa learns how wide an interval must be for 80 % of the quotes of one
// market, left out, to lie in it.
func (s *sample) learnKappa(set *Set) {
	const fewest = 1000
	index := s.index(set)
	n := len(s.markets)
	levels, all, rest := make([]Log, n), make([]vote, 0, n), make([]vote, 0, n)
	var widths []Log // |error| / half width for kappa 1, in units of 2^-16
	step := (len(s.rows) + kappaNames - 1) / kappaNames
	for i := 0; i < len(s.rows); i += step {
		all = all[:0]
		set.levelsOf(s.rows[i], index, levels)
		for k, l := range s.rows[i] {
			if l != none {
				all = append(all, newVote(k, Exp(l-levels[k]-Ln(money.Scale)), set.Markets[index[k]]))
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
