package web

import (
	"encoding/json"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/internal/api" //nolint:depguard // the walk includes the page of the API documentation
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/randtest"
)

// window is a browser window. Its size is in px.
type window struct {
	name          string
	width, height int64
}

// windows returns the browser windows that the walk uses on an engine. PostgreSQL gets only one,
// because its pages differ only in their data.
func windows(engine string) []window {
	if engine == dbtest.PostgreSQL && !randtest.Long() {
		return []window{{"postgres-narrow", 390, 844}}
	}
	all := []window{{"narrow", 390, 844}, {"", 1440, 900}}
	if randtest.Long() || os.Getenv(shotsEnv) != "" {
		all = append(all, window{"wide", 1920, 1080})
	}
	return all
}

// narrowest is the smallest window width in px. Every page must fit it.
const narrowest = 360

// walked returns the address of every page, by name.
func walked() map[string]string {
	return map[string]string{
		"overview": "/", "runs": "/runs", "run": "/runs/42", "failed-run": "/runs/42?state=failed", "providers": "/providers", "provider": "/providers/cs2cap?period=7d", "quarantined": "/providers/pricelist",
		"items": "/items", "filtered": "/items?held=1&market=aurum&minPrice=1&sort=-price", "held": "/held", "missing": "/missing", "dry-run": "/dry-run", "search": "/search?q=redline",
		"keys": "/keys", "operators": "/operators", "password": "/password", "audit": "/audit", "users": "/users", "user": "/users/anna",
		"listings": "/listings", "listing": "/listings/3", "trades": "/trades", "trade": "/trades/2", "sellers": "/sellers",
		"ledger": "/ledger", "holds": "/ledger?of=holds", "ledger-user": "/ledger?user=anna", "fees": "/fees", "fee": "/fees?kind=sale&amount=12.50&currency=USD",
		"events": "/events", "webhooks": "/webhooks", "webhook": "/webhooks/1", "settings": "/settings",
		"item": itemURL(730, redline, ""), "trap": itemURL(730, "Line one\nline two", ""), "item-all": itemURL(730, dragonLore, "") + "&range=all",
	}
}

// documents returns the addresses of documentation pages. They are the same on every engine.
func documents() map[string]string {
	return map[string]string{"help": "/help/index.html", "help-page": "/help/how-to/currencies.html", "api": "/docs"}
}

// annasPassword is the password of anna, an operator that fill creates.
const annasPassword = "a-password-of-anna"

// fill adds the rows that the sample lacks, so that no page of the walk is empty.
func (w *world) fill(t *testing.T) {
	t.Helper()
	w.sample.clients.request(t)
	v := w.visit(t, adminToken) // fills the lists of keys and changes
	v.post("/keys", "name", "price-bot", "scope", "prices:read", "perMinute", "600")
	v.post("/keys", "name", "inventory-sync", "scope", "inventory:write", "days", "30")
	v.post("/keys/inventory-sync/rotate")
	v.post("/webhooks", w.webhookFields("event", "job.failed", "event", "provider.down", "items", "AK-47 | Redline (Field-Tested)")...)
	w.exec(`INSERT INTO webhook_delivery (webhook_id, number, first, kind, state, attempts, status, duration, error, at)
		VALUES (1, 7, 7, 'job.failed', 'retrying', 3, 503, 12000, 'out of order', $1), (1, 6, 6, 'provider.down', 'delivered', 1, 204, 8000, '', $1)`, w.clock.Now().UnixMicro())
	w.trade()
	w.writeFees(700)
	v.post("/operators", "name", "anna", "role", "admin", "password", annasPassword)
	w.insertSamples()
	w.insertHistory(redline)
}

// insertHistory inserts a week of changes before the stored prices of an item.
func (w *world) insertHistory(name string) {
	w.Helper()
	const newest = ` FROM price_point WHERE item_id = (SELECT id FROM item WHERE name = $1 AND phase = '') ORDER BY at DESC LIMIT 1`
	stored := w.read(`SELECT quotes`+newest, name)
	for i, thousandths := range []int64{962, 958, 971, 968, 983, 977, 990, 1004, 996, 1009, 1001} {
		var quotes [][]any // of each market: id, currency, ask, bid, median and more
		must(w, json.Unmarshal([]byte(stored), &quotes))
		for market, quote := range quotes {
			apart := thousandths + int64((i*(market+3))%7) - 3 // markets do not move in step
			for field := 2; field <= 4; field++ {
				quote[field] = math.Round(quote[field].(float64) * float64(apart) / 1000)
			}
		}
		scaled, err := json.Marshal(quotes)
		must(w, err)
		at := w.clock.Now().Add(time.Duration(i*13)*time.Hour - 167*time.Hour)
		w.exec(`INSERT INTO price_point (item_id, at, updated_at, checked_at, quotes_at, price, status, average, median, consensus, interval_low, interval_high,
				candidate, candidate_at, rate_set, level_set, method_version, used, method, guard, quotes)
			SELECT item_id, CAST($2 AS BIGINT), CAST($2 AS BIGINT), CAST($2 AS BIGINT), CAST($2 AS BIGINT), price * CAST($3 AS BIGINT) / 1000, status, average, median, consensus * CAST($3 AS BIGINT) / 1000,
				interval_low * CAST($3 AS BIGINT) / 1000, interval_high * CAST($3 AS BIGINT) / 1000,
				candidate, candidate_at, rate_set, level_set, method_version, used, method, guard, CAST($4 AS TEXT)`+newest,
			name, db.Micros(at), thousandths, string(scaled))
	}
}

