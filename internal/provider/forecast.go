package provider

import "time"

// lowShare is the part of a budget, as one in so many, below which it is low if it
// is also forecast to run out: a tenth.
const lowShare = 10

// forecastFrom is the shortest budget with a forecast. A shorter one renews soon enough.
const forecastFrom = time.Hour

// Pace is how many requests were sent lately, over how long.
type Pace struct {
	Requests int64
	Over     time.Duration // 0: not known
}

// Forecast is the forecast of a budget: when it runs out at the present pace.
type Forecast struct {
	Pace      Pace
	RunsOutAt time.Time // zero: not before it is renewed
	Low       bool      // less than a tenth is left, and it runs out before it is renewed
}

// Low reports whether some part of the budget is low.
func (b *Budget) Low() bool {
	for _, q := range b.Quotas {
		if q.Forecast.Low {
			return true
		}
	}
	return b.Forecast.Low || b.Reported != nil && b.Reported.Forecast.Low
}

// HasForecast reports whether a budget that is renewed after so long has a forecast.
func HasForecast(window time.Duration) bool { return window > forecastFrom }

// NearEnd reports whether less than a tenth of a budget is left. It is false for a
// budget of unknown size.
func NearEnd(left, limit int64) bool { return limit > 0 && left < (limit+lowShare-1)/lowShare }

// ForecastOf returns when a budget runs out at a pace, if that is before it renews.
func ForecastOf(now time.Time, left, limit int64, renewed time.Time, pace Pace) Forecast {
	f := Forecast{Pace: pace}
	switch {
	case left <= 0:
		f.RunsOutAt = now
	case pace.Requests > 0:
		// A forecast may be off by the rounding of a float; whole numbers of this
		// size would not fit.
		lasts := float64(left) / float64(pace.Requests) * float64(pace.Over)
		if lasts < float64(renewed.Sub(now)) {
			f.RunsOutAt = now.Add(time.Duration(lasts))
		}
	}
	f.Low = !f.RunsOutAt.IsZero() && NearEnd(left, limit)
	return f
}

// ForecastOfLimit is ForecastOf for a limit, whose requests come back one by one. At a
// pace within the limit it never runs out.
func ForecastOfLimit(now time.Time, left int64, limit Limit, pace Pace) Forecast {
	kept := float64(pace.Requests)*float64(limit.Per) <= float64(limit.Requests)*float64(pace.Over)
	if left > 0 && kept {
		return Forecast{Pace: pace}
	}
	return ForecastOf(now, left, int64(limit.Requests), now.Add(limit.Per), pace)
}
