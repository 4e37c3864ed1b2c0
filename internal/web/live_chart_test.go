package web

import (
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"assay/internal/db"
	"assay/internal/provider"
)

// livePages are the pages with live charts, and the number of their charts.
func livePages() map[string]int {
	return map[string]int{"/providers/cs2cap": 2, "/providers/cs2cap?period=7d": 2, itemURL(730, redline, ""): 1, itemURL(730, dragonLore, "") + "&range=30d": 1, itemURL(730, redline, "") + "&range=all": 1}
}

func TestLiveCharts_AreDrawnByServerWithoutScripts(t *testing.T) {
	w := newWorld(t)
	w.fill(t)
	v := w.visit(t, adminToken)
	for address, want := range livePages() {
		body := v.get(address).body
		if n := strings.Count(body, `}'><svg class="chart step" width="100%" height="200" role="img" aria-label="`); n != want {
			t.Errorf("%s: got %d charts, want %d", address, n, want)
		}
	}
}

// redraw changes what the open page shows.
type redraw struct {
	address string
	change  func(w *world)
}

func redraws() []redraw {
	return []redraw{
		{"/providers/cs2cap", func(w *world) {
			at := db.Micros(w.clock.Now().Truncate(provider.SamplePeriod))
			w.exec(`INSERT INTO request_sample (provider, host, at, result, up_to, requests, duration, bytes) VALUES ('cs2cap', '', $1, 'failed', 250000, 20, 3600000, 0)`, at)
		}},
		{itemURL(730, redline, ""), func(w *world) {
			w.clock.add(10 * time.Minute)
			w.insertHistory(redline)
		}},
	}
}

// TestBrowser_DrawsLiveCharts checks the charts of uPlot in light and dark mode on a wide and on a
// narrow screen.
func TestBrowser_DrawsLiveCharts(t *testing.T) {
	w := newWorld(t)
	if !w.handler.(*site).assets.has(chartFile) {
		t.Skip("the page is built without scripts")
	}
	w.fill(t)
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	b := openBrowser(t, server.URL)
	b.signIn(adminToken)
	for _, size := range []window{{"narrow", 390, 844}, {"", 1440, 900}} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(scheme, size.width, size.height)
			for _, address := range []string{"/providers/cs2cap", itemURL(730, redline, "")} {
				charts := livePages()[address]
				b.open(address)
				b.until("the charts of "+address, `document.querySelectorAll(".live-chart canvas").length === `+strconv.Itoa(charts))
				b.fits(address + " with charts")
				const heights = `[...document.querySelectorAll(".live-chart")].map(e => e.getBoundingClientRect().height).join()`
				if got, want := eval[string](b, heights), strings.TrimSuffix(strings.Repeat("200,", charts), ","); got != want {
					t.Errorf("%s: got charts with heights %s px, want %s", address, got, want)
				}
				if got := eval[int](b, `document.querySelectorAll('.live-chart > svg[role="img"][aria-label]').length`); got != charts {
					t.Errorf("%s: got %d drawings for screen readers, want %d", address, got, charts)
				}
				if !eval[bool](b, `[...document.querySelectorAll("svg.health")].every(e => e.getBoundingClientRect().width > e.parentElement.clientWidth / 2)`) {
					t.Errorf("%s: got narrow health bars, want the width of the panel", address)
				}
				b.axe(address + ", " + scheme)
			}
			b.point(`.u-over`, 0.97)
			b.until("the values at the cursor", `document.querySelector(".chart-tip:not([hidden])")?.textContent.includes("$") ?? false`)
			b.shoot("chart-" + scheme + "-" + size.name)
			b.fits("values at the cursor")
		}
	}
	b.quiet()
}

