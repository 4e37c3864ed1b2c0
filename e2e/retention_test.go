package e2e

import (
	"net/http"
	"testing"

	"assay/internal/provider/providertest"
	"assay/internal/provider/sim"
)

// TestRule6_RetentionKeepsNewestAndRunningJobs ends jobs of both kinds with a retention of
// zero days and two jobs.
func TestRule6_RetentionKeepsNewestAndRunningJobs(t *testing.T) {
	onBoth(t, testRetention)
}

func testRetention(t *testing.T, on engine) {
	markets, faulty := hanging(t, sim.Options{Names: 100, Frozen: true})
	faulty.Reset()
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+faulty.URL(),
		"MARKET_PRICE_JOB_RETENTION_DAYS=0", "MARKET_PRICE_JOB_RETENTION_MIN_JOBS=2")
	s.start()
	for i := range 5 { // five jobs of each kind
		pushNames(s, markets.Names()[:20*(i+1)], 1)
		s.awaitPriced()
		s.refresh()
		s.awaitEnd()
	}
	db := s.open()
	kinds := func(where string) []string {
		return rows(t, db, `SELECT kind, count(*) FROM refresh_job `+where+` GROUP BY 1 ORDER BY 1`)
	}
	s.await("two jobs of each kind", func() bool {
		got := kinds("")
		return len(got) == 2 && got[0] == "bulk|2" && got[1] == "missing|2"
	})
	if status, _, err := s.call(http.MethodGet, "/api/market-prices/jobs/1", nil); err != nil || status != http.StatusNotFound {
		t.Errorf("removed job: got %d, %v, want 404", status, err)
	}
	const tooMany = `SELECT kept FROM (SELECT count(DISTINCT unit_id) AS kept FROM fetch_blob) b WHERE kept > (SELECT count(*) FROM market_file)`
	if got := rows(t, db, tooMany); len(got) > 0 {
		t.Error("got several stored responses of a market, want only the newest")
	}

	// A running job is kept, even if other jobs end.
	faulty.Reset()
	faulty.Always(providertest.Silent())
	id := s.refresh()
	if err := faulty.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	faulty.Reset()
	s.kill()
	s.start()
	if end := s.awaitEnd(); end.Status.JobID != id {
		t.Errorf("last job: got %+v, want %s", end, id)
	}
	checkJob(t, s, id, 100)
	checkInvariants(t, db)
}
