package e2e

import (
	"database/sql"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
)

// rows returns the rows of a query as texts.
func rows(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	out, err := tryRows(db, query)
	if err != nil {
		t.Fatalf("got error %v, want none, for the query %s", err, query)
	}
	return out
}

func tryRows(db *sql.DB, query string) ([]string, error) {
	r, err := db.Query(query)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	columns, err := r.Columns()
	if err != nil {
		return nil, err
	}
	var out []string
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for r.Next() {
		if err := r.Scan(into...); err != nil {
			return nil, err
		}
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = fmt.Sprint(v)
		}
		out = append(out, strings.Join(texts, "|"))
	}
	return out, r.Err()
}

// damage finds damaged pages of an SQLite file.
const damage = `SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'`

// invariants are queries that return no rows for a consistent database, at any time.
var invariants = map[string]string{
	"job whose counts do not add up to its total": `
		SELECT j.id FROM refresh_job j WHERE j.stage <> 'plan' AND j.total <> j.skipped_ttl + j.skipped_no_sales + (
			SELECT coalesce(sum(pending + updated + no_quote + failed + skipped_budget + skipped_paused + skipped_backoff + cancelled), 0) FROM refresh_batch WHERE job_id = j.id)`,
	"job whose total is not the number of its items": `
		SELECT id FROM refresh_job j WHERE total <> (SELECT count(*) FROM refresh_item WHERE job_id = j.id)`,
	"batch whose counts differ from its items": `
		SELECT b.job_id, b.batch FROM refresh_batch b JOIN refresh_item i ON i.job_id = b.job_id AND i.batch = b.batch
		GROUP BY b.job_id, b.batch HAVING b.pending <> count(*) FILTER (WHERE i.state = 'pending')
			OR b.updated <> count(*) FILTER (WHERE i.state = 'updated') OR b.no_quote <> count(*) FILTER (WHERE i.state = 'noQuote')
			OR b.failed <> count(*) FILTER (WHERE i.state = 'failed') OR b.cancelled <> count(*) FILTER (WHERE i.state = 'cancelled')
			OR b.changed <> count(*) FILTER (WHERE i.state = 'updated' AND i.price_after <> i.price_before)`,
	"item twice in a job":     `SELECT job_id, item_id FROM refresh_item GROUP BY 1, 2 HAVING count(*) > 1`,
	"two live jobs of a kind": `SELECT kind FROM refresh_job WHERE state IN ('queued', 'running') GROUP BY 1 HAVING count(*) > 1`,
	"price below zero":        `SELECT id FROM item WHERE price < 0`,
	"history that does not end with the current price": `
		SELECT i.id FROM item i WHERE i.price > 0 AND i.price <> (SELECT p.price FROM price_point p WHERE p.item_id = i.id ORDER BY p.at DESC LIMIT 1)`,
	"price without a history": `SELECT id FROM item i WHERE price > 0 AND NOT EXISTS (SELECT 1 FROM price_point p WHERE p.item_id = i.id AND p.price = i.price)`,
	"unpriced item outside of the queue": `
		SELECT id FROM item i WHERE price = 0 AND NOT EXISTS (SELECT 1 FROM missing_price m WHERE m.item_id = i.id)`,
	"queue entry of a priced item": `SELECT item_id FROM missing_price m JOIN item i ON i.id = m.item_id WHERE i.price > 0`,
	"queue entry claimed by no live job": `
		SELECT item_id FROM missing_price WHERE job_id <> 0 AND job_id NOT IN (SELECT id FROM refresh_job WHERE state IN ('queued', 'running'))`,
	"row whose value is not its item's price while nothing runs": `
		SELECT v.id FROM inventory v JOIN item i ON i.id = v.item_id
		WHERE v.value IS DISTINCT FROM nullif(i.price, 0) AND NOT EXISTS (SELECT 1 FROM refresh_job WHERE state IN ('queued', 'running'))`,
	"part of a removed job": `
		SELECT job_id FROM (SELECT job_id FROM refresh_item UNION SELECT job_id FROM refresh_batch UNION SELECT job_id FROM fetch_unit
			UNION SELECT job_id FROM market_fetch UNION SELECT job_id FROM refresh_level) part WHERE job_id NOT IN (SELECT id FROM refresh_job)`,
	"item whose level set is not that of its last price point": `
		SELECT id FROM item i WHERE price > 0
			AND level_set <> (SELECT p.level_set FROM price_point p WHERE p.item_id = i.id ORDER BY p.at DESC LIMIT 1)`,
	"missing level set": `
		SELECT level_set FROM (SELECT level_set FROM item UNION SELECT level_set FROM price_point UNION SELECT level_set FROM refresh_level) named
		WHERE level_set <> 0 AND level_set NOT IN (SELECT id FROM level_set)`,
	"level set without market names": `
		SELECT l.app_id FROM level_set l WHERE NOT EXISTS (SELECT 1 FROM market_validation m WHERE m.app_id = l.app_id)`,
	"open part of an ended job": `
		SELECT j.id FROM refresh_job j WHERE j.state NOT IN ('queued', 'running') AND (
			EXISTS (SELECT 1 FROM fetch_unit u WHERE u.job_id = j.id AND u.state IN ('pending', 'running'))
			OR EXISTS (SELECT 1 FROM refresh_batch b WHERE b.job_id = j.id AND b.state IN ('pending', 'running')))`,
}

// checkInvariants checks all invariants of a database.
func checkInvariants(t *testing.T, db *sql.DB) {
	t.Helper()
	held := maps.Clone(invariants)
	if _, ok := db.Driver().(*stdlib.Driver); !ok {
		held["damage"] = damage
	}
	for what, query := range held {
		found, err := tryRows(db, query)
		if err != nil {
			t.Errorf("query for %s: got error %v, want none", what, err)
		}
		if len(found) > 0 {
			t.Errorf("got %d rows, want none: %s, first: %s", len(found), what, found[0])
		}
	}
}
