package allowance

import (
	"context"
	"errors"
	"time"

	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/provider"
)

// paceHours is the number of hours with counts: 24 full hours, the current hour, and one hour
// to distinguish the current hour from the same hour of the previous day.
const paceHours = 26

// checkEvery is the interval at which a process checks a budget near its end.
const checkEvery = time.Minute

// forecasts reports whether a budget of the host has a window long enough for a forecast.
func (a *Allowance) forecasts(reported *provider.ReportedQuota) bool {
	return a.host.Quota != (provider.Quota{}) || provider.HasForecast(a.host.Limit.Per) && a.slots > 0 || reported != nil && lasts(reported)
}

// lasts reports whether the window of a reported quota is long enough for a forecast.
func lasts(t *provider.ReportedQuota) bool {
	return t.Period != "" || provider.HasForecast(t.ResetsAt.Sub(t.At))
}

const countHour = `
INSERT INTO budget_hour (provider, host, hour, starts_at, used) VALUES ($1, $2, $3, $4, 1)
ON CONFLICT (provider, host, hour) DO UPDATE SET starts_at = excluded.starts_at,
	used = CASE WHEN budget_hour.starts_at = excluded.starts_at THEN budget_hour.used + 1 ELSE 1 END`

// countPace counts a request in the current hour.
func (a *Allowance) countPace(t *db.Tx, now time.Time) error {
	hour := now.Truncate(time.Hour)
	_, err := t.Exec(countHour, a.provider, a.host.Key, hour.Unix()/3600%paceHours, db.Micros(hour))
	return err
}

// paces holds the paces of the last hour and the last day. Both start at a full hour, so each
// may cover up to one hour more.
type paces struct{ hour, day provider.Pace }

func (p paces) of(window time.Duration) provider.Pace {
	if window < 24*time.Hour {
		return p.hour
	}
	return p.day
}

func (a *Allowance) paces(ctx context.Context, now time.Time) (p paces, err error) {
	hour, day := now.Add(-time.Hour).Truncate(time.Hour), now.Add(-24*time.Hour).Truncate(time.Hour)
	var oldest int64
	err = a.s.Read.QueryRowContext(ctx, `
		SELECT coalesce(min(starts_at), 0), coalesce(sum(used) FILTER (WHERE starts_at >= $3), 0), coalesce(sum(used) FILTER (WHERE starts_at >= $4), 0)
		FROM budget_hour WHERE provider = $1 AND host = $2 AND starts_at <= $5`,
		a.provider, a.host.Key, db.Micros(hour), db.Micros(day), db.Micros(now)).Scan(&oldest, &p.hour.Requests, &p.day.Requests)
	// If the first request was less than a day ago, divide by the time since then.
	since := func(begin time.Time) time.Duration {
		if first := db.Moment(oldest); first.After(begin) {
			begin = first
		}
		return max(now.Sub(begin), time.Hour)
	}
	p.hour.Over, p.day.Over = since(hour), since(day)
	return p, err
}

// addForecasts adds forecasts to the parts of a budget.
func (a *Allowance) addForecasts(ctx context.Context, now time.Time, b *provider.Budget) error {
	if !a.forecasts(b.Reported) {
		return nil
	}
	p, err := a.paces(ctx, now)
	if err != nil {
		return err
	}
	if !b.Limit.None() && provider.HasForecast(b.Limit.Per) {
		b.Forecast = provider.ForecastOfLimit(now, int64(b.Left), b.Limit, p.of(b.Limit.Per))
	}
	for i := range b.Quotas {
		q := &b.Quotas[i]
		q.Forecast = provider.ForecastOf(now, q.Left, q.Limit, q.ResetsAt, p.day)
	}
	if t := b.Reported; t != nil && lasts(t) {
		pace := p.of(t.ResetsAt.Sub(t.At))
		if t.Period != "" {
			pace = p.day
		}
		t.Forecast = provider.ForecastOf(now, t.Left, t.Limit, t.ResetsAt, pace)
	}
	return nil
}

// warnIfLow warns of low budgets. All processes together warn once per window.
func (a *Allowance) warnIfLow(ctx context.Context) {
	now := a.s.Clock().UnixMicro()
	if last := a.lastCheck.Load(); now >= last && now < last+checkEvery.Microseconds() || !a.lastCheck.CompareAndSwap(last, now) {
		return
	}
	b, _, err := a.State(ctx)
	if err == nil {
		err = a.warn(ctx, &b)
	}
	if err != nil && ctx.Err() == nil {
		a.s.Log.Warn("budget forecast failed", "provider", a.provider, "host", a.host.Key, "error", err)
	}
}

func (a *Allowance) warn(ctx context.Context, b *provider.Budget) error {
	var errs []error
	low := func(budget string, f provider.Forecast, left, limit int64, resets time.Time) {
		if !f.Low {
			return
		}
		first, err := a.markLow(ctx, event.BudgetLow{
			Provider: a.provider, Host: a.host.Key, Budget: budget, Left: left, Limit: limit, RunsOutAt: f.RunsOutAt, ResetsAt: resets,
		})
		if errs = append(errs, err); first {
			a.s.Log.Warn("budget low", "provider", a.provider, "host", a.host.Key, "budget", budget,
				"left", left, "limit", limit, "runs_out_at", f.RunsOutAt, "resets_at", resets)
		}
	}
	low("limit", b.Forecast, int64(b.Left), int64(b.Limit.Requests), b.ResetsAt.Add(b.Limit.Per))
	for _, q := range b.Quotas {
		low(string(q.Period), q.Forecast, q.Left, q.Limit, q.ResetsAt)
	}
	if t := b.Reported; t != nil {
		budget := "reported"
		if t.Period != "" {
			budget = string(t.Period)
		}
		low(budget, t.Forecast, t.Left, t.Limit, t.ResetsAt)
	}
	return errors.Join(errs...)
}

// markLow stores that a budget is low until it resets. The first call in this window also
// adds an event, in the same transaction, and returns true.
func (a *Allowance) markLow(ctx context.Context, low event.BudgetLow) (first bool, err error) {
	err = a.s.InTx(ctx, func(t *db.Tx) error {
		clock := t.Dialect.Clock(3)
		n, err := t.Exec(`
			INSERT INTO budget_low (provider, host, budget, until) VALUES ($1, $2, $4, $5)
			ON CONFLICT (provider, host, budget) DO UPDATE SET until = excluded.until WHERE budget_low.until <= `+clock,
			a.provider, a.host.Key, a.s.ClockArg(), low.Budget, db.Micros(low.ResetsAt))
		if first = n == 1; !first {
			return err
		}
		return event.Add(t, low)
	})
	return first && err == nil, err
}
