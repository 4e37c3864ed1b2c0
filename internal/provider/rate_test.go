package provider

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fields returns a header with the given keys and values.
func fields(all ...string) http.Header {
	h := http.Header{}
	for i := 0; i+1 < len(all); i += 2 {
		h.Add(all[i], all[i+1])
	}
	return h
}

func TestRateOf_ReadsCommonHeaders(t *testing.T) {
	wall := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	serverTime := "Sat, 21 Nov 2026 13:00:00 GMT" // the server's clock is an hour ahead: 1795266000
	minute := Limit{Requests: 40, Per: time.Minute}
	for name, c := range map[string]struct {
		h     http.Header
		about Headers
		limit Limit
		want  Rate
	}{
		"Unix time with Date":        {fields("X-Ratelimit-Limit", "200", "X-Ratelimit-Remaining", "199", "X-Ratelimit-Reset", "1795266060", "Date", serverTime), "", Limit{}, Rate{200, 199, time.Minute}},
		"Unix time without Date":     {fields("X-RateLimit-Limit", "200", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1795262405"), "", Limit{}, Rate{200, 0, 5 * time.Second}},
		"seconds from now":           {fields("RateLimit-Limit", "6", "RateLimit-Remaining", "5", "RateLimit-Reset", "1", "X-RateLimit-Limit-Second", "6"), "", Limit{}, Rate{6, 5, time.Second}},
		"limit with policies":        {fields("RateLimit-Limit", "100, 100;w=60", "RateLimit-Remaining", "12", "RateLimit-Reset", "30"), "", Limit{}, Rate{100, 12, 30 * time.Second}},
		"no limit":                   {fields("X-RateLimit-Remaining", "3", "X-RateLimit-Reset", "60"), "", Limit{}, Rate{0, 3, time.Minute}},
		"no reset, configured limit": {fields("X-RateLimit-Remaining", "3"), "", minute, Rate{0, 3, time.Minute}},
		"no reset, quota":            {fields("X-RateLimit-Remaining", "3"), HeadersOfDay, minute, Rate{0, 3, 12 * time.Hour}},
		"smaller of two sets":        {fields("X-RateLimit-Remaining", "3", "X-RateLimit-Reset", "60", "RateLimit-Remaining", "4", "RateLimit-Reset", "1"), "", Limit{}, Rate{0, 3, time.Minute}},
		"month":                      {fields("X-RateLimit-Limit", "1000", "X-RateLimit-Remaining", "3", "X-RateLimit-Reset", "1728000"), HeadersOfMonth, Limit{}, Rate{1000, 3, 20 * 24 * time.Hour}},
		"cached response of age 0":   {fields("X-RateLimit-Remaining", "3", "X-RateLimit-Reset", "60", "Age", "0"), "", Limit{}, Rate{0, 3, time.Minute}},
	} {
		if got, ok := rateOf(c.h, c.about, c.limit, wall); !ok || got != c.want {
			t.Errorf("%s: got rate %+v, ok %v; want %+v", name, got, ok, c.want)
		}
	}
}

func TestRateOf_IgnoresInvalidHeaders(t *testing.T) {
	set := func(limit, left, reset string, more ...string) http.Header {
		return fields(append([]string{"X-RateLimit-Limit", limit, "X-RateLimit-Remaining", left, "X-RateLimit-Reset", reset}, more...)...)
	}
	for name, h := range map[string]http.Header{
		"no headers":            {},
		"not a number":          set("10", "many", "60"),
		"empty":                 set("10", "", "60"),
		"negative":              set("10", "-1", "60"),
		"fraction":              set("10", "1.5", "60"),
		"hexadecimal":           set("10", "0x5", "60"),
		"too many digits":       set("10", "99999999999999999999999999", "60"),
		"number too large":      set("9999999999999", "9999999999999", "60"),
		"more left than limit":  set("10", "11", "60"),
		"limit of zero":         set("0", "0", "60"),
		"limit not a number":    set("lots", "5", "60"),
		"reset negative":        set("10", "5", "-60"),
		"reset now":             set("10", "5", "0"),
		"reset in the past":     set("10", "5", "1795262399"),
		"reset in two days":     set("10", "5", "172800"),
		"reset in milliseconds": set("10", "5", "1795262460000"),
		"reset out of range":    set("10", "5", "900000000"),
		"reset as date":         set("10", "5", "2026-11-21T12:01:00Z"),
		"no reset":              fields("X-RateLimit-Remaining", "3"),
		"two different values":  set("10", "5", "60", "X-RateLimit-Remaining", "4"),
		"cached response":       set("10", "5", "60", "Age", "30"),
		"header with suffix":    fields("X-RateLimit-Remaining-Second", "0", "X-RateLimit-Reset", "60"),
	} {
		if got, ok := rateOf(h, HeadersOfLimit, Limit{}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)); ok {
			t.Errorf("%s: got rate %+v, want none", name, got)
		}
	}
	if got, ok := rateOf(set("10", "5", "60"), HeadersIgnored, Limit{}, time.Now()); ok {
		t.Errorf("HeadersIgnored: got %+v, want none", got)
	}
}

// If storing the reported quota succeeds, the shared allowance decides. An operator can reset
// the quota there.
func TestRate_AllowanceEnforcesStoredQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(Options{Allowance: &fakeAllowance{}}, func(int) (*http.Response, error) {
			return reply(200, "ok", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "600"), nil
		})
		for range 2 {
			if err := c.Do(t.Context(), get, discard); err != nil {
				t.Fatal(err)
			}
		}
		if reported := c.Snapshot().Budget.Reported; f.count() != 2 || reported == nil || reported.Left != 0 {
			t.Errorf("got %d requests, reported quota %+v; want 2 requests, 0 left", f.count(), reported)
		}
	})
}

func TestRate_ClientEnforcesQuotaThatIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAllowance{reportErr: errors.New("the database is busy")}
		c, f := newFake(Options{Allowance: a, Limit: Limit{Requests: 100, Per: time.Hour}, Total: time.Minute}, func(n int) (*http.Response, error) {
			if n == 1 {
				return reply(200, "ok", "X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "2", "X-RateLimit-Reset", "600"), nil
			}
			return reply(200, "ok"), nil
		})
		for range 3 {
			if err := c.Do(t.Context(), get, discard); err != nil {
				t.Fatal(err)
			}
		}
		kind, wait := kindOf(t, c.Do(t.Context(), get, discard))
		if kind != KindBudget || wait != 10*time.Minute || f.count() != 3 || a.takes != 3 {
			t.Errorf("got kind %v, wait %v after %d requests; want %v, wait 10m after 3", kind, wait, f.count(), KindBudget)
		}
		b := c.Snapshot().Budget
		if b.Used != 3 || b.Left != 97 || b.Reported == nil || b.Reported.Left != 0 || b.Reported.Limit != 100 || time.Until(b.Reported.ResetsAt) != 10*time.Minute {
			t.Errorf("got budget %+v, reported quota %+v, want 3 used, 0 of 100 reported, reset in 10m", b, b.Reported)
		}
		if len(a.reported) != 1 || a.reported[0] != (Rate{100, 2, 10 * time.Minute}) {
			t.Errorf("got stored quotas %v, want one of 2 left of 100", a.reported)
		}
		time.Sleep(10 * time.Minute)
		if err := c.Do(t.Context(), get, discard); err != nil || c.Snapshot().Budget.Reported != nil {
			t.Errorf("after the reset: got error %v, want no error and no reported quota", err)
		}
	})
}

func TestRate_ReportedQuotaCannotExtendLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(Options{Limit: Limit{Requests: 2, Per: time.Hour}}, func(int) (*http.Response, error) {
			return reply(200, "ok", "X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "99", "X-RateLimit-Reset", "600"), nil
		})
		for range 3 {
			_ = c.Do(t.Context(), get, discard)
		}
		if f.count() != 2 {
			t.Errorf("got %d requests, want 2", f.count())
		}
	})
}

