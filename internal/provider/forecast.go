package provider

import "time"

// lowShare defines a low budget: less than 1/lowShare is left.
const lowShare = 10

// forecastFrom is the longest budget window without a forecast. Shorter windows reset soon.
const forecastFrom = time.Hour

// Pace is a number of recent requests and the time in which they were sent.
type Pace struct {
	Requests int64
	Over     time.Duration // 0: unknown
}

// Forecast predicts when a budget runs out at the recent pace.
type Forecast struct {
	Pace      Pace
	RunsOutAt time.Time // zero: the budget resets first
	Low       bool      // less than a tenth is left, and it runs out before it resets
}

// Low reports whether any part of the budget is low.
func (b *Budget) Low() bool {
	for _, q := range b.Quotas {
		if q.Forecast.Low {
			return true
		}
	}
	return b.Forecast.Low || b.Reported != nil && b.Reported.Forecast.Low
}

// HasForecast reports whether a budget with this window gets a forecast.
func HasForecast(window time.Duration) bool { return window > forecastFrom }

// NearEnd reports whether less than a tenth of a budget is left. It returns false if the limit
// is unknown.
func NearEnd(left, limit int64) bool { return limit > 0 && left < (limit+lowShare-1)/lowShare }

// ForecastOf predicts when a budget runs out at a pace. RunsOutAt is zero if the budget resets
// first.
func ForecastOf(now time.Time, left, limit int64, renewed time.Time, pace Pace) Forecast {
	f := Forecast{Pace: pace}
	switch {
	case left <= 0:
		f.RunsOutAt = now
	case pace.Requests > 0:
		// Use a float, because the product of integers could overflow. A forecast does not
		// need exact rounding.
		lasts := float64(left) / float64(pace.Requests) * float64(pace.Over)
		if lasts < float64(renewed.Sub(now)) {
			f.RunsOutAt = now.Add(time.Duration(lasts))
		}
	}
	f.Low = !f.RunsOutAt.IsZero() && NearEnd(left, limit)
	return f
}

// ForecastOfLimit is ForecastOf for a rolling limit. A pace within the limit never exhausts it.
func ForecastOfLimit(now time.Time, left int64, limit Limit, pace Pace) Forecast {
	kept := float64(pace.Requests)*float64(limit.Per) <= float64(limit.Requests)*float64(pace.Over)
	if left > 0 && kept {
		return Forecast{Pace: pace}
	}
	return ForecastOf(now, left, int64(limit.Requests), now.Add(limit.Per), pace)
}
