package web

import (
	"context"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"assay/internal/money"
	"assay/internal/refresh"
	"assay/internal/view"
	"assay/internal/web/chart"
)

// These are the numbers of rows on the overview. Other pages show all rows.
const (
	recentCauses = 5
	recentEvents = 8
)

// overviewPage is the first page.
type overviewPage struct {
	frame
	Verdict      view.Verdict
	Problems     []view.Verdict // verdicts after the first one
	Figures      []figure
	Live         livePanel
	Runs         template.HTML // last runs as columns; empty: none
	Providers    []providerLine
	Unconfigured []view.Unconfigured
	Next         *time.Time // next scheduled run; nil: none
	Failures     []view.FailureReason
	Events       []view.EventLine
}

// providerLine is a provider with its last 48 half hours.
type providerLine struct {
	providerCard
	Hours template.HTML
}

func (s *runPages) overview(w http.ResponseWriter, r *http.Request, sess session) error {
	page := overviewPage{frame: s.frame("Overview", "overview", &sess)}
	if err := s.fillOverview(r.Context(), &page, sess); err != nil {
		return err
	}
	page.Refresh = refreshOf(page.Live)
	return s.show(w, r, "overview", page)
}

func (s *runPages) fillOverview(ctx context.Context, page *overviewPage, sess session) (err error) {
	if page.Live, err = s.panel(ctx, sess, ""); err != nil {
		return err
	}
	read, err := s.Overview.Overview(ctx)
	if err != nil {
		return err
	}
	page.Verdict, page.Problems = read.Verdicts[0], read.Verdicts[1:]
	page.Health = page.Verdict // the dot agrees with the page
	for _, t := range read.Tiles {
		page.Figures = append(page.Figures, figureOf(t))
	}
	page.Runs, page.Next = runBars(read.Runs), read.Next
	for _, card := range providerCards(read.Providers.Providers, s.Now()) {
		page.Providers = append(page.Providers, providerLine{card, healthBars(card.Title, read.Hours[card.Provider])})
	}
	page.Unconfigured = read.Providers.Unconfigured
	page.Failures = read.Failures[:min(len(read.Failures), recentCauses)]
	page.Events = read.Events[:min(len(read.Events), recentEvents)]
	return nil
}

// figureOf returns the figure of a tile with a chart of the last seven days.
func figureOf(t view.Tile) figure {
	f := figure{Value: "–"}
	format := func(n int64) string { return formatCount(n) }
	switch t.Key {
	case "quoteAge":
		f.Label, f.Note, f.Href = "Age of quotes", "95 % of prices use newer quotes", "/items"
		format = func(n int64) string { return coarse(time.Duration(n) * time.Second) }
	case "updated":
		f.Label, f.Note, f.Href = "Updated", "items in "+countedRun(t), "/runs"
	case "failed":
		f.Label, f.Note, f.Href = "Failed", "items in "+countedRun(t), "/runs"
	case "budgetLeft":
		f.Label, f.Note, f.Href = "Budget left", "of the provider with the least left", "/providers"
		format = func(n int64) string { return strconv.FormatInt(n*100/money.Scale, 10) + " %" }
		if t.Now == nil {
			f.Note = "no provider has a budget"
		}
	}
	if t.Now != nil {
		f.Value = format(*t.Now)
		if t.Key == "failed" && *t.Now > 0 {
			f.Tone = "failed"
		}
	}
	points := make([]chart.Point, len(t.Points))
	for i, p := range t.Points {
		points[i] = chart.Point{At: p.At, Value: float64(p.Value)}
	}
	if len(points) > 1 {
		f.Spark = chart.Sparkline(f.Label+" in the last seven days, now "+f.Value, points)
	}
	return f
}

// countedRun names the run that a tile counts.
func countedRun(t view.Tile) string {
	switch {
	case t.Run == "":
		return "the last run"
	case t.Kind == string(refresh.Missing):
		return "run " + t.Run + ", missing prices"
	}
	return "run " + t.Run
}

// runBars draws the last runs, the oldest on the left.
func runBars(runs []view.RunBar) template.HTML {
	if len(runs) == 0 {
		return ""
	}
	bars := make([]chart.Bar, len(runs))
	for i, run := range runs {
		outcome := run.Outcome
		state := runBadge(run.State, &outcome).Text
		title := "Run " + run.ID + ", " + state + ", " + chart.Moment(run.StartedAt) + ": " + formatCount(run.Updated) + " updated, " +
			formatCount(run.Skipped) + " skipped, " + formatCount(run.NoQuote) + " without a quote, " + formatCount(run.Failed) + " failed"
		if run.Kind == "missing" {
			title = "Missing prices: " + title
		}
		bars[len(runs)-1-i] = chart.Bar{Title: title, At: run.StartedAt, Href: "/runs/" + run.ID, Label: run.ID, Parts: []chart.Part{
			{Class: "updated", Value: float64(run.Updated)},
			{Class: "skipped", Value: float64(run.Skipped)},
			{Class: "noQuote", Value: float64(run.NoQuote)},
			{Class: "failed", Value: float64(run.Failed)},
		}}
	}
	return chart.Bars("The last runs, the newest on the right", bars)
}

// healthBars draws the half hours of a provider.
func healthBars(name string, hours []view.HalfHour) template.HTML {
	if len(hours) == 0 {
		return ""
	}
	cells := make([]chart.Cell, len(hours))
	bad := 0
	for i, h := range hours {
		title := chart.Moment(h.At) + ": no request"
		if h.Requests > 0 {
			title = chart.Moment(h.At) + ": " + numbered(h.Requests, "request", "requests") + ", " + formatCount(h.Bad()) + " without a usable response"
		}
		if h.State == "bad" {
			bad++
		}
		cells[i] = chart.Cell{State: h.State, Title: title, At: h.At}
	}
	return chart.HealthBars(name+" in the last 24 hours: "+strconv.Itoa(bad)+" of "+strconv.Itoa(len(cells))+" half hours without a usable response", cells)
}

func (s *runPages) runViews(jobs []view.Job) []*runView {
	now := s.Now()
	views := make([]*runView, len(jobs))
	for i, job := range jobs {
		views[i] = newRunView(job, nil, now)
	}
	return views
}

// refreshOf returns the reload interval of a page without scripts.
func refreshOf(p livePanel) int {
	if p.Run != nil && p.Run.Live {
		return 3
	}
	return 60
}
