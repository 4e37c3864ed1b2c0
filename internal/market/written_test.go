package market_test

import (
	"fmt"
	"strings"
	"testing"

	"assay/internal/fault"
	"assay/internal/market"
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
	w.refused(w.s.InTx(t.Context(), func(tx *store.Tx) error {
		return tx.AddFees(fee.Activation{At: w.clock(), Version: 2, Set: fee.BuiltIn()})
	}), fault.Damaged, "ledger_tampered")
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

// knowing is a transaction that another one overtakes: once it has read a listing,
// the listing's phase becomes known.
type knowing struct {
	market.Tx
	learn func()
}

func (k knowing) MoveAsset(user int64, at market.Place) error {
	k.learn()
	return k.Tx.MoveAsset(user, at)
}

func TestPurchase_IsOfTheItemThatTheListingIsOfWhenItEnds(t *testing.T) {
	w := newWorld(t)
	if w.db.Engine == storetest.SQLite {
		t.Skip("nothing is written beside a transaction")
	}
	w.give("b")
	w.push("v", asset("1", "x"))
	w.push("other", asset("2", "y"))
	l := w.mustList("v", "1", 1000)
	w.over = func(tx market.Tx) market.Tx {
		return knowing{tx, func() { w.raw(`UPDATE listing SET item_id = (SELECT id FROM item WHERE name = 'y')`) }}
	}
	sold, err := w.buy(l.ID, "b")
	w.must(err)
	if ended, err := w.s.Listing(t.Context(), l.ID); err != nil || sold.Item.Name != "y" || sold.ItemID != ended.ItemID || sold.ItemID == l.ItemID {
		t.Errorf("sold %+v of %+v, %v", sold, ended, err)
	}
}
