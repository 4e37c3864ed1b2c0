package market

import (
	"database/sql"
	"regexp"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
)

// TestListings_UsesAnIndexForEachFilter checks the query plans for a table with few active
// and many ended listings. The index must return the rows in the order of the result,
// without a sort or a scan of the table. The test disables sorts in PostgreSQL, because the
// planner would prefer a sort for a table of this size.
func TestListings_UsesAnIndexForEachFilter(t *testing.T) {
	before := ListingFilter{Before: 1 << 62}
	with := func(change func(*ListingFilter)) ListingFilter {
		f := before
		change(&f)
		return f
	}
	d := dbtest.NewDatabase(t)
	d.Open(t, db.Options{})
	raw := d.Raw(t)
	defer raw.Close()
	fillListings(t, raw, d.Engine)
	for _, c := range []struct {
		what, index string
		filter      ListingFilter
		item        int64
	}{
		{"active", "listing_active_all", with(func(f *ListingFilter) { f.State = Active }), 0},
		{"active, by price", "listing_active_all", with(func(f *ListingFilter) {
			f.State, f.Currency, f.MinPrice, f.MaxPrice = Active, "USD", 5, 500
		}), 0},
		{"cancelled", "listing_cancelled", with(func(f *ListingFilter) { f.State = Cancelled }), 0},
		{"active, of a game", "listing_active_app", with(func(f *ListingFilter) { f.State, f.AppID = Active, 440 }), 0},
		{"active, of a seller", "listing_active_seller", with(func(f *ListingFilter) { f.State, f.Seller = Active, 3 }), 0},
		{"of a seller", "listing_seller", with(func(f *ListingFilter) { f.Seller = 3 }), 0},
		{"active, of an item", "listing_active_item", with(func(f *ListingFilter) { f.State = Active }), 2},
		{"of an item", "listing_item", before, 2},
		{"created since", "listing_created", with(func(f *ListingFilter) { f.Created.From = time.UnixMicro(39_000) }), 0},
		{"active, created within", "listing_created", with(func(f *ListingFilter) {
			f.State, f.Created = Active, Period{From: time.UnixMicro(1_000), To: time.UnixMicro(2_000)}
		}), 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			query, args := c.filter.listings(c.item, 1_000)
			plan := d.Explain(t, raw, query, args...)
			if !regexp.MustCompile(`\b` + c.index + `\b`).MatchString(plan) {
				t.Errorf("got the plan\n%s, want one that uses the index %s", plan, c.index)
			}
			if regexp.MustCompile(`TEMP B-TREE|Sort|Seq Scan on listing|SCAN l\b`).MatchString(plan) {
				t.Errorf("got the plan\n%s, want one that neither sorts nor scans the table", plan)
			}
		})
	}
}

// fillListings inserts 40,000 listings of many sellers and items. One percent of them are
// active.
func fillListings(t *testing.T, raw *sql.DB, engine string) {
	t.Helper()
	statements := []string{
		`INSERT INTO platform_user (id, user_id, created_at)
			WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) SELECT i, 'u' || i, 0 FROM n`,
		`INSERT INTO item (id, app_id, name, phase, bucket)
			WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) SELECT i, 730, 'i' || i, '', 0 FROM n`,
		`INSERT INTO listing (seller_key, app_id, context_id, asset_id, item_id, amount, price, currency, state, created_at)
			WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 39999)
			SELECT i / 100 % 97, CASE WHEN i / 100 % 40 = 0 THEN 440 ELSE 730 END, '2', 'a' || i, i / 100 % 89, 1, i % 1000, 'USD',
				CASE WHEN i % 100 = 0 THEN 'active' WHEN i % 100 = 1 THEN 'cancelled' ELSE 'sold' END, i FROM n`,
		`ANALYZE`,
	}
	if engine == dbtest.PostgreSQL {
		statements = append(statements, `SET enable_sort = off`, `SET enable_bitmapscan = off`)
	}
	for _, statement := range statements {
		if _, err := raw.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}
