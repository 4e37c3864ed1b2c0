package web

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"assay/internal/fault"
	"assay/internal/refresh"
	"assay/internal/view"
	"assay/internal/web/chart"
)

// runPage shows one job with its items.
type runPage struct {
	frame
	Live      livePanel
	Self      string        // URL of this list
	Timeline  template.HTML // empty: nothing was requested yet
	Providers []view.ProviderRow
	Causes    causes
	States    []tab
	Items     []view.JobItem
	List      listState
	API       apiCall
}

// CanRetry reports whether the user can retry items of the run.
func (p runPage) CanRetry() bool { return p.Live.CanRetry() }

func (s *runPages) run(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := jobID(r.PathValue("id"))
	if err != nil {
		return err
	}
	list := listOf(r, "state", "cause", "q")
	filter := view.JobItemFilter{State: list.Get("state"), Cause: list.Get("cause"), Search: list.Get("q")}
	if r.URL.Query().Get("format") == "csv" {
		return s.runCSV(w, r, id, filter)
	}
	skip, err := skippedCauses(r.URL.Query().Get("causes"))
	if err != nil {
		return err
	}
	panel, err := s.panel(r.Context(), sess, r.PathValue("id"))
	if err != nil {
		return err
	}
	var items view.Page[view.JobItem]
	var timeline view.Timeline
	var failures causes
	err = view.Together(r.Context(),
		func(ctx context.Context) (err error) {
			items, err = s.Jobs.JobItems(ctx, id, filter, r.URL.Query().Get("cursor"), itemsPerPage)
			return err
		},
		func(ctx context.Context) (err error) { timeline, err = s.Jobs.Timeline(ctx, id); return err },
		func(ctx context.Context) (err error) {
			failures, err = s.causes(ctx, id, panel.Run.FailedItems, skip)
			return err
		},
	)
	if err != nil {
		return err
	}
	page := runPage{
		frame: s.frame("Run "+panel.Run.ID, "runs", &sess), Live: panel, Self: r.URL.RequestURI(),
		Timeline: drawTimeline(timeline), Providers: timeline.Providers, Causes: failures, States: stateTabs(panel.Run.Job, list),
		Items: items.Items, List: list.until(items.NextCursor),
		API: apiCall{Method: http.MethodGet, Path: "/api/market-prices/jobs/" + panel.Run.ID + "/items?" + list.values.Encode()},
	}
	if panel.Run.Live {
		page.Refresh = refreshOf(panel)
	}
	return s.show(w, r, "run", page)
}

