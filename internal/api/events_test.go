package api

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"assay/internal/apikey"
	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/view"
)

// If the next events of a reader were deleted, the reader gets 410 with the number to continue after.
func TestEvents_ExpiredNumberIs410(t *testing.T) {
	h := newHarness(t, nil)
	h.exec(`UPDATE event_feed SET expired_events = (SELECT min(number) FROM event WHERE number > 0)`)
	h.exec(`DELETE FROM event WHERE number = (SELECT expired_events FROM event_feed)`)
	for _, after := range []string{"", "?after=0", "?after=1"} {
		p := h.wantProblem(http.StatusGone, "cursor_expired", h.request("GET", "/api/events"+after, "", asPlatform))
		if want := h.read(`SELECT expired_events FROM event_feed`); p.Change != want {
			t.Errorf("/api/events%s: got the change %q, want the number %s to continue after", after, p.Change, want)
		}
		if got := h.request("GET", "/api/events?after="+p.Change, "", asPlatform); got.StatusCode != http.StatusOK {
			t.Errorf("after the number in the problem: got status %d: %s; want 200", got.StatusCode, got.body)
		}
	}
}

// An API key reads events of users, listings, trades and the ledger only with the scopes that read these.
func TestEvents_HaveOnlyKindsOfTheScopesOfAKey(t *testing.T) {
	h := newHarness(t, nil)
	last := h.read(`SELECT max(number) FROM event`)
	for _, e := range []event.Data{
		event.InventoryPriced{UserID: "u1"},
		event.ListingEnded{State: "sold"},
		event.TradeMoved{State: "completed"},
		event.TradeOverdue{},
		event.LedgerProblem{},
		event.JobEnded{Outcome: "failed"},
		event.InventoryPriced{UserID: "u2"},
	} {
		h.must(h.store.InTx(t.Context(), func(tx *db.Tx) error { return event.Add(tx, e) }))
	}
	h.must(event.NewFeed(h.store, slog.New(slog.DiscardHandler)).Number(t.Context()))
	for scopes, want := range map[string]string{
		"":                           "inventory.priced listing.sold trade.completed trade.overdue ledger.problem job.failed inventory.priced",
		"prices:read":                "job.failed",
		"prices:read inventory:read": "inventory.priced job.failed inventory.priced",
		"prices:read market:write":   "listing.sold trade.completed trade.overdue job.failed",
		"prices:write wallet:read":   "ledger.problem job.failed",
		"prices:read operate:write":  "job.failed",
	} {
		credential := asMarket
		if scopes != "" {
			credential = h.newKey(apikey.Key{Name: strings.NewReplacer(":", "-", " ", "-").Replace(scopes), Scopes: strings.Fields(scopes)})
		}
		var page view.Events
		h.must(json.Unmarshal([]byte(h.request("GET", "/api/events?after="+last, "", credential).body), &page))
		var kinds []string
		for _, e := range page.Items {
			kinds = append(kinds, e.Kind)
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("key with %q: got %s, want %s", scopes, got, want)
		}
		if number := h.read(`SELECT max(number) FROM event`); page.Next != number || !page.UpToDate {
			t.Errorf("key with %q: got next %s, up to date %t; want %s, true", scopes, page.Next, page.UpToDate, number)
		}
	}
}

// Events and the stream check the form of price changes like other reads.
func TestEvents_RefuseAnUnknownForm(t *testing.T) {
	h := newHarness(t, nil)
	for _, path := range []string{"/api/events", "/api/prices/stream"} {
		for query, pointer := range map[string]string{"fields=phase": "/query/fields", "fields=average,": "/query/fields", "currency=usd": "/query/currency"} {
			p := h.wantProblem(http.StatusBadRequest, "invalid_parameters", h.request("GET", path+"?"+query, "", asPlatform))
			if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
				t.Errorf("%s?%s: got the errors %v, want one at %s", path, query, p.Errors, pointer)
			}
		}
		h.wantProblem(http.StatusUnprocessableEntity, "no_exchange_rate", h.request("GET", path+"?currency=XTS", "", asPlatform))
	}
}