// point moves the pointer over the first element that matches a selector, to a part of its width.
func (b *browser) point(selector string, part float64) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`(() => {
		const over = document.querySelector(` + strconv.Quote(selector) + `), box = over.getBoundingClientRect();
		for (const kind of ["mouseenter", "mousemove"])
			over.dispatchEvent(new MouseEvent(kind, { clientX: box.left + box.width * ` + strconv.FormatFloat(part, 'f', -1, 64) + `, clientY: box.top + box.height / 2 }));
	})()`))
}

// TestBrowser_UpdatesLiveCharts checks that a chart is drawn again only if its data has changed,
// and that the focus stays.
func TestBrowser_UpdatesLiveCharts(t *testing.T) {
	for _, r := range redraws() {
		t.Run(strings.Trim(r.address[:5], "/"), func(t *testing.T) {
			w := newWorld(t)
			if !w.handler.(*site).assets.has(chartFile) {
				t.Skip("the page is built without scripts")
			}
			w.fill(t)
			server := httptest.NewServer(w.handler)
			t.Cleanup(server.Close)
			b := openBrowser(t, server.URL)
			b.signIn(adminToken)
			b.open(r.address)
			b.until("the chart", `document.querySelector(".live-chart canvas") !== null`)
			b.do(chromedp.Evaluate[chromedp.Void](`(() => {
				window.plot = document.querySelector(".live-chart .uplot");
				window.picture = plot.querySelector("canvas").toDataURL();
				window.focused = plot.closest(".panel").querySelector(".tabs a");
				focused.focus();
				const part = plot.closest("[data-stream]");
				window.swaps = window.draws = 0;
				document.addEventListener("htmx:afterSwap", e => { if (e.detail.target.id === part.id) swaps++; });
				const clear = CanvasRenderingContext2D.prototype.clearRect;
				CanvasRenderingContext2D.prototype.clearRect = function () { draws++; return clear.apply(this, arguments); };
				htmx.trigger(part, "stream");
			})()`))
			b.until("an update without a change", `swaps > 0`)
			if draws := eval[int](b, `draws`); draws != 0 {
				t.Errorf("update without a change: got %d drawings, want none", draws)
			}
			r.change(w)
			b.until("the new drawing", `plot.querySelector("canvas").toDataURL() !== picture`)
			if draws := eval[int](b, `draws`); draws == 0 {
				t.Error("update with a change: got no drawing, want one")
			}
			if !eval[bool](b, `document.contains(plot) && document.activeElement === focused && document.contains(focused)`) {
				t.Error("after the update: got another chart or focus, want both kept")
			}
			b.quiet()
		})
	}
}

func TestBrowser_ShowsTimesOfChartsInChosenZone(t *testing.T) {
	w := newWorld(t)
	w.insertSamples()
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	b := openBrowser(t, server.URL)
	if _, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"}); err != nil {
		t.Fatalf("set the time zone: got error %v, want none", err)
	}
	b.signIn(adminToken)
	const times = `[document.querySelector("svg.health rect:last-child title"), document.querySelector("svg.bars title"), document.querySelector("svg.bars a")]
		.map(e => e?.getAttribute("aria-label") || e?.textContent).join(" | ")`
	check := func(wants ...string) {
		t.Helper()
		got := eval[string](b, times)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("hover texts: got %q, want %q in them", got, want)
			}
		}
	}
	check("5 Oct 14:00: ")
	utc := eval[string](b, times)
	b.do(chromedp.Click(chromedp.CSS("#zone")))
	b.until("local times", `document.getElementById("zone")?.textContent === "Times: local"`)
	check("5 Oct 23:00: ")
	if local := eval[string](b, times); strings.Split(local, " | ")[2] == strings.Split(utc, " | ")[2] {
		t.Errorf("label of the first run: got %q, want local time", local)
	}
	b.open("/providers/cs2cap")
	if got := eval[string](b, `[...document.querySelectorAll(".live-chart g title")].at(-1).textContent`); !strings.HasPrefix(got, "5 Oct 23:00: ") {
		t.Errorf("hover text of the status chart: got %q, want the local time 23:00", got)
	}
	b.quiet()
}
