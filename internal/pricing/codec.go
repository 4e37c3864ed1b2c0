package pricing

import (
	"encoding/binary"
	"time"

	"assay/internal/money"
)

// cent is the unit of nearly all amounts.
const cent = money.Scale / 100

// appendAmount writes 0 for none, an even number for whole cents and an odd one
// for micro-units.
func appendAmount(b []byte, a money.Micro) []byte {
	switch {
	case a <= 0:
		return append(b, 0)
	case a%cent == 0:
		return binary.AppendUvarint(b, uint64(a/cent)*2)
	default:
		return binary.AppendUvarint(b, uint64(a)*2+1)
	}
}

// decoder reads numbers, and remembers that something was wrong instead of
// failing at each step.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uint(most uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > most {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int(most int64) int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 || v > most || v < -most {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) amount() money.Micro {
	v := d.uint(1<<63 + 1)
	if v%2 == 0 {
		if v > 1<<50 {
			d.bad = true
		}
		return money.Micro(v / 2 * cent)
	}
	return money.Micro(v / 2)
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	b := d.b[0]
	d.b = d.b[1:]
	return b
}

// record writes a value, or reads it back: its fields in order, by one description for both
// directions. Writing leaves the value as it is.
type record struct {
	decoder
	writing bool
}

// encode returns a version and what code writes.
func encode(version byte, code func(*record)) []byte {
	r := &record{decoder{b: []byte{version}}, true}
	code(r)
	return r.b
}

// decode reports whether b holds that version, and nothing but what code reads.
func decode(b []byte, version byte, code func(*record)) bool {
	if len(b) == 0 || b[0] != version {
		return false
	}
	r := &record{decoder: decoder{b: b[1:]}}
	code(r)
	return !r.bad && len(r.b) == 0
}

// number is a field of a variable length; one beyond most in either direction is damage.
func number[T ~int | ~int32 | ~int64](r *record, v *T, most int64) {
	if r.writing {
		r.b = binary.AppendVarint(r.b, int64(*v))
		return
	}
	*v = T(r.int(most))
}

// logs are fields of logarithms.
func (r *record) logs(v []Log) {
	for i := range v {
		number(r, &v[i], 1<<30)
	}
}

// count is a field that is not negative.
func (r *record) count(v *uint64, most uint64) {
	if r.writing {
		r.b = binary.AppendUvarint(r.b, *v)
		return
	}
	*v = r.uint(most)
}

// octet is a field of one byte.
func (r *record) octet(v *byte) {
	if r.writing {
		r.b = append(r.b, *v)
		return
	}
	*v = r.byte()
}

// flags are fields of one bit, in one byte.
func (r *record) flags(v ...*bool) {
	var b byte
	for i, flag := range v {
		if *flag {
			b |= 1 << i
		}
	}
	r.octet(&b)
	for i, flag := range v {
		*flag = b>>i&1 == 1
	}
}

// times are fields of moments, in microseconds.
func (r *record) times(v ...*time.Time) {
	for _, t := range v {
		var n int64
		if !t.IsZero() {
			n = t.UnixMicro()
		}
		if number(r, &n, 1<<62); n != 0 && !r.writing {
			*t = time.UnixMicro(n).UTC()
		}
	}
}
