package feed

import (
	"errors"
	"time"

	"assay/internal/money"
)

// Cell is one field of a row. Its text is valid until the next row is read.
type Cell struct {
	Kind Kind
	Text []byte // a string without quotes, or another value as in the response
}

// Kind is the type of the value in a Cell.
type Kind uint8

// The kinds.
const (
	Absent Kind = iota // the row does not have the field
	Null               // JSON null
	Text               // a JSON string, or any field of a CSV list
	Number             // a JSON number
	Other              // true, false, an object or an array
)

// Empty reports whether the cell has no value: null, "" or "null".
func (c Cell) Empty() bool {
	return c.Kind <= Null || c.Kind == Text && (len(c.Text) == 0 || string(c.Text) == "null")
}

// Reasons for rejecting a row, or the part of a row for one market.
const (
	RejectRow      = "row is not an object"
	RejectTwice    = "member given twice"
	RejectNoName   = "name is missing"
	RejectNameKind = "name is not a string"
	RejectName     = "name is not 1 to 512 bytes of utf-8 without nul"
	RejectPhase    = "phase is unknown"
	RejectSyntax   = "amount is not a number"
	RejectNegative = "amount is negative"
	RejectRange    = "amount is out of range"
	RejectCount    = "count is not a whole number"
	RejectNoPrice  = "listings without a price"
	RejectTime     = "time is not in the expected format"
	RejectCurrency = "currency code is invalid"
)

// Amount reads a price. unit is the number of price units in one currency unit: 1 for dollars,
// 100 for cents. It returns 0 for a missing price: an empty cell, 0 or -1. It returns a reason
// for an invalid price.
func (c Cell) Amount(unit int64) (m money.Micro, reason string) {
	if c.Empty() {
		return 0, ""
	}
	if c.Kind == Other {
		return 0, RejectSyntax
	}
	m, err := money.Parse(c.Text, unit)
	switch {
	case errors.Is(err, money.ErrRange):
		return 0, RejectRange
	case err != nil:
		return 0, RejectSyntax
	case m == -money.Micro(money.Scale/unit):
		return 0, "" // some lists use -1 for a missing price
	case m < 0:
		return 0, RejectNegative
	}
	return m, ""
}

// Count reads the number of listings or sales. It returns a negative number for an unknown
// count: an empty cell or -1. It returns a reason for an invalid count.
func (c Cell) Count() (n int64, reason string) {
	if c.Empty() {
		return -1, ""
	}
	if c.Kind == Other {
		return 0, RejectCount
	}
	if n, ok := digits(c.Text); ok {
		return n, ""
	}
	m, err := money.Parse(c.Text, 1)
	if err != nil || m%money.Scale != 0 || m < -money.Scale {
		return 0, RejectCount
	}
	return int64(m / money.Scale), ""
}

// digits reads a count that consists of at most 12 digits.
func digits(b []byte) (n int64, ok bool) {
	if len(b) > 12 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// Formats of times. Any other format is a layout of package time.
const (
	TimeAuto    = "auto" // Unix seconds or milliseconds, RFC 3339 or a date
	TimeUnix    = "unix"
	TimeUnixMs  = "unixMs"
	TimeRFC3339 = "rfc3339"
	TimeDate    = "date"
)

// Times outside the years 2000 to 2199 are invalid. They show that the format is wrong.
const minTime, maxTime = 946_684_800, 7_258_118_400 // in Unix seconds

// msFrom is the smallest number that TimeAuto reads as milliseconds. It is the year 1973 in
// milliseconds and the year 5138 in seconds.
const msFrom = 100_000_000_000

// Time reads a time. It returns the zero time for an empty cell or 0. It returns a reason for
// an invalid time.
func (c Cell) Time(format string) (t time.Time, reason string) {
	if c.Empty() || string(c.Text) == "0" {
		return time.Time{}, ""
	}
	if c.Kind == Other {
		return time.Time{}, RejectTime
	}
	t, ok := parseTime(c.Text, format)
	if at := t.Unix(); !ok || at < minTime || at >= maxTime {
		return time.Time{}, RejectTime
	}
	return t.UTC(), ""
}

func parseTime(b []byte, format string) (time.Time, bool) {
	switch format {
	case TimeUnix:
		return unixTime(b, 1)
	case TimeUnixMs:
		return unixTime(b, 1000)
	case TimeRFC3339:
		var t time.Time
		err := t.UnmarshalText(b) // unlike time.Parse, it does not copy b
		return t, err == nil
	case TimeDate:
		return layoutTime(b, time.DateOnly)
	case TimeAuto:
		return guessTime(b)
	default:
		return layoutTime(b, format)
	}
}

func guessTime(b []byte) (time.Time, bool) {
	if v, err := money.Parse(b, 1); err == nil {
		if v >= msFrom*money.Scale {
			return unixTime(b, 1000)
		}
		return unixTime(b, 1)
	}
	if t, ok := layoutTime(b, time.RFC3339); ok {
		return t, true
	}
	return layoutTime(b, time.DateOnly)
}

// unixTime reads a number of seconds divided by perSecond. money.Parse keeps six decimal
// places, which is exactly microseconds.
func unixTime(b []byte, perSecond int64) (time.Time, bool) {
	v, err := money.Parse(b, perSecond)
	return time.UnixMicro(int64(v)), err == nil
}

func layoutTime(b []byte, layout string) (time.Time, bool) {
	t, err := time.Parse(layout, string(b))
	return t, err == nil
}
