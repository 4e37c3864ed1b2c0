package pricing

import (
	"slices"
	"time"

	"assay/internal/money"
)

// past selects slots of a history for the checks of a round. An index of -1 means that no
// slot has a suitable age.
type past struct {
	slots      []slot
	before     int         // slot from which moves are measured
	day2       int         // slot 40 to 56 h ago
	week       int         // slot about 7 days ago
	drift      []int       // one slot for each of the last seven days
	ratios     [][]Log     // moves since each slot of drift
	reversions []reversion // by slot
}

// reversion compares a slot with the last and the new response. changed counts the prices that differ between the slot and the last response. back
// counts the changed prices that return to the value of the slot in the new response.
type reversion struct{ changed, back int }

// choose selects slots by age.
func choose(slots []slot, now time.Time) past {
	p := past{slots: slots, before: -1, day2: -1, week: -1}
	const hour = time.Hour
	next := 20 * hour
	for i := range slices.Backward(slots) {
		age := now.Sub(slots[i].at)
		if p.before < 0 && age >= 20*hour && age <= 30*hour {
			p.before = i
		}
		if p.day2 < 0 && age >= 40*hour && age <= 56*hour {
			p.day2 = i
		}
		if p.week < 0 && age >= 156*hour && age <= 180*hour {
			p.week = i
		}
		if age >= next && age <= 180*hour {
			p.drift = append(p.drift, i)
			next = age + 20*hour
		}
	}
	p.ratios = make([][]Log, len(p.drift))
	p.reversions = make([]reversion, len(slots))
	return p
}

// oldestOfADay returns the index of the oldest slot of the last 26 hours, or -1.
func (p *past) oldestOfADay(now time.Time) int {
	for i, s := range p.slots {
		if now.Sub(s.at) <= 26*time.Hour {
			return i
		}
	}
	return -1
}

// compareHistory fills the columns of past prices. It refuses a new response that drifted
// slowly or is an old response. It returns an error if the history is damaged.
func (r *Round) compareHistory(e *entry, last, current *Response) error {
	slots, d, err := e.History.slots()
	if err != nil {
		e.damaged, slots, d = true, nil, &decoder{}
	}
	p := choose(slots, r.now)
	if e.new {
		for len(r.ratios) < len(p.ratios) {
			r.ratios = append(r.ratios, nil)
		}
		for k := range p.ratios {
			r.ratios[k] = slices.Grow(r.ratios[k][:0], len(current.Points))
			p.ratios[k] = r.ratios[k]
		}
	}
	if e.daily = p.before >= 0; !e.daily {
		p.before = p.oldestOfADay(r.now)
	}
	if p.before >= 0 {
		e.before = r.names.empty(nil)
	} else {
		e.before = e.last // may be nil
	}
	if p.day2 >= 0 {
		e.day2 = r.names.empty(nil)
	}
	r.week = r.names.empty(r.week)
	e.sides, e.lastSides = make([]side, len(r.names.keys)), make([]side, len(r.names.keys))
	if damaged := r.readHistory(e, &p, d, last, current); damaged != nil {
		err, e.damaged = damaged, true
	}
	history := e.History
	e.History = nil // frees memory, because a history is large
	e.newest = e.unchanged()
	if !e.new || e.refusal != nil {
		return err
	}
	r.windowMoves(e, &p)
	if e.refusal = p.refusal(); e.refusal == nil && err == nil && slotDue(slots, current.At) {
		e.newest, err = history.Append(current)
	}
	return err
}

// readHistory decodes the history and compares each name with the current and the last response.
// All three are sorted by key.
func (r *Round) readHistory(e *entry, p *past, d *decoder, last, current *Response) error {
	now, was := current.Points, []Point(nil)
	if last != nil && e.new {
		was = last.Points
	}
	offset := current.offset()
	return d.each(len(p.slots), func(key uint64, amounts []money.Micro) {
		now, was = skipTo(now, key), skipTo(was, key)
		if len(now) == 0 || now[0].Key != key {
			return
		}
		i := r.names.position(key)
		set := func(col []Log, slot int) {
			if slot >= 0 && amounts[slot] > 0 {
				col[i] = Ln(amounts[slot]) + p.slots[slot].offset
			}
		}
		set(e.before, p.before)
		set(e.day2, p.day2)
		set(r.week, p.week)
		if slot := slices.IndexFunc(amounts, func(a money.Micro) bool { return a > 0 }); slot >= 0 {
			oldest := Ln(amounts[slot]) + p.slots[slot].offset
			e.sides[i], e.lastSides[i] = sideOf(oldest, at(e.next, i)), sideOf(oldest, at(e.last, i))
		}
		if !e.new {
			return
		}
		is := Ln(now[0].Amount) + offset
		for k, slot := range p.drift {
			if amounts[slot] == 0 {
				continue
			}
			if then := Ln(amounts[slot]) + p.slots[slot].offset; then >= r.floor {
				p.ratios[k] = append(p.ratios[k], is-then)
			}
		}
		if len(was) == 0 || was[0].Key != key || is < r.floor {
			return
		}
		for k, a := range amounts {
			p.reversions[k].add(a, was[0].Amount, now[0].Amount)
		}
	})
}

// skipTo returns the points from the given key on.
func skipTo(points []Point, key uint64) []Point {
	for len(points) > 0 && points[0].Key < key {
		points = points[1:]
	}
	return points
}

// add counts one name. then is its price in the slot, last in the last response and now in
// the new response.
func (t *reversion) add(then, last, now money.Micro) {
	if then == 0 || then == last {
		return
	}
	t.changed++
	if now == then {
		t.back++
	}
}

// windowMoves stores the moves of each class in the last day and week.
func (r *Round) windowMoves(e *entry, p *past) {
	for w, col := range map[Window][]Log{SinceDay: e.before, SinceWeek: r.week} {
		if (w == SinceDay && !e.daily) || (w == SinceWeek && p.week < 0) {
			continue
		}
		if r.moves.collect(col, e.next, r.names.class, r.floor); len(r.moves[classes]) >= minShared {
			_, e.moves[w] = r.moves.medians()
			e.hasMoves[w] = true
		}
	}
}

// refusal returns a Refusal if the new response drifted slowly or is an old response. In an
// old response, at least 95 % of the changed prices return to their old value. In a new
// response, only some do.
func (p *past) refusal() *Refusal {
	for k, slot := range p.drift {
		ratios := p.ratios[k]
		if len(ratios) < minShared {
			continue
		}
		if m := middleOf(ratios); abs(m) > log2 {
			return &Refusal{Anomaly: Drift, Names: len(ratios), Value: Exp(m), Low: ownLow, High: ownHigh, At: p.slots[slot].at}
		}
	}
	for k, t := range p.reversions {
		if t.changed >= minShared && t.back*20 >= t.changed*19 {
			return &Refusal{Anomaly: OlderResponse, Names: t.changed, Value: share(t.back, t.changed), High: money.Scale * 19 / 20, At: p.slots[k].at}
		}
	}
	return nil
}
