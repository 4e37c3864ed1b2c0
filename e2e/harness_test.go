// Package e2e tests the built program from outside, with real processes, HTTP requests and
// files, and kill -9.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// binary is the path of the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	if point, clock := os.Getenv(exitPoint), os.Getenv(clockFile); point != "" || clock != "" {
		os.Exit(runServer(point, clock))
	}
	dir, err := os.MkdirTemp("", "assay-e2e-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "assay")
	build := exec.Command("go", "build", "-o", binary, "assay/cmd/assay")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	// Parallel tests mostly wait, so run more of them than there are processors.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// simulator serves simulated markets from this process, which outlives killed servers.
func simulator(t *testing.T, o sim.Options) (*sim.Handler, string) {
	t.Helper()
	h, err := sim.NewHandler(o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.Start(t.Context(), "127.0.0.1:0", h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return h, s.URL()
}

// server is an instance of the program with its own directory. It can be restarted.
type server struct {
	t    *testing.T
	dir  string
	addr string
	env  []string
	now  func() time.Time // time of pushes

	database string            // PostgreSQL database; "": a file in dir
	secrets  map[string]string // secrets given in env

	cmd  *exec.Cmd
	done chan error
	log  *buffer
}

// buffer collects output. It is safe for concurrent use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// newServer prepares a server. Its method start starts it.
func newServer(t *testing.T, env ...string) *server {
	t.Helper()
	addr := freeAddress(t)
	s := &server{t: t, dir: t.TempDir(), addr: addr, now: time.Now, log: &buffer{}}
	s.env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "DATA_DIR=" + s.dir, "LISTEN_ADDR=" + addr}, env...)
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			const tail = 2000 // bytes; more would hide the other failures of a run
			text := s.log.String()
			t.Logf("end of the server's log:\n%s", text[max(0, len(text)-tail):])
		}
	})
	return s
}

// straceOrSkip returns the path of strace, which makes system calls fail. Without strace, it
// skips the test, or fails in CI.
func straceOrSkip(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err != nil {
		const why = "strace is not installed (on Debian: apt-get install strace)"
		if os.Getenv("CI") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return path
}

// freeAddress returns an address that stays free while a server is stopped. Its host is a
// random loopback address, so that no other server and no outgoing connection uses its port.
// Systems that have only 127.0.0.1 get a port below the range of outgoing connections.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := 10_000 + rand.IntN(22_000)
		host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
		for _, host := range []string{host, "127.0.0.1"} {
			l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, port))
			if err != nil {
				continue // port in use, or no such address
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return l.Addr().String()
		}
	}
	t.Fatal("found no free port")
	return ""
}

// spawn starts the process without waiting.
func (s *server) spawn() { s.t.Helper(); s.spawnCommand("serve") }

// spawnCommand starts a command with the settings of the server.
func (s *server) spawnCommand(args ...string) {
	s.t.Helper()
	program := binary
	if slices.ContainsFunc(s.env, func(v string) bool { return strings.HasPrefix(v, clockFile+"=") }) {
		program = os.Args[0] // this test program, which TestMain turns into a server
	}
	s.cmd = exec.Command(program, args...)
	s.cmd.Env = s.env
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.done = make(chan error, 1)
	go func(cmd *exec.Cmd, done chan error) { done <- cmd.Wait() }(s.cmd, s.done)
}

// start starts the process and waits until it responds.
func (s *server) start() {
	s.t.Helper()
	s.spawn()
	s.awaitHealth()
}

