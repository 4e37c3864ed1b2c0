package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"assay/internal/pgtest"
	"assay/internal/provider/providertest"
	"assay/internal/provider/sim"
)

// canaries are values for all configurable secrets. The tests search for them in all output.
var canaries = map[string]string{
	"MARKET_PRICE_SYNC_SECRET": "canary-market-5ca1ab1e5ca1ab1e",
	"PLATFORM_API_TOKEN":       "canary-platform-5ca1ab1e5ca1ab1e",
	"ADMIN_API_TOKEN":          "canary-admin-5ca1ab1e5ca1ab1e",
	"WALLET_LEDGER_KEY":        strings.Repeat("5ca1ab1e", 8),
	"SIM_API_KEY":              "canary-sim-5ca1+b1e/5ca1ab1e==",
	"PRICELIST_API_KEY":        "canary-list-5ca1ab1e5ca1ab1e",
	"SHOP_API_KEY":             `canary-header-5ca1&b1e"5ca1/b1e<+`,
	"QUERY_API_KEY":            `canary-query-5ca1+b1e/5ca1&b1e'=`,
}

// finder searches content for canaries.
type finder struct {
	t     *testing.T
	mu    sync.Mutex
	forms map[string]string // secret names by the texts to search for
	bytes int
}

func newFinder(t *testing.T) *finder {
	f := &finder{t: t, forms: map[string]string{}}
	for name, value := range canaries {
		for _, spell := range spellings {
			f.forms[strings.ToLower(spell(value))] = name
		}
		f.forms[hex.EncodeToString([]byte(value))] = name
		for before := range 3 { // base64 digits that do not depend on the text before the value
			digits := base64.RawStdEncoding.EncodeToString([]byte("ab"[:before] + value))[4:20]
			f.forms[strings.ToLower(digits)] = name
			f.forms[strings.ToLower(strings.NewReplacer("+", "-", "/", "_").Replace(digits))] = name
		}
	}
	return f
}

// spellings are encodings in which a secret may appear.
var spellings = map[string]func(string) string{
	"as it is":        func(s string) string { return s },
	"query":           url.QueryEscape,
	"path":            url.PathEscape,
	"path, slashes":   func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "%2F", "/") },
	"twice":           func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
	"HTML":            html.EscapeString,
	"HTML, all":       func(s string) string { return each(s, "&#%d;") },
	"HTML, hex":       func(s string) string { return each(s, "&#x%02X;") },
	"HTML in a query": func(s string) string { return url.QueryEscape(html.EscapeString(s)) },
	"JSON":            func(s string) string { return strings.Trim(fmt.Sprintf("%q", s), `"`) },
	"JSON, all":       func(s string) string { return each(s, `\u%04x`) },
	"JSON, slashes":   func(s string) string { return strings.ReplaceAll(s, "/", `\/`) },
	"capitals":        strings.ToUpper,
}

// each formats every byte of a text.
func each(s, format string) string {
	var out strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&out, format, s[i])
	}
	return out.String()
}

func (f *finder) look(where string, content []byte) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bytes += len(content)
	lower := bytes.ToLower(content)
	for form, name := range f.forms {
		if at := bytes.Index(lower, []byte(form)); at >= 0 {
			f.t.Errorf("%s contains the secret %s: ...%.300q", where, name, lower[max(0, at-100):min(len(lower), at+100)])
			return
		}
	}
}

// secretFinder is a server with a canary for every secret. Its providers return all data that they
// receive.
type secretFinder struct {
	*server
	f     *finder
	shop  *providertest.Server
	names []string
	shown int            // number of requests by show
	pg    *pgtest.Server // nil on SQLite
}

func newSecretFinder(t *testing.T, on engine) *secretFinder {
	markets, simURL := simulator(t, sim.Options{Names: 30, Frozen: true})
	list := csvList(markets.Names(), 500)
	shop := providertest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(list) }))
	config := filepath.Join(t.TempDir(), "lists.json")
	location, err := json.Marshal(shop.URL() + "/list.csv?key=${QUERY_API_KEY}")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, config, `{"lists":[{"key":"shop","location":`+string(location)+`,"headers":{"X-Api-Key":"${SHOP_API_KEY}"},
		"format":"csv","appId":730,"currency":"USD","name":"name","markets":[{"key":"shop","ask":"price"}]}]}`)
	env := []string{"MARKET_PRICE_PROVIDERS=sim,pricelist", "SIM_BASE_URL=" + simURL, "PRICELIST_CONFIG=" + config, "LOG_LEVEL=debug", "TRUSTED_PROXIES=127.0.0.1"}
	for name, value := range canaries {
		env = append(env, name+"="+value)
	}
	h := &secretFinder{f: newFinder(t), shop: shop, names: markets.Names()}
	if on == onSQLite {
		h.server = newServer(t, env...)
	} else { // this server logs every statement with its values
		h.pg = pgtest.Start(t, pgtest.Options{Settings: []string{"log_statement=all"}})
		h.server = newServerOn(t, h.pg.NewDatabase(t), env...)
	}
	h.secrets = canaries
	return h
}

