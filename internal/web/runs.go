package web

import (
	"context"
	"net/http"
	"net/url"

	"assay/internal/fault"
	"assay/internal/view"
)

const (
	runsPerPage  = 25
	itemsPerPage = 50
)

// runsPage lists jobs.
type runsPage struct {
	frame
	Kind  string // empty: all
	Kinds []tab
	Runs  []*runView
	Next  string // URL of the next page; empty on the last page
	First bool
}

// tab is one choice of a filter.
type tab struct {
	Label   string
	Href    string
	Count   *int64 // nil: unknown
	Current bool
}

func (s *runPages) runs(w http.ResponseWriter, r *http.Request, sess session) error {
	kind, cursor := r.URL.Query().Get("kind"), r.URL.Query().Get("cursor")
	if kind != "" && kind != "bulk" && kind != "missing" {
		return fault.New(fault.Invalid, "invalid_kind", "The kind of a run must be bulk or missing.")
	}
	jobs, err := s.Jobs.Jobs(r.Context(), kind, cursor, runsPerPage)
	if err != nil {
		return err
	}
	page := runsPage{
		frame: s.frame("Runs", "runs", &sess), Kind: kind, Runs: s.runViews(jobs.Items), First: cursor == "",
		Kinds: []tab{
			{Label: "All", Href: "/runs", Current: kind == ""},
			{Label: "Bulk", Href: "/runs?kind=bulk", Current: kind == "bulk"},
			{Label: "Missing prices", Href: "/runs?kind=missing", Current: kind == "missing"},
		},
		Next: nextPage("/runs", jobs.NextCursor, "kind", kind),
	}
	return s.show(w, r, "runs", page)
}

// nextPage returns the URL of the next page. It keeps the given filters, which are pairs of
// keys and values.
func nextPage(path string, cursor *string, filters ...string) string {
	if cursor == nil {
		return ""
	}
	q := url.Values{"cursor": {*cursor}}
	for i := 0; i+1 < len(filters); i += 2 {
		if filters[i+1] != "" {
			q.Set(filters[i], filters[i+1])
		}
	}
	return path + "?" + q.Encode()
}

// runPage shows one job with its items.
type runPage struct {
	frame
	Live   livePanel
	Self   string // URL of this list
	Causes causes
	State  string // state of the listed items; empty: all
	States []tab
	Items  []view.JobItem
	Next   string
	First  bool
}

func (s *runPages) run(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := jobID(r.PathValue("id"))
	if err != nil {
		return err
	}
	state, cursor := r.URL.Query().Get("state"), r.URL.Query().Get("cursor")
	panel, err := s.panel(r.Context(), sess, r.PathValue("id"))
	if err != nil {
		return err
	}
	path := "/runs/" + panel.Run.ID
	items, err := s.Jobs.JobItems(r.Context(), id, state, cursor, itemsPerPage)
	if err != nil {
		return err
	}
	page := runPage{
		frame: s.frame("Run "+panel.Run.ID, "runs", &sess), Live: panel, Self: r.URL.RequestURI(),
		State: state, States: stateTabs(panel.Run.Job, path, state),
		Items: items.Items, Next: nextPage(path, items.NextCursor, "state", state), First: cursor == "",
	}
	if page.Causes, err = s.causes(r.Context(), id, panel.Run.FailedItems); err != nil {
		return err
	}
	if panel.Run.Live {
		page.Refresh = refreshOf(panel)
	}
	return s.show(w, r, "run", page)
}

// stateTabs returns a tab for each state that the run's items have.
func stateTabs(job view.Job, path, current string) []tab {
	counts := []part{
		{"pending", job.PendingItems},
		{"updated", job.UpdatedItems},
		{"skipped", job.SkippedItems.Total()},
		{"noQuote", job.NoQuoteItems},
		{"failed", job.FailedItems},
		{"cancelled", job.CancelledItems},
	}
	tabs := []tab{{Label: "All", Href: path + "#items", Count: &job.TotalItems, Current: current == ""}}
	for _, c := range counts {
		if c.count > 0 || c.name == current {
			tabs = append(tabs, tab{
				Label: badgeOf("item", c.name).Text, Href: path + "?state=" + c.name + "#items",
				Count: &c.count, Current: c.name == current,
			})
		}
	}
	return tabs
}

// causes groups a run's failed items by error.
type causes struct {
	List  []cause
	Other int64 // number of items with other errors
}

// cause is one error and some of its items.
type cause struct {
	view.FailureReason
	Items []view.JobItem // sample of the items
}

// causes groups the failed items of a run by error.
func (s *runPages) causes(ctx context.Context, id, failed int64) (out causes, err error) {
	if failed == 0 {
		return out, nil
	}
	list, other, err := s.Jobs.JobFailures(ctx, id)
	for _, f := range list {
		c := cause{FailureReason: f}
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

// dryRunPage shows the forecast of a run.
type dryRunPage struct {
	frame
	Forced bool
	Plan   view.DryRun
	Due    []segment
}

func (s *runPages) dryRun(w http.ResponseWriter, r *http.Request, sess session) error {
	forced := r.URL.Query().Get("force") == "1"
	plan, err := s.Jobs.DryRun(r.Context(), forced)
	if err != nil {
		return err
	}
	page := dryRunPage{
		frame: s.frame("Dry run", "overview", &sess), Forced: forced, Plan: plan,
		Due: segments(plan.TotalItems, part{"updated", plan.DueItems}, part{"skipped", plan.SkippedItems.Total()}),
	}
	return s.show(w, r, "dry-run", page)
}
