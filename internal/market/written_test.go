package market_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"assay/internal/db/dbtest"
	"assay/internal/fault"
	"assay/internal/market"
	"assay/internal/wallet/fee"
	"assay/internal/wallet/fee/feetest"
)

// TestPurchase_FailsWhereTheDatabaseDropsWhatIsWritten has somebody add a trigger that
// makes the database swallow rows without a word.
func TestPurchase_FailsWhereTheDatabaseDropsWhatIsWritten(t *testing.T) {
	w := newWorld(t)
	w.give("b")
	w.push("v", asset("1", "x"))
	l := w.mustList("v", "1", 1000)
	for _, at := range []string{
		"INSERT ON wallet_transaction", "INSERT ON wallet_entry", "INSERT ON wallet_account", "UPDATE ON wallet_account", "INSERT ON trade",
	} {
		t.Run(at, func(t *testing.T) {
			w := &world{T: t, db: w.db, s: w.s, m: w.m}
			end := w.swallow(at)
			_, err := w.buy(l.ID, "b")
			w.refused(err, fault.Damaged, "ledger_tampered")
			w.has(map[string]string{"b": fmt.Sprintf("%d/0", riches), "v": ""})
			w.raw(end)
		})
	}
	end := w.swallow("INSERT ON fee_rule_set")
	rules, err := fee.Decode(strings.NewReader(`{"rules":[],"fallback":{"basisPoints":1}}`))
	w.must(err)
	_, err = feetest.Service(w.s, w.ledger.Keys, rules).Refresh(t.Context(), fee.Request{AllowLarge: true})
	w.refused(err, fault.Damaged, "ledger_tampered")
	w.raw(end)
	sold, err := w.buy(l.ID, "b")
	if err != nil {
		t.Fatalf("once the triggers are gone: %v", err)
	}
	end = w.swallow("UPDATE ON trade")
	_, err = w.m.Complete(t.Context(), sold.ID)
	w.refused(err, fault.Damaged, "ledger_tampered")
	w.raw(end)
	_, err = w.m.Complete(t.Context(), sold.ID)
	w.must(err)
}

// swallow makes the database drop what is written to a table, and returns what ends
// that.
func (w *world) swallow(at string) (end string) {
	w.Helper()
	end = `DROP TRIGGER swallow`
	if w.db.Engine == dbtest.SQLite {
		w.raw(`CREATE TRIGGER swallow BEFORE ` + at + ` BEGIN SELECT raise(IGNORE); END`)
	} else {
		w.raw(`CREATE OR REPLACE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`)
		w.raw(`CREATE TRIGGER swallow BEFORE ` + at + ` FOR EACH ROW EXECUTE FUNCTION swallow()`)
		_, table, _ := strings.Cut(at, " ")
		end += " " + table
	}
	return end
}

// TestPurchase_IsOfTheItemThatTheListingIsOfWhenItEnds has another transaction make a
// listing's phase known once the purchase has read the listing: it holds the row of the
// asset, which the purchase marks next, until the purchase waits for it.
func TestPurchase_IsOfTheItemThatTheListingIsOfWhenItEnds(t *testing.T) {
	w := newWorld(t)
	if w.db.Engine == dbtest.SQLite {
		t.Skip("nothing is written beside a transaction")
	}
	w.give("b")
	w.push("v", asset("1", "x"))
	w.push("other", asset("2", "y"))
	l := w.mustList("v", "1", 1000)
	raw := w.db.Raw(t)
	defer raw.Close()
	other, err := raw.BeginTx(t.Context(), nil)
	w.must(err)
	defer func() { _ = other.Rollback() }() // where the test fails, so that the purchase ends
	_, err = other.ExecContext(t.Context(), `SELECT FROM inventory WHERE asset_id = '1' FOR UPDATE`)
	w.must(err)
	var sold market.Trade
	bought := make(chan error, 1)
	go func() {
		var err error
		sold, err = w.buy(l.ID, "b")
		bought <- err
	}()
	for waits, end := false, time.Now().Add(10*time.Second); !waits; {
		w.must(other.QueryRowContext(t.Context(),
			`SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))`).Scan(&waits))
		if time.Now().After(end) {
			t.Fatal("the purchase does not wait for the row of the asset")
		}
	}
	_, err = other.ExecContext(t.Context(), `UPDATE listing SET item_id = (SELECT id FROM item WHERE name = 'y')`)
	w.must(err)
	w.must(other.Commit())
	w.must(<-bought)
	if ended, err := market.ReadListing(t.Context(), w.s, l.ID); err != nil || sold.Item.Name != "y" || sold.ItemID != ended.ItemID || sold.ItemID == l.ItemID {
		t.Errorf("sold %+v of %+v, %v", sold, ended, err)
	}
}
