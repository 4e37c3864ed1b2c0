package web

import (
	"net/http"
	"net/url"
	"strings"

	"assay/internal/view"
)

const (
	searchShown = 10 // maximum number of users, and of items of each game
	searchGames = 20 // maximum number of games
)

// searchPage lists items, users and runs that match a text.
type searchPage struct {
	frame
	Games []tab
	Items []view.PricedItem
	All   []tab // lists of all items that match, one for each game with results
	Users []view.UserSummary
	Runs  []*runView
}

// search finds items by the words of their name, users by a part of their id or name, and runs
// by their number. It finds items of all games, or of the game in the parameter appId.
func (s *searchPages) search(w http.ResponseWriter, r *http.Request, sess session) error {
	by, err := itemFilter(r.URL.Query())
	if err != nil {
		return err
	}
	by = view.ItemFilter{AppID: by.AppID, Search: strings.TrimSpace(by.Search)}
	page := searchPage{frame: s.frame("Search", "", &sess)}
	page.Search.Query = by.Search
	if by.Search == "" {
		return s.show(w, r, "search", page)
	}
	if err := s.searchItems(r, &page, by, r.URL.Query().Get("appId") != ""); err != nil {
		return err
	}
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

// searchItems adds the items. If one is set, it searches only the game of the filter.
func (s *searchPages) searchItems(r *http.Request, page *searchPage, by view.ItemFilter, one bool) error {
	games, err := s.Readers.Items.Games(r.Context(), searchGames)
	if err != nil {
		return err
	}
	list, chosen := listOf(r, "q"), by.AppID
	all := list.Tab("All games", "appId", "")
	all.Current = !one
	page.Games = []tab{all}
	for _, app := range games {
		t := list.Tab(gameName(app), "appId", text(int64(app)))
		t.Current = one && app == chosen
		page.Games = append(page.Games, t)
		if one && app != chosen {
			continue
		}
		by.AppID = app
		found, err := s.Readers.Items.Items(r.Context(), by, "", searchShown)
		if err != nil {
			return err
		}
		if page.Items = append(page.Items, found.Items...); len(found.Items) > 0 {
			q := url.Values{"appId": {text(int64(app))}, "q": {by.Search}}
			page.All = append(page.All, tab{Label: "All found in " + gameName(app), Href: "/items?" + q.Encode()})
		}
	}
	return nil
}
