package view_test

import (
	"strings"
	"testing"

	"assay/internal/event"
	"assay/internal/view"
)

func TestGapsOf_JoinsMarketsWithTheSameGap(t *testing.T) {
	var g event.Gaps
	g.Items = []event.ItemGap{{Reason: "failed", Items: 1200, Share: 0.5}}
	add := func(provider string, share float64, detail string, markets ...string) {
		for _, m := range markets {
			g.Markets = append(g.Markets, event.MarketGap{Provider: provider, Market: m, Reason: "failed", Share: share, Detail: detail})
		}
	}
	add("names", 0.25, "names: timeout", "a", "b", "c", "d")
	add("names", 0.75, "names: timeout", "e")
	add("files", 1, "files: timeout", "x", "y", "z")
	add("gone", 1, "", "")
	var got []string
	for _, gap := range view.GapsOf(g) {
		got = append(got, strings.TrimSpace(gap.String()+" "+gap.Detail))
	}
	want := []string{
		"1,200 items (50 %): failed", "4 markets of names (25 %): failed timeout", "names/e (75 %): failed timeout",
		"files/x (100 %): failed timeout", "files/y (100 %): failed timeout", "files/z (100 %): failed timeout", "gone (100 %): failed",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
