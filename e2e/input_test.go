package e2e

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/internal/app"
	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

func TestInput_InvalidConfigurationListsAllErrors(t *testing.T) {
	for _, c := range []struct {
		name    string
		env     []string
		file    string
		reports []string
	}{
		{"unknown keys", []string{"MARKET_PRICE_TLT=6h"}, "MARKET_PRICE_WORKRES = 2\n", []string{"MARKET_PRICE_TLT", "did you mean MARKET_PRICE_TTL?", "MARKET_PRICE_WORKRES", "did you mean MARKET_PRICE_WORKERS?"}},
		{
			"malformed lists",
			[]string{"MARKET_PRICE_PROVIDERS=sim,,sim", "TRUSTED_PROXIES=10.0.0.0/33", "ADMIN_API_TOKEN=one,,two", "MARKET_PRICE_RATES=EUR"},
			"",
			[]string{"MARKET_PRICE_PROVIDERS", "TRUSTED_PROXIES", "ADMIN_API_TOKEN", "MARKET_PRICE_RATES"},
		},
		{
			"malformed values",
			[]string{"MARKET_PRICE_TTL=soon", "MARKET_PRICE_JOB_RETENTION_DAYS=-1", "LISTEN_ADDR=nowhere", "MARKET_PRICE_SCHEDULE=every now and then"},
			"",
			[]string{"MARKET_PRICE_TTL", "MARKET_PRICE_JOB_RETENTION_DAYS", "LISTEN_ADDR", "MARKET_PRICE_SCHEDULE"},
		},
		{"an unknown provider", []string{"MARKET_PRICE_PROVIDERS=simm"}, "", []string{"simm"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, c.env...)
			args := []string{"serve"}
			if c.file != "" {
				file := filepath.Join(t.TempDir(), "assay.conf")
				writeFile(t, file, c.file)
				args = append(args, "--config", file)
			}
			s.refuses(2, args, c.reports...)
		})
	}
}

// refuses checks that a start fails with the given exit code and messages, and creates no
// database.
func (s *server) refuses(code int, args []string, reports ...string) {
	s.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); err == nil || got != code {
		s.t.Errorf("got exit code %d, want %d", got, code)
	}
	for _, text := range reports {
		if !strings.Contains(string(out), text) {
			s.t.Errorf("the output lacks %q: %s", text, out)
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "assay.db")); err == nil {
		s.t.Error("got a new database, want none")
	}
}

func TestInput_InvalidPriceListConfiguration(t *testing.T) {
	const head = `{"lists":[{"key":"corner","location":"list","format":"csv","appId":730,"currency":"USD","name":"name","markets":[{"key":"shop","ask":"price"}]`
	for _, c := range []struct {
		name, config string
		reports      []string
	}{
		{"unknown member", head + `,"colour":"red"}]}`, []string{"/lists/0/colour"}},
		{"several faults", strings.Replace(head, `"USD"`, `"dollars"`, 1) + `,"unit":7}]}`, []string{"/lists/0/currency", "/lists/0/unit"}},
		{"malformed", head, []string{"not valid JSON"}},
		{"duplicate member", head + `,"key":"again"}]}`, []string{"key"}},
		{"no list", `{}`, []string{"lists"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "lists.json")
			writeFile(t, config, c.config)
			newServer(t, "MARKET_PRICE_PROVIDERS=pricelist", "PRICELIST_CONFIG="+config).startsNothing(c.reports...)
		})
	}
}

// startsNothing checks that a start fails with a configuration error and the given messages.
func (s *server) startsNothing(reports ...string) {
	s.t.Helper()
	cmd := exec.Command(binary, "serve")
	cmd.Env = s.env
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != 2 {
		s.t.Errorf("got exit code %d, want 2: %s", got, out)
	}
	for _, text := range reports {
		if !strings.Contains(string(out), text) {
			s.t.Errorf("the output lacks %q: %s", text, out)
		}
	}
}

func TestInput_InvalidPriceListChangesNothing(t *testing.T) {
	onBoth(t, testRubbish)
}

