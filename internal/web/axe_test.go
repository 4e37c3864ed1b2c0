package web

import (
	"os"
	"strings"

	"github.com/chromedp/chromedp"
)

// axe checks the accessibility of the open page. Click targets must be at least 24 px wide and high.
func (b *browser) axe(what string) {
	b.t.Helper()
	script, err := os.ReadFile("testdata/vendor/axe.min.js")
	if err != nil {
		if os.Getenv("CI") == "true" {
			b.t.Fatal("axe-core is not installed: make vendor")
		}
		return
	}
	if !eval[bool](b, `window.axe !== undefined`) {
		b.do(chromedp.Evaluate[chromedp.Void](string(script) + ";undefined"))
	}
	b.do(chromedp.Evaluate[chromedp.Void](`window.violations = null;
		axe.run({ rules: { "target-size": { enabled: true } }, resultTypes: ["violations"] }).then(r => {
			window.violations = r.violations.map(v => v.id + " (" + v.help + "): " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(" | "));
		}, e => { window.violations = ["axe: " + e]; });undefined`))
	b.until("the result of axe", `window.violations !== null`)
	if found := eval[[]string](b, `window.violations`); len(found) > 0 {
		b.t.Errorf("%s: accessibility violations:\n%s", what, strings.Join(found, "\n"))
	}
}
