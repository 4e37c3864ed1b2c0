package web

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"assay/docs"
)

func TestHelp_ServesTheDocumentation(t *testing.T) {
	w := newWorld(t)
	get := func(target string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		w.handler.ServeHTTP(rec, httptest.NewRequest("GET", target, nil))
		return rec
	}
	for target, want := range map[string]int{"/help": 303, "/help/": 303, "/help//": 404, "/help/index.html": 200, "/help/how-to/currencies.html": 200, "/help/site.css": 200, "/help/no.html": 404} {
		if res := get(target); res.Code != want {
			t.Errorf("%s: got status %d, want %d", target, res.Code, want)
		}
	}
	index := get("/llms.txt")
	if kind := index.Header().Get("Content-Type"); index.Code != 200 || !strings.HasPrefix(kind, "text/plain") {
		t.Errorf("/llms.txt: got status %d and %s, want 200 and text/plain", index.Code, kind)
	}
	links := regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(index.Body.String(), -1)
	if len(links) < 40 {
		t.Errorf("/llms.txt: got %d links, want one for each page", len(links))
	}
	for _, link := range links {
		if res := get(link[1]); res.Code != 200 {
			t.Errorf("/llms.txt links to %s: got status %d, want 200", link[1], res.Code)
		}
	}
	if policy := get("/help/index.html").Header().Get("Content-Security-Policy"); policy != helpPolicy {
		t.Errorf("Content-Security-Policy: got %q, want helpPolicy", policy)
	}
}

// TestBrowser_SearchesTheDocumentation searches pages of a server and pages opened from local files.
func TestBrowser_SearchesTheDocumentation(t *testing.T) {
	server := httptest.NewServer(newWorld(t).handler)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	site, err := docs.Site()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range site {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := openBrowser(t, server.URL)
	for scheme, root := range map[string]string{"light": server.URL + "/help/", "dark": "file://" + dir + "/"} {
		b.url = root
		for _, width := range []int64{1280, 360} {
			b.look(scheme, width, 900)
			b.open("explanation/pricing.html")
			b.do(chromedp.SendKeys(chromedp.CSS("#search"), "exchange rates bank monday"))
			b.until("a result", `document.querySelector("#results a") !== null`)
			b.fits("results")
			b.shoot("help-" + scheme)
			b.do(chromedp.Click(chromedp.CSS("#results a")))
			b.until("the page", `document.querySelector("h1").textContent === "Take quotes in other currencies"`)
			if got := eval[string](b, `location.href`); !strings.HasPrefix(got, root) {
				t.Errorf("got the address %s, want a page below %s", got, root)
			}
		}
	}
	b.quiet()
}
