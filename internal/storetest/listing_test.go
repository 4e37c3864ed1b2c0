package storetest_test

import (
	"database/sql"
	"regexp"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/market"
	"assay/internal/view"
)

// TestListings_AreFoundByAnIndexWhateverIsAskedFor has few listings active among many
// that are not, and shows how the database finds a page: by an index that has them in
// their order, and without sorting or reading all. PostgreSQL would rather sort as few
// as these; that is forbidden, so that it shows what it does with many.
func TestListings_AreFoundByAnIndexWhateverIsAskedFor(t *testing.T) {
	before := market.ListingFilter{Before: 1 << 62}
	with := func(change func(*market.ListingFilter)) market.ListingFilter {
		f := before
		change(&f)
		return f
	}
	for name := range engines {
		raw := beside(t, name)
		raw.SetMaxOpenConns(1) // all in one session
		fillListings(t, raw, engines[name])
		for _, c := range []struct {
			what, index string
			filter      market.ListingFilter
			item        int64
		}{
			{"active", "listing_active_all", with(func(f *market.ListingFilter) { f.State = market.Active }), 0},
			{"active, by price", "listing_active_all", with(func(f *market.ListingFilter) {
				f.State, f.Currency, f.MinPrice, f.MaxPrice = market.Active, "USD", 5, 500
			}), 0},
			{"cancelled", "listing_cancelled", with(func(f *market.ListingFilter) { f.State = market.Cancelled }), 0},
			{"active, of a game", "listing_active_app", with(func(f *market.ListingFilter) { f.State, f.AppID = market.Active, 440 }), 0},
			{"active, of a seller", "listing_active_seller", with(func(f *market.ListingFilter) { f.State, f.Seller = market.Active, 3 }), 0},
			{"of a seller", "listing_seller", with(func(f *market.ListingFilter) { f.Seller = 3 }), 0},
			{"active, of an item", "listing_active_item", with(func(f *market.ListingFilter) { f.State = market.Active }), 2},
			{"of an item", "listing_item", before, 2},
			{"created since", "listing_created", with(func(f *market.ListingFilter) { f.Created.From = time.UnixMicro(39_000) }), 0},
			{"active, created within", "listing_created", with(func(f *market.ListingFilter) {
				f.State, f.Created = market.Active, market.Period{From: time.UnixMicro(1_000), To: time.UnixMicro(2_000)}
			}), 0},
		} {
			t.Run(name+"/"+c.what, func(t *testing.T) {
				query, args := c.filter.Listings(c.item, 1_000)
				plan := explain(t, raw, engines[name], query, args)
				if !regexp.MustCompile(`\b` + c.index + `\b`).MatchString(plan) {
					t.Errorf("not by %s:\n%s", c.index, plan)
				}
				if regexp.MustCompile(`TEMP B-TREE|Sort|Seq Scan on listing|SCAN l\b`).MatchString(plan) {
					t.Errorf("sorts or reads all:\n%s", plan)
				}
			})
		}
	}
}

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

// fillListings makes listings of some of many sellers and items, of which every
// hundredth is active.
func fillListings(t *testing.T, raw *sql.DB, d db.Dialect) {
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
	if d == db.PostgreSQL {
		statements = append(statements, `SET enable_sort = off`, `SET enable_bitmapscan = off`)
	}
	for _, statement := range statements {
		_, err := raw.ExecContext(t.Context(), statement)
		must(t, err)
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
