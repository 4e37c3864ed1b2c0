package provider

import (
	"testing"
	"time"
)

func TestForecastOf_UsesRecentPace(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	midnight := now.Add(12 * time.Hour)
	perHour := func(n int64) Pace { return Pace{n, time.Hour} }
	for name, c := range map[string]struct {
		left, limit int64
		pace        Pace
		want        time.Duration // time until the budget runs out; -1: it resets first
		low         bool
	}{
		"resets first":                      {1200, 2000, perHour(100), -1, false},
		"runs out just before the reset":    {1199, 2000, perHour(100), 11*time.Hour + 59*time.Minute + 24*time.Second, false},
		"a tenth left":                      {200, 2000, perHour(100), 2 * time.Hour, false},
		"less than a tenth left":            {199, 2000, perHour(100), 119*time.Minute + 24*time.Second, true},
		"less than a tenth left, slow pace": {199, 2000, perHour(10), -1, false},
		"no requests":                       {199, 2000, Pace{0, time.Hour}, -1, false},
		"nothing left":                      {0, 2000, perHour(1), 0, true},
		"limit exceeded":                    {-5, 2000, perHour(1), 0, true},
		"limit of one unused":               {1, 1, perHour(1), time.Hour, false},
		"limit of one used":                 {0, 1, perHour(1), 0, true},
		"unknown limit":                     {1, 0, perHour(1), time.Hour, false},
		"huge numbers":                      {1e12, 1e12, Pace{1e12, 24 * time.Hour}, -1, false},
		"unknown pace":                      {1, 2000, Pace{}, -1, false},
	} {
		got := ForecastOf(now, c.left, c.limit, midnight, c.pace)
		want := Forecast{Pace: c.pace, Low: c.low}
		if c.want >= 0 {
			want.RunsOutAt = now.Add(c.want)
		}
		if got.RunsOutAt.Sub(want.RunsOutAt).Abs() > time.Millisecond || got.RunsOutAt.IsZero() != want.RunsOutAt.IsZero() || got.Low != want.Low || got.Pace != want.Pace {
			t.Errorf("%s: got forecast %+v, want %+v", name, got, want)
		}
	}
}

func TestForecastOfLimit_PaceWithinLimitNeverRunsOut(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	limit := Limit{Requests: 100, Per: 2 * time.Hour}
	if f := ForecastOfLimit(now, 3, limit, Pace{50, time.Hour}); !f.RunsOutAt.IsZero() || f.Low {
		t.Errorf("pace at the limit: got %+v, want no end", f)
	}
	if f := ForecastOfLimit(now, 3, limit, Pace{60, time.Hour}); !f.RunsOutAt.Equal(now.Add(3*time.Minute)) || !f.Low {
		t.Errorf("faster pace: got %+v, want low, used up in 3m", f)
	}
	if f := ForecastOfLimit(now, 0, limit, Pace{50, time.Hour}); !f.RunsOutAt.Equal(now) || !f.Low {
		t.Errorf("limit used up: got %+v, want low, used up now", f)
	}
}