// runCSV sends the items of a run that match a filter. Its memory use does not depend on their
// number.
func (s *runPages) runCSV(w http.ResponseWriter, r *http.Request, id int64, filter view.JobItemFilter) error {
	if _, err := s.Jobs.JobItems(r.Context(), id, filter, "", 1); err != nil {
		return err // an unknown run or an invalid filter, before the file begins
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="run-`+text(id)+`.csv"`)
	if err := s.Jobs.WriteJobItems(r.Context(), w, id, filter); err != nil {
		s.Logger.ErrorContext(r.Context(), "file could not be sent", "run", id, "error", err)
		panic(http.ErrAbortHandler) // otherwise the browser would store an incomplete file as complete
	}
	return nil
}

// stageNames are the titles of the stages.
var stageNames = map[string]string{
	string(refresh.StagePlan): "Plan", string(refresh.StageFetch): "Fetch", string(refresh.StageEstimate): "Estimate", string(refresh.StageApply): "Apply",
}

// drawTimeline draws the stages and a lane for each provider.
func drawTimeline(t view.Timeline) template.HTML {
	if !t.To.After(t.From) {
		return ""
	}
	stages := chart.Lane{Name: "Stages"}
	var names []string
	for i, span := range t.Stages {
		class := "work"
		if i%2 == 1 {
			class = "stage"
		}
		names = append(names, stageNames[span.Kind])
		stages.Segments = append(stages.Segments, chart.Segment{
			From: span.From, To: span.To, Class: class, Title: stageNames[span.Kind] + ": " + humanDuration(span.To.Sub(span.From)),
		})
	}
	if len(names) > 0 {
		stages.Note = ": " + strings.Join(names, ", ")
	}
	lanes := []chart.Lane{stages}
	for _, l := range t.Providers {
		lane := chart.Lane{Name: l.Provider + ", " + numbered(l.Requests, "request", "requests")}
		for _, span := range l.Spans {
			lane.Segments = append(lane.Segments, segmentOf(span, l.Failed > 0 && l.Requests == 0))
		}
		lanes = append(lanes, lane)
	}
	return chart.Timeline("Timeline of the run", t.From, t.To, lanes)
}

// segmentOf returns a part of a provider's lane.
func segmentOf(span view.Span, failed bool) chart.Segment {
	took := humanDuration(span.To.Sub(span.From))
	seg := chart.Segment{From: span.From, To: span.To, Class: "work", Title: numbered(span.Requests, "request", "requests") + " in " + took}
	switch {
	case span.Kind == "wait":
		seg.Class, seg.Title = "wait", "waited "+took
	case span.Kind == "breaker":
		seg.Class, seg.Title = "pause", "circuit breaker open for "+took
		if span.Text != "" {
			seg.Title += ": " + span.Text
		}
	case failed:
		seg.Class = "failed"
	}
	return seg
}

// stateTabs returns a tab for each state that the run's items have.
func stateTabs(job view.Job, list listState) []tab {
	counts := []part{
		{"pending", job.PendingItems},
		{"updated", job.UpdatedItems},
		{"skipped", job.SkippedItems.Total()},
		{"noQuote", job.NoQuoteItems},
		{"failed", job.FailedItems},
		{"cancelled", job.CancelledItems},
	}
	all := list.Tab("All", "state", "")
	all.Count = &job.TotalItems
	tabs := []tab{all}
	for _, c := range counts {
		t := list.Tab(badgeOf("item", c.name).Text, "state", c.name)
		if t.Count = &c.count; c.count > 0 || t.Current {
			tabs = append(tabs, t)
		}
	}
	for i := range tabs {
		tabs[i].Href += "#items"
	}
	return tabs
}

// causes groups a run's failed items by error.
type causes struct {
	List  []cause
	Other int64  // number of items with the errors that follow
	First string // URL of the most frequent errors; empty on their page
	Next  string // URL of the errors that follow; empty: none
}

// cause is one error and some of its items.
type cause struct {
	view.FailureReason
	Retry int64          // the last run that retried the items; 0: none
	Items []view.JobItem // sample of the items
	Href  string         // list of all items with this error
}

// skippedCauses parses the number of errors before a page of errors.
func skippedCauses(value string) (int, error) {
	if value == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return 0, fault.New(fault.Invalid, "invalid_parameters", "The number of errors before the page must be a whole number.")
	}
	return int(n), nil
}

// causes groups the failed items of a run by error. It leaves out the first skip errors.
func (s *runPages) causes(ctx context.Context, id, failed int64, skip int) (out causes, err error) {
	if failed == 0 {
		return out, nil
	}
	list, other, err := s.Jobs.JobFailures(ctx, id, skip)
	if err != nil {
		return out, err
	}
	retries, err := s.Jobs.Retries(ctx, id)
	if skip > 0 {
		out.First = "/runs/" + text(id) + "#why"
	}
	if other > 0 {
		out.Next = "/runs/" + text(id) + "?causes=" + strconv.Itoa(skip+view.CausesShown) + "#why"
	}
	for _, f := range list {
		c := cause{FailureReason: f, Retry: max(retries[f.Cause], retries[""]), Href: "/runs/" + text(id) + "?" + url.Values{"cause": {f.Cause}}.Encode() + "#items"}
		for _, k := range f.Items {
			c.Items = append(c.Items, view.JobItem{AppID: k.AppID, MarketHashName: k.Name, Phase: k.Phase})
		}
		out.List = append(out.List, c)
	}
	out.Other = other
	return out, err
}

// SkipReason describes the reason of a skipped item.
func (runPage) SkipReason(code string) string { return view.ReasonText(code) }
