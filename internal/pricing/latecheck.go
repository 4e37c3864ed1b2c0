package pricing

import "slices"

// The limits of step 6, in units of 2^-24.
const (
	bigMove   = 1677722    // a move that shows lateness: 10 %
	smallMove = 838861     // a move in the same direction: 5 %
	repeatsAt = logOne / 2 // share of its moves of today that another made yesterday
	clearer   = logOne / 4 // by how much that must exceed the share of today
	standsAt  = logOne / 4 // share of the others' moves below which a market stands still
)

// lateCheck finds the markets that repeat another one a day later, and those that stand
// still while the others move. It looks at the last 24 hours and the 24 hours before.
type lateCheck struct {
	prev  *Set
	names int
	floor Log // the lowest price that votes

	before, now []Log // memory of ratios
}

// findLate marks the late markets; where all seem late, none.
func (c *lateCheck) findLate(live []*entry) {
	m := slices.DeleteFunc(slices.Clone(live), func(e *entry) bool { return !e.daily || e.ByName })
	leads := c.repeats(m)
	c.standing(m, leads)
	if !slices.ContainsFunc(live, func(e *entry) bool { return !e.late }) {
		for _, e := range live {
			e.late, e.repeats = false, 0
		}
	}
}

// move returns a market's move of a name between two columns, and whether it is
// known: the earlier price must have been one that votes.
func move(from, to []Log, i int, floor Log) (Log, bool) {
	was, is := at(from, i), at(to, i)
	return is - was, was >= floor && is != none
}

// repeats marks every market whose moves of today are another's of yesterday, and
// returns the markets that are repeated and repeat none.
func (c *lateCheck) repeats(m []*entry) map[int64]bool {
	leads := map[int64]bool{}
	for _, b := range m {
		var best Log
		for _, a := range m {
			if a == b || a.day2 == nil {
				continue
			}
			yesterday, today, ok := c.ratios(a, b)
			// In a steady fall both days look alike: a market that was late then
			// stays late until its moves are clearly those of today.
			margin := clearer
			if was := c.prev.Market(b.ID); was.Late && was.Repeats != 0 {
				margin = -clearer
			}
			if !ok || yesterday < repeatsAt || yesterday-today < margin {
				continue
			}
			leads[a.ID] = true
			if !b.late || yesterday > best {
				b.late, b.repeats, best = true, a.ID, yesterday
			}
		}
	}
	for _, e := range m {
		if e.late {
			delete(leads, e.ID)
		}
	}
	return leads
}

// ratios returns, over the names that b moved by 10 % or more today, the medians of
// a's move of yesterday and of a's move of today, as shares of b's.
func (c *lateCheck) ratios(a, b *entry) (yesterday, today Log, ok bool) {
	before, now := c.before[:0], c.now[:0]
	for i := range c.names {
		v, ok := move(b.before, b.next, i, c.floor)
		if !ok || abs(v) < bigMove {
			continue
		}
		was, ok1 := move(a.day2, a.before, i, c.floor)
		is, ok2 := move(a.before, a.next, i, c.floor)
		if ok1 && ok2 {
			before, now = append(before, part(was, v)), append(now, part(is, v))
		}
	}
	c.before, c.now = before, now
	if len(before) < fewestShared {
		return 0, 0, false
	}
	return middleOf(before), middleOf(now), true
}

// part returns a/b in units of 2^-24, within 100.
func part(a, b Log) Log {
	const most = 100 * int64(logOne)
	return Log(max(-most, min(most, int64(a)<<24/int64(b))))
}

// standing marks, one after another, the market that follows the others' moves
// least, while that is clearly too little: at most (k-1)/2 of k, and none that
// others repeat.
func (c *lateCheck) standing(m []*entry, leads map[int64]bool) {
	active := slices.DeleteFunc(slices.Clone(m), func(e *entry) bool { return e.late })
	for found := 0; len(active) >= 3 && found < (len(m)-1)/2; found++ {
		follows, contested := c.following(active)
		worst := -1
		for k, e := range active {
			// Without the day before, a market that repeats it could not be found.
			if leads[e.ID] || e.day2 == nil || len(follows[k]) < max(fewestShared, contested[k]+1) {
				continue
			}
			if f := middleOf(follows[k]); f < standsAt && (worst < 0 || f < middleOf(follows[worst])) {
				worst = k
			}
		}
		if worst < 0 {
			return
		}
		active[worst].late = true
		active = slices.Delete(active, worst, worst+1)
	}
}

// following returns, for each market, its own moves as shares of the others'
// median move, of the names that two others, who are a majority of all that quote
// it, moved alike, and how many names two others moved alike without being a majority.
// Half of the markets prove nothing about the other half, nor do the names that some of
// that half do not quote.
func (c *lateCheck) following(m []*entry) (out [][]Log, contested []int) {
	out, contested = make([][]Log, len(m)), make([]int, len(m))
	moves, sorted := make([]Log, len(m)), make([]Log, 0, len(m))
	for i := range c.names {
		sorted = sorted[:0]
		for k, e := range m {
			v, ok := move(e.before, e.next, i, c.floor)
			if moves[k] = v; !ok {
				moves[k] = none
				continue
			}
			sorted = append(sorted, v)
		}
		if len(sorted) < 3 {
			continue
		}
		slices.Sort(sorted)
		if abs(sorted[0]) < bigMove && abs(sorted[len(sorted)-1]) < bigMove {
			continue
		}
		for k := range m {
			if moves[k] == none {
				continue
			}
			others, _ := medianWithout(sorted, moves[k])
			if abs(others) < bigMove {
				continue
			}
			switch same := alike(moves, k, others); {
			case same < 2:
			case 2*same > len(sorted):
				out[k] = append(out[k], part(moves[k], others))
			default:
				contested[k]++
			}
		}
	}
	return out, contested
}

// alike counts the markets other than k that moved as c did.
func alike(moves []Log, k int, c Log) int {
	same := 0
	for o, v := range moves {
		if o != k && v != none && (v > 0) == (c > 0) && abs(v) >= smallMove {
			same++
		}
	}
	return same
}
