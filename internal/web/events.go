package web

import (
	"net/http"

	"assay/internal/view"
)

const eventsPerPage = 100

// eventsPage lists events, newest first.
type eventsPage struct {
	frame
	Tabs   []tab
	Events []view.EventLine
	List   listState
	API    apiCall
}

func (s *systemPages) events(w http.ResponseWriter, r *http.Request, sess session) error {
	list := listOf(r, "of")
	found, err := s.Overview.EventLines(r.Context(), list.Get("of") == "market", r.URL.Query().Get("cursor"), eventsPerPage)
	if err != nil {
		return err
	}
	page := eventsPage{
		frame: s.frame("Events", "events", &sess), Events: found.Items, List: list.until(found.NextCursor),
		API: apiCall{Method: http.MethodGet, Path: "/api/events"},
	}
	single := "Inventories, listings and trades"
	if s.PricesOnly {
		single = "Inventories"
	}
	page.Tabs = []tab{list.Tab("Service", "of", ""), list.Tab(single, "of", "market")}
	return s.show(w, r, "events", page)
}
