package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/app"
	"assay/internal/pgtest"
	"assay/internal/provider/providertest"
	"assay/internal/provider/sim"
	"assay/internal/randtest"
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
	forms map[string]string // names of the secrets by the texts to find
	bytes int
}

func newFinder(t *testing.T) *finder {
	f := &finder{t: t, forms: map[string]string{}}
	for name, value := range canaries {
		for _, spell := range spellings {
			f.forms[strings.ToLower(spell(value))] = name
		}
		f.forms[hex.EncodeToString([]byte(value))] = name
		for before := range 3 { // base64 digits that depend only on the value
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
			f.t.Errorf("%s holds %s: ...%.300q", where, name, lower[max(0, at-100):min(len(lower), at+100)])
			return
		}
	}
}

// hoard is a server with a canary for every secret. Its providers return all data that they
// receive.
type hoard struct {
	*server
	f     *finder
	shop  *providertest.Server
	names []string
	shown int            // number of requests by show
	pg    *pgtest.Server // nil on SQLite
}

func newHoard(t *testing.T, on engine) *hoard {
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
	h := &hoard{f: newFinder(t), shop: shop, names: markets.Names()}
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
func (h *hoard) live() {
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
			h.ask()
		}
	}
}

// ask reads every route with every credential, valid and slightly wrong, in every place.
func (h *hoard) ask() {
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
func (h *hoard) show(path string, header http.Header) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, "http://"+h.addr+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header = header
	// Each request has another client address, because wrong secrets from one address are
	// delayed.
	h.shown++
	req.Header.Set("X-Forwarded-For", netip.AddrFrom4([4]byte{198, 18, byte(h.shown >> 8), byte(h.shown)}).String())
	h.answer(http.DefaultClient, req)
}

func (h *hoard) page(c *http.Client, path string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, "http://"+h.addr+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.answer(c, req)
}

func (h *hoard) answer(c *http.Client, req *http.Request) {
	h.t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	_ = resp.Header.Write(&b)
	if _, err := io.Copy(&b, resp.Body); err != nil {
		h.t.Fatal(err)
	}
	h.f.look("the answer to "+req.URL.Path, b.Bytes())
}

