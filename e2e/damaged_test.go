package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"assay/internal/app"
	"assay/internal/db"
	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// torn is a database with its write-ahead log after a kill during a run. All changed pages are in
// the log, so damage to the log does not damage the database file.
type torn struct {
	t       *testing.T
	server  *server
	markets *sim.Handler
	wal     []byte
	want    progress // progress of the unchanged copy
}

// progress contains counts that never decrease.
type progress struct{ jobs, settled, points, revisions, rows int64 }

func newTorn(t *testing.T) *torn {
	markets, url := simulator(t, sim.Options{Names: 300, Frozen: true})
	s := newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+url, "MARKET_PRICE_WORKERS=1")
	s.start()
	pushNames(s, markets.Names()[:250], 1)
	s.awaitPriced()
	s.refresh()
	s.awaitEnd()
	// The stop writes the log to the database file. Only later data is in the log and can be damaged.
	if _, err := s.stop(); err != nil {
		t.Fatal(err)
	}
	markets.Advance(2_000)
	s.start()
	pushNames(s, markets.Names(), 1)
	s.awaitPriced()
	id := s.refresh()
	var j job
	s.await("the end of the fetch stage", func() bool {
		s.get("/api/market-prices/jobs/"+id, &j)
		return j.Stage != "plan" && j.Stage != "fetch"
	})
	s.kill()
	wal, err := os.ReadFile(filepath.Join(s.dir, "assay.db-wal"))
	if err != nil || len(wal) < 100_000 {
		t.Fatalf("got a write-ahead log of %d bytes, error %v, want at least 100,000", len(wal), err)
	}
	x := &torn{t: t, server: s, markets: markets, wal: wal}
	x.want = x.read(x.copy(wal))
	t.Logf("write-ahead log of %d bytes; complete database: %+v", len(wal), x.want)
	return x
}

// copy returns the path of a copy of the database with the given log.
func (x *torn) copy(wal []byte) string {
	x.t.Helper()
	dir, err := os.MkdirTemp(x.t.TempDir(), "")
	if err != nil {
		x.t.Fatal(err)
	}
	path := filepath.Join(dir, "assay.db")
	copyFile(x.t, filepath.Join(x.server.dir, "assay.db"), path)
	copyFile(x.t, filepath.Join(x.server.dir, "assay.db.id"), path+".id")
	if err := os.WriteFile(path+"-wal", wal, 0o600); err != nil {
		x.t.Fatal(err)
	}
	return path
}

// read opens a copy like the program, and checks the invariants.
func (x *torn) read(path string) progress {
	x.t.Helper()
	st, err := db.Open(context.Background(), db.Options{Path: path})
	if err != nil {
		x.t.Fatalf("cannot open the database: %v", err)
	}
	if err := st.Close(); err != nil {
		x.t.Fatalf("cannot close the database: %v", err)
	}
	db := openFile(x.t, path)
	defer db.Close()
	checkInvariants(x.t, db)
	var p progress
	err = db.QueryRow(`SELECT (SELECT coalesce(max(id), 0) FROM refresh_job), (SELECT count(*) FROM refresh_item WHERE state <> 'pending'),
		(SELECT count(*) FROM price_point), (SELECT coalesce(sum(rev), 0) FROM item), (SELECT count(*) FROM inventory)`).
		Scan(&p.jobs, &p.settled, &p.points, &p.revisions, &p.rows)
	if err != nil {
		x.t.Fatal(err)
	}
	return p
}

// atWorstOlder checks that a damaged copy has at most the progress of the complete one.
func (x *torn) atWorstOlder(what string, wal []byte) {
	x.t.Helper()
	path := x.copy(wal)
	p, w := x.read(path), x.want
	if p.jobs > w.jobs || p.settled > w.settled || p.points > w.points || p.revisions > w.revisions || p.rows > w.rows {
		x.t.Errorf("%s: got the progress %+v, want at most %+v as in the complete database", what, p, w)
	}
	if x.t.Failed() {
		x.t.Fatalf("stopped after the failure at %s", what)
	}
	_ = os.RemoveAll(filepath.Dir(path))
}

func tornCopies() int {
	if randtest.Long() {
		return 1_000
	}
	return 100
}

func TestTorn_TruncatedLogLosesOnlyRecentData(t *testing.T) {
	t.Parallel()
	r := randtest.New(t)
	x := newTorn(t)
	for range tornCopies() {
		n := r.IntN(len(x.wal))
		x.atWorstOlder(fmt.Sprintf("log cut at %d of %d", n, len(x.wal)), x.wal[:n])
	}
	x.goesOn(x.wal[:r.IntN(len(x.wal))])
}

