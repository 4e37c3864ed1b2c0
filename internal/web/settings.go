package web

import (
	"html/template"
	"net/http"
	"slices"
	"strings"

	"assay/internal/config"
)

// settingsPage lists the effective settings.
type settingsPage struct {
	frame
	Settings []config.Setting
	Query    string
	Changed  bool // only settings that are not defaults
	Total    int
	Empty    emptyState
}

// Breakable returns a name that a narrow column breaks only after an underscore.
func (settingsPage) Breakable(name string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(name), "_", "_<wbr>")) //nolint:gosec // the name is escaped
}

// settings shows the settings of this process. Secrets are masked already.
func (s *systemPages) settings(w http.ResponseWriter, r *http.Request, sess session) error {
	q := r.URL.Query()
	page := settingsPage{
		frame: s.frame("Settings", "settings", &sess), Query: q.Get("name"), Changed: q.Get("changed") == "1", Total: len(s.Settings),
		Empty: emptyState{"Nothing found", "No setting matches the filter."},
	}
	page.Settings = slices.DeleteFunc(slices.Clone(s.Settings), func(set config.Setting) bool {
		return page.Changed && set.Origin == "default" || !strings.Contains(set.Name, strings.ToUpper(page.Query))
	})
	return s.show(w, r, "settings", page)
}
