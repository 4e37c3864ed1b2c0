package refresh_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
)

// drama is a scenario that runs with and without faults. The result must be the same.
type drama struct {
	kind     refresh.Kind
	levelled int // markets whose level is learned
	world    func(tb testing.TB) *world
}

// bulkDrama is a bulk job with providers of every shape. Some prices change, one item is no
// longer quoted, and one provider fails.
func bulkDrama(items int) drama {
	return drama{kind: refresh.Bulk, world: func(tb testing.TB) *world {
		list := names("Item", items)
		late := false
		price := func(market, name string) money.Micro {
			at := 10 * level(market)
			if late && strings.Contains(name, "3") {
				at = 12 * level(market)
			}
			return at
		}
		a, b := bulk("alpha", list, "a1", "a2"), batch("beta", items/3, list, "b1")
		c, d := single("gamma", list[:10], "c1"), bulk("delta", list, "d1")
		for _, s := range []*fakeProvider{a, b, c, d} {
			s.price = price
		}
		w := newWorld(tb, a, b, c, d)
		w.push("u1", 730, append(slices.Clone(list), "Unknown to all")...)
		w.push("u2", 730, list...)
		w.drain()
		w.clock.Add(7 * time.Hour)
		w.clearMissing()
		late = true
		d.fail = func(int, provider.Call) error { return d.broken(provider.KindServer) }
		return w
	}}
}

// levelDrama is a bulk job with enough names to learn levels. A market responds for the first
// time, so validation waits for all units. The result does not depend on their order.
func levelDrama() drama {
	d := bulkDrama(levelNames)
	d.levelled = 5
	known := d.world
	d.world = func(tb testing.TB) *world {
		w := known(tb)
		w.providers = append(w.providers, bulk("epsilon", names("Item", levelNames), "e1"))
		w.restart()
		return w
	}
	return d
}

// missingDrama is a sync with unknown names. No provider quotes one of the names.
func missingDrama() drama {
	return drama{kind: refresh.Missing, levelled: 2, world: func(tb testing.TB) *world {
		list := names("Item", levelNames)
		a, b := bulk("alpha", list, "a1", "a2"), batch("beta", 50, list, "b1")
		a.price = func(market, _ string) money.Micro { return 10 * level(market) }
		w := newWorld(tb, a, b)
		w.push("u1", 730, append(slices.Clone(list), "Unknown to all")...)
		w.push("u2", 730, list[10:]...)
		return w
	}}
}

// levelNames is the number of names in a small scenario. It is enough to learn levels.
const levelNames = 120

// level returns the level of a market in a scenario, as a factor.
func level(market string) money.Micro {
	if market == "a2" {
		return money.Scale * 11 / 10
	}
	return money.Scale
}

// begin starts the job of the scenario, unless it has started already.
func (d drama) begin(w *world) error {
	if d.kind == refresh.Missing || w.count(`SELECT count(*) FROM refresh_job WHERE kind = 'bulk'`) > 0 {
		return nil // the queue starts its own job
	}
	_, err := w.engine.Start(w.tb.Context(), false, "test")
	return err
}

// dump returns all data that must be the same with and without faults.
func (d drama) dump(w *world) string {
	w.tb.Helper()
	var out strings.Builder
	queries := []string{
		`SELECT name || phase, price, status, method, average, median, consensus, low, high, interval_low, interval_high, markets, used_markets, candidate,
			candidate_at, guard, range_low, range_high, price_updated_at, price_checked_at, estimated_at, quotes_at, no_sales_since, retry_at, failures, rev,
			` + setOf("item.level_set") + ` FROM item ORDER BY name`,
		`SELECT i.name, s.market_id, s.currency, s.ask, s.bid, s.sale, s.listings, s.sales, s.fetched_at, s.reason
			FROM market_snapshot s JOIN item i ON i.id = s.item_id ORDER BY i.name, s.market_id`,
		`SELECT i.name, p.at, p.price, p.status, p.interval_low, p.interval_high, p.used, ` + setOf("p.level_set") + `
			FROM price_point p JOIN item i ON i.id = p.item_id ORDER BY i.name, p.at`,
		`SELECT j.kind, r.app_id, ` + setOf("r.level_set") + ` FROM refresh_level r JOIN refresh_job j ON j.id = r.job_id ORDER BY j.id, r.app_id`,
		`SELECT user_key, asset_id, value FROM inventory ORDER BY user_key, asset_id`,
		`SELECT i.name, r.state, r.reason, r.attempts, r.price_before, r.price_after, r.error
			FROM refresh_item r JOIN item i ON i.id = r.item_id ORDER BY i.name`,
		`SELECT kind, state, stage, total, skipped_ttl, skipped_no_sales, last_error FROM refresh_job ORDER BY id`,
		`SELECT i.name, m.due_at, m.attempts, m.job_id FROM missing_price m JOIN item i ON i.id = m.item_id ORDER BY i.name`,
		`SELECT market_id, app_id, file, fetched_at, quotes, quarantine FROM market_file ORDER BY market_id, file`,
		`SELECT provider, paused, last_success, last_error FROM provider_state ORDER BY provider`,
		`SELECT data FROM event WHERE kind = 'inventory.priced' ORDER BY data`,
		`SELECT user_key, app_id, context_id FROM inventory_waiting ORDER BY user_key`,
	}
	if d.levelled > 0 {
		queries = append(queries,
			`SELECT app_id, learned_at, data FROM level_set ORDER BY id`,
			`SELECT app_id, movers FROM refresh_level ORDER BY job_id, app_id`,
			`SELECT market_id, app_id, state, history FROM market_validation ORDER BY market_id, app_id`)
	}
	for _, query := range queries {
		w.print(&out, query)
	}
	return out.String()
}

// setOf returns SQL for the position of a level set among all level sets, because ids may have gaps.
func setOf(column string) string {
	return `(SELECT count(*) FROM level_set l WHERE l.id <= ` + column + `)`
}

// checkLearned fails the test unless the job learned the expected number of levels.
func (d drama) checkLearned(w *world) {
	w.tb.Helper()
	if d.levelled == 0 {
		return
	}
	sets := int64(1)
	if d.kind == refresh.Bulk {
		sets = 2
	}
	equal(w.tb, "level sets", w.count(`SELECT count(*) FROM level_set`), sets)
	set, err := refresh.LevelSet(w.tb.Context(), w.store, catalog.CS2)
	must(w.tb, err)
	known := 0
	for _, m := range set.Markets {
		if m.Known {
			known++
		}
	}
	equal(w.tb, "markets with a level", known, d.levelled)
}

// print writes the rows of a query.
func (w *world) print(out io.Writer, query string) {
	w.tb.Helper()
	rows, err := w.raw.QueryContext(w.tb.Context(), query)
	must(w.tb, err)
	defer rows.Close()
	columns, err := rows.Columns()
	must(w.tb, err)
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		must(w.tb, rows.Scan(into...))
		fmt.Fprintln(out, values...)
	}
	must(w.tb, rows.Err())
}

// differ returns the first line in which two dumps differ.
func differ(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d of %d and %d\n got %s\nwant %s", i, len(g), len(w), at(g, i), at(w, i))
		}
	}
	return ""
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "(nothing)"
}
