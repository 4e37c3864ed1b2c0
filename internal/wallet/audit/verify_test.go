package audit_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
	"assay/internal/wallet/wallettest"
)

func TestVerify_ReportsHouseShardsAsOneAccount(t *testing.T) {
	w := example(t)
	w.keep(w.checkpoint())
	r := w.verify("house:deposit", "")
	if !r.OK || len(r.Accounts) != 2 || r.Checkpoint != nil {
		t.Fatalf("got report %+v, want status ok, 2 accounts and no checkpoint", r)
	}
	if usd := r.Accounts[1]; usd.Currency != "USD" || usd.ComputedBalance != *usd.CachedBalance || usd.ComputedBalance >= 0 {
		t.Errorf("got account %+v, want the sum of the shards", usd)
	}
	w.loosen()
	w.exec(`UPDATE wallet_account SET balance = balance + 1 WHERE user_id LIKE 'house:deposit:%'`)
	r = w.verify("house:deposit", "")
	expect(t, "of the house", r.OK, r.Status, r.Checks, r.Failures, "head_mac")
	if _, err := w.VerifyUser(context.Background(), "house:nothing", ""); err == nil {
		t.Error("got a report for an unknown house user, want an error")
	}
}

// TestVerify_DetectsKeysOfWrongTypes stores keys of wrong types, which SQLite accepts in columns
// without a type. Such a key may end the paging early or match other keys.
func TestVerify_DetectsKeysOfWrongTypes(t *testing.T) {
	w := example(t)
	if w.at.Engine != dbtest.SQLite {
		t.Skip("only SQLite accepts values of another type than the column's")
	}
	outer := w.TB
	w.loosen()
	for _, table := range tables { // key columns without type affinity
		columns := w.columns(table)
		for i, name := range columns {
			if name == "id" || name == "trade_id" || name == "transaction_id" || name == "version" {
				columns[i] = name + " + 0 AS " + name
			}
		}
		w.exec(`CREATE TABLE untyped AS SELECT ` + strings.Join(columns, ", ") + ` FROM ` + table)
		w.exec(`DROP TABLE ` + table)
		w.exec(`ALTER TABLE untyped RENAME TO ` + table)
	}
	const thousands = ` FROM wallet_entry a, wallet_entry b, wallet_entry c WHERE a.user_id = 'alice' AND b.user_id = 'alice' AND c.user_id = 'alice'`
	s := w.save()
	for name, query := range map[string]string{
		"blob as trade id":                           `UPDATE trade SET id = CAST('x' AS BLOB) WHERE id = 3`,
		"float as trade id":                          `UPDATE trade SET id = id * 1.0 WHERE id = 3`,
		"blob as transaction id":                     `UPDATE wallet_transaction SET id = CAST('x' AS BLOB) WHERE id = 1`,
		"float as transaction id":                    `UPDATE wallet_transaction SET id = id * 1.0 WHERE id = 1`,
		"blob as transaction id of an entry":         `UPDATE wallet_entry SET transaction_id = CAST('x' AS BLOB)` + ofAlice + `= 2`,
		"float as transaction id of an entry":        `UPDATE wallet_entry SET transaction_id = transaction_id * 1.0` + ofAlice + `= 2`,
		"float as trade id of a sale":                `UPDATE wallet_transaction SET trade_id = trade_id * 1.0 WHERE trade_id = 3`,
		"thousands of accounts with a blob as user":  `INSERT INTO wallet_account SELECT CAST('x' AS BLOB), 'USD', 0, 0, 0, a.hash, 1, 'k1', a.hash` + thousands,
		"thousands of entries with a blob as number": `INSERT INTO wallet_entry SELECT a.user_id, a.currency, CAST('x' AS BLOB), a.transaction_id, a.type, a.amount, a.balance, a.held, a.trade_id, a.reverses, '', '', 0, a.at, a.hash, 1, 'k1', a.hash, a.hash` + thousands,
	} {
		t.Run(name, func(t *testing.T) {
			w.TB = t
			defer func() { w.TB = outer }()
			if w.exec(query) == 0 {
				t.Fatalf("%s: got no changed row, want at least one", query)
			}
			defer s.restore(w)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if full, err := w.VerifyAll(ctx, nil); err != nil || full.Status != audit.Failed {
				t.Errorf("full verification: got %+v, error %v, want status %v", full, err, audit.Failed)
			}
			if _, err := w.VerifyUser(ctx, "alice", ""); err != nil {
				t.Errorf("verification of alice: got error %v, want none", err)
			}
		})
	}
}

// TestVerify_FailsWithoutAKey verifies a ledger with a missing key. Every row that was sealed with
// this key must fail.
func TestVerify_FailsWithoutAKey(t *testing.T) {
	w := example(t)
	w.Keys = wallettest.NewRing(t, "k2", "k3")
	full := w.verifyAll()
	if f := failing(full.Checks); full.Status != audit.Failed || !slices.Contains(f, "entry_hash") || !slices.Contains(f, "head_mac") || !slices.Contains(f, "tx_complete") {
		t.Errorf("status %s: got failed checks %v, want entry_hash, head_mac and tx_complete", full.Status, f)
	}
	if n := failuresOf(full.Checks, "entry_hash"); n != w.count("wallet_entry") {
		t.Errorf("entry_hash: got %d failures of %d entries, want all", n, w.count("wallet_entry"))
	}
	if r := w.verify("alice", ""); r.Status != audit.Failed || r.Checkpoint != nil {
		t.Errorf("verification of alice: got status %s, checkpoint %v, want failed without a checkpoint", r.Status, r.Checkpoint)
	}
}

