package web

import (
	"strings"
	"testing"
)

func TestSearch_FindsItemsUsersAndRuns(t *testing.T) {
	w := newWorld(t)
	w.own("redline-fan")
	v := w.visit(t, marketSecret)
	mustContain(t, v.get("/search?q=redline").body, "StatTrak™ AK-47 | Redline (Field-Tested)", ">redline-fan</", "/items?appId=730&amp;q=redline")
	mustContain(t, v.get("/search?q=42").body, `href="/runs/42">Run 42`)
	mustContain(t, v.get("/search?q=Run+42").body, `href="/runs/42">Run 42`)
	if body := v.get("/search?q=999999").body; strings.Contains(body, "Run 999999") {
		t.Error("the search shows a run that does not exist, want none")
	}
	mustContain(t, v.get("/search").body, "the number of a run")
}
