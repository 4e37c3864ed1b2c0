package api

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// silent is the connection of a client that does not read after the first write.
type silent struct {
	*httptest.ResponseRecorder
	limits []time.Time // write deadlines
}

// SetWriteDeadline is called by http.ResponseController.
func (s *silent) SetWriteDeadline(t time.Time) error {
	s.limits = append(s.limits, t)
	return nil
}

// Write implements http.ResponseWriter.
func (s *silent) Write(b []byte) (int, error) {
	if len(s.limits) > 1 {
		return 0, os.ErrDeadlineExceeded
	}
	return s.ResponseRecorder.Write(b)
}

func TestStream_DisconnectsAClientThatDoesNotRead(t *testing.T) {
	h := newHarness(t, nil)
	w := &silent{ResponseRecorder: httptest.NewRecorder()}
	r := h.newRequest(http.MethodGet, "/api/prices/stream?since=0", nil)
	r.Header.Set("Authorization", "Bearer "+platformToken)
	func() {
		defer func() {
			if got := recover(); got != http.ErrAbortHandler { //nolint:err113 // a panic value
				t.Errorf("got the panic %v, want http.ErrAbortHandler", got)
			}
		}()
		h.api.ServeHTTP(w, r)
	}()
	if len(w.limits) != 2 || time.Until(w.limits[1]) > streamPatience {
		t.Errorf("got the write deadlines %v, want two, at most %s from now", w.limits, streamPatience)
	}
	if !strings.Contains(h.log.String(), "the client read nothing for 10s") {
		t.Errorf("got the log %s, want the reason of the disconnection", h.log)
	}
	if got := h.request("GET", "/metrics", "", asAdmin).body; !strings.Contains(got, `assay_streams_ended_total{reason="slow"} 1`) || !strings.Contains(got, `assay_streams_ended_total{reason="client"} 0`) {
		t.Errorf("got the metrics %s, want one stream that ended because the client was slow", got)
	}
}

func TestStream_RefusesAWrongLastEventID(t *testing.T) {
	h := newHarness(t, nil)
	for _, id := range []string{"x", "-1", "1.5"} {
		p := h.wantProblem(http.StatusBadRequest, "invalid_parameters", h.request("GET", "/api/prices/stream", "", asPlatform, header("Last-Event-ID: "+id)))
		if len(p.Errors) != 1 || p.Errors[0].Pointer != "/header/Last-Event-ID" {
			t.Errorf("Last-Event-ID %s: got the errors %v, want one at /header/Last-Event-ID", id, p.Errors)
		}
	}
	p := h.wantProblem(http.StatusGone, "cursor_expired", h.request("GET", "/api/prices/stream?since=1", "", asPlatform))
	if !strings.Contains(p.Detail, "event number") {
		t.Errorf("an expired number: got %q, want the text for events", p.Detail)
	}
}

// TestPace_LimitsAllStreamsWhilePricesChange compares the time that the writes of many streams
// take with the rate limit.
func TestPace_LimitsAllStreamsWhilePricesChange(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := &pace{turn: make(chan struct{}, 1)}
			began := time.Now()
			done := make(chan error)
			for range 100 {
				go func() {
					var err error
					for range 10 {
						if err == nil {
							err = p.wait(t.Context(), streamPiece, func() bool { return quiet })
						}
					}
					done <- err
				}()
			}
			for range 100 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			want := 1000 * streamPiece * time.Second / streamRate
			if quiet {
				want = 0
			}
			if took := time.Since(began); took != want {
				t.Errorf("quiet %t: the writes took %s, want %s", quiet, took, want)
			}
		})
	}
}
