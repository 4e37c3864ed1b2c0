package view

import (
	"regexp"
	"strings"
	"testing"

	"assay/internal/db/dbtest"
)

// Most items have a price, so this query must not scan all items.
func TestUnpricedItems_UsesIndex(t *testing.T) {
	d := dbtest.NewDatabase(t)
	raw := d.Filled(t,
		`INSERT INTO item (id, app_id, name, phase, bucket, price, status)
					WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 34999)
					SELECT i, 730, 'i' || i, '', 0, CASE WHEN i % 100 = 0 THEN 0 ELSE 5 END, CASE WHEN i % 100 = 0 THEN 5 ELSE 0 END FROM n`,
		`ANALYZE`,
	)
	for _, query := range []string{unpricedItemsSQL, unpricedItemsBackwardSQL} {
		plan := d.Explain(t, raw, query, 730, "i5", "", 100)
		if !strings.Contains(plan, "item_unpriced") || regexp.MustCompile(`TEMP B-TREE|Sort|Seq Scan|SCAN item`).MatchString(plan) {
			t.Errorf("got the plan\n%s, want the index item_unpriced without a sort or a scan of all items", plan)
		}
	}
}

// Few prices are held, so these queries must not scan all items.
func TestHeldPrices_UseIndex(t *testing.T) {
	for _, engine := range []string{dbtest.SQLite, dbtest.PostgreSQL} {
		t.Run(engine, func(t *testing.T) {
			d := dbtest.On(t, engine)
			raw := d.Filled(t,
				`INSERT INTO item (id, app_id, name, phase, bucket, price, status, candidate)
					WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 35000)
					SELECT i, 730, 'i' || i, '', 0, 5, 0, CASE WHEN i % 1000 = 0 THEN 9 ELSE 0 END FROM n`,
				`ANALYZE`,
			)
			for query, args := range map[string][]any{heldPricesSQL: {5, 100}, heldCountSQL: nil} {
				if plan := d.Explain(t, raw, query, args...); !strings.Contains(plan, "item_held") {
					t.Errorf("got the plan\n%s, want the index item_held", plan)
				}
			}
		})
	}
}
