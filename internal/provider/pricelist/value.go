package pricelist

import (
	"errors"
	"time"

	"assay/internal/money"
)

// cell is one field of one row. Its text is valid until the next row is read.
type cell struct {
	kind cellKind
	text []byte // of a text, unquoted; of anything else, as in the list
}

type cellKind uint8

const (
	absent cellKind = iota // the row does not have the field: it says nothing
	null                   // JSON null: it says that there is none
	text                   // a JSON string, or anything in a CSV list
	number                 // a JSON number
	other                  // true, false, an object, an array
)

// empty reports whether the cell states no value: null, "" or "null".
func (c cell) empty() bool {
	return c.kind <= null || c.kind == text && (len(c.text) == 0 || string(c.text) == "null")
}

// Why a row, or one market's part of it, is rejected.
const (
	rejectRow       = "row is not an object"
	rejectTwice     = "member given twice"
	rejectNoName    = "name is missing"
	rejectNameKind  = "name is not a text"
	rejectName      = "name is not 1 to 512 bytes of utf-8 without nul"
	rejectPhase     = "phase is unknown"
	rejectSyntax    = "amount is not a number"
	rejectNegative  = "amount is negative"
	rejectRange     = "amount is out of range"
	rejectCount     = "count is not a whole number"
	rejectTime      = "time is not in the stated format"
	rejectCurrency  = "currency is not a code"
	rejectDuplicate = "name given twice"
)

// amount reads a price in 1/unit of its currency. Nothing, 0 and -1 are none,
// which is 0. A reason tells why it is no price.
func (c cell) amount(unit int64) (m money.Micro, reason string) {
	if c.empty() {
		return 0, ""
	}
	if c.kind == other {
		return 0, rejectSyntax
	}
	m, err := money.Parse(c.text, unit)
	switch {
	case errors.Is(err, money.ErrRange):
		return 0, rejectRange
	case err != nil:
		return 0, rejectSyntax
	case m == -money.Micro(money.Scale/unit):
		return 0, "" // -1 as written: some lists mean none by it
	case m < 0:
		return 0, rejectNegative
	}
	return m, ""
}

// count reads a number of listings or sales. Nothing and -1 are unknown, which
// is a negative number; 0 is 0.
func (c cell) count() (n int64, reason string) {
	if c.empty() {
		return -1, ""
	}
	if c.kind == other {
		return 0, rejectCount
	}
	if n, ok := digits(c.text); ok {
		return n, ""
	}
	m, err := money.Parse(c.text, 1)
	if err != nil || m%money.Scale != 0 || m < -money.Scale {
		return 0, rejectCount
	}
	return int64(m / money.Scale), ""
}

// digits reads what counts nearly always are: a few digits and nothing else.
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

// The formats of times. Anything else is a layout of Go's time package.
const (
	timeAuto    = "auto" // unix seconds or milliseconds, RFC 3339 or a date
	timeUnix    = "unix"
	timeUnixMs  = "unixMs"
	timeRFC3339 = "rfc3339"
	timeDate    = "date"
)

// Times outside of these years are none: they come from a wrong format.
const minYear, maxYear = 2000, 2199

// msFrom is where plain numbers are taken for milliseconds: as seconds it is
// the year 5138, as milliseconds 1973.
const msFrom = 100_000_000_000

// when reads a time. Nothing and 0 are the zero time: not stated.
func (c cell) when(format string) (t time.Time, reason string) {
	if c.empty() || string(c.text) == "0" {
		return time.Time{}, ""
	}
	if c.kind == other {
		return time.Time{}, rejectTime
	}
	t, ok := parseTime(c.text, format)
	if !ok || t.Year() < minYear || t.Year() > maxYear {
		return time.Time{}, rejectTime
	}
	return t.UTC(), ""
}

func parseTime(b []byte, format string) (time.Time, bool) {
	switch format {
	case timeUnix:
		return unixTime(b, 1)
	case timeUnixMs:
		return unixTime(b, 1000)
	case timeRFC3339:
		return layoutTime(b, time.RFC3339)
	case timeDate:
		return layoutTime(b, time.DateOnly)
	case timeAuto:
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

// unixTime reads a number of 1/perSecond seconds; an exact decimal with six
// places is just what a time in microseconds is.
func unixTime(b []byte, perSecond int64) (time.Time, bool) {
	v, err := money.Parse(b, perSecond)
	return time.UnixMicro(int64(v)), err == nil
}

func layoutTime(b []byte, layout string) (time.Time, bool) {
	t, err := time.Parse(layout, string(b))
	return t, err == nil
}
