package api

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
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
	if len(w.limits) != 2 || time.Until(w.limits[1]) > streamPatience+streamFarewell {
		t.Errorf("got the write deadlines %v, want two, at most %s from now", w.limits, streamPatience+streamFarewell)
	}
	if !strings.Contains(h.log.String(), "The client did not read for 10s.") {
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

// slowReader reads up to 8 KiB at each tick.
type slowReader struct {
	net.Conn
	ticks *time.Ticker
}

// Read implements io.Reader.
func (s slowReader) Read(b []byte) (int, error) {
	<-s.ticks.C
	return s.Conn.Read(b[:min(len(b), 8<<10)])
}

// A client that reads, but too slowly, gets whole events and then the reason.
func TestStream_SendsASlowClientTheReason(t *testing.T) {
	h := newHarness(t, nil)
	h.exec(`INSERT INTO event (kind, at, size, data) SELECT 'job.finished', 1, 1, '{"lastError":"' || hex(zeroblob(50000)) || '"}' FROM item LIMIT 20`)
	feeds := newFeedHandlers(&h.deps, h.api.meter.streams)
	feeds.patience = 50 * time.Millisecond
	ts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := feeds.stream(&call{Request: r, w: w, ctx: r.Context(), slow: r.Context(), id: "slow", values: values{"since": "0"}})
		t.Errorf("got the error %v, want a panic that closes the connection", err)
	}))
	ts.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(32 << 10); err != nil {
			t.Error(err)
		}
		return ctx
	}
	ts.Start()
	defer ts.Close()
	conn, err := net.Dial("tcp", ts.Listener.Addr().String())
	h.must(err)
	defer conn.Close()
	h.must(conn.(*net.TCPConn).SetReadBuffer(32 << 10))
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: assay\r\n\r\n"))
	h.must(err)
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	resp, err := http.ReadResponse(bufio.NewReader(slowReader{conn, ticks}), nil)
	h.must(err)
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body) // the error is that of the closed connection
	frames := strings.Split(strings.TrimSuffix(string(body), "\n\n"), "\n\n")
	last := ""
	for _, frame := range frames {
		_, data, found := strings.Cut(frame, "\ndata: ")
		if found && !json.Valid([]byte(data)) {
			t.Errorf("got an event of %d bytes whose data is not JSON, want whole events", len(frame))
		}
		last = frame
	}
	if len(frames) == 1 || !strings.HasPrefix(last, "event: error\ndata: {") || !strings.Contains(last, `"code":"slow_client"`) {
		t.Errorf("got %d events, the last one %.200q; want the error slow_client after others", len(frames), last)
	}
}

// eventEnd finds the end of the event also if a part ends within or after its blank line.
func TestEventEnd_EndsTheEventThatIsSentInPart(t *testing.T) {
	const text = "data: a\n\ndata: b\n\n"
	for n := 2; n <= len(text); n++ {
		want := len(text)
		if n <= len(text)/2 {
			want /= 2
		}
		if got := eventEnd([]byte(text), n); got != want {
			t.Errorf("after %d bytes: got %d, want %d", n, got, want)
		}
	}
}