func TestTorn_FlippedBitInLogLosesOnlyRecentData(t *testing.T) {
	t.Parallel()
	r := randtest.New(t)
	x := newTorn(t)
	for range tornCopies() {
		bit := r.IntN(len(x.wal) * 8)
		x.atWorstOlder(fmt.Sprintf("bit %d flipped", bit), flip(x.wal, bit))
	}
	x.goesOn(flip(x.wal, r.IntN(len(x.wal)*8)))
}

func flip(b []byte, bit int) []byte {
	out := append([]byte(nil), b...)
	out[bit/8] ^= 1 << (bit % 8)
	return out
}

// goesOn runs the program on a damaged copy and checks that it continues its work.
func (x *torn) goesOn(wal []byte) {
	x.t.Helper()
	s := newServer(x.t, "MARKET_PRICE_PROVIDERS=sim", x.server.env[len(x.server.env)-2])
	path := x.copy(wal)
	for _, name := range []string{"", "-wal", ".id"} {
		copyFile(x.t, path+name, filepath.Join(s.dir, "assay.db"+name))
	}
	l := s.within(app.Options{})
	pushNames(s, x.markets.Names(), 1)
	s.awaitEnd()
	s.awaitPriced()
	checkRows(x.t, s, 1)
	if _, err := l.end(); err != nil {
		x.t.Error(err)
	}
	checkInvariants(x.t, s.open())
}

// TestTorn_FlippedBitInDatabaseDoesNotPanic reads everything and runs a refresh on databases
// with a damaged page. SQLite has no page checksums, so a changed value in a row is not
// detected. The program must not panic, hang or create a new database.
func TestTorn_FlippedBitInDatabaseDoesNotPanic(t *testing.T) {
	t.Parallel()
	r := randtest.New(t)
	x := newTorn(t)
	whole := x.copy(x.wal)
	x.read(whole) // closing moves the log into the database
	content, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	copies := 12
	if randtest.Long() {
		copies = 300
	}
	refused, failed := 0, 0
	for range copies {
		// Choose headers of the file and its pages more often.
		bit := r.IntN(len(content) * 8)
		if r.IntN(2) == 0 {
			bit = r.IntN(len(content)/4096)*4096*8 + r.IntN(256*8)
		}
		started, ok := x.checkDamaged(flip(content, bit))
		if !started {
			refused++
		} else if !ok {
			failed++
		}
		if t.Failed() {
			t.Fatalf("stopped after the failure at bit %d of %d bytes", bit, len(content))
		}
	}
	t.Logf("%d damaged copies: the server refused to start with %d of them, and returned errors with %d", copies, refused, failed)
}

// checkDamaged starts the program on a damaged database, reads everything and starts a run. It reports
// whether the program started, and whether all requests succeeded.
func (x *torn) checkDamaged(content []byte) (started, ok bool) {
	x.t.Helper()
	s := newServer(x.t, "MARKET_PRICE_PROVIDERS=sim", x.server.env[len(x.server.env)-2])
	if err := os.WriteFile(filepath.Join(s.dir, "assay.db"), content, 0o600); err != nil {
		x.t.Fatal(err)
	}
	copyFile(x.t, filepath.Join(x.server.dir, "assay.db.id"), filepath.Join(s.dir, "assay.db.id"))
	l, err := s.tryWithin(app.Options{})
	if err != nil {
		return false, false
	}
	ok = true
	_, _ = s.tryRefresh() // may fail with an error
	client := http.Client{Timeout: patience}
	for _, path := range []string{
		"/api/market-prices/status", "/api/market-prices/jobs", "/api/market-prices/jobs/1/items", "/api/prices/items",
		"/api/market-prices/provider-debug", "/api/market-prices/job-debug", "/api/inventory/user0", "/api/health",
	} {
		req, err := http.NewRequestWithContext(x.t.Context(), http.MethodGet, "http://"+s.addr+path, nil)
		if err != nil {
			x.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.secret("ADMIN_API_TOKEN"))
		resp, err := client.Do(req)
		if err != nil {
			x.t.Errorf("%s: got error %v, want a response", path, err)
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		ok = ok && resp.StatusCode < 500
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var st status
		if s.tryGet("/api/market-prices/status", &st) != nil || !st.Status.Running {
			break // the run ended, or the server reports an error
		}
		ok = ok && end.After(time.Now())
	}
	if took, _ := l.end(); took > mostStop {
		x.t.Errorf("the server took %v to stop, want at most %v", took, mostStop)
	}
	return true, ok
}