func testRubbish(t *testing.T, on engine) {
	markets, simURL := simulator(t, sim.Options{Names: 30, Frozen: true})
	dir := t.TempDir()
	list, config := filepath.Join(dir, "list.csv"), filepath.Join(dir, "lists.json")
	good := string(csvList(markets.Names(), 500))
	writeFile(t, list, good)
	writeFile(t, config, listConfig(list))
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim,pricelist", "SIM_BASE_URL="+simURL, "PRICELIST_CONFIG="+config)
	s.within(app.Options{})
	pushNames(s, markets.Names(), 1)
	s.awaitPriced()
	s.refresh()
	s.awaitEnd()
	db := s.open()
	const quotes = `SELECT item_id, market_id, currency, ask, bid, sale FROM market_snapshot ORDER BY 1, 2`
	before := rows(t, db, quotes)
	noise := make([]byte, 100_000)
	r := randtest.New(t)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	for _, c := range []struct{ name, content, reports string }{
		{"wrong columns", "title,cost\nx,1\n", "name"},
		{"one wrong column", strings.Replace(good, "name,price", "name,pirce", 1), "price"},
		{"noise", string(noise), "pricelist"},
		{"nothing", "", "pricelist"},
		{"a page", "<!DOCTYPE html><html>" + strings.Repeat("<p>no</p>", 100), "pricelist"},
		{"a header only", "name,price\n", "pricelist"},
		{"invalid prices", strings.NewReplacer("5.", "abc", "6.", "-").Replace(good), ""},
		{"the first tenth of the list", good[:len(good)/10], "pricelist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			writeFile(t, list, c.content)
			s.t = t
			s.refresh()
			end := s.awaitEnd()
			if end.Status.State != "finished" || end.UpdatedItems != int64(len(markets.Names())) {
				t.Errorf("run: got %+v, want it finished with all items updated", end)
			}
			if c.reports != "" && (end.LastError == nil || !strings.Contains(*end.LastError, c.reports)) {
				t.Errorf("lastError: got %s, want it to contain %q", quoted(end.LastError), c.reports)
			}
			if got := rows(t, db, quotes); !slices.Equal(got, before) {
				t.Errorf("the quotes changed, want no change: %s", firstDifference(got, before))
			}
		})
	}
	s.t = t
}

func TestInput_InvalidRequestChangesNothing(t *testing.T) {
	onBoth(t, testRequests)
}

