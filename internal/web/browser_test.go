package web

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// slowNames is a provider that waits before each response. It has a thousand items, so a run has
// several batches. Each response completes one batch.
type slowNames struct {
	*sampleProvider
	next chan struct{}
}

// slowCalls is the number of requests that a run sends to slowNames: for its own names and for the
// due names of the sample.
const slowCalls = 4

func newSlowNames() *slowNames {
	s := &slowNames{next: make(chan struct{}, slowCalls)}
	s.sampleProvider = &sampleProvider{provider.Description{
		Name: "slow", Title: "Slow names", Shape: provider.Batch, BatchSize: 300, Markets: []provider.Market{{Key: "slow", Title: "Slow", AppIDs: []int32{catalog.CS2}}},
	}, func(ctx context.Context, call provider.Call, sink provider.Sink) error {
		select {
		case <-s.next:
		case <-ctx.Done():
			return &provider.Error{Provider: "slow", Kind: provider.KindCancelled, Err: ctx.Err()}
		}
		for i, name := range call.Names {
			q := provider.Quote{Market: "slow", Name: name, Currency: "USD", Ask: money.Micro(1_000_000 + i*1000), Listings: 1, Sales: provider.Unknown}
			if err := sink.Quote(&q); err != nil {
				return err
			}
		}
		return nil
	}}
	return s
}

func (s *slowNames) keys() (keys []catalog.Key) {
	for i := range 1000 {
		keys = append(keys, catalog.Key{AppID: catalog.CS2, Name: fmt.Sprintf("Patch %04d", i)})
	}
	return keys
}

// release sends n responses.
func (s *slowNames) release(n int) {
	for range n {
		s.next <- struct{}{}
	}
}

// TestBrowser_FollowsRunAndExplainsPrice uses the page like an operator.
func TestBrowser_FollowsRunAndExplainsPrice(t *testing.T) {
	names := newSlowNames()
	w := newWorld(t, names)
	w.own("newcomer", names.keys()...)
	w.exec(`DELETE FROM missing_price`) // only the bulk run prices the new items
	w.run()
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	b := openBrowser(t, server.URL)
	b.look("light", 1440, 900)

	b.open("/")
	b.shoot("sign-in")
	b.signIn(adminToken)
	b.fits("overview")

	b.do(chromedp.Click(chromedp.CSS(`#actions button[value="0"]`)))
	b.until("the run to be live", `document.querySelector(".run.is-live") !== null`)
	if notice := b.text(".notice:not(.verdict)"); !strings.Contains(notice, "Run 43 is started") {
		t.Errorf("notice after Start: got %q, want one about the start of run 43", notice)
	}
	b.until("progress", `parseInt(document.querySelector(".percent").textContent) >= 5`)
	b.shoot("overview-live")
	names.release(1)
	b.until("more progress", `parseInt(document.querySelector(".percent").textContent) >= 15`)
	b.do(chromedp.Click(chromedp.CSS("#unconfigured summary")))
	names.release(slowCalls - 1)
	b.until("the end of the run", `document.querySelector(".run:not(.is-live)") !== null`)
	b.until("the enabled buttons", `document.querySelector('#actions button[value="0"]:enabled') !== null`)
	b.until("the bar of the finished run", `[...document.querySelectorAll("#around svg.bars a")].some(a => a.getAttribute("aria-label").startsWith("Run 43, Finished"))`)
	if scripted := w.handler.(*site).assets.has(htmxFile); scripted && !eval[bool](b, `document.getElementById("unconfigured").open`) {
		t.Error("after the update: got a closed section, want it open as before")
	}

	b.do(
		chromedp.SendKeys(chromedp.CSS("#search-text"), "redline"),
		chromedp.Submit(chromedp.CSS("#search-text")),
		chromedp.Click(chromedp.CSS(`a.item`)),
		chromedp.WaitVisible(chromedp.CSS(".quotes")),
	)
	quotes := b.text(".quotes")
	for _, want := range []string{"Ingot", "outside the deciding group of quotes", "Hoard", "no offers or sales", "$32.04"} {
		if !strings.Contains(quotes, want) {
			t.Errorf("table of quotes: got %s, want %q in it", quotes, want)
		}
	}
	b.quiet()
}

func TestBrowser_ShowsItemStatusOnNarrowScreen(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	b := openBrowser(t, server.URL)
	b.signIn(marketSecret)
	for _, width := range []int64{360, 1280} {
		b.look("light", width, 740)
		b.open("/items")
		const inSight = `[...document.querySelectorAll(".items tbody tr")].every(row => [...row.querySelectorAll(".badge")].filter(badge =>
			badge.offsetParent && badge.getBoundingClientRect().right <= innerWidth).length === (row.textContent.includes("Dragon Lore") ? 2 : 1))`
		if !eval[bool](b, inSight) {
			t.Errorf("width %d px: got a row with a wrong number of visible badges, want one, or two for a held price", width)
		}
	}
	b.quiet()
}

func TestBrowser_ShowsReasonsOnNarrowScreen(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	b := openBrowser(t, server.URL)
	b.signIn(marketSecret)
	b.look("light", 360, 740)
	b.open(itemURL(730, redline, ""))
	const inSight = `[...document.querySelectorAll(".quotes .unused")].every(row =>
		[...row.querySelectorAll(".why")].some(why => why.offsetParent && why.getBoundingClientRect().right <= innerWidth))`
	if !eval[bool](b, inSight) {
		t.Error("got an unused quote without a visible reason, want one in each row")
	}
	b.quiet()
}

func TestBrowser_TimesOfTimelineDoNotTouchOnNarrowScreen(t *testing.T) {
	w := newWorld(t)
	w.fill(t)
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	b := openBrowser(t, server.URL)
	b.signIn(marketSecret)
	b.look("light", narrowest, 740)
	const nearest = `(boxes => Math.min(...boxes.slice(1).map((box, i) => box.left - boxes[i].right)))(
		[...document.querySelectorAll(".timeline text.time")].map(e => e.getBoundingClientRect()).filter(box => box.width > 0))`
	b.open("/runs/42")
	if gap := eval[float64](b, nearest); gap < 6 {
		t.Errorf("got %.0f px between two times of the timeline, want at least 6", gap)
	}
	b.quiet()
}

// TestBrowser_HasLargeTargetsOnNarrowScreen measures the links, buttons and summaries that are not
// part of a sentence or a chart. Each must be at least 24 px wide and high.
func TestBrowser_HasLargeTargetsOnNarrowScreen(t *testing.T) {
	w := newWorld(t)
	w.fill(t)
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	b := openBrowser(t, server.URL)
	b.look("light", 390, 844)
	b.signInAs("anna", annasPassword) // the header has a link with the name
	const small = `[...document.querySelectorAll("a, button, summary")].filter(e => {
		const sentence = e.closest("p, li, td, .notice") && !e.closest(".crumbs, .verdict");
		const box = e.getBoundingClientRect();
		return e.checkVisibility() && !sentence && !e.closest("svg, .sr") && box.width > 1 && Math.min(box.width, box.height) < 23.9;
	}).map(e => e.outerHTML.slice(0, 120)).join("\n")`
	for name, address := range walked() {
		b.open(address)
		if found := eval[string](b, small); found != "" {
			t.Errorf("page %s: got these targets, want all at least 24 px high:\n%s", name, found)
		}
	}
}
