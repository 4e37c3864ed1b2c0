package api

import (
	"net/http"
	"testing"
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
