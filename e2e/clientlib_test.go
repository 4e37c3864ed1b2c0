package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"assay/internal/provider/sim"
)

// clientTask is the input of a program that uses a client.
type clientTask struct {
	Do, URL, Token string
	Since          int64
	Fields         string
	Listing        string
	Header         map[string]string
	Body           string
	Secrets        []string
	Timeout        int // of an attempt, in milliseconds; 0 is the client's own limit
}

// clientProgram builds the program of a language and returns its command line.
func clientProgram(t *testing.T, language string) []string {
	t.Helper()
	if language == "Go" {
		program := filepath.Join(t.TempDir(), "flow")
		runIn(t, "../client/go", nil, "go", "build", "-o", program, "./internal/flow")
		return []string{program}
	}
	source, err := os.ReadFile("clients/client.ts")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"node", clientScript(t, string(source))}
}

// clientScript compiles a program beside the files of the TypeScript client, and returns its path.
func clientScript(t *testing.T, source string) string {
	t.Helper()
	dir, compile := t.TempDir(), npmTool(t, "tsc")
	if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS("../client/ts/src")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(filepath.Dir(compile)), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "tsconfig.json"} {
		text, err := os.ReadFile(filepath.Join("../client/ts", name))
		if err != nil {
			t.Fatal(err)
		}
		create(t, filepath.Join(dir, name), string(text))
	}
	create(t, filepath.Join(dir, "src", "client.ts"), source)
	runIn(t, dir, nil, compile, "--types", "node")
	return filepath.Join(dir, "dist", "client.js")
}

// startTask starts a program with a task, and returns its output and a function that ends it.
func startTask(t *testing.T, program []string, task clientTask) (out io.Reader, stop func()) {
	t.Helper()
	input, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), t.Output()
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(stop)
	return pipe, stop
}

// clientCopy is a copy of all prices that a client keeps.
type clientCopy struct {
	prices map[string]published
	cursor int64
}

// follow runs a client from the cursor of the copy until the copy reaches the change of until.
// disturb runs once: at the start, or after the first batch if the client starts with a snapshot.
func (c *clientCopy) follow(t *testing.T, program []string, task clientTask, disturb func() (until *snapshot)) {
	t.Helper()
	task.Do, task.Since, task.Fields = "follow", c.cursor, figures
	out, stop := startTask(t, program, task)
	defer stop()
	var want *snapshot
	if c.cursor != 0 {
		want = disturb()
	}
	for batches := json.NewDecoder(out); want == nil || c.cursor < want.change; {
		var b struct {
			Reset  bool
			Prices []published
			Cursor int64
		}
		if err := batches.Decode(&b); err != nil {
			t.Fatalf("read a batch: got error %v, want the change %v", err, want)
		}
		if b.Reset != (c.cursor == 0) || b.Cursor <= c.cursor {
			t.Fatalf("got a batch with reset=%t and cursor %d, want a cursor above %d, and a reset only after 0", b.Reset, b.Cursor, c.cursor)
		}
		for _, p := range b.Prices {
			if old := c.prices[p.key()]; old == p {
				t.Errorf("got the change of %s twice, want it once: %v", p.key(), p)
			}
			c.prices[p.key()] = p
		}
		c.cursor = b.Cursor
		if want == nil {
			want = disturb()
		}
	}
	if d := difference(c.prices, want.prices); d != "" || len(c.prices) != len(want.prices) || c.cursor != want.change {
		t.Errorf("got %d prices at change %d, want the %d prices of change %d:%s", len(c.prices), c.cursor, len(want.prices), want.change, d)
	}
}

// TestClientLibraries_DoTheSame runs the Go and the TypeScript client against a server. It covers
// pages, changes during a refresh and a kill -9, a purchase whose response is lost, and a webhook.
func TestClientLibraries_DoTheSame(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"Go", "TypeScript"} {
		t.Run(language, func(t *testing.T) {
			program := clientProgram(t, language)
			onBoth(t, func(t *testing.T, on engine) {
				t.Parallel()
				checkClient(t, on, program)
			})
		})
	}
}

