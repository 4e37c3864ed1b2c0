package web

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// shotsEnv names a directory, outside the repository, that pictures of the
// pages are saved to.
const shotsEnv = "ASSAY_SHOTS"

// patience is how long the browser may take for anything: that a machine is busy
// with other things is no failure.
const patience = 2 * time.Minute

// browser is a tab and what it complained of.
type browser struct {
	t   *testing.T
	ctx context.Context
	url string

	mu         sync.Mutex
	complaints []string
	listening  sync.WaitGroup
}

// openBrowser starts Debian's Chromium with a profile of its own. Without one
// the test is skipped, but fails in CI.
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
			t.Errorf("closing the browser: %v", err)
		}
		cancel()
		b.listening.Wait()
	})
	b.do() // starts it
	messages := chromedp.Console(ctx)
	b.listening.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			b.complain(m)
		}
	})
	return b
}

// complain keeps errors of scripts, and what the browser refused or missed.
func (b *browser) complain(m chromedp.ConsoleMessage) {
	switch m.Type {
	case "log", "debug", "info", "verbose":
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, string(m.Type)+": "+m.Text+" ("+m.URL+")")
}

// quiet fails where the browser complained.
func (b *browser) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		b.t.Errorf("the browser complained:\n%s", strings.Join(b.complaints, "\n"))
	}
}

// do takes some steps.
func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx := b.ctx
	if len(steps) > 0 { // the first call's context is the browser's own
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx = limited
	}
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// ask returns the value of a script's expression.
func ask[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("browser: %s: %v", expression, err)
	}
	return v
}

// open goes to a page and checks that nothing of it is out of sight.
func (b *browser) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url + path))
	b.fits(path)
}

func (b *browser) fits(what string) {
	b.t.Helper()
	if wider := ask[int](b, `document.documentElement.scrollWidth - innerWidth`); wider > 0 {
		b.t.Errorf("%s: the page is %d px wider than its window", what, wider)
	}
}

// look sets the colour scheme and the window's size.
func (b *browser) look(scheme string, width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// shoot saves a picture of the page where somebody wants to see it.
func (b *browser) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv(shotsEnv)
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatalf("browser: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) text(selector string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS(selector)))
	if err != nil {
		b.t.Fatalf("browser: text of %s: %v", selector, err)
	}
	return text
}

// until asks again and again, across reloads of the page.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for again := time.NewTicker(50 * time.Millisecond); ; <-again.C {
		if yes, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression)); err == nil && yes {
			again.Stop()
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (b *browser) signIn(secret string) {
	b.t.Helper()
	b.open("/")
	b.do(
		chromedp.SendKeys(chromedp.CSS("#secret"), secret),
		chromedp.Submit(chromedp.CSS("#secret")),
		chromedp.WaitVisible(chromedp.CSS("#live")),
	)
}
