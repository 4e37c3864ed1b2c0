package web

import (
	"strings"
	"testing"
	"time"

	"assay/internal/event"
)

func TestOverview_StatesVerdictWithItsAction(t *testing.T) {
	w := newWorld(t)
	body := w.visit(t, adminToken).get("/").body
	mustContain(t, body, `class="notice verdict`, "Age of quotes", "Budget left", "Run 42, Partial")
	empty := newEmptyWorld(t).visit(t, adminToken).get("/").body
	mustContain(t, empty, `class="notice verdict bad"`, "Nothing is configured: set MARKET_PRICE_PROVIDERS", "There is no run yet.")
}

func TestEvents_ArePagedAndSeparateTheMarket(t *testing.T) {
	w := newWorld(t)
	for i := range eventsPerPage + 1 {
		w.exec(`INSERT INTO event (kind, at, size, number, data) VALUES ($1, $2, 1, 0, $3)`, string(event.JobFailed), w.clock.Now().Add(time.Duration(i)*time.Second).UnixMicro(),
			`{"jobId":"7","lastError":"no space left"}`)
	}
	w.exec(`INSERT INTO event (kind, at, size, number, data) VALUES ($1, $2, 1, 0, $3)`, string(event.ListingSold), w.clock.Now().UnixMicro(),
		`{"listingId":"9","sellerId":"u1","marketHashName":"AK-47 | Redline (Field-Tested)","price":3900,"currency":"USD","state":"sold"}`)
	v := w.visit(t, marketSecret)
	body := v.get("/events").body
	if got := strings.Count(body, "Run 7 failed: no space left."); got != eventsPerPage {
		t.Errorf("got %d events on the first page, want %d", got, eventsPerPage)
	}
	if strings.Contains(body, "Listing 9") {
		t.Error("the list of service events has an event of a listing, want none")
	}
	next := strings.Split(strings.SplitN(body, `" rel="next"`, 2)[0], `href="`)
	mustContain(t, v.get(strings.ReplaceAll(next[len(next)-1], "&amp;", "&")).body, "Run 7 failed: no space left.", "Run 42 priced", "First page")
	mustContain(t, v.get("/events?of=market").body, "Listing 9 of the seller u1, AK-47 | Redline (Field-Tested), 39.00 USD: sold.", `href="/listings/9"`)
}
