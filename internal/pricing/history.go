package pricing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"assay/internal/money"
)

// History contains the encoded good responses of one market for one game in the last eight
// days. The checks for slow drift, old files and late markets need it. The zero value is
// empty. It keeps one response per six hours for 60 hours, and one per day before that. The
// maximum is 20 responses.
//
// Format 1 consists of variable-length numbers:
//
//   - the version, as one byte
//   - the number of slots, and for each slot, oldest first, its time in seconds and the
//     logarithm of its rate
//   - for each name, sorted by key: the difference to the previous key, a bit mask of the
//     slots with an amount that differs from the previous slot, and those amounts
//
// Eight days of a real market take 8 to 14 bytes per name with row ids as keys, and 15 to
// 21 bytes with 64-bit hashes. The maximum is 10 + 3 + 20*9 bytes per name.
type History []byte

const (
	historyVersion = 1
	historySlots   = 20

	slotEvery     = 5*time.Hour + 30*time.Minute // six hours, minus a tolerance for early runs
	slotRecent    = 60 * time.Hour
	slotDaily     = 22 * time.Hour
	maxHistoryAge = 8*24*time.Hour + 12*time.Hour
)

var errHistory = errors.New("history of a market is damaged")

// slot is one response in a History.
type slot struct {
	at     time.Time
	offset Log // logarithm of the exchange rate
}

// slots decodes the slots, oldest first. It returns a decoder for the names.
func (h History) slots() ([]slot, *decoder, error) {
	if len(h) == 0 {
		return nil, &decoder{}, nil
	}
	if h[0] != historyVersion {
		return nil, nil, fmt.Errorf("%w: version %d", errHistory, h[0])
	}
	d := &decoder{b: h[1:]}
	n := d.uint(historySlots)
	out := make([]slot, 0, n)
	for range n {
		out = append(out, slot{time.Unix(int64(d.uint(1<<40)), 0).UTC(), Log(d.int(1 << 31))})
	}
	if d.bad {
		return nil, nil, errHistory
	}
	return out, d, nil
}

// each calls fn for every name with its amounts by slot. 0 means no amount.
func (d *decoder) each(slots int, fn func(key uint64, amounts []money.Micro)) error {
	var amounts [historySlots]money.Micro
	var key uint64
	for len(d.b) > 0 && !d.bad {
		key += d.uint(1<<64 - 1)
		mask := d.uint(1<<historySlots - 1)
		var last money.Micro
		for i := range slots {
			if mask>>i&1 == 1 {
				last = d.amount()
			}
			amounts[i] = last
		}
		if !d.bad {
			fn(key, amounts[:slots])
		}
	}
	if d.bad {
		return errHistory
	}
	return nil
}

// slotDue reports whether a response from the given time gets a slot.
func slotDue(slots []slot, at time.Time) bool {
	return len(slots) == 0 || at.Sub(slots[len(slots)-1].at) >= slotEvery
}

// keptSlots reports for each slot whether it stays when a response from the time at is added.
func keptSlots(slots []slot, at time.Time) []bool {
	keep := make([]bool, len(slots))
	var last time.Time
	n := 1
	for i, s := range slots {
		age := at.Sub(s.at)
		if age > maxHistoryAge || age < 0 || (age > slotRecent && s.at.Sub(last) < slotDaily) {
			continue
		}
		keep[i], last = true, s.at
		n++
	}
	for i := 0; n > historySlots; i++ {
		if keep[i] {
			keep[i] = false
			n--
		}
	}
	return keep
}

// Append returns the history with an additional good response, which must be normalized.
// It returns the history unchanged if the newest slot is younger than slotEvery. Names that
// are missing in a partial response keep their amounts.
func (h History) Append(r *Response) (History, error) {
	slots, d, err := h.slots()
	if err != nil {
		return nil, err
	}
	if !slotDue(slots, r.At) {
		return h, nil
	}
	keep := keptSlots(slots, r.At)
	out := make([]byte, 0, len(h)+len(r.Points)*3+16)
	out = append(out, historyVersion)
	n := 1
	for _, k := range keep {
		if k {
			n++
		}
	}
	out = binary.AppendUvarint(out, uint64(n))
	for i, s := range slots {
		if keep[i] {
			out = appendSlot(out, s)
		}
	}
	w := historyWriter{out: appendSlot(out, slot{r.At, r.offset()}), keep: keep}
	points := r.Points
	err = d.each(len(slots), func(key uint64, amounts []money.Micro) {
		for len(points) > 0 && points[0].Key < key {
			w.add(points[0].Key, nil, points[0].Amount)
			points = points[1:]
		}
		var now money.Micro
		switch {
		case len(points) > 0 && points[0].Key == key:
			now, points = points[0].Amount, points[1:]
		case r.Partial:
			now = amounts[len(amounts)-1]
		}
		w.add(key, amounts, now)
	})
	for _, p := range points {
		w.add(p.Key, nil, p.Amount)
	}
	return w.out, err
}

func appendSlot(b []byte, s slot) []byte {
	b = binary.AppendUvarint(b, uint64(s.at.Unix()))
	return binary.AppendVarint(b, int64(s.offset))
}

// historyWriter encodes the names of a history, sorted by key.
type historyWriter struct {
	out  []byte
	keep []bool
	key  uint64
}

// add writes one name. It omits a name without amounts.
func (w *historyWriter) add(key uint64, amounts []money.Micro, now money.Micro) {
	var changed [historySlots]money.Micro
	var mask uint64
	var last money.Micro
	n, at := 0, 0
	put := func(a money.Micro) {
		if a != last {
			mask |= 1 << at
			changed[n], last = a, a
			n++
		}
		at++
	}
	for i, keep := range w.keep {
		if !keep {
			continue
		}
		if i < len(amounts) {
			put(amounts[i])
		} else {
			put(0)
		}
	}
	put(now)
	if mask == 0 {
		return
	}
	w.out = binary.AppendUvarint(w.out, key-w.key)
	w.out = binary.AppendUvarint(w.out, mask)
	w.key = key
	for _, a := range changed[:n] {
		w.out = appendAmount(w.out, a)
	}
}
