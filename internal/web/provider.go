package web

import (
	"errors"
	"html/template"
	"math"
	"net/http"
	"slices"
	"time"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
	"assay/internal/web/chart"
)

// providerPage shows one provider over time.
type providerPage struct {
	frame
	Self     string // URL of this page
	Provider providerCard
	Hours    template.HTML // last 48 half hours
	Latency  template.HTML
	Statuses responseChart
	Budgets  []budgetChart
	Refused  []quarantineRow
	Levels   []levelRow
	Requests []view.RequestDebug // those that match the filter
	List     listState
	Periods  []tab
	API      apiCall
}

// budgetChart is the use of one budget over its window.
type budgetChart struct {
	Title string
	Chart template.HTML
	Note  string
}

// quarantineRow is a refused response.
type quarantineRow struct {
	refresh.Quarantine
	Why string
}

// levelRow is the learned state of a market in one game.
type levelRow struct{ view.MarketLevel }

// historyPeriods are the periods of the charts by the value of the query parameter period.
var historyPeriods = map[string]time.Duration{"": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour}

func (s *providerPages) provider(w http.ResponseWriter, r *http.Request, sess session) error {
	name := r.PathValue("provider")
	debug, err := s.Providers.ProviderDebug(r.Context())
	if err != nil {
		return err
	}
	at := slices.IndexFunc(debug.Providers, func(p view.ProviderDebug) bool { return p.Provider == name })
	if at < 0 {
		return fault.New(fault.NotFound, "provider_not_found", "No provider %q is configured.", name)
	}
	list := listOf(r, "period", "outcome", "q")
	period, known := historyPeriods[list.Get("period")]
	if !known {
		return fault.New(fault.Invalid, "invalid_parameters", "The period must be 7d, 30d or absent.")
	}
	page := providerPage{
		frame: s.frame(debug.Providers[at].Title, "providers", &sess), Self: r.URL.RequestURI(), Provider: providerCards(debug.Providers[at:at+1], s.Now())[0],
		Requests: view.FilterRequests(debug.Providers[at].Requests, list.Get("outcome"), list.Get("q")), List: list,
		Periods: []tab{list.Tab("24 hours", "period", ""), list.Tab("7 days", "period", "7d"), list.Tab("30 days", "period", "30d")},
		API:     apiCall{Method: http.MethodGet, Path: "/api/market-prices/provider-debug"},
	}
	if err := s.fillHistory(r, &page, name, period); err != nil {
		return err
	}
	return s.show(w, r, "provider", page)
}

// fillHistory adds the charts and the levels of the markets.
func (s *providerPages) fillHistory(r *http.Request, page *providerPage, name string, period time.Duration) error {
	hours, err := s.Providers.ProviderHours(r.Context())
	if err != nil {
		return err
	}
	page.Hours = healthBars(page.Provider.Title, hours[name])
	history, err := s.Providers.ProviderHistory(r.Context(), name, period)
	if err != nil {
		return err
	}
	page.Latency, page.Statuses = latencyChart(history), statusChart(history)
	downs, err := s.Providers.BurnDowns(r.Context(), name)
	if err != nil {
		return err
	}
	for _, d := range downs {
		page.Budgets = append(page.Budgets, s.budgetChart(d))
	}
	refused, err := s.Providers.Quarantines(r.Context(), name)
	if err != nil {
		return err
	}
	for _, q := range refused {
		page.Refused = append(page.Refused, quarantineRow{q, sentence(q.Reason)})
	}
	levels, err := s.Providers.MarketLevels(r.Context())
	for _, l := range levels {
		if l.Provider == name {
			page.Levels = append(page.Levels, levelRow{l})
		}
	}
	return err
}

// First reports whether the market's file had no valid response before.
func (q quarantineRow) First() bool { return q.Refused != nil && q.Refused.Before == 0 }

