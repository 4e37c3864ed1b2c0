package web

import (
	"net/http"
	"strings"
	"testing"
)

func TestMarket_ListsListingsAndTradesByStateAndUser(t *testing.T) {
	w := newWorld(t)
	w.trade()
	v := w.visit(t, marketSecret)
	mustContain(t, v.get("/listings").body, `href="/listings/3"`, `href="/listings/1"`, "$1,234.56", `href="/users/anna"`)
	active := v.get("/listings?state=active").body
	if strings.Contains(active, `href="/listings/1"`) || !strings.Contains(active, `href="/listings/3"`) {
		t.Error("active listings: got another list, want only listing 3")
	}
	mustContain(t, v.get("/listings?user=ben").body, "Nothing found")
	mustContain(t, v.get("/listings/1").body, "Sold", `href="/trades/1"`, "$31.00")
	mustContain(t, v.get("/trades?user=ben").body, `href="/trades/1"`, `href="/trades/2"`, "$1.55", "$29.45")
	pending := v.get("/trades?state=pending").body
	if strings.Contains(pending, `href="/trades/1"`) || !strings.Contains(pending, `href="/trades/2"`) {
		t.Error("pending trades: got another list, want only trade 2")
	}
	mustContain(t, v.get("/trades/1").body, "Completed", "Hold ends", "in 7 d", "of version 1", `href="/listings/1"`)
	mustContain(t, v.get("/sellers").body, `href="/users/anna"`)
	mustContain(t, v.get("/sellers?q=ben").body, "Nothing found")
	for _, target := range []string{"/trades/99", "/listings/99", "/trades/x", "/listings/0"} {
		if res := v.get(target); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got status %d, want 404", target, res.StatusCode)
		}
	}
	if res := v.get("/trades?state=lost"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("unknown state: got status %d, want 400", res.StatusCode)
	}
}

func TestMarket_CompletesAndReversesTrades(t *testing.T) {
	w := newWorld(t)
	w.trade()
	v := w.visit(t, adminToken)
	mustContain(t, v.post("/trades/2/complete").body, "Complete trade 2?", "$30.88")
	if got := w.read(`SELECT state FROM trade WHERE id = 2`); got != "pending" {
		t.Errorf("trade before the confirmation: got %s, want pending", got)
	}
	v.post("/trades/2/complete", "confirmed", "1", "back", "/trades/2")
	mustContain(t, v.get("/trades/2").body, "Trade 2 is completed.")
	mustContain(t, v.post("/trades/1/reverse").body, "Reverse trade 1?", "$31.00")
	v.post("/trades/1/reverse", "confirmed", "1", "back", "/trades/1")
	mustContain(t, v.get("/trades/1").body, "Trade 1 is reversed.", "Reversed")
	v.post("/trades/1/complete", "confirmed", "1", "back", "/trades/1")
	mustContain(t, v.get("/trades/1").body, "The trade was reversed at")
	mustContain(t, v.get("/audit").body, "/trades/1/reverse")
}