func testRequests(t *testing.T, on engine) {
	markets, simURL := simulator(t, sim.Options{Names: 30, Frozen: true})
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+simURL)
	s.within(app.Options{})
	pushNames(s, markets.Names(), 1)
	s.awaitPriced()
	db := s.open()
	before := everything(t, db)
	push := func(items string) string {
		return `{"appId":730,"contextId":"2","snapshotAt":"` + time.Now().UTC().Format(time.RFC3339) + `","items":` + items + `}`
	}
	const sync, refresh = "/api/inventory/user0/sync", "/api/market-prices/refresh"
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		reports                  string
	}{
		{"asset twice", "POST", sync, push(`[{"assetId":"1","marketHashName":"A"},{"assetId":"1","marketHashName":"B"}]`), 400, "/items/1/assetId"},
		{"no asset id", "POST", sync, push(`[{"marketHashName":"A"}]`), 400, "/items/0/assetId"},
		{"no name", "POST", sync, push(`[{"assetId":"1"}]`), 400, "/items/0/marketHashName"},
		{"invalid UTF-8", "POST", sync, push("[{\"assetId\":\"1\",\"marketHashName\":\"bad \xff\xfe\"}]"), 400, "UTF-8"},
		{"half a surrogate pair", "POST", sync, push(`[{"assetId":"1","marketHashName":"\ud800"}]`), 400, ""},
		{"NUL in a name", "POST", sync, push(`[{"assetId":"1","marketHashName":"nul\u0000within"}]`), 400, "/items/0/marketHashName"},
		{"a name of 513 bytes", "POST", sync, push(`[{"assetId":"1","marketHashName":"` + strings.Repeat("n", 513) + `"}]`), 400, "/items/0/marketHashName"},
		{"key twice", "POST", sync, push(`[{"assetId":"1","assetId":"2","marketHashName":"A"}]`), 400, "assetId"},
		{"top key twice", "POST", sync, `{"appId":730,"appId":440,"contextId":"2","snapshotAt":"2026-01-01T00:00:00Z","items":[]}`, 400, "appId"},
		{"unknown member", "POST", sync, push(`[{"assetId":"1","marketHashName":"A","colour":"red"}]`), 400, "/items/0/colour"},
		{"amount 0", "POST", sync, push(`[{"assetId":"1","marketHashName":"A","amount":0}]`), 400, "/items/0/amount"},
		{"fractional amount", "POST", sync, push(`[{"assetId":"1","marketHashName":"A","amount":1.5}]`), 400, "/items/0/amount"},
		{"appId as text", "POST", sync, strings.Replace(push(`[]`), "730", `"730"`, 1), 400, "/appId"},
		{"no items", "POST", sync, `{"appId":730,"contextId":"2","snapshotAt":"2026-01-01T00:00:00Z"}`, 400, "/items"},
		{"ahead of the clock", "POST", sync, strings.Replace(push(`[]`), "20", "21", 1), 400, "/snapshotAt"},
		{"cut", "POST", sync, push(`[]`)[:40], 400, ""},
		{"not JSON", "POST", sync, "appId=730", 400, ""},
		{"deep", "POST", sync, strings.Repeat("[", 100_000), 400, ""},
		{"two documents", "POST", sync, push(`[]`) + push(`[]`), 400, ""},
		{"51,000 items", "POST", sync, push("[" + strings.Repeat(`{"assetId":"1","marketHashName":"A"},`, 51_000) + `{}]`), 413, "50000"},
		{"user id of 10 kB", "POST", "/api/inventory/" + strings.Repeat("u", 10_000) + "/sync", push(`[]`), 400, "128"},
		{"user id of 10 kB, read", "GET", "/api/inventory/" + strings.Repeat("u", 10_000), "", 400, "128"},
		{"user id of 10 kB, put", "PUT", "/api/users/" + strings.Repeat("u", 10_000), `{"displayName":"x"}`, 400, "128"},
		{"user id with NUL", "PUT", "/api/users/a%00b", `{"displayName":"x"}`, 400, ""},
		{"user id of invalid UTF-8", "PUT", "/api/users/%ff", `{"displayName":"x"}`, 400, ""},
		{"user id with NUL, listed", "POST", "/api/listings", `{"userId":"a\u0000b","appId":730,"contextId":"2","assetId":"1","price":1,"currency":"USD"}`, 400, ""},
		{"reserved user id, put", "PUT", "/api/users/house:fee", `{"displayName":"x"}`, 422, "reserved_user"},
		{"reserved user id, pushed", "POST", "/api/inventory/house:new/sync", push(`[]`), 422, "reserved_user"},
		{"reserved user id, read", "GET", "/api/inventory/house%3Afee", "", 422, "reserved_user"},
		{"reserved user id, listed", "POST", "/api/listings", `{"userId":"house:fee","appId":730,"contextId":"2","assetId":"1","price":1,"currency":"USD"}`, 422, "reserved_user"},
		{"reserved user id, filtered by", "GET", "/api/trades?userId=house:fee", "", 422, "reserved_user"},
		{"reserved user id, unknown account", "GET", "/api/functions/admin/wallet-ledger/house:fee/balance", "", 404, ""},
		{"force=banana", "POST", refresh + "?force=banana", "", 400, "force"},
		{"force twice", "POST", refresh + "?force=1&force=0", "", 400, "force"},
		{"dryRun=banana", "POST", refresh + "?dryRun=banana", "", 400, "dryRun"},
		{"unknown parameter", "POST", refresh + "?froce=1", "", 400, "froce"},
		{"limit 0", "GET", "/api/prices/items?limit=0", "", 400, "limit"},
		{"limit 1001", "GET", "/api/prices/items?limit=1001", "", 400, "limit"},
		{"foreign cursor", "GET", "/api/prices/items?cursor=rubbish", "", 400, "cursor"},
		{"unknown state", "GET", "/api/market-prices/jobs/1/items?state=happy", "", 400, "state"},
		{"unknown phase", "GET", "/api/prices/items/x?phase=Phase%209", "", 400, "phase"},
		{"job banana", "GET", "/api/market-prices/jobs/banana", "", 404, "job"},
		{"unknown job", "GET", "/api/market-prices/jobs/999", "", 404, "999"},
		{"accept an unknown provider", "POST", "/api/market-prices/providers/nosuch/accept", "", 404, "nosuch"},
		{"unknown path", "GET", "/api/nothing", "", 404, ""},
		{"wrong method", "DELETE", "/api/market-prices/status", "", 405, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var body io.Reader
			if c.body != "" {
				body = strings.NewReader(c.body)
			}
			status, response, err := s.call(c.method, c.path, body)
			if err != nil {
				t.Fatal(err)
			}
			if status != c.status || !strings.Contains(string(response), c.reports) {
				t.Errorf("got %d %.600s, want %d with %q", status, response, c.status, c.reports)
			}
			var p struct{ Code, Detail, RequestID string }
			if err := json.Unmarshal(response, &p); err != nil || p.Code == "" || p.Detail == "" || p.RequestID == "" {
				t.Errorf("the problem lacks a code, a detail or the request ID: %.200s", response)
			}
			if len(response) > 20_000 {
				t.Errorf("got a response of %d bytes, want at most 20,000", len(response))
			}
		})
	}
	if got := everything(t, db); !slices.Equal(got, before) {
		t.Errorf("the database changed, want no change: %s", firstDifference(got, before))
	}
}

