package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// pricesOnly turns the market, the wallet and fees off.
func pricesOnly(d *Deps) { d.PricesOnly = true }

// TestModules_OffRoutesAreNotFound sends a request to each route of API v1, without a
// credential and as an admin. Only the market, the wallet and fees may be off.
func TestModules_OffRoutesAreNotFound(t *testing.T) {
	h := startServer(t, pricesOnly)
	var off []string
	for _, op := range h.api.operations() {
		path, body := example(op)
		got := h.request(op.method, path, body, asAdmin)
		if got.StatusCode != http.StatusNotFound || !strings.Contains(got.body, `"module_off"`) {
			continue
		}
		off = append(off, op.method+" "+op.path)
		for _, method := range []string{op.method, "BREW"} {
			if p := h.wantProblem(http.StatusNotFound, "module_off", h.request(method, path, "")); !strings.Contains(p.Detail, "MODULES") {
				t.Errorf("got detail %q, want the name of the setting", p.Detail)
			}
		}
	}
	var want []string
	for _, route := range publishedRoutes {
		if isTrading(route) {
			want = append(want, route)
		}
	}
	slices.Sort(off)
	slices.Sort(want)
	if !slices.Equal(off, want) {
		t.Errorf("got the routes %q off, want %q", off, want)
	}
	h.wantProblem(http.StatusNotFound, "unknown_path", h.request("GET", "/api/listings/1/nothing", ""))
}

// isTrading reports whether a route belongs to the market, the wallet or
// fees.
func isTrading(route string) bool {
	_, path, _ := strings.Cut(route, " ")
	return slices.ContainsFunc([]string{"/api/listings", "/api/trades", "/api/functions/admin/", "/api/community/"}, func(prefix string) bool {
		return strings.HasPrefix(path, prefix)
	})
}

func TestModules_OffRoutesAreNotDescribed(t *testing.T) {
	h := startServer(t, pricesOnly)
	d := h.document()
	paths, _ := d.At("paths").(map[string]any)
	var described []string
	for path, methods := range paths {
		for method := range methods.(map[string]any) {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	want := slices.DeleteFunc(slices.Clone(publishedRoutes), isTrading)
	slices.Sort(described)
	slices.Sort(want)
	if !slices.Equal(described, want) {
		t.Errorf("got the routes %q, want %q", described, want)
	}
	var tags []string
	for _, tag := range d.At("tags").([]any) {
		tags = append(tags, tag.(map[string]any)["name"].(string))
	}
	if got := strings.Join(tags, " "); got != "market-prices prices events webhooks users inventory keys operators audit server" {
		t.Errorf("got the tags %s, want only the tags of modules that are on", got)
	}
	schemas, _ := d.At("components", "schemas").(map[string]any)
	for _, name := range []string{"Listing", "Trade", "WalletEntry", "FeeRules", "TopTraders"} {
		if _, ok := schemas[name]; ok {
			t.Errorf("the document has the schema %s, want it only with its module", name)
		}
	}
	page := h.request("GET", "/docs", "").body
	if strings.Contains(page, "/api/listings") || !strings.Contains(page, "/api/prices/lookup") {
		t.Error("page at /docs: got other routes, want only routes of modules that are on")
	}
}

// TestModules_KeepDataOfModulesThatAreOff deletes users of the sample who have listings, trades
// or money.
func TestModules_KeepDataOfModulesThatAreOff(t *testing.T) {
	h := startServer(t, pricesOnly)
	h.wantProblem(http.StatusConflict, "user_has_listings", h.request("DELETE", "/api/users/u1", "", asPlatform))
	if got := h.request("DELETE", "/api/users/idle", "", asPlatform); got.StatusCode != http.StatusNoContent {
		t.Errorf("got status %d, %s; want 204 for a user without listings, trades and money", got.StatusCode, got.body)
	}
}