// files checks the log, all files and the database of the server.
func (h *hoard) files(debugged bool) {
	h.t.Helper()
	log := h.log.String()
	h.f.look("the log", []byte(log))
	if debugged && !strings.Contains(log, "level=DEBUG") {
		h.t.Error("nothing was logged at level debug")
	}
	if h.pg != nil {
		h.f.look("the database", h.pg.Dump(h.t, h.database))
		serverLog := h.pg.Log(h.t)
		h.f.look("the database's log", serverLog)
		if !bytes.Contains(serverLog, []byte("INSERT INTO")) {
			h.t.Error("the database logged nothing")
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

func TestSecrets_DoNotLeak(t *testing.T) {
	t.Parallel()
	onBoth(t, testSecrets)
}

func testSecrets(t *testing.T, on engine) {
	t.Parallel()
	h := newHoard(t, on)
	h.start()
	h.live()
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", h.cmd.Process.Pid))
	if err != nil {
		t.Logf("cannot read the command line: %v", err)
	}
	h.f.look("the command line", cmdline)
	h.files(true)
	if _, err := h.stop(); err != nil {
		t.Error(err)
	}
	h.files(true)
	var sent bytes.Buffer
	for _, hit := range h.shop.Hits() {
		path, _ := url.QueryUnescape(hit.Path) // an invalid escape contains no secret
		sent.WriteString(path)
		_ = hit.Header.Write(&sent)
	}
	for _, name := range []string{"SHOP_API_KEY", "QUERY_API_KEY"} {
		if !strings.Contains(sent.String(), canaries[name]) {
			t.Errorf("%s was not sent to the shop, so nothing was tested", name)
		}
	}
	t.Logf("searched %d bytes", h.f.bytes)
}

// TestSecrets_AreNotInAPanic makes a handler and a worker panic with a value that contains
// every secret.
func TestSecrets_AreNotInAPanic(t *testing.T) {
	onBoth(t, testPanics)
}

func testPanics(t *testing.T, on engine) {
	h := newHoard(t, on)
	var handler, worker atomic.Bool // the next transaction panics
	l := h.within(app.Options{Faults: func(string) error {
		stack := debug.Stack()
		for caller, armed := range map[string]*atomic.Bool{"net/http.(*conn).serve": &handler, "assay/internal/dispatch": &worker} {
			if bytes.Contains(stack, []byte(caller)) && armed.CompareAndSwap(true, false) {
				panic(fmt.Errorf("failed with %v", canaries))
			}
		}
		return nil // other transactions, such as heartbeats, run outside handlers and workers
	}})
	handler.Store(true)
	status, body, err := h.call(http.MethodPost, "/api/inventory/u/sync", strings.NewReader(
		`{"appId":730,"contextId":"2","snapshotAt":"2026-01-01T00:00:00Z","items":[]}`))
	if err != nil || status != http.StatusInternalServerError {
		t.Errorf("a handler that panics returns %d, %v, want 500", status, err)
	}
	h.f.look("the response to a panic", body)
	worker.Store(true) // the next push starts a worker
	pushNames(h.server, h.names, 1)
	h.awaitPriced()
	if got := h.status(); got.Status.Running {
		t.Errorf("%+v", got)
	}
	for _, text := range []string{"handler panicked", "panic: "} {
		if !strings.Contains(h.log.String(), text) {
			t.Errorf("the log does not contain %q", text)
		}
	}
	h.files(false)
	if _, err := l.end(); err != nil {
		t.Error(err)
	}
}

func TestSecrets_AreNotInConfigurationOutput(t *testing.T) {
	h := newHoard(t, onSQLite)
	for _, c := range []struct {
		args []string
		env  []string
	}{
		{[]string{"config"}, nil},
		{[]string{"config", "--json"}, nil},
		{[]string{"serve"}, []string{"MARKET_PRICE_TTL=soon"}},
		{[]string{"serve"}, []string{"ADMIN_API_TOKEN=" + canaries["ADMIN_API_TOKEN"] + "," + canaries["ADMIN_API_TOKEN"]}},
		{[]string{"serve"}, []string{"WALLET_LEDGER_KEY=" + canaries["WALLET_LEDGER_KEY"] + "0"}},
		{[]string{"serve"}, []string{"SIM_BASE_URL=http://user:" + canaries["SIM_API_KEY"] + "@[broken"}},
		{[]string{"serve"}, []string{"DATABASE_URL=postgres://user:" + canaries["SIM_API_KEY"] + "@localhost/db"}},
		{[]string{"config"}, []string{"DATABASE_URL=postgres://user:" + canaries["SIM_API_KEY"] + "@localhost/db"}},
		{[]string{"config"}, []string{"DATABASE_URL=postgres://pooler/db", "DATABASE_DIRECT_URL=postgres://user:" + canaries["SIM_API_KEY"] + "@localhost/db"}},
		{[]string{"status"}, nil},
		{[]string{"provider", "test", "pricelist"}, nil},
	} {
		out := h.run(c.args, c.env)
		h.f.look(strings.Join(c.args, " ")+" with "+strings.Join(c.env, " ")[:min(20, len(strings.Join(c.env, " ")))], out)
	}
}

// run runs a command and returns its output.
func (s *server) run(args, env []string) []byte {
	s.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(append([]string(nil), s.env...), env...)
	out, _ := cmd.CombinedOutput() // the exit code does not matter
	return out
}

// TestSecrets_OnlyWrongSecretsAreDelayed sends wrong secrets from one address and from many
// addresses, each on a new connection. Concurrently it sends the valid secret from the same
// addresses. Only responses to wrong secrets may be delayed.
func TestSecrets_OnlyWrongSecretsAreDelayed(t *testing.T) {
	fromOne, others, fromOthers := randtest.Count(200, 1_000), randtest.Count(10, 100), randtest.Count(25, 1_000)
	s := newServer(t, "TRUSTED_PROXIES=127.0.0.1")
	s.start()
	right := presented{"the market secret", "X-Market-Sync-Secret", s.secret("MARKET_PRICE_SYNC_SECRET"), market}
	wrong := presented{"a wrong secret", "X-Market-Sync-Secret", "guess", ""}
	const path = "/api/market-prices/status"
	began := time.Now()
	inTime := func() bool { return time.Since(began) < 50*time.Second } // one-minute windows end after this
	var group sync.WaitGroup
	var limited atomic.Int64
	room := make(chan struct{}, 200)
	guess := func(from string, times int) {
		var unauthorized atomic.Int64
		var own sync.WaitGroup
		for range times {
			room <- struct{}{}
			own.Go(func() {
				defer func() { <-room }()
				switch status, _ := s.present(http.MethodGet, path, wrong, from); status {
				case http.StatusUnauthorized:
					unauthorized.Add(1)
				case http.StatusTooManyRequests:
					limited.Add(1)
				default:
					t.Errorf("a wrong secret from %s: %d", from, status)
				}
			})
		}
		own.Wait()
		if n := unauthorized.Load(); inTime() && n != 20 {
			t.Errorf("%d of %d wrong secrets from %s were not delayed, want 20", n, times, from)
		}
	}
	group.Go(func() { guess("198.51.100.1", fromOne) })
	for i := range others {
		group.Go(func() { guess(fmt.Sprintf("203.0.113.%d", i), fromOthers) })
	}
	guessed := make(chan struct{})
	go func() { group.Wait(); close(guessed) }()
	slowest, tries := time.Duration(0), 0
	for done := false; !done; tries++ {
		from := []string{"198.51.100.1", "203.0.113.1", "192.0.2.1", ""}[tries%4]
		sent := time.Now()
		if status, _ := s.present(http.MethodGet, path, right, from); status != http.StatusOK {
			t.Errorf("the right secret from %q: %d", from, status)
		}
		slowest = max(slowest, time.Since(sent))
		select {
		case <-guessed:
			done = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Logf("%d wrong secrets were delayed; %d valid ones took at most %v", limited.Load(), tries, slowest)
	if slowest > 3*time.Second {
		t.Errorf("a right secret was answered after %v", slowest)
	}
	if warned := strings.Count(s.log.String(), "wrong secret"); warned > 100 {
		t.Errorf("%d wrong secrets were logged", warned)
	}
}

// TestSecrets_RotateWithoutAnOutage rotates a secret at 100 requests per second.
func TestSecrets_RotateWithoutAnOutage(t *testing.T) {
	const older, newer = "the-older-secret-0123456789", "the-newer-secret-0123456789"
	file := filepath.Join(t.TempDir(), "secret")
	writeFile(t, file, older+"\n")
	s := newServer(t, "MARKET_PRICE_SYNC_SECRET_FILE="+file)
	s.start()
	accepted := func(secret string) bool {
		status, _ := s.present(http.MethodGet, "/api/market-prices/status", presented{header: "X-Market-Sync-Secret", value: secret}, "")
		return status == http.StatusOK
	}
	var sent, failed atomic.Int64
	ask := func(secret string) {
		sent.Add(1)
		if !accepted(secret) {
			failed.Add(1)
		}
	}
	endOlder := every10ms(func() { ask(older) })
	writeFile(t, file, older+","+newer+"\n") // in place, like an editor
	s.await("the newer secret", func() bool { return accepted(newer) })
	endNewer := every10ms(func() { ask(newer) })
	endOlder()
	next := filepath.Join(filepath.Dir(file), "next")
	writeFile(t, next, newer+"\n")
	if err := os.Rename(next, file); err != nil { // atomically, like a secret store
		t.Fatal(err)
	}
	s.await("the end of the older secret", func() bool { return !accepted(older) })
	s.await("some requests more", func() bool { return sent.Load() >= 50 })
	endNewer()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d of %d requests failed", n, sent.Load())
	}
}

// every10ms calls do every 10 ms. The returned function stops this and waits for all calls.
func every10ms(do func()) (end func()) {
	stop := make(chan struct{})
	var calls sync.WaitGroup
	calls.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				calls.Go(do)
			}
		}
	})
	return func() {
		close(stop)
		calls.Wait()
	}
}