func checkClient(t *testing.T, on engine, program []string) {
	t.Helper()
	h, simURL := simulator(t, sim.Options{Names: 200, Frozen: true})
	hook := make(chan *http.Request, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		select {
		case hook <- r:
		default:
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(receiver.Close)
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+simURL, "WEBHOOK_ALLOW_HOSTS="+strings.TrimPrefix(receiver.URL, "http://"))
	s.start()
	pushNames(s, h.Names(), 1)
	s.awaitPriced()
	task := clientTask{URL: "http://" + s.addr, Token: s.secret("ADMIN_API_TOKEN")}

	listed := task
	listed.Do = "list"
	out, _ := startTask(t, program, listed)
	prices := map[string]string{}
	for items := json.NewDecoder(out); ; {
		var p published
		if err := items.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		prices[p.MarketHashName] = p.CurrentPriceDecimal
	}
	all := s.readSnapshot()
	if len(all.prices) < 150 || len(prices) < len(all.prices) {
		t.Errorf("got %d listed items and %d prices, want at least 150 in several pages", len(prices), len(all.prices))
	}
	for _, p := range all.prices {
		if prices[p.MarketHashName] != p.CurrentPriceDecimal {
			t.Errorf("%s: got the price %q, want %s", p.MarketHashName, prices[p.MarketHashName], p.CurrentPriceDecimal)
		}
	}

	refreshed := func() *snapshot {
		h.Advance(500)
		s.refresh()
		s.awaitEnd()
		s.kill()
		s.start()
		h.Advance(500)
		s.refresh()
		s.awaitEnd()
		return s.readSnapshot()
	}
	c := clientCopy{prices: map[string]published{}}
	c.follow(t, program, task, refreshed)
	c.follow(t, program, task, refreshed) // another run of the program, from the stored cursor

	buyOnce(t, s, program, task)

	var made struct{ Secret string }
	postOK(t, s, "/api/webhooks", fmt.Sprintf(`{"url":%q}`, receiver.URL), &made)
	postOK(t, s, "/api/webhooks/1/test", "", nil)
	message := <-hook
	body, _ := io.ReadAll(message.Body)
	verified := task
	verified.Do, verified.Body, verified.Secrets, verified.Header = "verify", string(body), []string{made.Secret}, map[string]string{}
	for name := range message.Header {
		verified.Header[strings.ToLower(name)] = message.Header.Get(name)
	}
	forged := verified
	forged.Body += " "
	for want, task := range map[bool]clientTask{true: verified, false: forged} {
		var got bool
		out, _ := startTask(t, program, task)
		if err := json.NewDecoder(out).Decode(&got); err != nil || got != want {
			t.Errorf("a webhook: got verified=%t, %v, want %t", got, err, want)
		}
	}
}

// buyOnce buys through a proxy that loses two responses, and expects one purchase.
func buyOnce(t *testing.T, s *server, program []string, task clientTask) {
	t.Helper()
	var first struct{ Items []struct{ AssetID string } }
	s.get("/api/inventory/user0?appId=730&limit=1", &first)
	var made struct{ Listing struct{ ID string } }
	postOK(t, s, "/api/listings", fmt.Sprintf(`{"userId":"user0","appId":730,"contextId":"2","assetId":%q,"price":2000,"currency":"USD"}`, first.Items[0].AssetID), &made)
	s.putUser("buyer", `{}`)
	s.deposit("buyer", 10_000)
	origin, err := url.Parse(task.URL)
	if err != nil {
		t.Fatal(err)
	}
	var attempts atomic.Int64
	forward := httputil.NewSingleHostReverseProxy(origin)
	forward.ModifyResponse = func(sold *http.Response) error {
		switch attempts.Add(1) {
		case 1:
			<-sold.Request.Context().Done() // the connection stays open without a response
		case 2:
			panic(http.ErrAbortHandler)
		}
		return nil
	}
	proxy := httptest.NewServer(forward)
	defer proxy.Close()
	task.Do, task.URL, task.Listing, task.Timeout = "buy", proxy.URL, made.Listing.ID, 2000
	out, _ := startTask(t, program, task)
	var trade struct{ ID, State string }
	if err := json.NewDecoder(out).Decode(&trade); err != nil || trade.State != "pending" {
		t.Fatalf("got the trade %+v, %v, want a pending one", trade, err)
	}
	var trades struct{ Items []struct{ ID string } }
	s.get("/api/trades?userId=buyer", &trades)
	if attempts.Load() < 3 || len(trades.Items) != 1 || trades.Items[0].ID != trade.ID {
		t.Errorf("got %d attempts and trades %+v, want three attempts and the trade %s", attempts.Load(), trades, trade.ID)
	}
}

// postOK sends a POST that must succeed.
func postOK(t *testing.T, s *server, path, body string, into any) {
	t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	status, text, err := s.call(http.MethodPost, path, in)
	if err != nil || status >= 300 {
		t.Fatalf("%s: got status %d %s, error %v, want success", path, status, text, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
}
