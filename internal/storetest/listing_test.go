package storetest_test

import (
	"database/sql"
	"regexp"
	"strings"
	"testing"

	"assay/internal/db"
	"assay/internal/view"
)

// TestUnpricedItems_AreFoundByAnIndex has few items without a price among many that have
// one.
func TestUnpricedItems_AreFoundByAnIndex(t *testing.T) {
	for name, d := range engines {
		t.Run(name, func(t *testing.T) {
			raw := beside(t, name)
			raw.SetMaxOpenConns(1)
			for _, statement := range []string{
				`INSERT INTO item (id, app_id, name, phase, bucket, price, status)
					WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 34999)
					SELECT i, 730, 'i' || i, '', 0, CASE WHEN i % 100 = 0 THEN 0 ELSE 5 END, CASE WHEN i % 100 = 0 THEN 5 ELSE 0 END FROM n`,
				`ANALYZE`,
			} {
				_, err := raw.ExecContext(t.Context(), statement)
				must(t, err)
			}
			plan := explain(t, raw, d, view.UnpricedItemsSQL, []any{730, "i5", "", 100})
			if !strings.Contains(plan, "item_unpriced") || regexp.MustCompile(`TEMP B-TREE|Sort|Seq Scan|SCAN item`).MatchString(plan) {
				t.Errorf("not by item_unpriced, or it sorts or reads all:\n%s", plan)
			}
		})
	}
}

// explain tells how a database carries out a query.
func explain(t *testing.T, raw *sql.DB, d db.Dialect, query string, args []any) string {
	t.Helper()
	word := "EXPLAIN "
	if d == db.SQLite {
		word = "EXPLAIN QUERY PLAN "
	}
	rows, err := raw.QueryContext(t.Context(), word+query, args...)
	must(t, err)
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		into := []any{&line}
		if d == db.SQLite {
			into = []any{new(int), new(int), new(int), &line}
		}
		must(t, rows.Scan(into...))
		plan.WriteString(line + "\n")
	}
	must(t, rows.Err())
	return plan.String()
}
