package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/app"
	"assay/internal/provider/sim"
)

// The roles of a request (docs/reference/http-api.md).
const (
	anonymous = "anonymous"
	loopback  = "loopback"
	market    = "market"
	platform  = "platform"
	admin     = "admin"
)

// mayUse lists the roles, besides the administrator, that may use the routes with a path
// prefix. A route without an entry fails the test.
var mayUse = []struct {
	prefix string
	roles  []string
}{
	{"/api/market-prices/", []string{market}},
	{"/api/prices/", []string{market, platform}},
	{"/api/events", []string{market, platform}},
	{"/api/webhooks", []string{}},
	{"/api/users", []string{platform}},
	{"/api/inventory/", []string{platform}},
	{"/api/listings", []string{platform}},
	{"/api/trades", []string{platform}},
	{"/api/functions/admin/", []string{}},
	{"/api/keys", []string{}},
	{"/api/audit", []string{}},
	{"/api/operators", []string{}},
	{"/api/health", []string{anonymous}},
	{"/api/community/top-traders", []string{anonymous}},
	{"/openapi.json", []string{anonymous}},
	{"/docs", []string{anonymous}},
	{"/metrics", []string{loopback}},
}

// presented is a way to present a credential.
type presented struct {
	name, header, value string
	role                string // role of the credential; "" for a wrong one
}

func TestAuth_APIRoutesCheckRoles(t *testing.T) {
	onBoth(t, testInterface)
}

func testInterface(t *testing.T, on engine) {
	_, simURL := simulator(t, sim.Options{Names: 20, Frozen: true})
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+simURL, "TRUSTED_PROXIES=127.0.0.1")
	s.within(app.Options{})
	var api struct{ Paths map[string]map[string]any }
	s.get("/openapi.json", &api)
	if len(api.Paths) < 20 {
		t.Fatalf("got %d paths in openapi.json, want at least 20", len(api.Paths))
	}
	ways := credentialCases(s)
	client := 0
	for path, methods := range api.Paths {
		at := slices.IndexFunc(mayUse, func(m struct {
			prefix string
			roles  []string
		},
		) bool {
			return strings.HasPrefix(path, m.prefix)
		})
		if at < 0 {
			t.Errorf("mayUse lacks the path %s", path)
			continue
		}
		for method := range methods {
			method = strings.ToUpper(method)
			for _, way := range ways {
				client++ // use a new address each time because wrong credentials are limited per address
				got, code := s.present(method, example(path), way, fmt.Sprintf("10.1.%d.%d", client/250, client%250))
				want, wantCode := mustRespond(mayUse[at].roles, way.role)
				if want == http.StatusOK && (got == http.StatusUnauthorized || got == http.StatusForbidden) {
					t.Errorf("%s %s with %s: got %d, want access", method, path, way.name, got)
				}
				if want != http.StatusOK && (got != want || code != wantCode) {
					t.Errorf("%s %s with %s: got %d %s, want %d %s", method, path, way.name, got, code, want, wantCode)
				}
			}
		}
	}
	if got, _ := s.present(http.MethodGet, "/metrics", presented{}, ""); got != http.StatusOK {
		t.Errorf("/metrics from localhost: got status %d, want 200", got)
	}
}

// credentialCases returns missing, wrong and valid credentials of each role, in each header.
func credentialCases(s *server) []presented {
	const sync, bearer = "X-Market-Sync-Secret", "Authorization"
	ways := []presented{
		{"nothing", "", "", anonymous},
		{"an empty secret", sync, "", anonymous},
		{"an empty token", bearer, "Bearer ", anonymous},
		{"another scheme", bearer, "Basic " + s.secret("ADMIN_API_TOKEN"), anonymous},
		{"a wrong secret", sync, "wrong", ""},
		{"a wrong token", bearer, "Bearer wrong", ""},
		{"half a token", bearer, "Bearer " + s.secret("ADMIN_API_TOKEN")[:32], ""},
		{"the market secret as a token", bearer, "Bearer " + s.secret("MARKET_PRICE_SYNC_SECRET"), ""},
		{"the platform token as a secret", sync, s.secret("PLATFORM_API_TOKEN"), ""},
		{"the market secret", sync, s.secret("MARKET_PRICE_SYNC_SECRET"), market},
		{"the platform token", bearer, "Bearer " + s.secret("PLATFORM_API_TOKEN"), platform},
		{"the admin token", bearer, "Bearer " + s.secret("ADMIN_API_TOKEN"), admin},
		{"the admin token as a secret", sync, s.secret("ADMIN_API_TOKEN"), admin},
		{"the ledger key", bearer, "Bearer " + s.secret("WALLET_LEDGER_KEY"), ""},
	}
	return ways
}

// mustRespond returns the expected status and problem code for a role.
func mustRespond(roles []string, role string) (status int, code string) {
	switch {
	case role == admin, slices.Contains(roles, anonymous), slices.Contains(roles, role):
		return http.StatusOK, ""
	case role == "" || role == anonymous:
		return http.StatusUnauthorized, "unauthorized"
	default:
		return http.StatusForbidden, "forbidden"
	}
}

