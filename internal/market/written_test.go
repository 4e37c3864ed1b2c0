package market_test

import (
	"fmt"
	"strings"
	"testing"

	"assay/internal/fault"
	"assay/internal/store"
	"assay/internal/store/storetest"
	"assay/internal/wallet/fee"
)

// TestPurchase_FailsWhereTheDatabaseDropsWhatIsWritten has somebody add a trigger that
// makes the database swallow rows without a word.
func TestPurchase_FailsWhereTheDatabaseDropsWhatIsWritten(t *testing.T) {
	w := newWorld(t)
	w.give("b")
	w.push("v", asset("1", "x"))
	l := w.mustList("v", "1", 1000)
	for _, at := range []string{
		"INSERT ON wallet_transaction", "INSERT ON wallet_entry", "INSERT ON wallet_account", "UPDATE ON wallet_account", "INSERT ON trade", "UPDATE ON trade",
	} {
		t.Run(at, func(t *testing.T) {
			w := &world{T: t, db: w.db, s: w.s, m: w.m}
			end := w.swallow(at)
			_, err := w.buy(l.ID, "b")
			w.refused(err, fault.Unavailable, "ledger_tampered")
			w.has(map[string]string{"b": fmt.Sprintf("%d/0", riches), "v": ""})
			w.raw(end)
		})
	}
	end := w.swallow("INSERT ON fee_rule_set")
	w.refused(w.s.InTx(t.Context(), func(tx *store.Tx) error {
		return tx.AddFees(fee.Activation{At: w.clock(), Version: 2, Set: fee.BuiltIn()})
	}), fault.Unavailable, "ledger_tampered")
	w.raw(end)
	if _, err := w.buy(l.ID, "b"); err != nil {
		t.Errorf("once the triggers are gone: %v", err)
	}
}

// swallow makes the database drop what is written to a table, and returns what ends
// that.
func (w *world) swallow(at string) (end string) {
	w.Helper()
	end = `DROP TRIGGER swallow`
	if w.db.Engine == storetest.SQLite {
		w.raw(`CREATE TRIGGER swallow BEFORE ` + at + ` BEGIN SELECT raise(IGNORE); END`)
	} else {
		w.raw(`CREATE OR REPLACE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`)
		w.raw(`CREATE TRIGGER swallow BEFORE ` + at + ` FOR EACH ROW EXECUTE FUNCTION swallow()`)
		_, table, _ := strings.Cut(at, " ")
		end += " " + table
	}
	return end
}