// Item returns the item of a name in a refused response.
func (q quarantineRow) Item(m refresh.Moved) itemRef {
	return refOf(catalog.Key{AppID: q.AppID, Name: m.Name, Phase: m.Phase})
}

// Change formats the move of a price.
func (quarantineRow) Change(m refresh.Moved) string {
	move, ok := money.Ratio(m.After-m.Before, m.Before)
	if !ok {
		return "–"
	}
	return formatChange(&move)
}

// budgetChart draws how a budget runs down. The forecast continues at the current rate.
func (s *pages) budgetChart(d view.BurnDown) budgetChart {
	now, limit := s.Now(), float64(d.Limit)
	left := chart.Line{Name: "left", Class: "main"}
	for _, u := range d.Used {
		left.Points = append(left.Points, chart.Point{At: u.At, Value: max(0, limit-float64(u.Used))})
	}
	left.Points = append(left.Points, chart.Point{At: now, Value: float64(d.Left)}, chart.Point{At: now.Add(time.Nanosecond), Value: math.NaN()})
	to := now
	if d.Part != "limit" && d.ResetsAt.After(now) {
		to = d.ResetsAt
	}
	lines := []chart.Line{left}
	out := budgetChart{Title: budgetName(d.Part), Note: formatCount(d.Left) + " of " + formatCount(d.Limit) + " left"}
	if d.Host != "" {
		out.Title += " of " + d.Host
	}
	if d.RunsOutAt != nil && d.RunsOutAt.After(now) {
		end := *d.RunsOutAt
		if end.After(to) {
			to = end
		}
		lines = append([]chart.Line{{Name: "forecast", Class: "forecast", Points: forecastPoints(now, end, float64(d.Left))}}, lines...)
		out.Note += "; used up " + relative(now.Sub(end)) + " at this pace"
	}
	if d.Limit <= 0 || !to.After(d.From) {
		return out
	}
	out.Chart = chart.Step(chart.StepOptions{
		Label: out.Title + ", requests left", From: d.From, To: to, Lines: lines, Zero: true, Whole: true, Format: func(v float64) string { return formatCount(int64(v)) },
	})
	return out
}

// forecastPoints returns points that fall from left to 0 in small steps.
func forecastPoints(now, end time.Time, left float64) (points []chart.Point) {
	const steps = 40
	for i := range steps + 1 {
		points = append(points, chart.Point{At: now.Add(end.Sub(now) * time.Duration(i) / steps), Value: left * float64(steps-i) / steps})
	}
	return append(points, chart.Point{At: end.Add(time.Nanosecond), Value: math.NaN()})
}

// budgetName describes a part of a budget.
func budgetName(part string) string {
	switch part {
	case "limit":
		return "Rate limit"
	case "day":
		return "Daily quota"
	case "month":
		return "Monthly quota"
	}
	return "Reported quota"
}

// Factor returns the level as a factor.
func (l levelRow) Factor() priceText {
	if l.Level == 0 {
		return priceText{}
	}
	return factor(&l.MarketLevel.Level)
}

// Share formats a share as percent, or "–" if it is unknown.
func (levelRow) Share(part money.Micro) string {
	if part < 0 {
		return "–"
	}
	return rounded(uint64(part)*100, 2) + " %"
}

// testProvider sends one request to a provider. The request counts in the provider's budget.
func (s *providerPages) testProvider(w http.ResponseWriter, r *http.Request, sess session) error {
	name := r.PathValue("provider")
	probed, err := s.Engine.ProbeProvider(r.Context(), name, r.PostFormValue("file"))
	if failed := (*provider.Error)(nil); errors.As(err, &failed) {
		return s.done(w, r, sess, flash{Text: "The test request failed: " + sentence(failed.Error())}, nil)
	}
	quotes := int64(0)
	for _, n := range probed.Quotes {
		quotes += n
	}
	return s.done(w, r, sess, flash{Good: true, Text: name + " responded in " + humanDuration(probed.Took) + " with " + formatCount(quotes) + " quotes. Nothing was stored."}, err)
}
