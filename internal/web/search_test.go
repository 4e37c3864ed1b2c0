package web

import (
	"strings"
	"testing"

	"assay/internal/catalog"
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

func TestSearch_FindsItemsOfAllGames(t *testing.T) {
	w := newWorld(t)
	w.own("collector", catalog.Key{AppID: catalog.Dota, Name: "Redline Courier"})
	w.own("builder", catalog.Key{AppID: catalog.Rust, Name: "Redline Door"})
	v := w.visit(t, marketSecret)
	mustContain(t, v.get("/search?q=redline").body, "AK-47 | Redline (Field-Tested)", "Redline Courier", `<span class="tag">Dota 2</span>`,
		"Redline Door", `<span class="tag">Rust</span>`, "/items?appId=730&amp;q=redline", "/items?appId=570&amp;q=redline")
	body := v.get("/search?appId=570&q=redline").body
	mustContain(t, body, "Redline Courier")
	if strings.Contains(body, "AK-47") || strings.Contains(body, "Redline Door") {
		t.Error("search in one game: got items of other games, want none")
	}
}