// live runs every feature that uses a secret.
func (h *secretFinder) live() {
	h.t.Helper()
	pushNames(h.server, h.names, 1)
	h.awaitPriced()
	faults := []providertest.Fault{
		providertest.Echo(401), providertest.Echo(500), providertest.Echo(404), providertest.Echo(200), providertest.Reset(),
		providertest.Redirect("http://10.0.0.1/?key=" + url.QueryEscape(canaries["QUERY_API_KEY"])), providertest.Garbage(), providertest.HTML(),
	}
	for name, spell := range spellings {
		faults = append(faults, providertest.EchoAs(name, 403, spell))
	}
	faults = append(faults, providertest.EchoAs("hex", 400, func(s string) string { return hex.EncodeToString([]byte(s)) }),
		providertest.EchoAs("base64", 400, func(s string) string { return base64.StdEncoding.EncodeToString([]byte("key:" + s)) }),
		providertest.Status(429, "Retry-After", "600"))
	for i, fault := range faults {
		h.shop.Reset()
		h.shop.Always(fault)
		h.refresh()
		h.awaitEnd()
		if i%4 == 0 {
			h.readRoutes()
		}
	}
}

// readRoutes reads every route with valid and slightly wrong credentials, in every header.
func (h *secretFinder) readRoutes() {
	h.t.Helper()
	var api struct{ Paths map[string]map[string]any }
	h.get("/openapi.json", &api)
	paths := []string{"/", "/sign-in", "/runs", "/providers", "/items", "/nothing", "/api/nothing", "/item?name=x"}
	for path, methods := range api.Paths {
		if _, ok := methods["get"]; ok {
			paths = append(paths, example(path), strings.Replace(example(path), "/0", "/1", 1))
		}
	}
	for _, path := range paths {
		for name, value := range canaries {
			for _, header := range []http.Header{
				{"X-Market-Sync-Secret": {value}},
				{"Authorization": {"Bearer " + value}},
				{"Authorization": {"Bearer " + value + "x"}},
				{"X-Request-Id": {"id"}, "Cookie": {"assay_session=" + value}},
			} {
				if name == "ADMIN_API_TOKEN" || name == "MARKET_PRICE_SYNC_SECRET" || path == "/" {
					h.show(path, header)
				}
			}
		}
	}
	for _, path := range []string{"/sign-in", "/providers"} {
		for _, who := range []string{"ADMIN_API_TOKEN", "MARKET_PRICE_SYNC_SECRET"} {
			h.page(h.browser(canaries[who]), path)
		}
	}
}

// show sends a request and checks the complete response.
func (h *secretFinder) show(path string, header http.Header) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, "http://"+h.addr+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header = header
	// Each request has a different client address, because wrong secrets from one address are
	// delayed.
	h.shown++
	req.Header.Set("X-Forwarded-For", netip.AddrFrom4([4]byte{198, 18, byte(h.shown >> 8), byte(h.shown)}).String())
	h.response(http.DefaultClient, req)
}

func (h *secretFinder) page(c *http.Client, path string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, "http://"+h.addr+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.response(c, req)
}

func (h *secretFinder) response(c *http.Client, req *http.Request) {
	h.t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	_ = resp.Header.Write(&b)
	b.Write(readBody(h.t, resp))
	h.f.look("the response to "+req.URL.Path, b.Bytes())
}

// files checks the log, all files and the database of the server.
func (h *secretFinder) files(debugged bool) {
	h.t.Helper()
	log := h.log.String()
	h.f.look("the log", []byte(log))
	if debugged && !strings.Contains(log, "level=DEBUG") {
		h.t.Error("got no log entries with the level DEBUG, want some")
	}
	if h.pg != nil {
		h.f.look("the database", h.pg.Dump(h.t, h.database))
		serverLog := h.pg.Log(h.t)
		h.f.look("the database's log", serverLog)
		if !bytes.Contains(serverLog, []byte("INSERT INTO")) {
			h.t.Error("got no log entries of the database, want some")
		}
	}
	err := filepath.WalkDir(h.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		h.f.look(filepath.Base(path), content)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}
