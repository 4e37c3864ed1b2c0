package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/app"
	"assay/internal/randtest"
)

func TestSecrets_DoNotLeak(t *testing.T) {
	t.Parallel()
	onBoth(t, testSecrets)
}

func testSecrets(t *testing.T, on engine) {
	t.Parallel()
	h := newSecretFinder(t, on)
	h.start()
	h.live()
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", h.cmd.Process.Pid))
	if err != nil {
		t.Logf("cannot read the command line: %v", err)
	}
	h.f.look("the command line", cmdline)
	h.files(true)
	if _, err := h.stop(); err != nil {
		t.Error(err)
	}
	h.files(true)
	var sent bytes.Buffer
	for _, hit := range h.shop.Hits() {
		path, _ := url.QueryUnescape(hit.Path) // an invalid escape contains no secret
		sent.WriteString(path)
		_ = hit.Header.Write(&sent)
	}
	for _, name := range []string{"SHOP_API_KEY", "QUERY_API_KEY"} {
		if !strings.Contains(sent.String(), canaries[name]) {
			t.Errorf("the provider got no request with %s, want one", name)
		}
	}
	t.Logf("searched %d bytes", h.f.bytes)
}

// TestSecrets_AreNotInAPanic makes a handler and a worker panic with a value that contains
// every secret.
func TestSecrets_AreNotInAPanic(t *testing.T) {
	onBoth(t, testPanics)
}

func testPanics(t *testing.T, on engine) {
	h := newSecretFinder(t, on)
	var handler, worker atomic.Bool // the next transaction panics
	l := h.within(app.Options{Faults: func(string) error {
		stack := debug.Stack()
		for caller, armed := range map[string]*atomic.Bool{"net/http.(*conn).serve": &handler, "assay/internal/dispatch": &worker} {
			if bytes.Contains(stack, []byte(caller)) && armed.CompareAndSwap(true, false) {
				panic(fmt.Errorf("failed with %v", canaries))
			}
		}
		return nil // other transactions, such as heartbeats, run outside handlers and workers
	}})
	handler.Store(true)
	status, body, err := h.call(http.MethodPost, "/api/inventory/u/sync", strings.NewReader(
		`{"appId":730,"contextId":"2","snapshotAt":"2026-01-01T00:00:00Z","items":[]}`))
	if err != nil || status != http.StatusInternalServerError {
		t.Errorf("handler that panics: got status %d, %v, want 500", status, err)
	}
	h.f.look("the response to a panic", body)
	worker.Store(true) // the next push starts a worker
	pushNames(h.server, h.names, 1)
	h.awaitPriced()
	if got := h.status(); got.Status.Running {
		t.Errorf("got the status %+v, want no running job", got)
	}
	for _, text := range []string{"handler panicked", "panic: "} {
		if !strings.Contains(h.log.String(), text) {
			t.Errorf("the log lacks %q", text)
		}
	}
	h.files(false)
	if _, err := l.end(); err != nil {
		t.Error(err)
	}
}

func TestSecrets_AreNotInConfigurationOutput(t *testing.T) {
	h := newSecretFinder(t, onSQLite)
	for _, c := range []struct {
		args []string
		env  []string
	}{
		{[]string{"config"}, nil},
		{[]string{"config", "--json"}, nil},
		{[]string{"serve"}, []string{"MARKET_PRICE_TTL=soon"}},
		{[]string{"serve"}, []string{"ADMIN_API_TOKEN=" + canaries["ADMIN_API_TOKEN"] + "," + canaries["ADMIN_API_TOKEN"]}},
		{[]string{"serve"}, []string{"WALLET_LEDGER_KEY=" + canaries["WALLET_LEDGER_KEY"] + "0"}},
		{[]string{"serve"}, []string{"SIM_BASE_URL=http://user:" + canaries["SIM_API_KEY"] + "@[broken"}},
		{[]string{"serve"}, []string{"DATABASE_URL=postgres://user:" + canaries["SIM_API_KEY"] + "@localhost/db"}},
		{[]string{"config"}, []string{"DATABASE_URL=postgres://user:" + canaries["SIM_API_KEY"] + "@localhost/db"}},
		{[]string{"config"}, []string{"DATABASE_URL=postgres://pooler/db", "DATABASE_DIRECT_URL=postgres://user:" + canaries["SIM_API_KEY"] + "@localhost/db"}},
		{[]string{"status"}, nil},
		{[]string{"provider", "test", "pricelist"}, nil},
	} {
		out := h.run(c.args, c.env)
		h.f.look(strings.Join(c.args, " ")+" with "+strings.Join(c.env, " ")[:min(20, len(strings.Join(c.env, " ")))], out)
	}
}

// run runs a command and returns its output.
func (s *server) run(args, env []string) []byte {
	s.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(append([]string(nil), s.env...), env...)
	out, _ := cmd.CombinedOutput() // the exit code does not matter
	return out
}

