package pricing

import (
	"encoding/binary"
	"time"

	"assay/internal/money"
)

// cent is a hundredth of a currency unit. Most amounts are whole cents.
const cent = money.Scale / 100

// appendAmount appends an amount as a variable-length number: 0 for no amount, an even
// number for whole cents, an odd number for micro-units.
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

// decoder reads numbers from b. It sets bad on the first error, so that callers can check
// once at the end.
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

// record encodes or decodes a value. One function per type lists the fields for both
// directions. Encoding does not change the value.
type record struct {
	decoder
	writing bool
}

// encode returns the version followed by the output of code.
func encode(version byte, code func(*record)) []byte {
	r := &record{decoder{b: []byte{version}}, true}
	code(r)
	return r.b
}

// decode decodes b with code. It returns false if b has another version, is damaged or is
// too long.
func decode(b []byte, version byte, code func(*record)) bool {
	if len(b) == 0 || b[0] != version {
		return false
	}
	r := &record{decoder: decoder{b: b[1:]}}
	code(r)
	return !r.bad && len(r.b) == 0
}

// number handles a variable-length integer. A magnitude above limit is an error.
func number[T ~int | ~int32 | ~int64](r *record, v *T, limit int64) {
	if r.writing {
		r.b = binary.AppendVarint(r.b, int64(*v))
		return
	}
	*v = T(r.int(limit))
}

// logs handles logarithms.
func (r *record) logs(v []Log) {
	for i := range v {
		number(r, &v[i], 1<<30)
	}
}

// count handles a non-negative integer of at most limit.
func (r *record) count(v *uint64, limit uint64) {
	if r.writing {
		r.b = binary.AppendUvarint(r.b, *v)
		return
	}
	*v = r.uint(limit)
}

// octet handles one byte.
func (r *record) octet(v *byte) {
	if r.writing {
		r.b = append(r.b, *v)
		return
	}
	*v = r.byte()
}

// flags handles up to eight booleans in one byte.
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

// times handles times with microsecond precision.
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