var parameter = regexp.MustCompile(`\{[^}]+\}`)

// example replaces the parameters of a path with values that do not exist.
func example(path string) string { return parameter.ReplaceAllString(path, "0") }

// present sends a request from the given client address. It returns the status and code of the
// response.
func (s *server) present(method, path string, way presented, from string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if way.header != "" {
		req.Header.Set(way.header, way.value)
	}
	if from != "" {
		req.Header.Set("X-Forwarded-For", from)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body := readBody(s.t, resp)
	code := regexp.MustCompile(`"code":"([a-z_]+)"`).FindSubmatch(body)
	if code == nil {
		return resp.StatusCode, ""
	}
	return resp.StatusCode, string(code[1])
}

// readBody reads the body of a response. A stream does not end, so it reads only the start of a stream.
func readBody(t *testing.T, resp *http.Response) []byte {
	t.Helper()
	stream := resp.Header.Get("Content-Type") == "text/event-stream"
	if stream {
		time.AfterFunc(50*time.Millisecond, func() { _ = resp.Body.Close() })
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil && !stream {
		t.Fatal(err)
	}
	return body
}

// publicPages need no session, and adminPages need the session of an administrator. Every other
// page needs any session. Every other form needs the session of an administrator.
var (
	publicPages = []string{
		"GET /static/{file...}", "GET /help", "GET /help/{$}", "GET /help/{file...}", "GET /llms.txt", "GET /sign-in", "POST /sign-in",
	}
	adminPages = []string{"GET /dry-run", "GET /keys", "GET /audit", "GET /operators", "GET /webhooks", "GET /webhooks/{id}", "GET /settings"}
)

// pageRole returns the least role that a page or a form requires.
func pageRole(route string) string {
	switch {
	case slices.Contains(publicPages, route):
		return anonymous
	case slices.Contains(adminPages, route), strings.HasPrefix(route, "POST ") && route != "POST /sign-out":
		return admin
	default:
		return market
	}
}

// pages returns the routes of all pages and forms. It reads them from the source code.
func pages(t *testing.T) (routes []string) {
	t.Helper()
	for file, pattern := range map[string]string{"web.go": `mux\.HandleFunc\("([^"]+)"`, "routes.go": `\{"((?:GET|POST) [^"]+)", `} {
		source, err := os.ReadFile(filepath.Join("..", "internal", "web", file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(source), -1)
		if len(found) < 9 {
			t.Fatalf("%s: found %d routes of pages, want at least 9: the test no longer recognizes them", file, len(found))
		}
		for _, match := range found {
			routes = append(routes, match[1])
		}
	}
	return routes
}

func TestAuth_PageRoutesRequireSessions(t *testing.T) {
	onBoth(t, testPage)
}

func testPage(t *testing.T, on engine) {
	_, simURL := simulator(t, sim.Options{Names: 20, Frozen: true})
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+simURL)
	s.within(app.Options{})
	browsers := map[string]*http.Client{
		anonymous: s.browser(""), "wrong": s.browser("wrong"), platform: s.browser(s.secret("PLATFORM_API_TOKEN")),
		market: s.browser(s.secret("MARKET_PRICE_SYNC_SECRET")), admin: s.browser(s.secret("ADMIN_API_TOKEN")),
	}
	for _, route := range pages(t) {
		role := pageRole(route)
		method, path, _ := strings.Cut(strings.ReplaceAll(route, "{$}", ""), " ")
		for who, browser := range browsers {
			if route == "POST /sign-out" {
				continue // signing out would end the sessions of this test
			}
			status, location := s.visit(browser, method, example(path))
			signIn := status == http.StatusSeeOther && strings.HasPrefix(location, "/sign-in") ||
				route == "GET /stream" && status == http.StatusUnauthorized // not a page: a script reads the stream
			signedIn := who == market || who == admin
			switch {
			case role == anonymous:
				if signIn || status == http.StatusUnauthorized && path != "/sign-in" {
					t.Errorf("%s for %s: got %d %s, want access", route, who, status, location)
				}
			case !signedIn && !signIn:
				t.Errorf("%s for %s: got %d, want a redirect to sign-in", route, who, status)
			case who == market && role == admin && status != http.StatusForbidden:
				t.Errorf("%s for a read-only session: got %d, want 403", route, status)
			case who == admin && method == http.MethodPost && status != http.StatusForbidden:
				t.Errorf("%s without the page's token: got %d, want 403", route, status)
			case signedIn && method == http.MethodGet && (who == admin || role == market) && (signIn || status == http.StatusForbidden):
				t.Errorf("%s for %s: got %d %s, want a response", route, who, status, location)
			}
		}
	}
}

// browser returns a client that signed in with the given secret.
func (s *server) browser(secret string) *http.Client {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	c := &http.Client{Jar: jar, Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if secret != "" {
		resp, err := c.PostForm("http://"+s.addr+"/sign-in", url.Values{"secret": {secret}})
		if err != nil {
			s.t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	return c
}

func (s *server) visit(c *http.Client, method, path string) (status int, location string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Location")
}
