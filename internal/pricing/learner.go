package pricing

import "slices"

const shrink = 40 // a band's level counts n/(n+40) beside the market's

// learner learns the set of a round from the markets that are used (step 7).
type learner struct {
	set   *Set // of the last round, and then of this one
	names *columns
}

// learn learns the levels of those that responded in this round against each other, and
// then those of markets that are requested by name. One that failed keeps its level: what
// it quoted before is not compared with what others quote now.
func (l *learner) learn(used []*entry) {
	l.set.Moves = classMoves(used)
	byName := slices.DeleteFunc(slices.Clone(used), func(e *entry) bool { return !e.ByName })
	if len(byName) == len(used) {
		l.levels(l.asStored(used))
		return
	}
	responded := slices.DeleteFunc(slices.Clone(used), func(e *entry) bool { return e.ByName || !e.new || e.refusal != nil })
	if len(responded) < 3 {
		l.relevel(responded)
	}
	l.levels(responded)
	for _, e := range byName {
		l.levelByName(e, used)
	}
}

// relevel moves accepted markets to the level of their new responses, where too few
// markets responded to learn it: else the other markets would seem to have moved.
func (l *learner) relevel(responded []*entry) {
	for _, e := range responded {
		m := l.set.market(e.ID)
		if m == &l.set.unknown || !e.vouched || e.shared < fewestShared {
			continue
		}
		change := e.level - m.Level
		m.Level = e.level
		for b := range m.Bands {
			m.Bands[b] += change
		}
	}
}

// asStored returns markets that are requested by name as they were after the last
// run: which of their new quotes have come when a round begins is chance.
func (l *learner) asStored(markets []*entry) []*entry {
	out := make([]*entry, len(markets))
	for i, e := range markets {
		stored := *e
		if stored.next = e.last; e.last == nil {
			stored.next = l.names.empty(nil)
		}
		out[i] = &stored
	}
	return out
}

// levels learns the levels of markets against each other.
func (l *learner) levels(used []*entry) {
	levels := make([]SetMarket, len(used))
	for k, e := range used {
		levels[k] = SetMarket{ID: e.ID, Far: -1}
	}
	s := newSample(l.names.keys, used, min(len(used), 3))
	if len(used) > 2 && !s.covers() {
		s = newSample(l.names.keys, used, 2)
		s.pairs = true
	}
	if len(used) == 2 {
		s.pair(l.set, levels)
	} else if len(used) > 2 {
		s.global(levels)
		s.byBand(l.set, levels)
	}
	l.keepScale(levels)
	for k := range levels {
		l.set.put(levels[k])
	}
	if len(used) > 2 {
		s.anchor(l.set)
		s.noise(l.set)
		s.learnKappa(l.set)
	}
}

// keepScale moves learned levels so that the median change of the stored ones is
// 0: a new, failed or re-levelled market does not move prices.
func (l *learner) keepScale(levels []SetMarket) {
	var whole []Log
	var band [bands][]Log
	for k := range levels {
		old := l.set.Market(levels[k].ID)
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

// levelByName learns the level of a market that is requested by name, from its
// stored quotes and the last responses of the others.
func (l *learner) levelByName(e *entry, used []*entry) {
	all, band := l.distances(e, used)
	if len(all) < fewestShared {
		return
	}
	m := SetMarket{ID: e.ID, Far: -1}
	m.set(middleOf(slices.Clone(all)))
	for b := range band {
		m.Bands[b] = shrunk(m.Level, band[b])
	}
	off := 0
	for i, d := range all {
		all[i] = abs(d - m.Level)
		if all[i] > log2 {
			off++
		}
	}
	l.set.put(m)
	learned := l.set.market(e.ID)
	learned.Noise, learned.Far = middleOf(all), share(off, len(all))
}

// distances returns how far the stored quotes of a market are from where the last
// responses of the others agree, in total and by price band.
func (l *learner) distances(e *entry, used []*entry) (all []Log, band [bands][]Log) {
	s := &sample{markets: slices.DeleteFunc(slices.Clone(used), func(o *entry) bool { return o.ByName || o.last == nil })}
	var far []Log
	of, levels, row := s.in(l.set), make([]Log, len(s.markets)), make([]Log, len(s.markets))
	for i := range l.names.keys {
		v := at(e.last, i)
		if v == none {
			continue
		}
		for k, o := range s.markets {
			row[k] = at(o.last, i)
		}
		l.set.levelsOf(of, row, levels)
		far = far[:0]
		for k, quote := range row {
			if quote != none {
				far = append(far, quote-levels[k])
			}
		}
		if len(far) == 0 {
			continue
		}
		others := agreed(far)
		b := l.set.band(others)
		all, band[b] = append(all, v-others), append(band[b], v-others)
	}
	return all, band
}

// shrunk returns the level of a price band, from distances at its prices and the market's
// level: the fewer distances, the nearer to that.
func shrunk(market Log, distances []Log) Log {
	n := int64(len(distances))
	if n == 0 {
		return market
	}
	return market + Log(int64(middleOf(distances)-market)*n/(n+shrink))
}

// classMoves returns how each class moved by itself: the median of the used markets' own
// moves.
func classMoves(used []*entry) (out [windows][classes]Log) {
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
				out[w][c] = middleOf(v)
			}
		}
	}
	return out
}
