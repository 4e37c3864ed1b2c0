package pricing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"assay/internal/money"
)

// History is the encoded good responses of one market for one game over the last
// eight days, for the checks of slow drift, old files and late markets. The zero
// value is empty. A response is kept every six hours for 60 hours and every day
// before that, at most 20 of them.
//
// Format 1: a version byte; the number of slots, and for each, oldest first, its
// time in seconds and the logarithm of its rate; then for each name, by key, the
// difference to the last key, a mask of the slots whose amount differs from the
// slot before, and those amounts. All numbers are variable-length. With row ids as
// keys, eight days of a real market take 8 to 14 bytes per name, with 64-bit hashes
// 15 to 21; a name whose every slot differs takes at most 10 + 3 + 20*9.
type History []byte

const (
	historyVersion = 1
	historySlots   = 20

	slotEvery   = 5*time.Hour + 30*time.Minute // six hours, less what a run may be early
	slotRecent  = 60 * time.Hour
	slotDaily   = 22 * time.Hour
	historyKept = 8*24*time.Hour + 12*time.Hour
)

var errHistory = errors.New("history of a market is damaged")

// slot is one kept response.
type slot struct {
	at     time.Time
	offset Log // logarithm of its rate
}

// slots returns the kept responses, oldest first, and the rest of the encoding.
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

// each calls fn for every name with its amounts by slot, 0 where there was none.
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

// due reports whether a response of that time gets a slot.
func due(slots []slot, at time.Time) bool {
	return len(slots) == 0 || at.Sub(slots[len(slots)-1].at) >= slotEvery
}

// kept marks the slots that stay once a response of the time at is added.
func kept(slots []slot, at time.Time) []bool {
	keep := make([]bool, len(slots))
	var last time.Time
	n := 1
	for i, s := range slots {
		age := at.Sub(s.at)
		if age > historyKept || age < 0 || (age > slotRecent && s.at.Sub(last) < slotDaily) {
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

// Append returns the history with a good response added, which must be
// normalized, or the history itself where the newest slot is less than six hours
// old. Of a partial response, names that are missing keep their amounts.
func (h History) Append(r *Response) (History, error) {
	slots, d, err := h.slots()
	if err != nil {
		return nil, err
	}
	if !due(slots, r.At) {
		return h, nil
	}
	keep := kept(slots, r.At)
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

type historyWriter struct {
	out  []byte
	keep []bool
	key  uint64
}

// add writes one name; one without an amount in any slot is dropped.
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
