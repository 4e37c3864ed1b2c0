package view

import (
	"time"

	"assay/internal/provider"
)

// Budget is the request limit that all instances share for one provider. A Limit of 0 means no
// limit.
type Budget struct {
	Limit         int64          `json:"limit"` // maximum number of requests in any window of PeriodSeconds
	PeriodSeconds int64          `json:"periodSeconds"`
	Used          int64          `json:"used"`
	Left          *int64         `json:"left"`
	ResetsAt      *time.Time     `json:"resetsAt"` // time at which the oldest counted request leaves the window
	Quotas        []Quota        `json:"quotas"`   // calendar quotas in UTC
	Reported      *ReportedQuota `json:"reported"` // quota that the provider reported; null: none. The smaller of it and Limit applies
	Forecast                     // forecast for Limit; set only if the period is longer than an hour
	Low           bool           `json:"low"` // the limit, a quota or the reported quota is low
}

// Forecast estimates when a budget runs out at the current request rate.
type Forecast struct {
	Pace      *Pace      `json:"pace"`      // null: unknown
	RunsOutAt *time.Time `json:"runsOutAt"` // null: unknown, or the budget resets first
}

// Pace is the number of recent requests and the time span in which they were sent.
type Pace struct {
	Requests int64 `json:"requests"`
	Seconds  int64 `json:"seconds"`
}

// ReportedQuota is the quota that a provider last reported, minus the requests sent since that
// report.
type ReportedQuota struct {
	Period     *string   `json:"period"` // day or month for a calendar quota; null for a limit
	Limit      *int64    `json:"limit"`  // null: not reported
	Left       int64     `json:"left"`
	ReportedAt time.Time `json:"reportedAt"`
	ResetsAt   time.Time `json:"resetsAt"`
	Forecast
	Low bool `json:"low"` // less than a tenth is left, and it runs out before its reset
}

// Quota is the number of requests that a provider allows per calendar day or month.
type Quota struct {
	Period   string    `json:"period"` // day, month
	Limit    int64     `json:"limit"`
	Used     int64     `json:"used"`
	Left     int64     `json:"left"`
	ResetsAt time.Time `json:"resetsAt"`
	Forecast
	Low bool `json:"low"` // less than a tenth is left, and it runs out before the period ends
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
