package config

import (
	"testing"
	"time"
)

func TestSchedule_NextIsInUTC(t *testing.T) {
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	for _, c := range []struct{ schedule, after, want string }{
		{"every 30m", "2026-11-20T10:07:00Z", "2026-11-20T10:30:00Z"},
		{"every 30m", "2026-11-20T10:30:00Z", "2026-11-20T11:00:00Z"},
		{"every 6h", "2026-11-20T10:07:00+01:00", "2026-11-20T12:00:00Z"},
		{"30 4 * * *", "2026-11-20T05:00:00Z", "2026-11-21T04:30:00Z"},
		{"30 4 * * *", "2026-11-20T05:00:00+05:00", "2026-11-20T04:30:00Z"},
		{"CRON_TZ=Europe/Berlin 30 4 * * *", "2026-11-20T05:00:00Z", "2026-11-21T03:30:00Z"},
		{"CRON_TZ=Europe/Berlin 30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-29T01:30:00Z"}, // 2:30 does not exist that day
		{"CRON_TZ=Europe/Berlin 30 2 * * *", "2026-03-29T12:00:00Z", "2026-03-30T00:30:00Z"},
		{"0 0 1 * 5", "2026-11-20T05:00:00Z", "2026-11-27T00:00:00Z"}, // the first of a month, and every Friday
		{"@daily", "2026-11-20T05:00:00Z", "2026-11-21T00:00:00Z"},
	} {
		s, err := ParseSchedule(c.schedule)
		if err != nil {
			t.Errorf("%s: got error %v, want none", c.schedule, err)
			continue
		}
		if got := s.Next(at(c.after)); !got.Equal(at(c.want)) {
			t.Errorf("%s after %s: got %s, want %s", c.schedule, c.after, got, c.want)
		}
	}
}

func TestSchedule_ZeroNeverRuns(t *testing.T) {
	var s Schedule
	if !s.IsZero() || !s.Next(time.Unix(0, 0)).IsZero() || s.String() != "" {
		t.Errorf("got schedule %v, next %v; want none", s, s.Next(time.Unix(0, 0)))
	}
}

func FuzzParseSchedule(f *testing.F) {
	for _, text := range []string{"every 30m", "*/5 * * * *", "TZ=UTC", "TZ=\t0\t0", "CRON_TZ= ", "CRON_TZ=X 1 2 3 4 5", "@every 1ns", "every -1h", "1-0 * * * *"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchedule(text)
		if err != nil {
			return
		}
		now := time.Unix(1_700_000_000, 0)
		if next := s.Next(now); !next.After(now) && !next.IsZero() {
			t.Errorf("%q after %s: got %s, want a later time", text, now, next)
		}
	})
}
