package web

import (
	"slices"
	"strings"
)

// section is a page in the navigation.
type section struct {
	name  string // Section of the page's frame
	title string
	path  string
	group string // heading in the navigation; empty: none
	least Role
	key   string // pressing g and then this key opens the section; empty: none
}

// sections returns all sections in the order of the navigation. An entry is visible if its
// page has a route and the role of the session is sufficient.
func sections() []section {
	return []section{
		{"overview", "Overview", "/", "", Read, "o"},
		{"items", "Items", "/items", "Prices", Read, "i"},
		{"held", "Held", "/held", "Prices", Read, "h"},
		{"missing", "Missing", "/missing", "Prices", Read, "m"},
		{"runs", "Runs", "/runs", "", Read, "r"},
		{"providers", "Providers", "/providers", "", Read, "p"},
		{"users", "Users", "/users", "", Read, "u"},
		{"listings", "Listings", "/listings", "Market", Read, "l"},
		{"trades", "Trades", "/trades", "Market", Read, "t"},
		{"sellers", "Sellers", "/sellers", "Market", Read, "s"},
		{"ledger", "Ledger", "/ledger", "Money", Read, "b"},
		{"fees", "Fees", "/fees", "Money", Read, "f"},
		{"events", "Events", "/events", "System", Read, "e"},
		{"webhooks", "Webhooks", "/webhooks", "System", Admin, "w"},
		{"keys", "Keys", "/keys", "System", Admin, "k"},
		{"operators", "Operators", "/operators", "System", Admin, "n"},
		{"audit", "Audit", "/audit", "System", Admin, "a"},
		{"settings", "Settings", "/settings", "System", Admin, "c"},
		{"api", "API", apiPage, "System", Read, "d"},
	}
}

// apiPage is the path of the API documentation, which the API serves.
const apiPage = "/docs"

// navGroup is a part of the navigation.
type navGroup struct {
	Title   string // empty: the entries have no heading
	Entries []navEntry
}

// navEntry is a link of the navigation.
type navEntry struct {
	Title, Path, Key string
	Current          bool
}

// nav returns the navigation of a role. Consecutive sections with the same group form one
// navGroup.
func (s *pages) nav(role Role, current string) []navGroup {
	var out []navGroup
	for _, sec := range s.sections {
		if role < sec.least {
			continue
		}
		if len(out) == 0 || out[len(out)-1].Title != sec.group {
			out = append(out, navGroup{Title: sec.group})
		}
		group := &out[len(out)-1]
		group.Entries = append(group.Entries, navEntry{sec.title, sec.path, sec.key, sec.name == current})
	}
	return out
}

// sectionsOf returns the sections whose pages have a route.
func sectionsOf(routes []route) []section {
	return slices.DeleteFunc(sections(), func(sec section) bool {
		path, _, _ := strings.Cut(sec.path, "?")
		return path != apiPage && !slices.ContainsFunc(routes, func(r route) bool {
			return r.pattern == "GET "+path || r.pattern == "GET "+path+"{$}"
		})
	})
}