// TestSecrets_OnlyWrongSecretsAreDelayed sends wrong secrets from one address and from many
// addresses, each on a new connection. Concurrently it sends the valid secret from the same
// addresses. Only responses to wrong secrets may be delayed.
func TestSecrets_OnlyWrongSecretsAreDelayed(t *testing.T) {
	fromOne, others, fromOthers := randtest.Count(200, 1_000), randtest.Count(10, 100), randtest.Count(25, 1_000)
	s := newServer(t, "TRUSTED_PROXIES=127.0.0.1")
	s.start()
	right := presented{"the market secret", "X-Market-Sync-Secret", s.secret("MARKET_PRICE_SYNC_SECRET"), market}
	wrong := presented{"a wrong secret", "X-Market-Sync-Secret", "guess", ""}
	const path = "/api/market-prices/status"
	began := time.Now()
	inTime := func() bool { return time.Since(began) < 50*time.Second } // one-minute windows end after this
	var group sync.WaitGroup
	var limited atomic.Int64
	room := make(chan struct{}, 200)
	guess := func(from string, times int) {
		var unauthorized atomic.Int64
		var own sync.WaitGroup
		for range times {
			room <- struct{}{}
			own.Go(func() {
				defer func() { <-room }()
				switch status, _ := s.present(http.MethodGet, path, wrong, from); status {
				case http.StatusUnauthorized:
					unauthorized.Add(1)
				case http.StatusTooManyRequests:
					limited.Add(1)
				default:
					t.Errorf("wrong secret from %s: got status %d, want 401 or 429", from, status)
				}
			})
		}
		own.Wait()
		if n := unauthorized.Load(); inTime() && n != 20 {
			t.Errorf("got %d of %d wrong secrets from %s with status 401, want 20 and status 429 for the rest", n, times, from)
		}
	}
	group.Go(func() { guess("198.51.100.1", fromOne) })
	for i := range others {
		group.Go(func() { guess(fmt.Sprintf("203.0.113.%d", i), fromOthers) })
	}
	guessed := make(chan struct{})
	go func() { group.Wait(); close(guessed) }()
	slowest, tries := time.Duration(0), 0
	for done := false; !done; tries++ {
		from := []string{"198.51.100.1", "203.0.113.1", "192.0.2.1", ""}[tries%4]
		sent := time.Now()
		if status, _ := s.present(http.MethodGet, path, right, from); status != http.StatusOK {
			t.Errorf("right secret from %q: got status %d, want 200", from, status)
		}
		slowest = max(slowest, time.Since(sent))
		select {
		case <-guessed:
			done = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Logf("%d wrong secrets got status 429; %d valid secrets took at most %v", limited.Load(), tries, slowest)
	if slowest > 3*time.Second {
		t.Errorf("the response to a valid secret took %v, want at most 3s", slowest)
	}
	if warned := strings.Count(s.log.String(), "wrong secret"); warned > 100 {
		t.Errorf("got %d logged wrong secrets, want at most 100", warned)
	}
}

// TestSecrets_RotateWithoutAnOutage rotates a secret at 100 requests per second.
func TestSecrets_RotateWithoutAnOutage(t *testing.T) {
	const older, newer = "the-older-secret-0123456789", "the-newer-secret-0123456789"
	file := filepath.Join(t.TempDir(), "secret")
	writeFile(t, file, older+"\n")
	s := newServer(t, "MARKET_PRICE_SYNC_SECRET_FILE="+file)
	s.start()
	accepted := func(secret string) bool {
		status, _ := s.present(http.MethodGet, "/api/market-prices/status", presented{header: "X-Market-Sync-Secret", value: secret}, "")
		return status == http.StatusOK
	}
	var sent, failed atomic.Int64
	ask := func(secret string) {
		sent.Add(1)
		if !accepted(secret) {
			failed.Add(1)
		}
	}
	endOlder := every10ms(func() { ask(older) })
	writeFile(t, file, older+","+newer+"\n") // in place, like an editor
	s.await("the newer secret", func() bool { return accepted(newer) })
	endNewer := every10ms(func() { ask(newer) })
	endOlder()
	next := filepath.Join(filepath.Dir(file), "next")
	writeFile(t, next, newer+"\n")
	if err := os.Rename(next, file); err != nil { // atomically, like a secret store
		t.Fatal(err)
	}
	s.await("the end of the older secret", func() bool { return !accepted(older) })
	s.await("some more requests", func() bool { return sent.Load() >= 50 })
	endNewer()
	if n := failed.Load(); n > 0 {
		t.Errorf("got %d failed requests of %d, want none", n, sent.Load())
	}
}

// every10ms calls do every 10 ms. The returned function stops this and waits for all calls.
func every10ms(do func()) (end func()) {
	stop := make(chan struct{})
	var calls sync.WaitGroup
	calls.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				calls.Go(do)
			}
		}
	})
	return func() {
		close(stop)
		calls.Wait()
	}
}
