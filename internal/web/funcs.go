package web

import (
	"html/template"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/view"
)

// funcs returns the functions for templates.
func (s *pages) funcs() template.FuncMap {
	return template.FuncMap{
		"version":   func() string { return s.Version },
		"now":       func() string { return s.Now().UTC().Format(time.RFC3339Nano) },
		"asset":     s.assets.link,
		"scripted":  func() bool { return s.assets.has(htmxFile) },
		"charted":   func() bool { return s.assets.has(chartFile) },
		"count":     formatCount,
		"duration":  humanSeconds,
		"name":      markedName,
		"game":      gameName,
		"games":     games,
		"itemURL":   itemURL,
		"acceptURL": func(query string) string { return "/item/accept?" + query }, // a template would escape a query after a "?" again
		"when":      s.when,
		"price":     func(m any) priceText { return s.price(m, s.Currency) },
		"amount":    func(m any, c money.Currency) priceText { return s.price(m, c) },
		"factor":    factor,
		"minor":     minor,
		"sum":       func(v money.Sum) priceText { return sum(v, s.Currency) },
		"userURL":   userURL,
		"ledgerURL": func(id string) string { return "/ledger?user=" + url.QueryEscape(id) },
		"change":    formatChange,
		"item": func(i view.PricedItem) string {
			return itemQuery(catalog.Key{AppID: i.AppID, Name: i.MarketHashName, Phase: i.Phase})
		},
		"numbered":  numbered,
		"share":     formatShare,
		"traits":    traitsOf,
		"badge":     badgeOf,
		"held":      heldBadge,
		"breaker":   breakerText,
		"requester": requesterText,
		"outcome":   outcomeText,
	}
}

// itemURL returns the URL of an item. The name is a query value because browsers and proxies
// rewrite paths that contain "..", "%2F" or "//".
func itemURL(appID int32, name, phase string) string {
	return "/item?" + itemQuery(catalog.Key{AppID: appID, Name: name, Phase: phase})
}

// userURL returns the URL of a user. An id that browsers or proxies would rewrite in a path is a
// query value.
func userURL(id string) string {
	if name := "/users/" + id; path.Clean(name) != name || strings.Contains(id, "/") {
		return "/users?user=" + url.QueryEscape(id)
	}
	return "/users/" + url.PathEscape(id)
}

// itemQuery returns the query string of an item, which keyOf parses.
func itemQuery(key catalog.Key) string {
	q := url.Values{"appId": {strconv.Itoa(int(key.AppID))}, "name": {key.Name}}
	if key.Phase != "" {
		q.Set("phase", key.Phase)
	}
	return q.Encode()
}

// game is one entry in the search form.
type game struct {
	ID   int32
	Name string
}

// games returns the supported games. If current is another game, the list includes it.
func games(current int32) []game {
	known := []game{{catalog.CS2, "CS2"}, {catalog.Dota, "Dota 2"}, {catalog.Rust, "Rust"}, {catalog.TF2, "TF2"}}
	for _, g := range known {
		if g.ID == current {
			return known
		}
	}
	return append(known, game{current, gameName(current)})
}

func gameName(appID int32) string {
	switch appID {
	case catalog.CS2:
		return "CS2"
	case catalog.Dota:
		return "Dota 2"
	case catalog.TF2:
		return "TF2"
	case catalog.Rust:
		return "Rust"
	default:
		return "App " + strconv.Itoa(int(appID))
	}
}
