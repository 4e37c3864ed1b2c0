package refresh_test

import (
	"fmt"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/inventory"
	"assay/internal/provider"
)

// kinds returns the kinds of all events except price.changed, oldest first. It appends the
// data of inventory.priced.
func (w *world) kinds() string {
	w.tb.Helper()
	rows, err := w.raw.QueryContext(w.tb.Context(), `SELECT kind || CASE WHEN kind = 'inventory.priced' THEN data ELSE '' END FROM event WHERE kind <> 'price.changed' ORDER BY id`)
	must(w.tb, err)
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var text string
		must(w.tb, rows.Scan(&text))
		out = append(out, text)
	}
	must(w.tb, rows.Err())
	return fmt.Sprint(out)
}

func pricedOf(user string, rows, unpriced, value int, since time.Time) string {
	return fmt.Sprintf(`inventory.priced{"userId":%q,"appId":730,"contextId":"2","rows":%d,"unpricedRows":%d,"totalValue":%d,"totalValueDecimal":"%d","currency":"USD","since":%q}`,
		user, rows, unpriced, value, value, since.Format(time.RFC3339))
}

func TestInventoryPriced_IsSentBeforeTheEndOfTheJob(t *testing.T) {
	s := batch("alpha", 100, []string{"A", "B"}, "a1")
	w := newWorld(t, s)
	w.exec(`INSERT INTO setting (name, value) VALUES ('currency', 'USD')`)
	w.push("u", 730, "A", "B", "unknown to all")
	w.push("v", 730, "B")
	w.drain()
	first := pricedOf("u", 3, 1, 20, epoch) + " " + pricedOf("v", 1, 0, 10, epoch) + " job.finished"
	equal(t, "events of the first run", w.kinds(), "["+first+"]")
	w.clock.Add(30 * time.Minute)
	w.push("u", 730, "A", "B", "unknown to all") // no name is new
	w.clock.Add(100 * time.Hour)
	s.items[730] = []string{"A", "B", "unknown to all"}
	w.drain()
	equal(t, "value of the name that is quoted late", w.valueOf("u", 2), units(10))
	equal(t, "events after the name got a price", w.kinds(), "["+first+" job.finished]")
	w.checkIdle()
}

func TestInventoryPriced_WaitsWhileTheProviderFails(t *testing.T) {
	s := batch("alpha", 100, []string{"A"}, "a1")
	w := newWorld(t, s)
	w.exec(`INSERT INTO setting (name, value) VALUES ('currency', 'USD')`)
	s.fail = func(int, provider.Call) error { return s.broken(provider.KindServer) }
	w.push("u", 730, "A")
	w.drain()
	equal(t, "events of a failed run", w.kinds(), "[job.failed]")
	w.push("v", 730, "A")
	s.fail = nil
	w.clock.Add(2 * time.Hour)
	w.drain()
	equal(t, "events after the provider responded", w.kinds(), "[job.failed "+pricedOf("u", 1, 0, 10, epoch)+" "+pricedOf("v", 1, 0, 10, epoch)+" job.finished]")

	s.fail = func(int, provider.Call) error { return s.broken(provider.KindServer) }
	w.push("w", 730, "A", "C")
	w.drain()
	before := w.count(`SELECT count(*) FROM event WHERE kind = 'inventory.priced'`)
	w.clock.Add(25 * time.Hour)
	w.drain()
	equal(t, "events of the outage after a day", w.count(`SELECT count(*) FROM event WHERE kind = 'inventory.priced'`)-before, 1)
	equal(t, "waiting inventories", w.count(`SELECT count(*) FROM inventory_waiting`), 0)
}

// A bulk job prices the names of waiting inventories, in several ranges of rows.
func TestInventoryPriced_IsSentByABulkJob(t *testing.T) {
	list := names("Item", 60)
	w := newWorld(t, bulk("alpha", list, "a1"))
	for i := range 3 {
		w.push(fmt.Sprint("u", i), 730, list[20*i:20*i+20]...)
	}
	w.begin(false)
	w.drain()
	equal(t, "events", w.count(`SELECT count(*) FROM event WHERE kind = 'inventory.priced'`), 3)
	equal(t, "events after the end of the job that priced the rows", w.count(`SELECT count(*) FROM event e WHERE kind = 'inventory.priced'
		AND NOT EXISTS (SELECT 1 FROM event f WHERE f.kind = 'job.finished' AND f.id > e.id)`), 0)
	w.checkIdle()
}

// If no inventory waits, the check at the end of a job reads only one empty table.
func BenchmarkAnnouncePriced_NothingWaits(b *testing.B) {
	w := newWorld(b, bulk("alpha", nil, "a1"))
	b.ReportAllocs()
	for b.Loop() {
		must(b, inventory.AnnouncePriced(b.Context(), w.store))
	}
}

// Many inventories wait for a name that no provider has quoted yet.
func BenchmarkAnnouncePriced_ManyWait(b *testing.B) {
	w := newWorld(b, bulk("alpha", nil, "a1"))
	w.push("u", 730, "A")
	must(b, w.store.InTx(b.Context(), func(t *db.Tx) error {
		_, err := t.Exec(`INSERT INTO inventory_waiting (user_key, app_id, context_id, since, item_id)
			WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10001)
			SELECT i, 730, '2', (SELECT since FROM inventory_waiting), (SELECT item_id FROM inventory_waiting) FROM n`)
		return err
	}))
	for b.Loop() {
		must(b, inventory.AnnouncePriced(b.Context(), w.store))
	}
}
