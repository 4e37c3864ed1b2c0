package provider

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestParseRetryAfter_ReadsSecondsAndDates(t *testing.T) {
	wall := time.Date(2026, 11, 20, 12, 0, 0, 500e6, time.UTC)
	at := func(d time.Duration) string { return wall.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		name, value, date string
		want              time.Duration
		ok                bool
	}{
		{"seconds", "30", "", 30 * time.Second, true},
		{"spaces around", " 30 ", "", 30 * time.Second, true},
		{"zero", "0", "", 0, true},
		{"maximum", "86400", "", MaxWait, true},
		{"above maximum", "99999999", "", MaxWait, true},
		{"above int64", "99999999999999999999999999", "", MaxWait, true},
		{"missing", "", "", 0, false},
		{"negative", "-1", "", 0, false},
		{"fraction", "1.5", "", 0, false},
		{"sign", "+30", "", 0, false},
		{"word", "tomorrow", "", 0, false},
		{"non-ASCII digits", "３０", "", 0, false},
		{"date", at(time.Minute), at(0), time.Minute, true},
		{"date in the past", at(-time.Minute), at(0), 0, true},
		{"date far ahead", at(400 * 24 * time.Hour), at(0), MaxWait, true},
		{"server clock an hour ahead", at(time.Hour + time.Minute), at(time.Hour), time.Minute, true},
		{"server clock 400 days behind", at(-400*24*time.Hour + time.Minute), at(-400 * 24 * time.Hour), time.Minute, true},
		{"no Date header", at(time.Minute), "", time.Minute - 500*time.Millisecond, true},
		{"obsolete date format", wall.Add(time.Minute).Format("Monday, 02-Jan-06 15:04:05 GMT"), at(0), time.Minute, true},
		{"ISO date", wall.Format(time.RFC3339), at(0), 0, false},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.value)
		if c.date != "" {
			h.Set("Date", c.date)
		}
		got, ok := parseRetryAfter(h, wall)
		if got != c.want || ok != c.ok {
			t.Errorf("%s: got wait %v, valid %v; want %v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, s := range []string{"30", "-1", "99999999999999999999", "Fri, 20 Nov 2026 12:00:00 GMT", ""} {
		f.Add(s, s)
	}
	wall := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value, date string) {
		wait, ok := parseRetryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, wall)
		if wait < 0 || wait > MaxWait || !ok && wait != 0 {
			t.Errorf("parseRetryAfter(%q, Date %q) = %v, %v, want 0 to MaxWait", value, date, wait, ok)
		}
	})
}

func TestRetryWait_IsNeverShortened(t *testing.T) {
	var w retryWait
	w.extend(0, RetryAfter{Wait: time.Minute})
	if got := w.extend(0, RetryAfter{Wait: time.Second}); got != time.Minute {
		t.Errorf("after a shorter wait: got %v, want 1m", got)
	}
	if got := w.remaining(10 * time.Second); got != 50*time.Second {
		t.Errorf("got %v remaining, want 50s", got)
	}
	if got := w.remaining(2 * time.Minute); got != 0 {
		t.Errorf("got %v remaining after the end, want 0", got)
	}
}

func TestRetryAfter_DoublesAfterRepeatedRefusal(t *testing.T) {
	const first, most = 10 * time.Minute, time.Hour
	for name, c := range map[string]struct {
		last, ago, most, want time.Duration
	}{
		"first refusal":                  {0, 400 * 24 * time.Hour, most, first},
		"refused at the end of the wait": {first, 0, most, 2 * first},
		"refused just before the limit":  {first, first - 1, most, 2 * first},
		"refused later":                  {first, first, most, first},
		"sent before the wait":           {first, -time.Minute, most, first},
		"capped":                         {40 * time.Minute, time.Second, most, most},
		"after a longer wait":            {MaxWait, time.Second, most, most},
		"after a short reported wait":    {time.Second, 0, most, first},
		"without Most":                   {first, 0, 0, first},
	} {
		if got := (RetryAfter{Wait: first, Most: c.most}).After(c.last, c.ago); got != c.want {
			t.Errorf("%s: got wait %v, want %v", name, got, c.want)
		}
	}
	if got := (RetryAfter{Wait: 2 * MaxWait}).After(0, 0); got != MaxWait {
		t.Errorf("wait above the maximum: got %v, want %v", got, MaxWait)
	}
}

func TestClient_DoublesDefaultWaitAfterRepeated429(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusing := true
		c, f := newFake(Options{Wait: 10 * time.Minute, MostWait: time.Hour}, func(int) (*http.Response, error) {
			if refusing {
				return reply(429, "null"), nil
			}
			return reply(200, "ok"), nil
		})
		for i, minutes := range []int{10, 20, 40, 60, 60} {
			want := time.Duration(minutes) * time.Minute
			kind, wait := kindOf(t, c.Do(t.Context(), get, discard))
			if kind != KindRateLimited || wait != want || f.count() != i+1 {
				t.Fatalf("got kind %v, wait %v after %d requests; want %v, wait %v", kind, wait, f.count(), KindRateLimited, want)
			}
			if _, again := kindOf(t, c.Do(t.Context(), get, discard)); again != wait || f.count() != i+1 {
				t.Fatalf("call during the wait: got wait %v, %d requests; want %v, %d", again, f.count(), wait, i+1)
			}
			time.Sleep(wait)
		}
		refusing = false
		if err := c.Do(t.Context(), get, discard); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		refusing = true
		if _, wait := kindOf(t, c.Do(t.Context(), get, discard)); wait != 10*time.Minute {
			t.Errorf("an hour later: got wait %v, want 10m", wait)
		}
	})
}

func TestClient_ClassifyChangesKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		classify := func(e *Error) {
			if e.Status == 403 && e.Detail == "slow down" {
				e.Kind = KindRateLimited
			}
		}
		bodies := []string{"slow down", "unknown key"}
		c, f := newFake(Options{Classify: classify, Wait: 10 * time.Minute}, func(n int) (*http.Response, error) { return reply(403, bodies[n-1]), nil })
		if kind, wait := kindOf(t, c.Do(t.Context(), get, discard)); kind != KindRateLimited || wait != 10*time.Minute {
			t.Errorf("got kind %v, wait %v; want %v, wait 10m", kind, wait, KindRateLimited)
		}
		time.Sleep(10 * time.Minute)
		if kind, wait := kindOf(t, c.Do(t.Context(), get, discard)); kind != KindAuth || wait != 0 || f.count() != 2 {
			t.Errorf("got kind %v, wait %v, %d requests; want %v, 0, 2", kind, wait, f.count(), KindAuth)
		}
	})
}