func TestRate_RefusedRequestDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAllowance{}
		c, _ := newFake(Options{Allowance: a}, func(int) (*http.Response, error) {
			return reply(200, "ok", "X-RateLimit-Remaining", "5", "X-RateLimit-Reset", "600"), nil
		})
		if err := c.Do(t.Context(), get, discard); err != nil {
			t.Fatal(err)
		}
		a.refusals = []Refusal{{Kind: KindBudget, Wait: time.Hour}}
		_ = c.Do(t.Context(), get, discard)
		if left := c.Snapshot().Budget.Reported.Left; left != 5 {
			t.Errorf("got %d left, want 5", left)
		}
	})
}

func TestRate_ResetSetsWaitAfter429(t *testing.T) {
	for name, c := range map[string]struct {
		fields []string
		want   time.Duration
	}{
		"reset":                        {[]string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1200"}, 20 * time.Minute},
		"reset, some left":             {[]string{"X-RateLimit-Remaining", "7", "X-RateLimit-Reset", "1200"}, DefaultWait},
		"Retry-After takes precedence": {[]string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1200", "Retry-After", "1800"}, 30 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			cl, f := newFake(Options{Attempts: 1}, func(int) (*http.Response, error) { return reply(429, "null", c.fields...), nil })
			if kind, wait := kindOf(t, cl.Do(t.Context(), get, discard)); kind != KindRateLimited || wait != c.want || f.count() != 1 {
				t.Errorf("%s: got kind %v, wait %v; want wait %v", name, kind, wait, c.want)
			}
		})
	}
}

func TestRate_IgnoresHeadersOfAnotherHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newFake(Options{}, func(n int) (*http.Response, error) {
			if n == 1 {
				return reply(302, "", "Location", "http://files.test/prices"), nil
			}
			return reply(200, "ok", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "600"), nil
		})
		if err := c.Do(t.Context(), get, discard); err != nil || c.Snapshot().Budget.Reported != nil {
			t.Errorf("got error %v, reported quota %+v; want none", err, c.Snapshot().Budget.Reported)
		}
	})
}

func TestRate_ExhaustedQuotaBlocksUntilReset(t *testing.T) {
	classify := func(e *Error) {
		if strings.Contains(e.Detail, "MONTHLY_QUOTA") {
			e.Kind = KindBudget
		}
	}
	for name, c := range map[string]struct {
		fields []string
		want   time.Duration // 0: until the end of the month
	}{
		"reset header": {[]string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "864000", "Retry-After", "60"}, 240 * time.Hour},
		"Retry-After":  {[]string{"Retry-After", "7200"}, 2 * time.Hour},
		"neither":      {nil, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &fakeAllowance{reportErr: errors.New("the database is busy")}
			cl, f := newFake(Options{Headers: HeadersOfMonth, Classify: classify, Allowance: a}, func(int) (*http.Response, error) {
				return reply(429, `{"code":"RATE_LIMIT_MONTHLY_QUOTA_EXCEEDED"}`, c.fields...), nil
			})
			if c.want == 0 {
				_, end := Month.Bounds(time.Now())
				c.want = time.Until(end)
			}
			for range 3 {
				if kind, wait := kindOf(t, cl.Do(t.Context(), get, discard)); kind != KindBudget || wait != c.want {
					t.Errorf("%s: got kind %v, wait %v; want wait %v", name, kind, wait, c.want)
				}
			}
			if f.count() != 1 || len(a.reported) != 1 || a.reported[0].Left != 0 || a.reported[0].Reset != c.want {
				t.Errorf("%s: got %d requests, stored quotas %+v; want 1 request", name, f.count(), a.reported)
			}
			time.Sleep(c.want)
			if _ = cl.Do(t.Context(), get, discard); f.count() != 2 {
				t.Errorf("%s: after the reset: got %d requests, want 2", name, f.count())
			}
		})
	}
}
