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

// TestPurchase_FailsIfTheDatabaseDropsWrites adds triggers that make the database ignore
// writes without an error.
func TestPurchase_FailsIfTheDatabaseDropsWrites(t *testing.T) {
	w := newFixture(t)
	w.fund("b")
	w.push("v", asset("1", "x"))
	l := w.mustList("v", "1", 1000)
	for _, at := range []string{
		"INSERT ON wallet_transaction", "INSERT ON wallet_entry", "INSERT ON wallet_account", "UPDATE ON wallet_account", "INSERT ON trade",
	} {
		t.Run(at, func(t *testing.T) {
			w := &fixture{T: t, db: w.db, s: w.s, m: w.m}
			end := w.dropWrites(at)
			_, err := w.buy(l.ID, "b")
			w.wantFault(err, fault.Damaged, "ledger_tampered")
			w.wantBalances(map[string]string{"b": fmt.Sprintf("%d/0", startBalance), "v": ""})
			w.raw(end)
		})
	}
	end := w.dropWrites("INSERT ON fee_rule_set")
	rules, err := fee.Decode(strings.NewReader(`{"rules":[],"fallback":{"basisPoints":1}}`))
	w.must(err)
	_, err = feetest.Service(w.s, w.ledger.Keys, rules).Refresh(t.Context(), fee.Request{AllowLarge: true})
	w.wantFault(err, fault.Damaged, "ledger_tampered")
	w.raw(end)
	sold, err := w.buy(l.ID, "b")
	if err != nil {
		t.Fatalf("purchase without triggers: got %v, want nil", err)
	}
	end = w.dropWrites("UPDATE ON trade")
	_, err = w.m.Complete(t.Context(), sold.ID)
	w.wantFault(err, fault.Damaged, "ledger_tampered")
	w.raw(end)
	_, err = w.m.Complete(t.Context(), sold.ID)
	w.must(err)
}

// dropWrites makes the database ignore the given writes to a table. It returns the SQL
// statement that restores normal behaviour.
func (w *fixture) dropWrites(at string) (end string) {
	w.Helper()
	end = `DROP TRIGGER dropWrites`
	if w.db.Engine == dbtest.SQLite {
		w.raw(`CREATE TRIGGER dropWrites BEFORE ` + at + ` BEGIN SELECT raise(IGNORE); END`)
	} else {
		w.raw(`CREATE OR REPLACE FUNCTION dropWrites() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`)
		w.raw(`CREATE TRIGGER dropWrites BEFORE ` + at + ` FOR EACH ROW EXECUTE FUNCTION dropWrites()`)
		_, table, _ := strings.Cut(at, " ")
		end += " " + table
	}
	return end
}

// TestPurchase_StoresTheItemAtTheEndOfTheListing changes the item of a listing during its
// purchase. Another transaction locks the inventory row. The purchase reads the listing
// and then waits for that lock. The other transaction then changes the listing and commits.
func TestPurchase_StoresTheItemAtTheEndOfTheListing(t *testing.T) {
	w := newFixture(t)
	if w.db.Engine == dbtest.SQLite {
		t.Skip("SQLite runs one write transaction at a time")
	}
	w.fund("b")
	w.push("v", asset("1", "x"))
	w.push("other", asset("2", "y"))
	l := w.mustList("v", "1", 1000)
	raw := w.db.Raw(t)
	defer raw.Close()
	other, err := raw.BeginTx(t.Context(), nil)
	w.must(err)
	defer func() { _ = other.Rollback() }() // lets the purchase end if the test fails
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
			t.Fatal("the purchase did not wait for the lock on the inventory row within 10s")
		}
	}
	_, err = other.ExecContext(t.Context(), `UPDATE listing SET item_id = (SELECT id FROM item WHERE name = 'y')`)
	w.must(err)
	w.must(other.Commit())
	w.must(<-bought)
	if ended, err := market.ReadListing(t.Context(), w.s, l.ID); err != nil || sold.Item.Name != "y" || sold.ItemID != ended.ItemID || sold.ItemID == l.ItemID {
		t.Errorf("got the trade %+v of the listing %+v, %v, want item y in both", sold, ended, err)
	}
}
