package view

import (
	"math"
	"strconv"
	"time"

	"assay/internal/money"
)

// seconds cuts to whole ones. What lies ahead, by a clock that was set back
// since, is 0 seconds old.
func seconds(d time.Duration) int64 { return int64(max(d, 0) / time.Second) }

// when is a time as JSON has it: null where there is none.
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

func idOrNil(n int64) *string {
	if n == 0 {
		return nil
	}
	return new(id(n))
}

// Percent writes a part of 1 in percent, with at most two places.
func Percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1e4)/1e2, 'f', -1, 64) + " %"
}
