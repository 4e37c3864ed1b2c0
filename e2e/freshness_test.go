package e2e

import (
	"database/sql"
	"net/http"
	"net/url"
	"testing"
	"time"

	"assay/internal/pgtest"
	"assay/internal/randtest"
)

// TestLookup_IsNeverOlderThanLastCommit changes prices on two instances with one database. It
// sends lookups to both instances, which keep prices in memory.
func TestLookup_IsNeverOlderThanLastCommit(t *testing.T) {
	t.Parallel()
	address := pgtest.Shared(t).NewDatabase(t)
	c := newCluster(t, 1_000, address, address)
	db := c.open()
	c.lookUpDuringRuns(db)
	c.lookUpAfterAccepting(db)
	c.estimated(0)
}

// lookUpDuringRuns repeatedly reads the committed prices, then looks up the same names.
func (c *cluster) lookUpDuringRuns(db *sql.DB) {
	c.t.Helper()
	names := c.markets.Names()[:300]
	lookups, seen := 0, map[time.Time]bool{}
	for range randtest.Count(3, 30) {
		id := c.begin()
		c.await("the end of a run", func() bool {
			committed := pricesUpdated(c.t, db)
			for _, got := range c.servers[lookups%len(c.servers)].lookup(names, false) {
				if want := committed[got.MarketHashName]; got.PriceUpdatedAt.Before(want) {
					c.t.Errorf("%q: got price of %v, want %v", got.MarketHashName, got.PriceUpdatedAt, want)
				}
				seen[got.PriceUpdatedAt] = true
			}
			lookups++
			var j job
			c.get("/api/market-prices/jobs/"+id, &j)
			return j.Stage == "done" || c.t.Failed()
		})
	}
	c.t.Logf("%d lookups returned %d different times", lookups, len(seen))
}

// pricesUpdated returns the time of each committed price.
func pricesUpdated(t *testing.T, db *sql.DB) map[string]time.Time {
	t.Helper()
	r, err := db.QueryContext(t.Context(), `SELECT name, price_updated_at FROM item`)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := map[string]time.Time{}
	for r.Next() {
		var name string
		var at int64
		if err := r.Scan(&name, &at); err != nil {
			t.Fatal(err)
		}
		out[name] = time.UnixMicro(at)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// lookUpAfterAccepting accepts prices on one instance and immediately looks them up on the other
// instance.
func (c *cluster) lookUpAfterAccepting(db *sql.DB) {
	c.t.Helper()
	if _, err := db.ExecContext(c.t.Context(), `UPDATE item SET candidate = price + 1000000, candidate_at = price_updated_at`); err != nil {
		c.t.Fatal(err)
	}
	for i, name := range c.markets.Names()[:20] {
		one, other := c.servers[i%2], c.servers[1-i%2]
		before := other.lookup([]string{name}, false)[0]
		path := "/api/market-prices/items/" + url.PathEscape(name) + "/accept?appId=730"
		if status, body, err := one.call(http.MethodPost, path, nil); err != nil || status != http.StatusOK {
			c.t.Fatalf("accept %q: got status %d, error %v, want 200: %s", name, status, err, body)
		}
		after := other.lookup([]string{name}, false)[0]
		if after.CurrentPrice == before.CurrentPrice || !after.PriceUpdatedAt.After(before.PriceUpdatedAt) {
			c.t.Errorf("%q: got %+v after a new price was accepted, want a different price and a later time than before: %+v", name, after, before)
		}
	}
}