// awaitHealth waits until the process responds.
func (s *server) awaitHealth() {
	s.t.Helper()
	s.await("a response to the health check", func() bool {
		resp, err := client.Get("http://" + s.addr + "/api/health")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// kill kills the process if it runs.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.done
	s.cmd = nil
}

// stop stops the process gracefully and returns the duration.
func (s *server) stop() (time.Duration, error) {
	began := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	err := <-s.done
	s.cmd = nil
	return time.Since(began), err
}

// patience is the time limit for expected events. It is long because the machine may be busy.
const patience = 3 * time.Minute

// await polls until ok returns true.
func (s *server) await(what string, ok func() bool) {
	s.t.Helper()
	most := patience
	if randtest.Long() {
		most *= 10
	}
	// The pauses start short and grow. Otherwise the requests of many waiting tests would use
	// more processor time than the servers' work.
	pause := 2 * time.Millisecond
	for end := time.Now().Add(most); time.Now().Before(end); {
		if ok() {
			return
		}
		select {
		case err := <-s.done:
			s.done <- err
			s.t.Fatalf("the server ended (%v) while waiting for %s", err, what)
		case <-time.After(pause):
		}
		pause = min(pause*5/4, 100*time.Millisecond)
	}
	s.t.Fatalf("timed out after %[2]v waiting for %[1]s", what, most)
}

func (s *server) secret(name string) string {
	s.t.Helper()
	if given, ok := s.secrets[name]; ok {
		return given
	}
	b, err := os.ReadFile(filepath.Join(s.dir, "secrets", name))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// client does not keep connections. A connection to a killed process would make the first
// request to its successor fail.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// call sends a request as administrator. It returns the status and body.
func (s *server) call(method, path string, body io.Reader) (int, []byte, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, "http://"+s.addr+path, body)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.secret("ADMIN_API_TOKEN"))
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, b, err
}

// get decodes the response to a GET request.
func (s *server) get(path string, into any) {
	s.t.Helper()
	if err := s.tryGet(path, into); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) tryGet(path string, into any) error {
	status, body, err := s.call(http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("GET %s: %d %s", path, status, body)
	}
	return json.Unmarshal(body, into)
}

// status contains the required fields of the status.
type status struct {
	Status struct {
		Running bool
		JobID   string
		State   string
		Stage   string
	}
	PendingItems, UpdatedItems, NoQuoteItems, FailedItems, TotalItems int64
	SkippedItems                                                      struct{ TTL, NoSales, Budget, Paused, Backoff int64 }
	LastError                                                         *string
	Usage                                                             struct{ RequestCount int64 }
	Missing                                                           struct {
		Running      bool
		PendingItems int64
		WaitingItems int64
	}
}

func (s *server) status() status {
	s.t.Helper()
	var st status
	s.get("/api/market-prices/status", &st)
	return st
}

// asset is an element of a pushed inventory.
type asset struct {
	AssetID        string `json:"assetId"`
	MarketHashName string `json:"marketHashName,omitempty"`
	Marketable     *bool  `json:"marketable,omitempty"`
	ClassID        string `json:"classId,omitempty"`
	InstanceID     string `json:"instanceId,omitempty"`
	Amount         int64  `json:"amount,omitempty"`
	Inspect        string `json:"inspect,omitempty"`
}

// push pushes a user's inventory and returns the result.
func (s *server) push(user string, app int, items []asset) map[string]int64 {
	s.t.Helper()
	out, err := s.tryPush(user, app, items)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *server) tryPush(user string, app int, items []asset) (map[string]int64, error) {
	body, err := json.Marshal(map[string]any{
		"appId": app, "contextId": "2", "snapshotAt": s.now().UTC().Format(time.RFC3339Nano), "items": items,
	})
	if err != nil {
		return nil, err
	}
	code, response, err := s.call(http.MethodPost, "/api/inventory/"+url.PathEscape(user)+"/sync", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	if code != http.StatusOK {
		return nil, fmt.Errorf("push: %d %s", code, response)
	}
	out := map[string]int64{}
	return out, json.Unmarshal(response, &out)
}

// refresh starts a forced run and returns its ID.
func (s *server) refresh() string {
	s.t.Helper()
	id, err := s.tryRefresh()
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *server) tryRefresh() (string, error) {
	code, body, err := s.call(http.MethodPost, "/api/market-prices/refresh?force=1", nil)
	if err != nil {
		return "", fmt.Errorf("refresh: %w", err)
	}
	if code != http.StatusAccepted {
		return "", fmt.Errorf("refresh: %d %s", code, body)
	}
	var response struct{ Job struct{ ID string } }
	err = json.Unmarshal(body, &response)
	return response.Job.ID, err
}

// awaitPriced waits until the missing-price queue has no due items.
func (s *server) awaitPriced() {
	s.t.Helper()
	var st status
	defer func() {
		if s.t.Failed() {
			s.t.Logf("last status: %+v", st)
		}
	}()
	s.await("an empty missing-price queue", func() bool {
		st = s.status()
		return !st.Missing.Running && st.Missing.PendingItems == 0
	})
}

// awaitEnd waits until no bulk job is queued or running.
func (s *server) awaitEnd() status {
	s.t.Helper()
	var st status
	s.await("the end of the refresh", func() bool {
		st = s.status()
		return !st.Status.Running
	})
	return st
}

// all reads every page of a list.
func all[T any](s *server, path string) []T {
	s.t.Helper()
	var out []T
	for cursor := ""; ; {
		var page struct {
			Items      []T
			NextCursor *string
		}
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		s.get(path+sep+"limit=1000&cursor="+url.QueryEscape(cursor), &page)
		out = append(out, page.Items...)
		if page.NextCursor == nil {
			return out
		}
		cursor = *page.NextCursor
	}
}
