package web

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// shotsEnv names an environment variable. If it is set, tests save screenshots to this
// directory, which must be outside the repository.
const shotsEnv = "ASSAY_SHOTS"

// patience is the time limit for browser actions. It is long because the machine may be busy.
const patience = 2 * time.Minute

// browser is a browser tab with its recorded errors.
type browser struct {
	t   *testing.T
	ctx context.Context
	url string

	mu        sync.Mutex
	errors    []string
	listening sync.WaitGroup
}

// openBrowser starts Debian's Chromium with a new profile. If Chromium is not installed, the
// test is skipped, or fails in CI.
func openBrowser(t *testing.T, url string) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("chromium is not installed: apt-get install chromium")
		}
		t.Skip("chromium is not installed")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(patience), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	b := &browser{t: t, ctx: ctx, url: url}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("close the browser: got error %v, want none", err)
		}
		cancel()
		b.listening.Wait()
	})
	b.do() // starts the browser
	messages := chromedp.Console(ctx)
	b.listening.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			b.record(m)
		}
	})
	return b
}

// record records script errors, and requests that failed or were blocked.
func (b *browser) record(m chromedp.ConsoleMessage) {
	switch m.Type {
	case "log", "debug", "info", "verbose":
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors = append(b.errors, string(m.Type)+": "+m.Text+" ("+m.URL+")")
}

// quiet fails the test if the browser recorded errors.
func (b *browser) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.errors) > 0 {
		b.t.Errorf("browser errors:\n%s", strings.Join(b.errors, "\n"))
	}
}

// do executes steps.
func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx := b.ctx
	if len(steps) > 0 { // the context of the first call must outlive the step
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx = limited
	}
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("browser steps: got error %v, want none", err)
	}
}

// eval returns the value of a JavaScript expression.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("evaluate %s: got error %v, want none", expression, err)
	}
	return v
}

// open opens a page and checks that it fits into the window.
func (b *browser) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url + path))
	b.fits(path)
}

func (b *browser) fits(what string) {
	b.t.Helper()
	if wider := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); wider > 0 {
		b.t.Errorf("%s: page is %d px wider than the window", what, wider)
	}
}

// look sets the colour scheme and window size.
func (b *browser) look(scheme string, width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.t.Fatalf("set the emulated media: got error %v, want none", err)
	}
}

// shoot saves screenshots of the whole page and of its visible part if shotsEnv is set.
func (b *browser) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv(shotsEnv)
	if dir == "" {
		return
	}
	for suffix, capture := range map[string]chromedp.Action[[]byte]{".png": chromedp.FullScreenshot(100), ".top.png": chromedp.CaptureScreenshot()} {
		picture, err := chromedp.Run(b.ctx, capture)
		if err != nil {
			b.t.Fatalf("take a screenshot: got error %v, want none", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+suffix), picture, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
}

// text returns the text of the first element that matches a selector. It waits for the element and
// reads it in one step, because the page may replace its elements at any time.
func (b *browser) text(selector string) string {
	b.t.Helper()
	of := "document.querySelector(" + strconv.Quote(selector) + ")"
	b.until("the element "+selector, of+" !== null")
	return eval[string](b, "("+of+" ?? {innerText: ''}).innerText")
}

// until repeats a check until it succeeds, even across page reloads.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for again := time.NewTicker(50 * time.Millisecond); ; <-again.C {
		if yes, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression)); err == nil && yes {
			again.Stop()
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("timeout waiting for %s", what)
		}
	}
}

func (b *browser) signIn(secret string) {
	b.t.Helper()
	b.signInAs("", secret)
}

// signInAs signs in as an operator.
func (b *browser) signInAs(name, secret string) {
	b.t.Helper()
	b.open("/")
	b.do(
		chromedp.SendKeys(chromedp.CSS("#name"), name),
		chromedp.SendKeys(chromedp.CSS("#secret"), secret),
		chromedp.Submit(chromedp.CSS("#secret")),
		chromedp.WaitVisible(chromedp.CSS("#live")),
	)
}
