package web

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"assay/internal/catalog"
	"assay/internal/db/dbtest"
)

// listenTo returns the lines of a stream.
func listenTo(t *testing.T, v *visitor, url string) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/stream", nil)
	must(t, err)
	r.AddCookie(v.cookie)
	res, err := http.DefaultClient.Do(r)
	must(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %d %v, want a stream", res.StatusCode, res.Header)
	}
	return bufio.NewScanner(res.Body)
}

// next reads lines until one contains the text.
func next(t *testing.T, lines *bufio.Scanner, text string) {
	t.Helper()
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	t.Fatalf("the stream ended before %q with error %v, want the text", text, lines.Err())
}

// follow returns a visitor and the lines of a stream that has begun.
func (w *world) follow(t *testing.T, secret string) (*visitor, *bufio.Scanner) {
	t.Helper()
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	v := w.visit(t, secret)
	lines := listenTo(t, v, server.URL)
	next(t, lines, "event: hello")
	return v, lines
}

func TestStream_ReportsChangedParts(t *testing.T) {
	w := newWorld(t)
	_, lines := w.follow(t, marketSecret)
	w.start()
	w.plan()
	next(t, lines, "data: run")
}

func TestStream_ReportsRunOfChosenItems(t *testing.T) {
	w := newWorld(t)
	v, lines := w.follow(t, adminToken)
	v.choose("/items/refresh", []string{itemQuery(catalog.Key{AppID: catalog.CS2, Name: redline})}, "confirmed", "1")
	next(t, lines, "data: run")
	w.exec(`UPDATE refresh_job SET stage = 'apply', state = 'running' WHERE kind = 'items'`)
	next(t, lines, "data: run")
}

func TestStream_IsBoundedAndNeedsSession(t *testing.T) {
	w := newWorld(t)
	if res := (&visitor{t: t, world: w}).get("/stream"); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a session: got status %d, want 401", res.StatusCode)
	}
	v := w.visit(t, marketSecret)
	count := &w.handler.(*site).streams.open
	count.Store(maxStreams)
	if res := v.get("/stream"); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("beyond the limit: got status %d, want 503 with Retry-After", res.StatusCode)
	}
	if got := count.Load(); got != maxStreams {
		t.Errorf("after a refused stream: got %d open streams, want %d", got, maxStreams)
	}
}

// restartable is a server that can be killed and started again at its address.
type restartable struct {
	t       *testing.T
	address string
	server  *http.Server
}

