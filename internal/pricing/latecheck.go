package pricing

import "slices"

// The limits of step 6, in units of 2^-24.
const (
	bigMove   = 1677722 // smallest move that can show a late market: 10 %
	smallMove = 838861  // smallest move that counts as a move in the same direction: 5 %

	// A market is late if its moves today resemble the moves of another market yesterday.
	// The median ratio of these moves must be at least minRepeat. It must also exceed the
	// ratio for the other market's moves today by at least repeatMargin.
	minRepeat    = logOne / 2
	repeatMargin = logOne / 4

	// staticLimit is the largest ratio of the moves of a market that stands still to the
	// median moves of the others.
	staticLimit = logOne / 4
)

// lateCheck finds markets that repeat another market a day later, and markets that stand
// still while the others move (step 6). It compares the last 24 hours with the 24 hours
// before.
type lateCheck struct {
	prev  *Set
	names int
	floor Log // lowest price that takes part in checks

	before, now []Log   // buffers of ratios
	follows     [][]Log // buffers of following
}

// findLate marks the late markets. If all markets seem late, it marks none.
func (c *lateCheck) findLate(live []*entry) {
	m := slices.DeleteFunc(slices.Clone(live), func(e *entry) bool { return !e.daily || e.ByName })
	leads := c.markRepeaters(m)
	c.markStatic(m, leads)
	if !slices.ContainsFunc(live, func(e *entry) bool { return !e.late }) {
		for _, e := range live {
			e.late, e.repeats = false, 0
		}
	}
}

// move returns the move of name i between two columns. It returns false if a price is
// missing or the earlier price is below floor.
func move(from, to []Log, i int, floor Log) (Log, bool) {
	was, is := at(from, i), at(to, i)
	return is - was, was >= floor && is != none
}

// markRepeaters marks markets with moves of today that equal the moves of another market
// yesterday. It returns the leads: markets that are repeated and repeat no other market.
func (c *lateCheck) markRepeaters(m []*entry) map[int64]bool {
	leads := map[int64]bool{}
	for _, b := range m {
		var best Log
		for _, a := range m {
			if a == b || a.day2 == nil {
				continue
			}
			yesterday, today, ok := c.ratios(a, b)
			// In a steady fall, both days have similar moves. So a market that was late stays
			// late until it clearly follows the moves of today.
			margin := repeatMargin
			if was := c.prev.Market(b.ID); was.Late && was.Repeats != 0 {
				margin = -repeatMargin
			}
			if !ok || yesterday < minRepeat || yesterday-today < margin {
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

// ratios compares the moves of two markets for the names that b moved by 10 % or more
// today. It returns the median ratios of a's moves of yesterday and of today to b's moves.
// ok is false if there are fewer than 100 such names.
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
	if len(before) < minShared {
		return 0, 0, false
	}
	return middleOf(before), middleOf(now), true
}

// part returns a/b in units of 2^-24, limited to the range -100 to 100.
func part(a, b Log) Log {
	const most = 100 * int64(logOne)
	return Log(max(-most, min(most, int64(a)<<24/int64(b))))
}

// markStatic marks markets that stand still, beginning with the market that follows the
// others least. It marks at most (k-1)/2 of k markets, and no market in leads.
func (c *lateCheck) markStatic(m []*entry, leads map[int64]bool) {
	active := slices.DeleteFunc(slices.Clone(m), func(e *entry) bool { return e.late })
	for found := 0; len(active) >= 3 && found < (len(m)-1)/2; found++ {
		follows, contested := c.following(active)
		worst := -1
		for k, e := range active {
			// Without day2, markRepeaters cannot detect that another market repeats this one.
			if leads[e.ID] || e.day2 == nil || len(follows[k]) < max(minShared, contested[k]+1) {
				continue
			}
			if f := middleOf(follows[k]); f < staticLimit && (worst < 0 || f < middleOf(follows[worst])) {
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

// following returns for each market the ratios of its moves to the median move of the
// others. It uses a name only if at least two others moved it in the same direction, and if
// these are a majority of the markets that quote the name. contested counts the names without
// such a majority. If only half of the markets moved, it is unknown which half is correct.
func (c *lateCheck) following(m []*entry) (out [][]Log, contested []int) {
	if c.follows == nil {
		c.follows = make([][]Log, len(m)) // later calls have fewer markets
	}
	out, contested = c.follows[:len(m)], make([]int, len(m))
	for k := range out {
		out[k] = out[k][:0]
	}
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
			switch same := countAlike(moves, k, others); {
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

// countAlike counts the markets other than k that moved in the direction of c by 5 % or more.
func countAlike(moves []Log, k int, c Log) int {
	same := 0
	for o, v := range moves {
		if o != k && v != none && (v > 0) == (c > 0) && abs(v) >= smallMove {
			same++
		}
	}
	return same
}
