package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const pushHead = "POST /api/inventory/u1/sync HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + platformToken + "\r\n"

// pushOfSize returns the body of a push with at least size bytes.
func pushOfSize(size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"appId":730,"contextId":"2","snapshotAt":"%s","items":[{"assetId":"0","marketHashName":"x"}`, noon.Add(time.Minute).Format(time.RFC3339))
	for i := 1; b.Len() < size; i++ {
		fmt.Fprintf(&b, `,{"assetId":"%d","marketHashName":"x","inspect":"%s"}`, i, strings.Repeat("A", 1000))
	}
	return b.String() + "]}"
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// read reads a response. It returns its status and body.
func read(t *testing.T, c net.Conn) (int, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestArrival_RefusesAStalledBody(t *testing.T) {
	serveOnPipes(t, func(t *testing.T, _ *harness, dial func() net.Conn) {
		c := dial()
		write(t, c, pushHead+"Content-Length: 30000000\r\n\r\n"+`{"rubbish":[`)
		began := time.Now()
		if status, body := read(t, c); status != http.StatusRequestTimeout || !strings.Contains(body, "request_timeout") || time.Since(began) != paceWindow {
			t.Errorf("got %d %s after %v, want 408 after %v", status, body, time.Since(began), paceWindow)
		}
	})
}

func TestArrival_RefusesABodyThatStallsAfterAFastStart(t *testing.T) {
	serveOnPipes(t, func(t *testing.T, _ *harness, dial func() net.Conn) {
		c := dial()
		write(t, c, pushHead+"Content-Length: 30000000\r\n\r\n"+`{"rubbish":[`+strings.Repeat("1,", 2<<20))
		began := time.Now()
		if status, _ := read(t, c); status != http.StatusRequestTimeout || time.Since(began) != paceWindow {
			t.Errorf("got %d after %v, want 408 after %v", status, time.Since(began), paceWindow)
		}
	})
}

func TestArrival_AcceptsABodyAtTheMinimumRate(t *testing.T) {
	serveOnPipes(t, func(t *testing.T, _ *harness, dial func() net.Conn) {
		c := dial()
		const parts, part = 20, paceBytes / 8
		body := pushOfSize(parts * part)
		write(t, c, pushHead+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)))
		for i := 0; i < len(body); i += part {
			write(t, c, body[i:min(i+part, len(body))])
			<-time.After(paceWindow / 9)
		}
		if status, body := read(t, c); status != http.StatusOK {
			t.Errorf("got %d %s, want 200", status, body)
		}
	})
}

func TestArrival_StalledUploadsDoNotDelayOthers(t *testing.T) {
	serveOnPipes(t, func(t *testing.T, _ *harness, dial func() net.Conn) {
		for range 10 {
			c := dial()
			write(t, c, pushHead+"Transfer-Encoding: chunked\r\n\r\n"+"c\r\n"+`{"rubbish":[`+"\r\n")
		}
		for range 2 {
			c := dial()
			write(t, c, pushHead+"Content-Length: 33000000\r\n\r\n"+`{"rubbish":[`+strings.Repeat("1,", 1<<20))
		}
		c := dial()
		body := pushOfSize(3 << 20)
		began := time.Now()
		write(t, c, pushHead+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)))
		write(t, c, body)
		if status, body := read(t, c); status != http.StatusOK || time.Since(began) > time.Second {
			t.Errorf("got %d %s after %v, want 200 within 1s", status, body, time.Since(began))
		}
	})
}

func TestArrival_ReadsARefusedBodyToItsEnd(t *testing.T) {
	serveOnPipes(t, func(t *testing.T, _ *harness, dial func() net.Conn) {
		first := dial()
		write(t, first, pushHead+"Content-Length: 33000000\r\n\r\n"+`{"rubbish":[`)
		sent := make(chan struct{})
		defer func() {
			_ = first.Close()
			<-sent
		}()
		go func() { // this upload stays the first one until the second upload is refused
			defer close(sent)
			for range 4 * intakeWait / paceWindow {
				if _, err := io.WriteString(first, strings.Repeat("1,", paceBytes)); err != nil {
					return
				}
				<-time.After(paceWindow / 2)
			}
		}()
		<-time.After(time.Second)
		c := dial()
		body := pushOfSize(intakeRoom + 3<<20)
		// Many clients read the response only after sending the whole body.
		write(t, c, pushHead+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)))
		write(t, c, body)
		if status, body := read(t, c); status != http.StatusServiceUnavailable || !strings.Contains(body, `"busy"`) {
			t.Errorf("got %d %s, want 503 busy", status, body)
		}
	})
}

func TestServe_RespondsToMalformedChunksWith400(t *testing.T) {
	serveOnPipes(t, func(t *testing.T, h *harness, dial func() net.Conn) {
		before := h.database.Version(t, h.raw)
		for _, head := range []string{pushHead, "GET /api/health HTTP/1.1\r\nHost: x\r\n", "POST /api/market-prices/refresh HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + adminToken + "\r\n"} {
			for _, chunks := range []string{"xyz\r\n", "5\r\nab", "-1\r\n", "1\r\n{xx", "fffffffffffffffff\r\n"} {
				c := dial()
				write(t, c, head+"Transfer-Encoding: chunked\r\n\r\n")
				go func() { _, _ = io.WriteString(c, chunks) }() // the server can refuse the request before it reads the body
				if chunks == "5\r\nab" {
					<-time.After(time.Second)
					_ = c.Close() // the server cannot send a response
					continue
				}
				if status, body := read(t, c); status != http.StatusBadRequest {
					t.Errorf("%.30q, %q: got %d %s, want 400", head, chunks, status, body)
				}
			}
		}
		if after := h.database.Version(t, h.raw); after != before {
			t.Error("malformed request: got a changed database, want no change")
		}
		synctest.Wait()
		if log := h.log.String(); strings.Contains(log, `"status":5`) || strings.Contains(log, `"level":"ERROR"`) {
			t.Errorf("got server errors in the log, want none: %s", log)
		}
	})
}

func TestServe_LogsADisconnectedClientAs499(t *testing.T) {
	serveOnPipes(t, func(t *testing.T, h *harness, dial func() net.Conn) {
		began := h.addWaitingRoute()
		c := dial()
		write(t, c, "GET "+waitingPath+" HTTP/1.1\r\nHost: x\r\nX-Market-Sync-Secret: "+marketSecret+"\r\n\r\n")
		<-began
		_ = c.Close()
		synctest.Wait()
		log := h.log.String()
		if !strings.Contains(log, `"status":499`) || strings.Contains(log, `"status":5`) || strings.Contains(log, `"level":"ERROR"`) {
			t.Errorf("got log %s, want status 499 and no error", log)
		}
	})
}
