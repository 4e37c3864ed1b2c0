package view

import (
	"math"
	"strconv"
	"time"

	"assay/internal/money"
)

// seconds truncates to whole seconds. A negative duration, caused by a clock that moved back,
// becomes 0.
func seconds(d time.Duration) int64 { return int64(max(d, 0) / time.Second) }

// when returns a time for JSON, or nil for the zero time.
func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func amount(m money.Micro) *money.Micro {
	if m == 0 {
		return nil
	}
	return &m
}

func count(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func id(n int64) string { return strconv.FormatInt(n, 10) }

// numberOf returns the number that id formatted.
func numberOf(id string) int64 {
	n, _ := strconv.ParseInt(id, 10, 64)
	return n
}

func idOrNil(n int64) *string {
	if n == 0 {
		return nil
	}
	return new(id(n))
}

// Percent formats a fraction of 1 in percent with at most two decimal places.
func Percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1e4)/1e2, 'f', -1, 64) + " %"
}