// withAPI returns the handler of a complete server: the API and the pages.
func (w *world) withAPI() http.Handler {
	return api.New(api.Deps{
		Page: w.handler, Registry: prometheus.NewRegistry(), Credentials: w.creds, Keys: w.keys, Logger: slog.New(slog.DiscardHandler), Now: w.clock.Now, Version: "0.1.0-test",
	})
}

// TestBrowser_FitsAllScreens opens every page on both engines, on a wide and on a narrow
// screen, in light and dark mode. It checks the width, the accessibility, and that the content
// security policy blocks nothing.
func TestBrowser_FitsAllScreens(t *testing.T) {
	for _, engine := range []string{dbtest.SQLite, dbtest.PostgreSQL} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w := newWorldOn(t, engine)
			w.fill(t)
			server := httptest.NewServer(w.withAPI())
			t.Cleanup(server.Close)
			b := openBrowser(t, server.URL)
			addresses := walked()
			if engine == dbtest.SQLite {
				maps.Copy(addresses, documents())
				b.walk("sign-in", "/sign-in", windows(engine)[0])
				b.walk("api-public", "/docs", windows(engine)[0])
			}
			b.signInAs("anna", annasPassword)
			for _, size := range windows(engine) {
				for name, address := range addresses {
					b.walk(name, address, size)
				}
			}
			b.quiet()
		})
	}
}

// walk opens a page and checks it in light and dark mode.
func (b *browser) walk(name, address string, size window) {
	b.t.Helper()
	for i, scheme := range []string{"light", "dark"} {
		b.look(scheme, size.width, size.height)
		if i == 0 {
			b.open(address)
			// The page shows the operations of the API closed. This opens one in five: axe needs seconds if
			// all are open.
			eval[int](b, `document.querySelectorAll("details.operation:nth-of-type(5n)").forEach(d => { d.open = true; }), 0`)
		}
		look := strings.Trim(size.name+"-"+scheme, "-")
		if size.name == "narrow" && scheme == "light" {
			look = "narrow"
		}
		b.axe(name + ", " + look)
		b.shoot(name + "-" + look)
	}
	b.look("light", min(size.width, narrowest), size.height)
	b.fits(name + " on the narrowest screen")
}

// TestWalk_IncludesEveryPage compares the addresses of the walk with the routes.
func TestWalk_IncludesEveryPage(t *testing.T) {
	s := newEmptyWorld(t).handler.(*site)
	opened := map[string]bool{"GET /live": true, "GET /health": true} // parts of pages
	for _, address := range walked() {
		at, err := url.Parse(address)
		must(t, err)
		_, pattern := s.mux.Handler(&http.Request{Method: http.MethodGet, URL: at})
		opened[pattern] = true
	}
	for _, r := range s.routes() {
		if strings.HasPrefix(r.pattern, "GET ") && !opened[r.pattern] {
			t.Errorf("no address of the walk has the pattern %q, want one", r.pattern)
		}
	}
}

func TestDocs_HaveNavigationOnlyWithSession(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	complete := w.withAPI()
	get := func(signedIn bool) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/docs", nil)
		if signedIn {
			r.AddCookie(v.cookie)
		}
		res := httptest.NewRecorder()
		complete.ServeHTTP(res, r)
		return res
	}
	framed, public := get(true), get(false)
	mustContain(t, framed.Body.String(), `<a href="/docs" aria-current="page" data-key="d">API</a>`, "keys.js", "GET</b> <code>/api/prices/items")
	mustContain(t, public.Body.String(), "GET</b> <code>/api/prices/items")
	if strings.Contains(public.Body.String(), "<nav") {
		t.Error("without a session: got navigation, want none")
	}
	if got := framed.Header().Get("Cache-Control") + ", " + framed.Header().Get("Vary"); got != "no-store, Cookie" {
		t.Errorf("with a session: got Cache-Control and Vary %q, want %q", got, "no-store, Cookie")
	}
}
