package provider

import "time"

// lowShare defines a low budget: less than 1/lowShare is left.
const lowShare = 10

// forecastFrom is the longest budget window without a forecast. Shorter windows renew soon.
const forecastFrom = time.Hour

// Pace is the number of recent requests and the time that they took.
type Pace struct {
	Requests int64
	Over     time.Duration // 0: unknown
}

// Forecast predicts when a budget runs out at the current pace.
type Forecast struct {
	Pace      Pace
	RunsOutAt time.Time // zero: not before it renews
	Low       bool      // less than a tenth is left, and it runs out before it renews
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

// HasForecast reports whether a budget with this window has a forecast.
func HasForecast(window time.Duration) bool { return window > forecastFrom }

// NearEnd reports whether less than a tenth of a budget is left. It is false if the limit
// is unknown.
func NearEnd(left, limit int64) bool { return limit > 0 && left < (limit+lowShare-1)/lowShare }

// ForecastOf predicts when a budget runs out at a pace. RunsOutAt is zero if the budget
// renews first.
func ForecastOf(now time.Time, left, limit int64, renewed time.Time, pace Pace) Forecast {
	f := Forecast{Pace: pace}
	switch {
	case left <= 0:
		f.RunsOutAt = now
	case pace.Requests > 0:
		// Float, because the product of whole numbers could overflow. Its rounding does not
		// matter for a forecast.
		lasts := float64(left) / float64(pace.Requests) * float64(pace.Over)
		if lasts < float64(renewed.Sub(now)) {
			f.RunsOutAt = now.Add(time.Duration(lasts))
		}
	}
	f.Low = !f.RunsOutAt.IsZero() && NearEnd(left, limit)
	return f
}

// ForecastOfLimit is ForecastOf for a rolling limit. At a pace within the limit it never
// runs out.
func ForecastOfLimit(now time.Time, left int64, limit Limit, pace Pace) Forecast {
	kept := float64(pace.Requests)*float64(limit.Per) <= float64(limit.Requests)*float64(pace.Over)
	if left > 0 && kept {
		return Forecast{Pace: pace}
	}
	return ForecastOf(now, left, int64(limit.Requests), now.Add(limit.Per), pace)
}
