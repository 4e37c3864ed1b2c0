package web

import (
	"net/http"
	"slices"
	"testing"
)

func TestActions_CallRefresher(t *testing.T) {
	for _, c := range []struct {
		target  string
		fields  []string
		call    string
		message string
	}{
		{"/runs", []string{"force", "0"}, "start forced=false by=page", "Run 43 is started."},
		{"/runs", []string{"force", "1"}, "start forced=true by=page", "Run 43 has started and refreshes every item."},
		{"/runs/42/cancel", nil, "cancel 42", "Run 42 is cancelled."},
		{"/runs/42/retry-failed", nil, "retry 42 by=page", "Run 43 retries the failed items of run 42."},
		{"/providers/sim/pause", nil, "pause sim", "sim is paused"},
		{"/providers/sim/resume", nil, "resume sim", "sim gets requests again"},
		{"/providers/sim/accept", nil, "accept sim", "The quarantine of sim has ended."},
		{"/providers/unknown/pause", nil, "pause unknown", "There is no provider named unknown."},
		{"/providers/sim/accept", []string{"market", "m%s"}, "accept sim m%s", "The quarantine of m%s of sim has ended."},
		{"/item/accept?appId=730&name=a%0Ab%20&phase=Ruby", nil, `accept item 730 "a\nb " "Ruby"`, "The new price is accepted."},
	} {
		w := newWorld(t)
		v := w.visit(t, adminToken)
		res := v.post(c.target, append(c.fields, "back", "/runs?kind=bulk")...)
		if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/runs?kind=bulk" {
			t.Errorf("%s: %d to %q", c.target, res.StatusCode, res.Header.Get("Location"))
		}
		if calls := w.assay.log(); !slices.Equal(calls, []string{c.call}) {
			t.Errorf("%s: got calls %v, want %q", c.target, calls, c.call)
		}
		mustContain(t, v.get("/").body, c.message)
	}
}

func TestStart_DoesNotStartSecondRun(t *testing.T) {
	for force, message := range map[string]string{"0": "is already running", "1": "is not forced"} {
		w := newWorld(t)
		v := w.visit(t, adminToken)
		v.post("/runs")
		v.get("/")
		v.post("/runs", "force", force)
		mustContain(t, v.get("/").body, "Run 43", message, "No new run was started")
	}
}

func TestActions_RejectInvalidRunIDs(t *testing.T) {
	v := newWorld(t).visit(t, adminToken)
	for _, id := range []string{"0", "-1", "+1", "x", "9223372036854775808", "1e3"} {
		if res := v.post("/runs/" + id + "/cancel"); res.StatusCode != http.StatusNotFound {
			t.Errorf("run %q: %d", id, res.StatusCode)
		}
	}
}
