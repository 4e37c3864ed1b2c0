package e2e

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"assay/internal/pgtest"
	"assay/internal/provider/sim"
)

// TestCopy_RunContinuesOnTarget kills a server during a refresh and copies its database to the
// other engine. The refresh continues there. Then it does the same in the opposite direction.
func TestCopy_RunContinuesOnTarget(t *testing.T) {
	t.Parallel()
	const names, users = 2_000, 2
	markets, url := simulator(t, sim.Options{Names: names, Frozen: true, Latency: 50 * time.Millisecond})
	env := []string{"MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL=" + url, "MARKET_PRICE_WORKERS=1"}
	postgres := pgtest.Shared(t).NewDatabase(t)
	first := newServer(t, env...)
	there := newServerOn(t, postgres, env...)
	back := newServer(t, env...)
	sqlite := func(s *server) string { return "sqlite:" + filepath.Join(s.dir, "assay.db") }

	first.start()
	pushNames(first, markets.Names(), users)
	first.awaitPriced()
	one := move(t, first, sqlite(first), there, postgres, markets)
	two := move(t, there, postgres, back, sqlite(back), markets)
	if three := jobNumber(t, back.refresh()); one >= two || two >= three {
		t.Errorf("got the jobs %d, %d and %d, want growing numbers", one, two, three)
	}
	back.awaitEnd()
	checkRows(t, back, users)
}

// move kills a server during a refresh. Another server ends the refresh on a copy of the
// database. move returns the number of the job.
func move(t *testing.T, from *server, fromURL string, to *server, toURL string, markets *sim.Handler) int64 {
	t.Helper()
	if code, errs := copyDatabase(t, fromURL, toURL); code != 7 {
		t.Errorf("copy of a database in use: got exit code %d, want 7: %s", code, errs)
	}
	markets.Advance(2_000) // changes nearly all prices
	before := served(markets)
	id := from.refresh()
	awaitProgress(from, id, 0)
	from.kill()
	if code, errs := copyDatabase(t, fromURL, toURL); code != 0 {
		t.Fatalf("copy: got exit code %d, want 0: %s", code, errs)
	}
	to.start()
	end := to.awaitEnd()
	if end.Status.JobID != id || end.Status.State != "finished" {
		t.Errorf("last job: got %s in state %s, want %s finished", end.Status.JobID, end.Status.State, id)
	}
	if sent := served(markets) - before; sent > 2*sim.DefaultMarkets {
		t.Errorf("got %d requests, want at most %d", sent, 2*sim.DefaultMarkets)
	}
	checkJob(t, to, id, int64(len(markets.Names())))
	checkRows(t, to, 2)
	return jobNumber(t, id)
}

func jobNumber(t *testing.T, id string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// copyDatabase runs assay copy.
func copyDatabase(t *testing.T, from, to string) (code int, errs string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, "copy", "--from", from, "--to", to).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), string(out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, string(out)
}
