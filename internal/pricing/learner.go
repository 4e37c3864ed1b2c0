package pricing

import "slices"

const shrink = 40 // the level of a band with n quotes has the weight n/(n+40)

// learner learns the set of a round from the used markets (step 7).
type learner struct {
	set   *Set // starts as a copy of the last set
	names *columns
}

// learn learns the levels of the markets that responded in this round against each other.
// Then it learns the levels of markets that are requested by name. A market without a new
// response keeps its level, because its old quotes are not comparable with new ones.
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

// relevel sets the level of each accepted market to the level of its new response. It is
// needed if too few markets responded to learn levels. Without it, the other markets would
// seem to have moved.
func (l *learner) relevel(responded []*entry) {
	for _, e := range responded {
		m := l.set.market(e.ID)
		if m == &l.set.unknown || !e.wasAccepted || e.shared < minShared {
			continue
		}
		change := e.level - m.Level
		m.Level = e.level
		for b := range m.Bands {
			m.Bands[b] += change
		}
	}
}

// asStored returns copies of markets with their last good responses as new ones. Chance decides
// which quotes requested by name have arrived when a round starts. The result must not depend
// on that.
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

// keepScale shifts the learned levels so that the median change of known levels is 0. Then
// prices do not move when a market is new, fails or is accepted.
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

// levelByName learns the level of a market that is requested by name. It compares the
// stored quotes of the market with the last responses of the others.
func (l *learner) levelByName(e *entry, used []*entry) {
	all, band := l.distances(e, used)
	if len(all) < minShared {
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

// distances returns the distances of the stored quotes of a market from the consensus of
// the others' last responses. all contains all distances, and band contains the distances in
// each price band.
func (l *learner) distances(e *entry, used []*entry) (all []Log, band [bands][]Log) {
	s := &sample{markets: slices.DeleteFunc(slices.Clone(used), func(o *entry) bool { return o.ByName || o.last == nil })}
	var far []Log
	of, levels, row := s.marketsOf(l.set), make([]Log, len(s.markets)), make([]Log, len(s.markets))
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
		others := groupMedian(far)
		b := l.set.band(others)
		all, band[b] = append(all, v-others), append(band[b], v-others)
	}
	return all, band
}

// shrunk returns the level of a price band from the distances in the band. With fewer
// distances, the result is closer to the level of the market.
func shrunk(market Log, distances []Log) Log {
	n := int64(len(distances))
	if n == 0 {
		return market
	}
	return market + Log(int64(middleOf(distances)-market)*n/(n+shrink))
}

// classMoves returns the move of each class: the median over the used markets.
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
