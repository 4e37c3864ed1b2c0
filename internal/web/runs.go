package web

import (
	"net/http"
	"net/url"
	"time"

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
	Self  string // URL of this page
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
	if kind != "" && kind != "bulk" && kind != "missing" && kind != "items" {
		return fault.New(fault.Invalid, "invalid_kind", "The kind of a run must be bulk, missing or items.")
	}
	jobs, err := s.Jobs.Jobs(r.Context(), kind, cursor, runsPerPage)
	if err != nil {
		return err
	}
	page := runsPage{
		frame: s.frame("Runs", "runs", &sess), Self: r.URL.RequestURI(), Kind: kind, Runs: s.runViews(jobs.Items), First: cursor == "",
		Kinds: []tab{
			{Label: "All", Href: "/runs", Current: kind == ""},
			{Label: "Bulk", Href: "/runs?kind=bulk", Current: kind == "bulk"},
			{Label: "Missing prices", Href: "/runs?kind=missing", Current: kind == "missing"},
			{Label: "Chosen items", Href: "/runs?kind=items", Current: kind == "items"},
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

// dryRunPage shows the forecast of a run.
type dryRunPage struct {
	frame
	Forced bool
	Plan   view.DryRun
	At     time.Time // of the forecast
	Due    []segment
}

func (s *runPages) dryRun(w http.ResponseWriter, r *http.Request, sess session) error {
	forced := r.URL.Query().Get("force") == "1"
	plan, at, err := s.Jobs.RecentDryRun(r.Context(), forced)
	if err != nil {
		return err
	}
	page := dryRunPage{
		frame: s.frame("Dry run", "overview", &sess), Forced: forced, Plan: plan, At: at,
		Due: segments(plan.TotalItems, part{"updated", plan.DueItems}, part{"skipped", plan.SkippedItems.Total()}),
	}
	return s.show(w, r, "dry-run", page)
}