// TestVerify_FailsEveryRowWithAnUnknownKey changes rows and their key ids, so their seals
// cannot be verified. The rows fail even if the key id is in wallet_key.
func TestVerify_FailsEveryRowWithAnUnknownKey(t *testing.T) {
	w := example(t)
	w.keep(w.checkpoint())
	w.loosen()
	s := w.save()
	for _, noted := range []bool{false, true} {
		if noted {
			w.must(w.store.InTx(t.Context(), func(tx *db.Tx) error { return wallet.SetLedgerKey(tx, wallettest.NewRing(t, "k77").Marks()[0]) }))
		}
		for table, check := range map[string]string{
			"wallet_account": "head_mac", "wallet_entry": "entry_hash", "wallet_transaction": "tx_complete", "trade": "trade_crosscheck", "fee_rule_set": "fee_crosscheck",
		} {
			w.exec(`UPDATE ` + table + ` SET key_id = 'k77'`)
			full := w.verifyAll()
			named := slices.ContainsFunc(full.Failures, func(f audit.Finding) bool { return f.Check == check && strings.Contains(f.Actual, `"k77"`) })
			if n := failuresOf(full.Checks, check); full.Status != audit.Failed || !named || n < w.count(table) {
				t.Errorf("%s: got status %s, %d of %d rows failed, want all: %+v", table, full.Status, n, w.count(table), full.Checks)
			}
			if r := w.verify("alice", ""); r.Status != audit.Failed {
				t.Errorf("%s: got status %s for alice, want failed", table, r.Status)
			}
			s.restore(w, table)
		}
	}
}

// TestVerify_IgnoresHashesOfInvalidEntries forges the last entries of an account. It keeps
// their hashes, so the links and the checkpoint still match.
func TestVerify_IgnoresHashesOfInvalidEntries(t *testing.T) {
	w := example(t)
	kept := *w.verify("alice", "").Checkpoint
	w.keep(w.checkpoint())
	w.must(w.store.InTx(t.Context(), func(tx *db.Tx) error { return wallet.SetLedgerKey(tx, wallettest.NewRing(t, "k77").Marks()[0]) }))
	w.loosen()
	w.exec(`UPDATE wallet_entry SET key_id = 'k77', amount = amount + 1` + ofAlice + `>= 18`)
	full, r, against := w.verifyAll(), w.verify("alice", ""), w.verify("alice", kept)
	for _, check := range []string{"chain_link", "head_hash", "anchor_match"} {
		expect(t, "of the ledger", full.OK, full.Status, full.Checks, full.Failures, check)
		expect(t, "of alice", r.OK, r.Status, r.Checks, r.Failures, check)
		expect(t, "of alice against a checkpoint", against.OK, against.Status, against.Checks, against.Failures, check)
	}
	for _, number := range []int64{18, 19} {
		if !slices.ContainsFunc(r.Failures, func(f audit.Finding) bool {
			return f.Check == "entry_hash" && f.UserID == "alice" && f.Currency == "USD" && *f.Seq == number
		}) {
			t.Errorf("got failures %+[2]v, want one of entry_hash for entry %[1]d of alice", number, r.Failures)
		}
	}
}

func TestVerify_WarnsOfTimesThatGoBack(t *testing.T) {
	w := example(t)
	w.now = w.now.Add(-30 * time.Minute)
	w.deposit(in("alice", "USD"), 5)
	r := w.verify("alice", "")
	if !r.OK || len(r.Warnings) != 1 || r.Warnings[0].Check != "timestamp_monotonic" {
		t.Errorf("got status %s, warnings %+v, failures %+v, want ok with one warning of timestamp_monotonic", r.Status, r.Warnings, r.Failures)
	}
}

func TestVerify_Lists100FailuresAndCountsTheRest(t *testing.T) {
	w := newWorld(t, "alice")
	for i := range 150 {
		w.deposit(wallet.Account{User: fmt.Sprint("user", i), Currency: "USD"}, 5)
	}
	w.loosen()
	w.exec(`UPDATE wallet_account SET balance = balance + 1 WHERE user_id LIKE 'user%'`)
	full := w.verifyAll()
	if len(full.Failures) != 100 || full.FailureCount != 300 || len(full.Problems) != 100 {
		t.Errorf("got %d of %d failures listed, %d problems, want 100 of 300 and 100", len(full.Failures), full.FailureCount, len(full.Problems))
	}
	w.exec(`INSERT INTO listing (id, seller_key, app_id, context_id, asset_id, item_id, amount, price, currency, state, created_at, ended_at)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) SELECT i, 1, 730, '2', 'a', 1, 1, 1, 'USD', 'sold', 1, 2 FROM n`)
	if full := w.verifyAll(); full.FailureCount != 2_800 {
		t.Errorf("got %d failures, want one per listing that was sold without a trade", full.FailureCount)
	}
}
