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
