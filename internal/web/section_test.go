package web

import (
	"net/http"
	"strings"
	"testing"
)

func TestSections_AreVisibleToRolesThatCanOpenThem(t *testing.T) {
	w := newWorld(t)
	for secret, role := range map[string]Role{marketSecret: Read, adminToken: Admin} {
		v := w.visit(t, secret)
		body := v.get("/").body
		for _, sec := range w.handler.(*site).sections {
			link := `<a href="` + sec.path + `"`
			if shown := strings.Contains(body, link); shown != (role >= sec.least) {
				t.Errorf("%v: link to %s visible: got %v, want %v", role, sec.title, shown, !shown)
			}
			if sec.path == apiPage || role < sec.least {
				continue
			}
			page := v.get(sec.path)
			if current := `<a href="` + sec.path + `" aria-current="page"`; page.StatusCode != http.StatusOK || strings.Count(page.body, current) != 2 {
				t.Errorf("%s: got status %d, want 200 with the current entry in the rail and the menu", sec.path, page.StatusCode)
			}
		}
	}
}

func TestSections_HaveUniqueNamesPathsAndKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, sec := range sections() {
		for _, id := range []string{"name " + sec.name, "path " + sec.path, "key " + sec.key} {
			if seen[id] {
				t.Errorf("two sections have the %s, want a unique one", id)
			}
			seen[id] = true
		}
	}
}

func TestSections_OfMarketNeedItsModule(t *testing.T) {
	w := newWorld(t)
	p := w.handler.(*site).pages
	all := len(p.routes())
	p.PricesOnly = true
	if got, want := len(p.routes()), all-len(p.tradingRoutes()); got != want {
		t.Errorf("with prices only: got %d routes, want %d", got, want)
	}
}