func (s *restartable) start(h http.Handler) {
	s.t.Helper()
	if s.address == "" {
		s.address = "127.0.0.1:0"
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", s.address)
	must(s.t, err)
	s.address = listener.Addr().String()
	s.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func(server *http.Server) { _ = server.Serve(listener) }(s.server) // returns when kill closes the server
	s.t.Cleanup(s.kill)
}

func (s *restartable) kill() { _ = s.server.Close() }

// TestBrowser_ShowsDeadServerAndRecovers kills the server during a run.
func TestBrowser_ShowsDeadServerAndRecovers(t *testing.T) {
	names := newSlowNames()
	w := newWorld(t, names)
	w.own("newcomer", names.keys()...)
	w.exec(`DELETE FROM missing_price`)
	w.run()
	server := &restartable{t: t}
	server.start(w.handler)
	b := openBrowser(t, "http://"+server.address)
	b.signIn(adminToken)
	b.do(chromedp.Click(chromedp.CSS(`#actions button[value="0"]`)))
	b.until("the run to be live", `document.querySelector(".run.is-live") !== null`)

	server.kill()
	b.until("the lost connection", `document.body.classList.contains("lost") && !document.getElementById("connection").hidden`)
	b.shoot("lost")
	if !eval[bool](b, `[...document.querySelectorAll("form button")].every(b => b.getAttribute("aria-disabled") === "true")`) {
		t.Error("a button is enabled while the connection is lost, want all disabled")
	}
	b.do(chromedp.Click(chromedp.CSS("#actions .danger")))
	if got := eval[string](b, `location.pathname`); got != "/" {
		t.Errorf("after a click without a connection: got the page %s, want /", got)
	}
	names.release(slowCalls)
	w.serve() // a new process has no memory of the session
	server.start(w.handler)
	b.until("the recovery", `!document.body.classList.contains("lost")`)
	b.until("the end of the run", `document.querySelector(".run:not(.is-live)") !== null`)
	b.do(chromedp.Navigate(b.url + "/runs"))
	if title := eval[string](b, `document.title`); !strings.HasPrefix(title, "Runs") {
		t.Errorf("after the restart: got the page %q, want the runs without a new sign-in", title)
	}
}

// TestBrowser_KeepsFocusScrollAndDetails updates the parts of each page ten times.
func TestBrowser_KeepsFocusScrollAndDetails(t *testing.T) {
	for _, engine := range []string{dbtest.SQLite, dbtest.PostgreSQL} {
		t.Run(engine, func(t *testing.T) {
			w := newWorldOn(t, engine)
			if !w.handler.(*site).assets.has(htmxFile) {
				t.Skip("the page is built without scripts")
			}
			server := httptest.NewServer(w.handler)
			t.Cleanup(server.Close)
			b := openBrowser(t, server.URL)
			b.look("light", 390, 740)
			b.signIn(adminToken)
			for _, address := range []string{"/", "/runs", "/runs/42", "/providers", "/providers/pricelist", "/providers/sim", "/missing", "/held"} {
				b.open(address)
				b.keeps(w, address)
			}
			b.quiet()
		})
	}
}

// keeps focuses the last link of the updated parts, opens all details, scrolls, selects the first item
// and types into each text field. Then it updates the parts ten times.
func (b *browser) keeps(w *world, address string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`(() => {
		const all = s => ["#state", "#around"].flatMap(part => [...document.querySelectorAll(part + " " + s)]);
		window.parts = ["state", "around"].filter(id => document.getElementById(id));
		window.folds = all("details");
		folds.forEach(d => d.open = !d.open);
		window.boxes = all("input[name=item]").slice(0, 1);
		boxes.forEach(box => box.click());
		window.fields = all("input:is([type=search], :not([type]))");
		fields.forEach(field => field.value = "typed");
		window.focused = all("a, button:enabled").at(-1);
		window.opened = folds.map(d => d.open);
		focused.focus();
		scrollTo(0, 400);
		window.top400 = scrollY;
		window.swapped = new Set();
		document.addEventListener("htmx:afterSwap", e => swapped.add(e.detail.target.id));
		// The trigger "stream" may be throttled.
		window.update = part => { htmx.ajax("GET", part.getAttribute("hx-get"), {source: part, event: new Event("stream")}).catch(() => {}) };
	})()`))
	for i := range 10 {
		w.clock.add(time.Minute)
		b.do(chromedp.Evaluate[chromedp.Void](`swapped.clear(), document.querySelectorAll("[data-stream]").forEach(update)`))
		// A busy server may refuse a request. The part then requests its content again.
		b.until("the update of "+address, `parts.length > 0 && parts.every(id => swapped.has(id) || (document.querySelector("#" + id + ".htmx-request") || update(document.getElementById(id)), false))`)
		const lost = `Object.entries({
			focus: document.activeElement === focused && document.contains(focused), scroll: scrollY === top400,
			details: folds.every((d, i) => document.contains(d) && d.open === opened[i]),
			selection: boxes.every(box => document.contains(box) && box.checked) && (boxes.length === 0 || document.querySelector("[data-selected]").textContent === "1 selected"),
			text: fields.every(field => field.value === "typed"),
		}).filter(([, kept]) => !kept).map(([name]) => name).join(" ")`
		if got := eval[string](b, lost); got != "" {
			b.t.Errorf("page %s, update %d: got a loss of %s, want all kept", address, i+1, got)
			return
		}
	}
}

func TestBrowser_ShowsThatTheServerIsBusy(t *testing.T) {
	w := newWorld(t)
	if !w.handler.(*site).assets.has(htmxFile) {
		t.Skip("the page is built without scripts")
	}
	var busy atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if busy.Load() && r.Header.Get("HX-Request") != "" {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	b := openBrowser(t, server.URL)
	b.signIn(adminToken)
	b.open("/held")
	const update = `htmx.ajax("GET", "/held", {source: "#around", event: new Event("stream")}).catch(() => {}), `
	busy.Store(true)
	b.until("the notice", update+`/^The server is busy. The figures are those of \d\d:\d\d:\d\d\.$/.test(connection.textContent) && !connection.hidden && !document.body.classList.contains("lost")`)
	busy.Store(false)
	b.until("the end of the notice", update+`connection.hidden && connection.textContent.startsWith("Connection lost.")`)
}

func TestBrowser_HasKeys(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	b := openBrowser(t, server.URL)
	b.signIn(marketSecret)
	press := func(keys string) { b.do(chromedp.KeyEvent(keys)) }
	press("?")
	b.until("the list of keys", `document.querySelector("dialog[open] kbd") !== null`)
	b.do(chromedp.Click(chromedp.CSS("dialog button")))
	press("/")
	// The DevTools protocol also types the character into the field. A real key press does not.
	b.until("the focused search", `document.activeElement.id === "search-text" && ((document.activeElement.value = ""), true)`)
	press("gr?/")
	if got := eval[string](b, `document.activeElement.value + document.querySelectorAll("dialog").length + location.pathname`); got != "gr?/0/" {
		t.Errorf("while typing: got %q, want the typed keys and nothing else", got)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	press("gr")
	b.until("the runs", `location.pathname === "/runs"`)
	b.quiet()
}
