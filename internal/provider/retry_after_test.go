package provider

import (
	"net/http"
	"testing"
	"testing/synctest"
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
		got, ok := parseRetryAfter(h, wall)
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
		wait, ok := parseRetryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, wall)
		if wait < 0 || wait > MaxWait || !ok && wait != 0 {
			t.Errorf("%q at %q: %v, %v", value, date, wait, ok)
		}
	})
}

func TestHold_IsNeverShortened(t *testing.T) {
	var h retryWait
	h.extend(0, RetryAfter{Wait: time.Minute})
	if got := h.extend(0, RetryAfter{Wait: time.Second}); got != time.Minute {
		t.Errorf("a shorter order leaves %v", got)
	}
	if got := h.remaining(10 * time.Second); got != 50*time.Second {
		t.Errorf("remaining %v, want 50s", got)
	}
	if got := h.remaining(2 * time.Minute); got != 0 {
		t.Errorf("remaining %v after its end", got)
	}
}

func TestOrder_DoublesWhereTheHostRefusesAgainSoon(t *testing.T) {
	const first, most = 10 * time.Minute, time.Hour
	for name, c := range map[string]struct {
		last, ago, most, want time.Duration
	}{
		"the first":                      {0, 400 * 24 * time.Hour, most, first},
		"at its end":                     {first, 0, most, 2 * first},
		"just soon enough":               {first, first - 1, most, 2 * first},
		"not soon":                       {first, first, most, first},
		"sent before it began":           {first, -time.Minute, most, first},
		"the longest":                    {40 * time.Minute, time.Second, most, most},
		"after a longer one":             {MaxWait, time.Second, most, most},
		"after a short one that it said": {time.Second, 0, most, first},
		"without a most":                 {first, 0, 0, first},
	} {
		if got := (RetryAfter{Wait: first, Most: c.most}).After(c.last, c.ago); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := (RetryAfter{Wait: 2 * MaxWait}).After(0, 0); got != MaxWait {
		t.Errorf("a longer order than is followed: %v", got)
	}
}

func TestClient_WaitsTwiceAsLongWhereItIsRefusedAgainWithoutAWordOnWhen(t *testing.T) {
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
				t.Fatalf("%v for %v after %d requests, want one more and %v", kind, wait, f.count(), want)
			}
			if _, again := kindOf(t, c.Do(t.Context(), get, discard)); again != wait || f.count() != i+1 {
				t.Fatalf("asked within its pause: %v, %d requests", again, f.count())
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
			t.Errorf("an hour later: %v", wait)
		}
	})
}

func TestClient_ProviderMayKnowBetterWhatARefusalIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		judge := func(e *Error) {
			if e.Status == 403 && e.Detail == "slow down" {
				e.Kind = KindRateLimited
			}
		}
		bodies := []string{"slow down", "who are you?"}
		c, f := newFake(Options{Classify: judge, Wait: 10 * time.Minute}, func(n int) (*http.Response, error) { return reply(403, bodies[n-1]), nil })
		if kind, wait := kindOf(t, c.Do(t.Context(), get, discard)); kind != KindRateLimited || wait != 10*time.Minute {
			t.Errorf("%v for %v", kind, wait)
		}
		time.Sleep(10 * time.Minute)
		if kind, wait := kindOf(t, c.Do(t.Context(), get, discard)); kind != KindAuth || wait != 0 || f.count() != 2 {
			t.Errorf("%v for %v, %d requests", kind, wait, f.count())
		}
	})
}
