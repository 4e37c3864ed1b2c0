// Package money provides exact amounts of money. Market prices are integers that count
// micro-units (10^-6) of a currency. Assay never stores money as binary floating point.
// All rounding is half to even.
package money

import "strconv"

// Scale is the number of micro-units in one unit of a currency.
const Scale = 1_000_000

// Micro is an amount in micro-units of a currency. The meaning of zero depends on the
// field. For a market price, zero means that no price is known.
type Micro int64

// String returns the amount as a decimal number without trailing zeros: "12.345",
// "0.000001" or "-4".
func (m Micro) String() string { return string(m.AppendText(nil)) }

// AppendText appends the result of String to b.
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

// MarshalJSON encodes the amount as a JSON number.
func (m Micro) MarshalJSON() ([]byte, error) { return m.AppendText(nil), nil }

// UnmarshalJSON decodes a JSON number like Parse. It returns ErrSyntax for
// strings and null, because an amount may be absent but never empty.
func (m *Micro) UnmarshalJSON(text []byte) error {
	v, err := Parse(text, 1)
	if err != nil {
		return err
	}
	*m = v
	return nil
}

// Decimal is a Micro that is a string in JSON, such as "12.345". It serves clients that
// decode JSON numbers as binary floating point.
type Decimal Micro

// MarshalJSON encodes the amount as a JSON string.
func (d Decimal) MarshalJSON() ([]byte, error) { return d.AppendJSON(nil), nil }

// AppendJSON appends the result of MarshalJSON to b.
func (d Decimal) AppendJSON(b []byte) []byte {
	return append(Micro(d).AppendText(append(b, '"')), '"')
}

// UnmarshalJSON decodes a JSON string that contains a JSON number. It returns ErrSyntax
// if the string has escape sequences.
func (d *Decimal) UnmarshalJSON(text []byte) error {
	last := len(text) - 1
	if last < 1 || text[0] != '"' || text[last] != '"' {
		return ErrSyntax
	}
	return (*Micro)(d).UnmarshalJSON(text[1:last])
}

// magnitude returns |m|. The result is unsigned because the magnitude of the smallest
// Micro does not fit into a Micro.
func magnitude(m Micro) uint64 {
	if m < 0 {
		return -uint64(m)
	}
	return uint64(m)
}
