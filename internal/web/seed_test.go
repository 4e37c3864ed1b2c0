package web

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/event"
)

var sample struct {
	once sync.Once
	file []byte
}

// sampleData returns a database file with the sample data. It is created once.
func sampleData(t *testing.T) []byte {
	t.Helper()
	sample.once.Do(func() { sample.file = newSampleData(t) })
	if sample.file == nil {
		t.Fatal("the sample data is missing")
	}
	return sample.file
}

// insertSampleData stores the sample data in the database of the world.
func (w *world) insertSampleData(t *testing.T) {
	t.Helper()
	if w.database.Engine == dbtest.SQLite {
		must(t, os.WriteFile(w.database.Path, sampleData(t), 0o600))
		return
	}
	path := filepath.Join(t.TempDir(), "sample.db")
	must(t, os.WriteFile(path, sampleData(t), 0o600))
	_, err := db.Copy(t.Context(), db.CopyOptions{From: db.Options{Path: path}, To: db.Options{URL: w.database.URL}})
	must(t, err)
}

// newSampleData creates the sample data: runs of the last day, with their prices and events.
func newSampleData(t *testing.T) []byte {
	t.Helper()
	w := &world{TB: t, clock: newClock(), database: dbtest.On(t, dbtest.SQLite)}
	w.sample = newSampleProviders(w.clock)
	w.providers = w.sample.list()
	w.open()

	w.at(25*time.Hour, firstRun)
	var keys []catalog.Key
	for _, item := range w.sample.items {
		if item.Name != late {
			keys = append(keys, item.Key)
		}
	}
	w.own("collector", keys...)
	w.exec(`DELETE FROM missing_price`) // the run prices all items
	w.bulk(false, "schedule")
	w.insertRun(failedRun, "failed", 19*time.Hour, 4*time.Second, map[string]int{"failed": 29970}, "sim: no connection: connection refused")
	w.insertRun(cancelledRun, "cancelled", 13*time.Hour, 12*time.Second, map[string]int{"updated": 8000, "cancelled": 21970}, "")
	w.at(9*time.Hour, missingRun)
	w.own("trader", catalog.Key{AppID: catalog.CS2, Name: late}, catalog.Key{AppID: catalog.CS2, Name: unquoted})
	w.drain()
	w.at(6*time.Hour, forcedRun)
	w.bulk(true, author)
	w.at(26*time.Minute, lastRun)
	w.bulk(false, "schedule")

	w.clock.set(newClock().now.Add(-time.Minute))
	w.events(
		event.ProviderDown{Provider: "sim", Why: event.WhyQuarantine, Market: "<b>", Detail: "half a catalog"},
		event.BudgetLow{Provider: "cs2cap", Budget: "day", Left: 9, Limit: 100},
	)
	w.insertProviderStates()
	path := filepath.Join(t.TempDir(), "sample.db")
	w.exec(`VACUUM INTO $1`, path)
	file, err := os.ReadFile(path)
	must(w, err)
	return file
}

// at sets the clock to the given time before now, and sets the id of the next run.
func (w *world) at(ago time.Duration, run int) {
	w.Helper()
	w.clock.set(newClock().now.Add(-ago))
	w.sample.run.Store(int64(run))
	w.exec(`INSERT INTO sqlite_sequence (name, seq) SELECT 'refresh_job', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'refresh_job')`)
	w.exec(`UPDATE sqlite_sequence SET seq = $1 WHERE name = 'refresh_job'`, run-1)
}

// bulk runs a bulk refresh.
func (w *world) bulk(forced bool, by string) {
	w.Helper()
	_, err := w.engine.Start(w.Context(), forced, by)
	must(w, err)
	w.drain()
}

// insertRun inserts an ended run of a larger catalog.
func (w *world) insertRun(id int, state string, ago, took time.Duration, counts map[string]int, lastError string) {
	w.Helper()
	start := newClock().now.Add(-ago)
	total := 310
	for _, n := range counts {
		total += n
	}
	outcome := "failed"
	if counts["updated"] > 0 {
		outcome = "partial"
	}
	w.exec(`INSERT INTO refresh_job (id, kind, forced, state, stage, requested_by, created_at, started_at, finished_at, total, skipped_no_sales, batches, last_error, outcome)
		VALUES ($1, 'bulk', 0, $2, 'done', 'schedule', $3, $3, $4, $5, 310, 1, $6, $7)`,
		id, state, db.Micros(start), db.Micros(start.Add(took)), total, lastError, outcome)
	w.exec(`INSERT INTO refresh_batch (job_id, batch, state, pending, updated, failed, cancelled) VALUES ($1, 0, 'estimated', 0, $2, $3, $4)`,
		id, counts["updated"], counts["failed"], counts["cancelled"])
}

func (w *world) events(data ...event.Data) {
	w.Helper()
	must(w, w.store.InTx(w.Context(), func(tx *db.Tx) error {
		for _, d := range data {
			if err := event.Add(tx, d); err != nil {
				return err
			}
		}
		return nil
	}))
}

// insertProviderStates stores the used budget of sim, and the failures of waxpeer.
func (w *world) insertProviderStates() {
	w.Helper()
	now := newClock().now
	for slot := range 54 { // up to four requests each
		w.exec(`INSERT INTO budget_slot (provider, host, slot, used, at) VALUES ('sim', '', $1, $2, $3)`, slot, min(4, 213-4*slot), db.Micros(now.Add(-26*time.Minute)))
	}
	w.exec(`INSERT INTO provider_state (provider, last_error, last_error_at) VALUES ('waxpeer', 'waxpeer: timeout', $1)`, db.Micros(now.Add(-2*time.Minute)))
	w.exec(`INSERT INTO provider_file (provider, file, last_error, last_error_at, failures) VALUES ('waxpeer', '', 'waxpeer: timeout', $1, 7)`, db.Micros(now.Add(-2*time.Minute)))
}
