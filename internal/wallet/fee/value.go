package fee

import (
	"math"
	"slices"
	"time"

	"assay/internal/money"
	"assay/internal/strictjson"
)

func (d *decoder) condition(r *draft, member string) bool {
	var ok bool
	switch member {
	case "kind":
		r.Kinds, ok = values(d, func(text string) (Kind, bool) {
			if !slices.Contains(kinds[:], Kind(text)) {
				d.fault(UnknownValue, "must be one of sale, deposit, withdrawal")
				return "", false
			}
			return Kind(text), true
		})
	case "paymentMethod":
		r.Methods, ok = values(d, func(text string) (string, bool) {
			if !isName(text) {
				d.fault(InvalidName, "must consist of 1 to %d letters, digits, or the characters . _ -", MaxID)
				return "", false
			}
			return text, true
		})
	case "currency":
		r.Currencies, ok = values(d, d.currency)
		r.currencyUnread = !ok
	case "country":
		r.Countries, ok = values(d, func(text string) (string, bool) {
			if !isCountry(text) {
				d.fault(UnknownCountry, "must be an ISO 3166-1 alpha-2 country code, such as DE")
				return "", false
			}
			return text, true
		})
	case "amount":
		ok = d.span(&r.Amount, spanMembers, nil, nil)
	default:
		return false
	}
	r.unread = r.unread || !ok
	return true
}

func (d *decoder) currency(text string) (money.Currency, bool) {
	c := money.Currency(text)
	if !c.Circulates() {
		d.fault(UnknownCurrency, "must be a circulating ISO 4217 currency, such as USD")
		return "", false
	}
	return c, true
}

// values reads a string or an array of strings. check converts each string, or records an
// error.
func values[T ~string](d *decoder, check func(string) (T, bool)) (list []T, read bool) {
	pointer := d.in.Pointer()
	good := true
	one := func() {
		text, ok := d.in.Text(1, 2*MaxID)
		if !ok {
			good = false
			return
		}
		v, ok := check(text)
		switch {
		case !ok:
			good = false
		case slices.Contains(list, v):
			good = false
			d.fault(DuplicateValue, "is in the list twice")
		default:
			list = append(list, v)
		}
	}
	if !d.in.NextIsArray() {
		one()
		return list, good
	}
	n := 0
	read = d.in.Array(func(i int) {
		if n = i + 1; n > MaxValues {
			d.beyond(pointer, i, MaxValues, "values")
			return
		}
		one()
	})
	if read && n == 0 {
		d.fault(strictjson.OutOfRange, "must have a value; without the condition every payment matches")
	}
	slices.Sort(list)
	return list, good && read && n > 0 && n <= MaxValues
}

// choose reads one of the options. It returns preset after an error.
func choose[T ~string](d *decoder, preset T, options ...T) T {
	text, ok := d.in.Text(1, MaxID)
	if !ok {
		return preset
	}
	if !slices.Contains(options, T(text)) {
		d.fault(UnknownValue, "must be %s", oneOf(options))
		return preset
	}
	return T(text)
}

func (d *decoder) moment(r *draft) time.Time {
	t, ok := d.in.Time()
	if ok && t.UnixMicro() <= 0 {
		d.fault(strictjson.OutOfRange, "must be after 1970")
		ok = false
	}
	r.unread = r.unread || !ok
	return t
}

// span reads the range of amounts of an object. more reads further members; it may be nil.
// span reports whether the range is valid. It records in b which limits are present; b may
// be nil.
func (d *decoder) span(s *Span, members []string, more func(member string) bool, b *bounds) bool {
	good := true
	var given bounds
	var below string
	read := d.in.Object(members, func(member string) bool {
		var ok bool
		switch member {
		case "from":
			given.from = true
			s.From, ok = d.in.Int(0, math.MaxInt64)
		case "below":
			given.below = true
			s.Below, ok = d.in.Int(1, math.MaxInt64)
			below = d.in.Pointer()
		default:
			return more != nil && more(member)
		}
		good = good && ok
		return true
	})
	if b != nil {
		*b = given
	}
	if read && good && given.below && s.Below <= s.From {
		d.faultAt(below, EmptyRange, "must be greater than from (%d): the range is empty", s.From)
		return false
	}
	return read && good
}