func TestInput_RejectsBodyOf200MBInBoundedMemory(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	const size = 200 << 20
	before := s.peakMemory()
	for _, c := range []struct {
		name   string
		length int64
		token  string
		head   string
		status int
	}{
		{"announced", size, s.secret("PLATFORM_API_TOKEN"), "", 413},
		{"in chunks", -1, s.secret("PLATFORM_API_TOKEN"), `{"appId":730,"contextId":"2","snapshotAt":"2026-01-01T00:00:00Z","items":[`, 413},
		{"in chunks, one endless string", -1, s.secret("PLATFORM_API_TOKEN"), `{"appId":"`, 413},
		{"with a wrong token", -1, "wrong", "", 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := &endless{left: size, head: []byte(c.head)}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.addr+"/api/inventory/big/sync", body)
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = c.length
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+c.token)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Logf("the server closed the connection while the body was being sent: %v", err)
				return
			}
			_ = resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Errorf("got status %d, want %d", resp.StatusCode, c.status)
			}
		})
	}
	grown := s.peakMemory() - before
	t.Logf("memory grew by %d MiB", grown>>20)
	if grown > 192<<20 { // a string of 32 MiB and its growing buffers
		t.Errorf("memory grew by %d MiB, want at most 192", grown>>20)
	}
	if got := s.status(); got.Status.Running {
		t.Errorf("got the status %+v, want no running job", got)
	}
}

// TestInput_LargestPushUsesBoundedMemory pushes an inventory of the maximum size.
func TestInput_LargestPushUsesBoundedMemory(t *testing.T) {
	t.Parallel()
	onBoth(t, testLargestPush)
}

func testLargestPush(t *testing.T, on engine) {
	t.Parallel()
	s := on.newServer(t)
	s.start()
	items := make([]asset, 50_000)
	for i := range items {
		items[i] = asset{AssetID: strconv.Itoa(i), MarketHashName: fmt.Sprintf("%s %d", strings.Repeat("n", 500), i)}
	}
	before := s.peakMemory()
	began := time.Now()
	if got := s.push("big", 730, items); got["added"] != 50_000 || got["queuedNames"] != 50_000 {
		t.Errorf("push: got %v, want 50,000 added assets and queued names", got)
	}
	grown := s.peakMemory() - before
	t.Logf("memory grew by %d MiB in %v", grown>>20, time.Since(began))
	if grown > 256<<20 {
		t.Errorf("memory grew by %d MiB, want at most 256", grown>>20)
	}
}

// endless is a body of head, followed by white space.
type endless struct {
	head []byte
	left int64
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.head) > 0 {
		n := copy(p, e.head)
		e.head = e.head[n:]
		return n, nil
	}
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), e.left)
	copy(p, bytes.Repeat([]byte(" "), int(n)))
	e.left -= n
	return int(n), nil
}

// peakMemory returns the peak memory of the process in bytes.
func (s *server) peakMemory() int64 {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Skipf("cannot read the peak memory: %v", err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(kb, "kB")), 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return n << 10
		}
	}
	s.t.Fatal("the process status lacks VmHWM")
	return 0
}

// everything returns the content of all tables that requests can change.
func everything(t *testing.T, db *sql.DB) []string {
	t.Helper()
	var out []string
	for _, table := range []string{"item", "inventory", "inventory_snapshot", "platform_user", "refresh_job", "refresh_item", "missing_price", "price_point", "provider_state", "market_file", "setting"} {
		for _, r := range rows(t, db, "SELECT * FROM "+table+" ORDER BY 1, 2") {
			out = append(out, table+" "+r)
		}
	}
	return out
}
