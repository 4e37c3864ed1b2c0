package web

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
)

func TestUsers_ListValueAndAgeOfInventories(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, marketSecret)
	body := v.get("/users").body
	mustContain(t, body, `href="/users/collector"`, `href="/users/trader"`, "Oldest inventory", "$21,551.44", "9 h ago")
	found := v.get("/users?q=TRAD").body
	mustContain(t, found, `href="/users/trader"`)
	if strings.Contains(found, "collector") {
		t.Error("got a user that does not match the search, want only matching users")
	}
	mustContain(t, v.get("/users?q=unknown").body, "Nothing found")
	if res := v.get("/users?q=" + strings.Repeat("x", 129)); res.StatusCode != http.StatusBadRequest {
		t.Errorf("long search: got status %d, want 400", res.StatusCode)
	}
}

func TestUsers_ArePagedByID(t *testing.T) {
	w := newWorld(t)
	for i := range usersPerPage {
		w.exec(`INSERT INTO platform_user (user_id, steam_id, display_name, created_at) VALUES ($1, '', '', 1)`, "u"+strings.Repeat("0", i))
	}
	v := w.visit(t, marketSecret)
	next := nextLink.FindStringSubmatch(v.get("/users").body)
	if next == nil {
		t.Fatal("the first page has no link to the next page, want one")
	}
	mustContain(t, v.get(strings.ReplaceAll(next[1], "&amp;", "&")).body, "u"+strings.Repeat("0", usersPerPage-1), "First page")
}

// TestUser_ShowsInventoriesOfAnyID opens the pages of users whose ids a browser would rewrite in a
// path.
func TestUser_ShowsInventoriesOfAnyID(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, marketSecret)
	for _, id := range []string{"collector", "..", "a/b//c", "100%2F Real", "x?y#z&", "<script>", "龍 "} {
		w.own(id, catalog.Key{AppID: catalog.CS2, Name: redline})
		res := v.get(userURL(id))
		if res.StatusCode != http.StatusOK {
			t.Errorf("user %q at %s: got status %d, want 200", id, userURL(id), res.StatusCode)
		}
		mustContain(t, html.UnescapeString(res.body), "AK-47 | Redline", "$32.38", "/ledger?user="+url.QueryEscape(id), "CS2", "No day is recorded yet")
	}
	if res := v.get("/users/unknown"); res.StatusCode != http.StatusNotFound {
		t.Errorf("unknown user: got status %d, want 404", res.StatusCode)
	}
}

func TestUser_DrawsValueOverTime(t *testing.T) {
	w := newWorld(t)
	day := w.clock.Now().Truncate(24 * time.Hour)
	for i := range 60 {
		w.exec(`INSERT INTO inventory_value (user_key, day, value, assets, unpriced) SELECT id, $1, $2, 2, 0 FROM platform_user WHERE user_id = 'trader'`,
			day.AddDate(0, 0, -1-i).UnixMicro(), text(int64(100+i)))
	}
	v := w.visit(t, marketSecret)
	mustContain(t, v.get("/users/trader").body, "Value of the inventories: lowest $100.00, highest $12", "last $100.00")
	mustContain(t, v.get("/users/trader?days=90").body, "highest $159.00")
}

func TestUser_Resyncs(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	v.post("/users/resync?user=trader", "from", "push", "back", "/users/trader")
	mustContain(t, v.get("/users/trader").body, "Resynced 2 rows of the last push")
	w.exec(`UPDATE platform_user SET steam_id = '76561197960287930' WHERE user_id = 'trader'`)
	v.post("/users/resync?user=trader", "from", "steam", "back", "/users/trader")
	body := v.get("/users/trader").body
	mustContain(t, body, "Synced from Steam: 1 added, 2 removed, 0 changed.", "AK-47 | Redline")
	w.own("empty")
	w.exec(`DELETE FROM inventory_snapshot WHERE user_key = (SELECT id FROM platform_user WHERE user_id = 'empty')`)
	v.post("/users/resync?user=empty", "from", "push", "back", "/users/empty")
	mustContain(t, v.get("/users/empty").body, "The user has no inventory yet.")
}

func TestUsers_SendsFile(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, marketSecret)
	mustContain(t, v.get("/users?q=coll").body, `href="/users?format=csv&amp;q=coll"`)
	file := v.get("/users?q=coll&format=csv").body
	mustContain(t, file, "userId,steamId,displayName,value,currency,rows,", "\ncollector,,,", ",USD,")
	if all := v.get("/users?format=csv").body; strings.Count(file, "\n") != 2 || strings.Count(all, "\n") != 3 {
		t.Errorf("got the files %q and %q, want one user in the first and two in the second", file, all)
	}
}
