// Package money holds exact amounts. Market prices are whole micro-units
// (10^-6) of one currency; nothing here, or anywhere else in Assay, keeps
// money in binary floating point. Whatever must be rounded is rounded half to
// even.
package money

import "strconv"

// Scale is how many micro-units make one unit of a currency.
const Scale = 1_000_000

// Micro is an amount in micro-units of a currency. What a zero means is the
// holder's decision; for market prices it is "none".
type Micro int64

// String writes the amount as a decimal number without needless zeros:
// "12.345", "0.000001", "-4".
func (m Micro) String() string { return string(m.AppendText(nil)) }

// AppendText appends what String returns.
func (m Micro) AppendText(b []byte) []byte {
	u := magnitude(m)
	if m < 0 {
		b = append(b, '-')
	}
	b = strconv.AppendUint(b, u/Scale, 10)
	rest := u % Scale
	if rest == 0 {
		return b
	}
	b = append(b, '.')
	for place := uint64(Scale / 10); rest > 0; place /= 10 {
		b = append(b, byte('0'+rest/place))
		rest %= place
	}
	return b
}

// MarshalJSON writes the amount as a JSON number.
func (m Micro) MarshalJSON() ([]byte, error) { return m.AppendText(nil), nil }

// UnmarshalJSON reads a JSON number as Parse does. Strings and null are
// ErrSyntax: an amount may be absent, but never empty.
func (m *Micro) UnmarshalJSON(text []byte) error {
	v, err := Parse(text, 1)
	if err != nil {
		return err
	}
	*m = v
	return nil
}

// Decimal is a Micro that JSON holds as a string, "12.345", for clients that read
// numbers as binary floating point.
type Decimal Micro

// MarshalJSON writes the amount as a JSON string.
func (d Decimal) MarshalJSON() ([]byte, error) { return d.AppendJSON(nil), nil }

// AppendJSON appends what MarshalJSON returns.
func (d Decimal) AppendJSON(b []byte) []byte {
	return append(Micro(d).AppendText(append(b, '"')), '"')
}

// UnmarshalJSON reads a string that holds what Micro reads. It has no escapes.
func (d *Decimal) UnmarshalJSON(text []byte) error {
	last := len(text) - 1
	if last < 1 || text[0] != '"' || text[last] != '"' {
		return ErrSyntax
	}
	return (*Micro)(d).UnmarshalJSON(text[1:last])
}

// magnitude returns |m|, also for the least Micro, which has no positive twin.
func magnitude(m Micro) uint64 {
	if m < 0 {
		return -uint64(m)
	}
	return uint64(m)
}
