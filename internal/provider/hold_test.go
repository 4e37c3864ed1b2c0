package provider

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter_ReadsEveryForm(t *testing.T) {
	wall := time.Date(2026, 11, 20, 12, 0, 0, 500e6, time.UTC)
	at := func(d time.Duration) string { return wall.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		name, value, date string
		want              time.Duration
		ok                bool
	}{
		{"seconds", "30", "", 30 * time.Second, true},
		{"blanks around", " 30 ", "", 30 * time.Second, true},
		{"zero", "0", "", 0, true},
		{"maximum", "86400", "", MaxWait, true},
		{"beyond it", "99999999", "", MaxWait, true},
		{"beyond int64", "99999999999999999999999999", "", MaxWait, true},
		{"missing", "", "", 0, false},
		{"negative", "-1", "", 0, false},
		{"fraction", "1.5", "", 0, false},
		{"sign", "+30", "", 0, false},
		{"rubbish", "tomorrow", "", 0, false},
		{"other digits", "３０", "", 0, false},
		{"date", at(time.Minute), at(0), time.Minute, true},
		{"date in the past", at(-time.Minute), at(0), 0, true},
		{"date far ahead", at(400 * 24 * time.Hour), at(0), MaxWait, true},
		{"date by a clock an hour ahead", at(time.Hour + time.Minute), at(time.Hour), time.Minute, true},
		{"date by a clock 400 days behind", at(-400*24*time.Hour + time.Minute), at(-400 * 24 * time.Hour), time.Minute, true},
		{"date without Date", at(time.Minute), "", time.Minute - 500*time.Millisecond, true},
		{"old form of date", wall.Add(time.Minute).Format("Monday, 02-Jan-06 15:04:05 GMT"), at(0), time.Minute, true},
		{"ISO date", wall.Format(time.RFC3339), at(0), 0, false},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.value)
		if c.date != "" {
			h.Set("Date", c.date)
		}
		got, ok := retryAfter(h, wall)
		if got != c.want || ok != c.ok {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"30", "-1", "99999999999999999999", "Fri, 20 Nov 2026 12:00:00 GMT", ""} {
		f.Add(s, s)
	}
	wall := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value, date string) {
		wait, ok := retryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, wall)
		if wait < 0 || wait > MaxWait || !ok && wait != 0 {
			t.Errorf("%q at %q: %v, %v", value, date, wait, ok)
		}
	})
}

func TestHold_IsNeverShortened(t *testing.T) {
	var h hold
	h.extend(0, time.Minute)
	h.extend(0, time.Second)
	if got := h.remaining(10 * time.Second); got != 50*time.Second {
		t.Errorf("remaining %v, want 50s", got)
	}
	if got := h.remaining(2 * time.Minute); got != 0 {
		t.Errorf("remaining %v after its end", got)
	}
}
