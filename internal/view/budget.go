package view

import (
	"time"

	"assay/internal/provider"
)

// Budget is what a provider allows all instances together; a limit of 0 is none.
type Budget struct {
	Limit         int64          `json:"limit"` // in any stretch of the period
	PeriodSeconds int64          `json:"periodSeconds"`
	Used          int64          `json:"used"`
	Left          *int64         `json:"left"`
	ResetsAt      *time.Time     `json:"resetsAt"` // when the oldest of the used ones stops counting
	Quotas        []Quota        `json:"quotas"`   // of the calendar, UTC
	Reported      *ReportedQuota `json:"reported"` // the reported quota; the smaller counts
	Forecast                     // of the limit, where its period is longer than an hour
	Low           bool           `json:"low"` // some part of it is: limit, quota or reported quota
}

// Forecast is when a budget runs out at the present pace.
type Forecast struct {
	Pace      *Pace      `json:"pace"`      // null: there is no forecast
	RunsOutAt *time.Time `json:"runsOutAt"` // null: not before it is renewed
}

// Pace is how many requests were sent lately, over how long.
type Pace struct {
	Requests int64 `json:"requests"`
	Seconds  int64 `json:"seconds"`
}

// ReportedQuota is the reported quota of a provider: its last report, less what was sent
// since.
type ReportedQuota struct {
	Period     *string   `json:"period"` // day, month: of a quota; null: of a limit
	Limit      *int64    `json:"limit"`  // null: not reported
	Left       int64     `json:"left"`
	ReportedAt time.Time `json:"reportedAt"`
	ResetsAt   time.Time `json:"resetsAt"`
	Forecast
	Low bool `json:"low"` // less than a tenth is left, and it runs out before its reset
}

// Quota is what a provider allows in a day or a month of the calendar.
type Quota struct {
	Period   string    `json:"period"` // day, month
	Limit    int64     `json:"limit"`
	Used     int64     `json:"used"`
	Left     int64     `json:"left"`
	ResetsAt time.Time `json:"resetsAt"`
	Forecast
	Low bool `json:"low"` // less than a tenth is left, and it runs out before its end
}

func budget(b provider.Budget) Budget {
	out := Budget{Limit: int64(b.Limit.Requests), PeriodSeconds: seconds(b.Limit.Per), Used: int64(b.Used), Quotas: []Quota{}, Forecast: forecast(b.Forecast), Low: b.Low()}
	if b.Limit.Requests > 0 {
		left := int64(b.Left)
		out.Left, out.ResetsAt = &left, when(b.ResetsAt)
	}
	for _, q := range b.Quotas {
		out.Quotas = append(out.Quotas, Quota{
			Period: string(q.Period), Limit: q.Limit, Used: q.Used, Left: q.Left, ResetsAt: q.ResetsAt,
			Forecast: forecast(q.Forecast), Low: q.Forecast.Low,
		})
	}
	if t := b.Reported; t != nil {
		out.Reported = &ReportedQuota{
			Period: text(string(t.Period)), Left: t.Left, ReportedAt: t.At, ResetsAt: t.ResetsAt,
			Forecast: forecast(t.Forecast), Low: t.Forecast.Low,
		}
		if t.Limit > 0 {
			out.Reported.Limit = &t.Limit
		}
	}
	return out
}

func forecast(o provider.Forecast) Forecast {
	if o.Pace.Over == 0 {
		return Forecast{}
	}
	return Forecast{Pace: &Pace{Requests: o.Pace.Requests, Seconds: seconds(o.Pace.Over)}, RunsOutAt: when(o.RunsOutAt)}
}
