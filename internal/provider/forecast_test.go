package provider

import (
	"testing"
	"time"
)

func TestForecast_IsAtThePresentPace(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	midnight := now.Add(12 * time.Hour)
	perHour := func(n int64) Pace { return Pace{n, time.Hour} }
	for name, c := range map[string]struct {
		left, limit int64
		pace        Pace
		want        time.Duration // until it runs out; -1: not before it is renewed
		low         bool
	}{
		"not before midnight":            {1200, 2000, perHour(100), -1, false},
		"just before midnight":           {1199, 2000, perHour(100), 11*time.Hour + 59*time.Minute + 24*time.Second, false},
		"a tenth is left":                {200, 2000, perHour(100), 2 * time.Hour, false},
		"less than a tenth":              {199, 2000, perHour(100), 119*time.Minute + 24*time.Second, true},
		"less than a tenth that lasts":   {199, 2000, perHour(10), -1, false},
		"nothing is sent":                {199, 2000, Pace{0, time.Hour}, -1, false},
		"nothing is left":                {0, 2000, perHour(1), 0, true},
		"more than the limit was sent":   {-5, 2000, perHour(1), 0, true},
		"one of one":                     {1, 1, perHour(1), time.Hour, false},
		"none of one":                    {0, 1, perHour(1), 0, true},
		"of no known size":               {1, 0, perHour(1), time.Hour, false},
		"numbers that would overflow":    {1e12, 1e12, Pace{1e12, 24 * time.Hour}, -1, false},
		"a pace of which nobody is told": {1, 2000, Pace{}, -1, false},
	} {
		got := ForecastOf(now, c.left, c.limit, midnight, c.pace)
		want := Forecast{Pace: c.pace, Low: c.low}
		if c.want >= 0 {
			want.RunsOutAt = now.Add(c.want)
		}
		if got.RunsOutAt.Sub(want.RunsOutAt).Abs() > time.Millisecond || got.RunsOutAt.IsZero() != want.RunsOutAt.IsZero() || got.Low != want.Low || got.Pace != want.Pace {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestForecast_LimitThatIsKeptForEverNeverRunsOut(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	limit := Limit{Requests: 100, Per: 2 * time.Hour}
	if o := ForecastOfLimit(now, 3, limit, Pace{50, time.Hour}); !o.RunsOutAt.IsZero() || o.Low {
		t.Errorf("at its own pace: %+v", o)
	}
	if o := ForecastOfLimit(now, 3, limit, Pace{60, time.Hour}); !o.RunsOutAt.Equal(now.Add(3*time.Minute)) || !o.Low {
		t.Errorf("faster: %+v", o)
	}
	if o := ForecastOfLimit(now, 0, limit, Pace{50, time.Hour}); !o.RunsOutAt.Equal(now) || !o.Low {
		t.Errorf("used up: %+v", o)
	}
}
