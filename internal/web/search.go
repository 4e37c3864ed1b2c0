package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"assay/internal/view"
)

// searchShown is the maximum number of results of each kind.
const searchShown = 10

// searchPage lists items, users and runs that match a text.
type searchPage struct {
	frame
	Games []tab
	Items []view.PricedItem
	Users []view.UserSummary
	Runs  []*runView
	All   string // URL of all items that match
}

// search finds items by the words of their name, users by a part of their id or name, and runs
// by their number.
func (s *searchPages) search(w http.ResponseWriter, r *http.Request, sess session) error {
	by, err := itemFilter(r.URL.Query())
	if err != nil {
		return err
	}
	by = view.ItemFilter{AppID: by.AppID, Search: strings.TrimSpace(by.Search)}
	page := searchPage{frame: s.frame("Search", "", &sess), All: "/items?appId=" + strconv.Itoa(int(by.AppID)) + "&q=" + url.QueryEscape(by.Search)}
	page.Search = search{AppID: by.AppID, Query: by.Search}
	for _, g := range games(by.AppID) {
		page.Games = append(page.Games, tab{Label: g.Name, Href: "/search?appId=" + strconv.Itoa(int(g.ID)) + "&q=" + url.QueryEscape(by.Search), Current: g.ID == by.AppID})
	}
	if by.Search == "" {
		return s.show(w, r, "search", page)
	}
	found, err := s.Readers.Items.Items(r.Context(), by, "", searchShown)
	if err != nil {
		return err
	}
	page.Items = found.Items
	users, err := s.Readers.Users.UserList(r.Context(), by.Search, "", searchShown)
	if err != nil {
		return err
	}
	page.Users = users.Items
	if id, err := jobID(strings.TrimPrefix(strings.ToLower(by.Search), "run ")); err == nil {
		job, err := s.Jobs.Job(r.Context(), id)
		if err != nil && !gone(err) {
			return err
		}
		if err == nil {
			page.Runs = append(page.Runs, newRunView(job, nil, s.Now()))
		}
	}
	return s.show(w, r, "search", page)
}
