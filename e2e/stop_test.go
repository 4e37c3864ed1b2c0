package e2e

import (
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"assay/internal/app"
	"assay/internal/provider/providertest"
	"assay/internal/provider/sim"
)

// mostStop is the time limit of a stop. On an idle machine a stop takes at most 10 s.
const mostStop = 30 * time.Second

// hanging returns a simulator that accepts requests and does not respond until it is released.
func hanging(t *testing.T, o sim.Options) (*sim.Handler, *providertest.Server) {
	t.Helper()
	h, err := sim.NewHandler(o)
	if err != nil {
		t.Fatal(err)
	}
	s := providertest.NewServer(t, h)
	s.Always(providertest.Silent())
	return h, s
}

func TestStop_InterruptsRunAndNextStartContinues(t *testing.T) {
	t.Parallel()
	onBoth(t, testStop)
}

func testStop(t *testing.T, on engine) {
	t.Parallel()
	markets, faulty := hanging(t, sim.Options{Names: 500, Frozen: true})
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+faulty.URL())
	s.start()
	pushNames(s, markets.Names(), 1)
	id := s.refresh()
	if err := faulty.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	half := halfRequest(t, s.addr)
	took, err := s.stop()
	if err != nil || took > mostStop {
		t.Errorf("stop: got error %v after %v, want exit code 0 within %v", err, took, mostStop)
	}
	t.Logf("the stop took %v", took)
	_ = half.Close()

	faulty.Reset()
	s.start()
	if end := s.awaitEnd(); end.Status.JobID != id || end.Status.State != "finished" {
		t.Errorf("last job: got %+v, want %s finished", end.Status, id)
	}
	s.awaitPriced()
	checkJob(t, s, id, 500)
	checkRows(t, s, 1)
}

// halfRequest opens a connection and sends an incomplete request.
func halfRequest(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "POST /api/inventory/slow/sync HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", addr); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestStop_LeavesNoGoroutine(t *testing.T) {
	onBoth(t, testGoroutines)
}

func testGoroutines(t *testing.T, on engine) {
	markets, faulty := hanging(t, sim.Options{Names: 500, Frozen: true})
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+faulty.URL())
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	before := goleak.IgnoreCurrent()
	l := s.within(app.Options{})
	pushNames(s, markets.Names(), 1)
	s.refresh()
	if err := faulty.Wait(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	took, err := l.end()
	if err != nil || took > mostStop {
		t.Errorf("stop: got error %v after %v, want none within %v", err, took, mostStop)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}
