package web

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"assay/internal/view"
)

// These are the numbers of rows on the overview. Other pages show all rows.
const (
	recentRuns   = 6
	recentCauses = 5
)

// overviewPage is the first page.
type overviewPage struct {
	frame
	Live         livePanel
	Runs         []*runView
	Providers    []providerCard
	Unconfigured []view.Unconfigured
	Next         *time.Time // next scheduled run; nil: none
	Failures     []view.FailureReason
	Events       []eventLine
	Trouble      []string // failing health checks of the server
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
	jobs, err := s.Jobs.Jobs(ctx, "", "", recentRuns)
	if err != nil {
		return err
	}
	page.Runs = s.runViews(jobs.Items)
	providers, err := s.Providers.ProviderDebug(ctx)
	if err != nil {
		return err
	}
	page.Providers, page.Unconfigured = providerCards(providers.Providers, s.Now()), providers.Unconfigured
	work, err := s.Jobs.JobDebug(ctx)
	if err != nil {
		return err
	}
	page.Next = nextRefresh(work.Scheduled)
	page.Failures = work.Failures[:min(len(work.Failures), recentCauses)]
	page.Events = eventLines(work.Events)
	health, err := s.Health.Health(ctx, false)
	if err != nil {
		return err
	}
	for _, check := range slices.Sorted(maps.Keys(health.Checks)) {
		if health.Checks[check] != "ok" {
			page.Trouble = append(page.Trouble, check)
		}
	}
	return nil
}

func (s *runPages) runViews(jobs []view.Job) []*runView {
	now := s.Now()
	views := make([]*runView, len(jobs))
	for i, job := range jobs {
		views[i] = newRunView(job, nil, now)
	}
	return views
}

// scheduledRefresh is the name of the schedule that starts bulk runs.
const scheduledRefresh = "refresh"

func nextRefresh(runs []view.ScheduledRun) *time.Time {
	for _, run := range runs {
		if run.Name == scheduledRefresh {
			return &run.At
		}
	}
	return nil
}

// refreshOf returns the reload interval of a page without scripts.
func refreshOf(p livePanel) int {
	if p.Run != nil && p.Run.Live {
		return 3
	}
	return 60
}
