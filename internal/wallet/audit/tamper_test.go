package audit_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
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

// tampering is a change of the database outside the service.
type tampering struct {
	name string
	want string // a check that must be among the failures; empty: any
	all  string // the same for a full verification; empty: want
	user string // a verification of this user detects the change; empty: only a full verification does
	sql  []string
}

// Entries of the example in USD. Alice: 1 to 3 deposits, 4 to 6 purchases (of 1999, 501 and
// 333), 7 the reversal of 5, 8 a deposit, 9 the reversal of 8, 10 a purchase (of 777, from
// carol), 11 the completion of 4, 12 to 18 deposits and withdrawals, 19 a deposit. Bob: 1 a
// deposit, 2 to 4 sales, 5 the reversal of 3, 6 a withdrawal, 7 the completion of 2, 8 and 9
// the settlement of 2, 10 a deposit.
const (
	ofAlice = ` WHERE user_id = 'alice' AND currency = 'USD' AND number `
	ofBob   = ` WHERE user_id = 'bob' AND currency = 'USD' AND number `
	account = ` WHERE user_id = 'alice' AND currency = 'USD'`
	columns = `transaction_id, type, amount, balance, held, trade_id, reverses, idempotency_key, fee_rule, fee_version, at, posting_hash, version, key_id, previous_hash, hash`
)

const noBytes = `substr(mac, 1, 0)`

// known are the cases of the ledger's specification.
var known = []tampering{
	{"amount of a middle entry changed", "entry_hash", "", "alice", []string{`UPDATE wallet_entry SET amount = amount + 1` + ofAlice + `= 2`}},
	{"amount changed and the hash recomputed without the key", "entry_hash", "", "alice", []string{`UPDATE wallet_entry SET amount = amount + 1, hash = previous_hash` + ofAlice + `= 2`}},
	{"middle entry deleted", "seq_contiguous", "", "alice", []string{`DELETE FROM wallet_entry` + ofAlice + `= 2`}},
	{"middle entry deleted, later ones renumbered", "entry_hash", "", "alice", []string{`DELETE FROM wallet_entry` + ofAlice + `= 2`, `UPDATE wallet_entry SET number = number - 1` + ofAlice + `> 2`}},
	{"last entry deleted, head untouched", "head_length", "", "alice", []string{`DELETE FROM wallet_entry` + ofAlice + `= 19`}},
	{"last entry deleted and the head rolled back", "head_mac", "", "alice", []string{
		`DELETE FROM wallet_entry` + ofAlice + `= 19`,
		`UPDATE wallet_account SET last_number = 18, head_hash = (SELECT hash FROM wallet_entry` + ofAlice + `= 18),
			balance = (SELECT balance FROM wallet_entry` + ofAlice + `= 18)` + account,
	}},
	{"all entries deleted", "head_length", "", "alice", []string{`DELETE FROM wallet_entry` + account}},
	{"two entries swapped", "chain_link", "", "alice", []string{
		`UPDATE wallet_entry SET number = -2` + ofAlice + `= 2`, `UPDATE wallet_entry SET number = 2` + ofAlice + `= 3`, `UPDATE wallet_entry SET number = 3` + ofAlice + `= -2`,
	}},
	{"contents of two entries swapped", "chain_link", "", "alice", []string{
		`UPDATE wallet_entry SET amount = CASE number WHEN 2 THEN 2500 ELSE 5000 END` + ofAlice + `IN (2, 3)`,
	}},
	{"entry appended", "entry_hash", "", "alice", []string{
		`INSERT INTO wallet_entry (user_id, currency, number, ` + columns + `)
		SELECT user_id, currency, 20, transaction_id, type, amount, balance + amount, held, trade_id, reverses, idempotency_key, fee_rule, fee_version, at, posting_hash, version,
			key_id, hash, hash FROM wallet_entry` + ofAlice + `= 19`,
	}},
	{"cached balance raised", "cached_balance", "", "alice", []string{`UPDATE wallet_account SET balance = balance + 500` + account}},
	{"cached balance raised, checked by seal", "head_mac", "", "alice", []string{`UPDATE wallet_account SET balance = balance + 500` + account}},
	{"one leg deleted in another wallet", "tx_complete", "", "alice", []string{`DELETE FROM wallet_entry` + ofBob + `= 2`}},
	{"one leg deleted in a house account", "tx_complete", "", "alice", []string{
		`DELETE FROM wallet_entry WHERE user_id LIKE 'house:%' AND transaction_id = (SELECT transaction_id FROM wallet_entry` + ofAlice + `= 1)`,
	}},
	{"entry moved to another user", "entry_hash", "", "carol", []string{`UPDATE wallet_entry SET user_id = 'carol', number = 99` + ofAlice + `= 19`}},
	{"fee one cent too low", "fee_crosscheck", "", "alice", []string{
		`UPDATE wallet_entry SET amount = amount - 1, balance = balance - 1 WHERE type = 'fee' AND trade_id = 1`,
		`UPDATE wallet_entry SET amount = amount + 1` + ofBob + `= 2`, `UPDATE trade SET fee = fee - 1, net = net + 1 WHERE id = 1`,
	}},
	{"fee of a trade one cent too low", "fee_crosscheck", "", "bob", []string{`UPDATE trade SET fee = fee - 1, net = net + 1 WHERE id = 1`}},
	{"sale without the seller's credit, for the seller", "trade_crosscheck", "", "bob", []string{`DELETE FROM wallet_entry` + ofBob + `= 4`}},
	{"sale without the seller's credit, for the buyer", "trade_crosscheck", "", "alice", []string{`DELETE FROM wallet_entry` + ofBob + `= 4`}},
	{"entry reversed twice", "reversal_link", "", "alice", []string{
		`INSERT INTO wallet_transaction SELECT 9999, kind, trade_id, reverses, scope, 'another', note, entries, at, terms, version, key_id, hash FROM wallet_transaction
			WHERE id = (SELECT transaction_id FROM wallet_entry` + ofAlice + `= 9)`,
		`INSERT INTO wallet_entry (user_id, currency, number, ` + columns + `)
		SELECT user_id, currency, 20, 9999, type, amount, balance + amount, held, trade_id, reverses, 'another', fee_rule, fee_version, at, posting_hash, version,
			key_id, hash, hash FROM wallet_entry` + ofAlice + `= 9`,
	}},
	{"second entry set to reverse the same entry", "reversal_link", "", "alice", []string{`UPDATE wallet_entry SET reverses = 8` + ofAlice + `= 19`}},
}

// others are further cases.
var others = []tampering{
	{"account deleted", "head_present", "", "alice", []string{`DELETE FROM wallet_account` + account}},
	{"account and its entries deleted", "wallet_exists", "tx_complete", "carol", []string{`DELETE FROM wallet_account WHERE user_id = 'carol'`, `DELETE FROM wallet_entry WHERE user_id = 'carol'`}},
	{"account moved to another user", "head_mac", "", "carol", []string{`DELETE FROM wallet_account WHERE user_id = 'carol'`, `UPDATE wallet_account SET user_id = 'carol'` + account}},
	{"account without a user", "head_present", "", "alice", []string{`DELETE FROM wallet_account WHERE user_id = 'carol'`, `UPDATE wallet_account SET user_id = 'carol'` + account}},
	{"account in another currency", "head_mac", "", "alice", []string{`UPDATE wallet_account SET currency = 'GBP'` + account}},
	{"accounts of a user swapped", "head_mac", "", "alice", []string{
		`UPDATE wallet_account SET currency = CASE currency WHEN 'USD' THEN 'EUX' ELSE 'USX' END WHERE user_id = 'alice'`,
		`UPDATE wallet_account SET currency = CASE currency WHEN 'EUX' THEN 'EUR' ELSE 'USD' END WHERE user_id = 'alice'`,
	}},
	{"cached held lowered", "cached_held", "", "bob", []string{`UPDATE wallet_account SET held = 0 WHERE user_id = 'bob'`}},
	{"head hash changed", "head_hash", "", "alice", []string{`UPDATE wallet_account SET head_hash = mac` + account}},
	{"head's seal removed", "head_mac", "", "alice", []string{`UPDATE wallet_account SET mac = NULL` + account}},
	{"head sealed in another version", "head_mac", "", "alice", []string{`UPDATE wallet_account SET version = 2` + account}},
	{"head sealed by another key", "head_mac", "", "alice", []string{`UPDATE wallet_account SET key_id = 'k9'` + account}},
	{"entry sealed by another key", "entry_hash", "", "alice", []string{`UPDATE wallet_entry SET key_id = 'k9'` + ofAlice + `= 3`}},
	{"transaction sealed by another key", "tx_complete", "", "alice", []string{`UPDATE wallet_transaction SET key_id = 'k9' WHERE id = 1`}},
	{"entry's version changed", "schema_valid", "", "alice", []string{`UPDATE wallet_entry SET version = 0` + ofAlice + `= 3`}},
	{"entry's hash flipped", "chain_link", "", "alice", []string{`UPDATE wallet_entry SET hash = previous_hash` + ofAlice + `= 3`}},
	{"first entry with a previous hash", "chain_link", "", "alice", []string{`UPDATE wallet_entry SET previous_hash = hash` + ofAlice + `= 1`}},
	{"balance after an entry changed", "running_balance", "", "alice", []string{`UPDATE wallet_entry SET balance = balance + 1` + ofAlice + `= 3`}},
	{"held after an entry changed", "running_held", "", "bob", []string{`UPDATE wallet_entry SET held = held + 1` + ofBob + `= 3`}},
	{"balance below zero", "non_negative", "", "alice", []string{`UPDATE wallet_entry SET balance = -1` + ofAlice + `= 3`}},
	{"held amount above the balance", "non_negative", "", "bob", []string{`UPDATE wallet_entry SET held = balance + 1` + ofBob + `= 3`}},
	{"entry with a later time", "entry_hash", "", "alice", []string{`UPDATE wallet_entry SET at = at + 1` + ofAlice + `= 3`}},
	{"entry with another type", "tx_complete", "", "alice", []string{`UPDATE wallet_entry SET type = 'correction'` + ofAlice + `= 3`}},
	{"entry with an unknown type", "schema_valid", "", "alice", []string{`UPDATE wallet_entry SET type = 'gift'` + ofAlice + `= 3`}},
	{"amount removed", "schema_valid", "", "alice", []string{`UPDATE wallet_entry SET amount = NULL` + ofAlice + `= 3`}},
	{"hash removed", "schema_valid", "", "alice", []string{`UPDATE wallet_entry SET hash = NULL` + ofAlice + `= 3`}},
	{"huge amount", "tx_balanced", "", "alice", []string{
		fmt.Sprintf(`UPDATE wallet_entry SET amount = %d`+ofAlice+`= 3`, int64(math.MaxInt64)),
	}},
	{"user of an entry removed", "seq_contiguous", "", "", []string{`UPDATE wallet_entry SET user_id = NULL` + ofAlice + `= 3`}},
	{"entry duplicated", "seq_contiguous", "", "alice", []string{`INSERT INTO wallet_entry SELECT * FROM wallet_entry` + ofAlice + `= 19`}},
	{"account duplicated", "head_present", "", "alice", []string{`INSERT INTO wallet_account SELECT * FROM wallet_account` + account}},
	{"entry numbered below one", "seq_contiguous", "", "alice", []string{`UPDATE wallet_entry SET number = 0` + ofAlice + `= 1`}},
	{"entry in another currency", "currency_single", "", "alice", []string{`UPDATE wallet_entry SET currency = 'GBP'` + ofAlice + `= 19`}},
	{"account with an invalid currency", "currency_single", "", "alice", []string{`UPDATE wallet_entry SET currency = 'XXX'` + account}},
	{"entry of another transaction", "tx_complete", "", "alice", []string{`UPDATE wallet_entry SET transaction_id = 1` + ofAlice + `= 3`}},
	{"entry of a missing transaction", "tx_complete", "", "alice", []string{`UPDATE wallet_entry SET transaction_id = 777` + ofAlice + `= 3`}},
	{"transaction deleted", "tx_complete", "", "alice", []string{`DELETE FROM wallet_transaction WHERE id = 1`}},
	{"transaction deleted, full verification", "tx_complete", "", "", []string{`DELETE FROM wallet_transaction WHERE id = 1`}},
	{"transaction duplicated", "tx_complete", "", "alice", []string{`INSERT INTO wallet_transaction SELECT * FROM wallet_transaction WHERE id = 1`}},
	{"transaction without entries", "tx_complete", "", "", []string{
		`INSERT INTO wallet_transaction SELECT 9999, kind, trade_id, reverses, 'unknown', 'none', note, entries, at, terms, version, key_id, hash FROM wallet_transaction WHERE id = 1`,
	}},
	{"transaction and all its entries deleted", "seq_contiguous", "", "alice", []string{`DELETE FROM wallet_transaction WHERE id = 1`, `DELETE FROM wallet_entry WHERE transaction_id = 1`}},
	{"note of a transaction changed", "tx_complete", "", "alice", []string{`UPDATE wallet_transaction SET note = 'harmless' WHERE id = 1`}},
	{"kind of a transaction changed", "tx_complete", "", "alice", []string{`UPDATE wallet_transaction SET kind = 'correction' WHERE id = 1`}},
	{"transaction expects fewer entries", "tx_complete", "", "alice", []string{`UPDATE wallet_transaction SET entries = 1 WHERE id = 1`}},
	{"idempotency key used twice", "idempotency_unique", "", "alice", []string{
		`UPDATE wallet_transaction SET idempotency_key = (SELECT idempotency_key FROM wallet_transaction WHERE id = 1) WHERE id = 3`,
	}},
	{"idempotency key of an entry changed", "tx_complete", "", "alice", []string{`UPDATE wallet_entry SET idempotency_key = 'x'` + ofAlice + `= 3`}},
	{"chain of another account broken before the user's transaction", "tx_complete", "chain_link", "bob", []string{`UPDATE wallet_entry SET hash = previous_hash` + ofAlice + `= 3`}},
	{"another account's row deleted", "tx_complete", "head_present", "bob", []string{`DELETE FROM wallet_account` + account}},
	{"another account's row changed", "tx_complete", "head_mac", "bob", []string{`UPDATE wallet_account SET balance = balance + 1` + account}},
	{"reversal of a missing transaction", "reversal_link", "", "alice", []string{`UPDATE wallet_transaction SET reverses = 777 WHERE kind = 'reversal'`}},
	{"deposit that names a reversed transaction", "reversal_link", "", "alice", []string{`UPDATE wallet_transaction SET reverses = 1 WHERE id = 3`}},
	{"reversal of another entry", "reversal_link", "", "alice", []string{`UPDATE wallet_entry SET reverses = 1` + ofAlice + `= 9`}},
	{"reversed transaction deleted", "reversal_link", "", "alice", []string{
		`DELETE FROM wallet_transaction WHERE id = (SELECT transaction_id FROM wallet_entry` + ofAlice + `= 8)`,
	}},
	{"hold never released", "hold_lifecycle", "", "bob", []string{`DELETE FROM wallet_transaction WHERE kind = 'settlement'`}},
	{"trade settled without money", "trade_crosscheck", "", "bob", []string{`UPDATE trade SET state = 'settled' WHERE id = 3`}},
	{"trade reversed without money", "trade_crosscheck", "", "bob", []string{`UPDATE trade SET state = 'reversed' WHERE id = 3`}},
	{"settled trade set to pending", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET state = 'pending' WHERE id = 1`}},
	{"trade in an unknown state", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET state = 'lost' WHERE id = 3`}},
	{"trade settled twice", "hold_lifecycle", "", "bob", []string{`UPDATE wallet_transaction SET kind = 'settlement' WHERE kind = 'reversal' AND trade_id = 2`, `UPDATE wallet_transaction SET trade_id = 1 WHERE kind = 'settlement'`}},
	{"settlement without a sale", "hold_lifecycle", "", "alice", []string{`DELETE FROM wallet_transaction WHERE kind = 'sale' AND trade_id = 1`}},
	{"trade deleted", "trade_crosscheck", "", "alice", []string{`DELETE FROM trade WHERE id = 3`}},
	{"trade deleted, and its hold", "hold_lifecycle", "", "bob", []string{`DELETE FROM trade WHERE id = 3`}},
	{"trade duplicated", "trade_crosscheck", "", "alice", []string{`INSERT INTO trade SELECT * FROM trade WHERE id = 3`}},
	{"trade inserted", "trade_crosscheck", "", "alice", []string{
		`INSERT INTO trade (id, listing_id, seller_key, buyer_key, price, currency, fee, net, transaction_id, state)
		SELECT 9, 9, seller_key, buyer_key, price, currency, fee, net, 0, 'pending' FROM trade WHERE id = 3`,
	}},
	{"price of a trade raised", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET price = price + 1 WHERE id = 3`}},
	{"trade in another currency", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET currency = 'EUR' WHERE id = 3`}},
	{"trade of another seller", "trade_crosscheck", "", "carol", []string{`UPDATE trade SET seller_key = 3 WHERE id = 3`}},
	{"trade of another buyer", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET buyer_key = 3 WHERE id = 3`}},
	{"seller of a trade deleted", "trade_crosscheck", "", "alice", []string{`DELETE FROM platform_user WHERE user_id = 'bob'`}},
	{"trade names another sale", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET transaction_id = transaction_id + 1 WHERE id = 3`}},
	{"trade names no sale", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET transaction_id = 0 WHERE id = 3`}},
	{"trade names another rule", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET fee_rule = 'other' WHERE id = 3`}},
	{"trade paid by another method", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET payment_method = 'cash' WHERE id = 3`}},
	{"trade paid from another country", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET country = 'AT' WHERE id = 3`}},
	{"trade names another version", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET fee_version = 2 WHERE id = 3`}},
	{"trade created at another time", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET created_at = created_at - 1 WHERE id = 3`}},
	{"trade settled at another time", "trade_crosscheck", "", "bob", []string{`UPDATE trade SET settled_at = settled_at + 1 WHERE id = 1`}},
	{"trade reversed at another time", "trade_crosscheck", "", "bob", []string{`UPDATE trade SET reversed_at = reversed_at + 1 WHERE id = 2`}},
	{"trade settled too early", "trade_crosscheck", "", "bob", []string{`UPDATE trade SET settle_at = settled_at + 1 WHERE id = 1`}},
	{"hold end of a trade changed", "trade_crosscheck", "", "bob", []string{`UPDATE trade SET state = 'completed', completed_at = 3, settle_at = 4 WHERE id = 3`}},
	{"volume of a trade changed", "trade_crosscheck", "", "bob", []string{`UPDATE trade SET volume = volume + 1 WHERE id = 3`}},
	{"trade of another asset", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET asset_id = 'b' WHERE id = 3`}},
	{"trade moved to another listing", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET listing_id = 99 WHERE id = 3`, `UPDATE listing SET id = 99 WHERE id = 3`}},
	{"trades of two listings swapped", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET listing_id = 3 - listing_id WHERE id IN (1, 2)`}},
	{"trade with the seal of another trade", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET mac = (SELECT mac FROM trade WHERE id = 1) WHERE id = 3`}},
	{"trade's seal removed", "trade_crosscheck", "", "alice", []string{`UPDATE trade SET version = 0, key_id = '', mac = ` + noBytes + ` WHERE id = 3`}},
	{"trade and its money deleted", "trade_crosscheck", "", "bob", []string{`DELETE FROM trade WHERE id = 3`, `DELETE FROM wallet_transaction WHERE trade_id = 3`, `DELETE FROM wallet_entry WHERE trade_id = 3`}},
	{"listing of a trade deleted", "trade_crosscheck", "", "alice", []string{`DELETE FROM listing WHERE id = 3`}},
	{"listing of a trade set to active", "trade_crosscheck", "", "bob", []string{`UPDATE listing SET state = 'active' WHERE id = 3`}},
	{"listing of a trade at another price", "trade_crosscheck", "", "alice", []string{`UPDATE listing SET price = price + 1 WHERE id = 3`}},
	{"listing of a trade of another item", "trade_crosscheck", "", "alice", []string{`UPDATE listing SET item_id = item_id + 1 WHERE id = 3`}},
	{"listing of a trade of another asset", "trade_crosscheck", "", "bob", []string{`UPDATE listing SET asset_id = 'b' WHERE id = 3`}},
	{"listing of a trade ended at another time", "trade_crosscheck", "", "bob", []string{`UPDATE listing SET ended_at = ended_at + 1 WHERE id = 3`}},
	{"second user with a seller's id", "schema_valid", "", "bob", []string{`INSERT INTO platform_user (id, user_id, steam_id, display_name, leaderboard, created_at)
		SELECT 99, user_id, '', '', leaderboard, created_at FROM platform_user WHERE user_id = 'bob'`}},
	{"seller duplicated", "schema_valid", "", "bob", []string{`INSERT INTO platform_user SELECT * FROM platform_user WHERE user_id = 'bob'`}},
	{"listing sold without a trade", "trade_crosscheck", "", "bob", []string{`INSERT INTO listing SELECT 99, seller_key, app_id, context_id, 'z', item_id, amount, price, currency, state, created_at, ended_at FROM listing WHERE id = 3`}},
	{"fee rules activated at another time", "fee_crosscheck", "", "alice", []string{`UPDATE fee_rule_set SET activated_at = activated_at - 1`}},
	{"fee rules activated by another user", "fee_crosscheck", "", "alice", []string{`UPDATE fee_rule_set SET activated_by = 'x' WHERE version = 2`}},
	{"old fee rules deleted", "fee_crosscheck", "", "alice", []string{`DELETE FROM fee_rule_set WHERE version = 2`}},
	{"first fee rules deleted", "fee_crosscheck", "", "alice", []string{`DELETE FROM fee_rule_set WHERE version = 1`}},
	{"fee rules swapped", "fee_crosscheck", "", "alice", []string{`UPDATE fee_rule_set SET version = 5 - version WHERE version IN (2, 3)`}},
	{"contents of fee rules swapped", "fee_crosscheck", "", "", []string{`UPDATE fee_rule_set SET rules = (SELECT rules FROM fee_rule_set o WHERE o.version = 5 - fee_rule_set.version),
		digest = (SELECT digest FROM fee_rule_set o WHERE o.version = 5 - fee_rule_set.version) WHERE version IN (2, 3)`}},
	{"fee rules added", "fee_crosscheck", "", "alice", []string{`INSERT INTO fee_rule_set SELECT 4, digest, rules, source, mark, activated_at, activated_by, seal_version, key_id, mac, mac FROM fee_rule_set WHERE version = 1`}},
	{"old fee rules inserted as the newest", "fee_crosscheck", "", "alice", []string{`INSERT INTO fee_rule_set SELECT 4, digest, rules, source, mark, activated_at, activated_by, seal_version, key_id, previous_mac, mac FROM fee_rule_set WHERE version = 1`}},
	{"fee rules changed to start a new chain", "fee_crosscheck", "", "alice", []string{`UPDATE fee_rule_set SET previous_mac = (SELECT previous_mac FROM fee_rule_set WHERE version = 1) WHERE version = 2`}},
	{"unused fee rules changed", "fee_crosscheck", "", "", []string{`UPDATE fee_rule_set SET rules = replace(rules, '700', '600') WHERE version = 2`}},
	{"fee rules deleted", "fee_crosscheck", "", "alice", []string{`DELETE FROM fee_rule_set`}},
	{"fee rules changed", "fee_crosscheck", "", "alice", []string{`UPDATE fee_rule_set SET rules = replace(rules, '500', '400') WHERE version = 1`}},
	{"fee rules made unreadable", "fee_crosscheck", "", "alice", []string{`UPDATE fee_rule_set SET rules = '{'`}},
	{"fee rules duplicated", "fee_crosscheck", "", "alice", []string{`INSERT INTO fee_rule_set SELECT * FROM fee_rule_set`}},
	{"sale with a missing version", "fee_crosscheck", "", "alice", []string{`UPDATE wallet_entry SET fee_version = 7 WHERE trade_id = 3`, `UPDATE trade SET fee_version = 7 WHERE id = 3`}},
	{"one cent missing from both credits", "rounding_residue", "", "alice", []string{`UPDATE wallet_entry SET amount = amount - 1` + ofBob + `= 4`}},
}

func TestVerify_DetectsEveryTampering(t *testing.T) {
	w := example(t)
	w.loosen()
	s := w.save()
	for _, c := range slices.Concat(known, others) {
		t.Run(c.name, func(t *testing.T) {
			w.TB = t
			defer func() { w.TB = nil }()
			for _, query := range c.sql {
				if n := w.exec(query); n == 0 {
					t.Fatalf("%s changed no row", query)
				}
			}
			defer s.restore(w)
			full := w.verifyAll()
			expect(t, "of everything", full.OK, full.Status, full.Checks, full.Failures, cmp.Or(c.all, c.want))
			if c.user != "" {
				r := w.verify(c.user, "")
				expect(t, "of "+c.user, r.OK, r.Status, r.Checks, r.Failures, c.want)
			}
		})
	}
	w.TB = t
	if full := w.verifyAll(); !full.OK {
		t.Fatalf("failures after the restore: %+v, want none", full.Failures)
	}
}

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

// TestVerify_DetectsKeysOfWrongTypes stores keys of other types, which SQLite accepts once
// the column types are gone. Such keys may lead to no next page or match other keys.
func TestVerify_DetectsKeysOfWrongTypes(t *testing.T) {
	w := example(t)
	if w.at.Engine != dbtest.SQLite {
		t.Skip("types of columns stay what they are")
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
		"trade of no id":            `UPDATE trade SET id = CAST('x' AS BLOB) WHERE id = 3`,
		"trade of a fraction's id":  `UPDATE trade SET id = id * 1.0 WHERE id = 3`,
		"transaction of no id":      `UPDATE wallet_transaction SET id = CAST('x' AS BLOB) WHERE id = 1`,
		"transaction of a fraction": `UPDATE wallet_transaction SET id = id * 1.0 WHERE id = 1`,
		"entry of no transaction":   `UPDATE wallet_entry SET transaction_id = CAST('x' AS BLOB)` + ofAlice + `= 2`,
		"entry of a fraction":       `UPDATE wallet_entry SET transaction_id = transaction_id * 1.0` + ofAlice + `= 2`,
		"payment of a fraction":     `UPDATE wallet_transaction SET trade_id = trade_id * 1.0 WHERE trade_id = 3`,
		"thousands of accounts":     `INSERT INTO wallet_account SELECT CAST('x' AS BLOB), 'USD', 0, 0, 0, a.hash, 1, 'k1', a.hash` + thousands,
		"thousands of entries":      `INSERT INTO wallet_entry SELECT a.user_id, a.currency, CAST('x' AS BLOB), a.transaction_id, a.type, a.amount, a.balance, a.held, a.trade_id, a.reverses, '', '', 0, a.at, a.hash, 1, 'k1', a.hash, a.hash` + thousands,
	} {
		t.Run(name, func(t *testing.T) {
			w.TB = t
			defer func() { w.TB = outer }()
			if w.exec(query) == 0 {
				t.Fatal("the statement changed no row")
			}
			defer s.restore(w)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if full, err := w.VerifyAll(ctx, nil); err != nil || full.Status != audit.Failed {
				t.Errorf("full verification: got %+v, %v", full, err)
			}
			if _, err := w.VerifyUser(ctx, "alice", ""); err != nil {
				t.Errorf("verification of alice: got %v", err)
			}
		})
	}
}

func expect(t *testing.T, of string, ok bool, status audit.Status, checks []audit.Checked, found []audit.Finding, want string) {
	t.Helper()
	if ok || status == audit.OK {
		t.Errorf("verification %s: got status %s, want failed", of, status)
	}
	if f := failing(checks); want != "" && !slices.Contains(f, want) {
		t.Errorf("verification %s: want failed check %s, got %v: %+v", of, want, f, found)
	}
}

func TestVerify_DetectsOldDatabaseByNewerCheckpoint(t *testing.T) {
	w := example(t)
	w.loosen()
	yesterday := w.save()
	r := w.verify("alice", "")
	old, kept := *r.Checkpoint, ""
	w.relax(func() {
		w.deposit(in("alice", "USD"), 5)
		kept = *w.verify("alice", "").Checkpoint
		w.keep(w.checkpoint())
	})
	if r := w.verify("alice", old); !r.OK {
		t.Fatalf("failures with an older checkpoint: %+v, want none", r.Failures)
	}
	yesterday.restore(w)
	r = w.verify("alice", kept)
	expect(t, "against the user's checkpoint", r.OK, r.Status, r.Checks, r.Failures, "anchor_match")
	r = w.verify("alice", "")
	expect(t, "against the stored one", r.OK, r.Status, r.Checks, r.Failures, "anchor_match")
	full := w.verifyAll()
	expect(t, "of everything", full.OK, full.Status, full.Checks, full.Failures, "anchor_match")
	w.exec(`DELETE FROM fee_rule_set WHERE version = 3`)
	full = w.verifyAll()
	expect(t, "of everything, with the newest fee rules deleted", full.OK, full.Status, full.Checks, full.Failures, "anchor_match")
	w.Stored = nil
	if full := w.verifyAll(); !full.OK {
		t.Errorf("failures of the copy without the newer checkpoint: %+v, want none", full.Failures)
	}
}

// TestVerify_ReturnsNoCheckpointOfAFailedState reverses alice's credit as an attacker with
// the key can. Only the stored checkpoint then contradicts the ledger.
func TestVerify_ReturnsNoCheckpointOfAFailedState(t *testing.T) {
	w := example(t)
	before := *w.verify("alice", "").Checkpoint
	w.loosen()
	earlier := w.save()
	w.relax(func() { w.deposit(in("alice", "USD"), 5) })
	w.keep(w.checkpoint())
	earlier.restore(w)
	w.relax(func() { w.deposit(in("alice", "USD"), 6) })
	stored := w.Stored
	w.Stored = nil
	bad := *w.verify("alice", "").Checkpoint // a checkpoint of the bad state
	w.Stored = stored
	for name, checkpoint := range map[string]string{"none": "", "one of before": before, "one of the bad state": bad} {
		r := w.verify("alice", checkpoint)
		expect(t, "with "+name, r.OK, r.Status, r.Checks, r.Failures, "anchor_match")
		if r.Checkpoint != nil {
			t.Errorf("with %s: got a checkpoint of the failed state, want none", name)
		}
	}
}

func TestVerify_DetectsAccountNamedOnlyByCheckpoint(t *testing.T) {
	w := example(t)
	w.loosen()
	w.keep(w.checkpoint())
	for _, table := range []string{"wallet_account", "wallet_entry", "wallet_transaction", "trade"} {
		w.exec(`DELETE FROM ` + table)
	}
	full := w.verifyAll()
	expect(t, "of everything", full.OK, full.Status, full.Checks, full.Failures, "head_present")
	r := w.verify("carol", "")
	expect(t, "of carol", r.OK, r.Status, r.Checks, r.Failures, "wallet_exists")
	if _, err := w.VerifyUser(context.Background(), "unknown", ""); err == nil {
		t.Error("got a report for an unknown user, want an error")
	}
}

// TestVerify_FailsWithoutAKey verifies a ledger with a missing key. Each row sealed with
// that key fails and is named.
func TestVerify_FailsWithoutAKey(t *testing.T) {
	w := example(t)
	w.Keys = wallettest.NewRing(t, "k2", "k3")
	full := w.verifyAll()
	if f := failing(full.Checks); full.Status != audit.Failed || !slices.Contains(f, "entry_hash") || !slices.Contains(f, "head_mac") || !slices.Contains(f, "tx_complete") {
		t.Errorf("status %s: got failed checks %v, want more", full.Status, f)
	}
	if n := failuresOf(full.Checks, "entry_hash"); n != w.count("wallet_entry") {
		t.Errorf("%d of %d entries failed, want all", n, w.count("wallet_entry"))
	}
	if r := w.verify("alice", ""); r.Status != audit.Failed || r.Checkpoint != nil {
		t.Errorf("%s, checkpoint %v", r.Status, r.Checkpoint)
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
				t.Errorf("%s: status %s, %d of %d rows failed, want all: %+v", table, full.Status, n, w.count(table), full.Checks)
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
		expect(t, "of everything", full.OK, full.Status, full.Checks, full.Failures, check)
		expect(t, "of alice", r.OK, r.Status, r.Checks, r.Failures, check)
		expect(t, "of alice against a checkpoint", against.OK, against.Status, against.Checks, against.Failures, check)
	}
	for _, number := range []int64{18, 19} {
		if !slices.ContainsFunc(r.Failures, func(f audit.Finding) bool {
			return f.Check == "entry_hash" && f.UserID == "alice" && f.Currency == "USD" && *f.Seq == number
		}) {
			t.Errorf("got no failure for entry %d: %+v", number, r.Failures)
		}
	}
}

func TestVerify_WarnsOfTimesThatGoBack(t *testing.T) {
	w := example(t)
	w.now = w.now.Add(-30 * time.Minute)
	w.deposit(in("alice", "USD"), 5)
	r := w.verify("alice", "")
	if !r.OK || len(r.Warnings) != 1 || r.Warnings[0].Check != "timestamp_monotonic" {
		t.Errorf("%s, warnings %+v, failures %+v", r.Status, r.Warnings, r.Failures)
	}
}

func TestVerify_DamagedCheckpointIsNeverOK(t *testing.T) {
	w := example(t)
	ofAlice := *w.verify("alice", "").Checkpoint
	text := w.checkpoint()
	text[len(text)/2] ^= 1
	w.keep(text)
	if full := w.verifyAll(); full.Status != audit.Incomplete {
		t.Errorf("with a damaged stored checkpoint: %s, %+v", full.Status, full.Failures)
	}
	if r := w.verify("unknown", ""); r.Status != audit.Incomplete {
		t.Errorf("verification of a user with a damaged checkpoint: %s, %+v", r.Status, r.Failures)
	}
	if _, err := w.VerifyUser(context.Background(), "alice", "rubbish"); err == nil {
		t.Error("an invalid checkpoint was accepted")
	}
	if _, err := w.VerifyUser(context.Background(), "bob", ofAlice); err == nil {
		t.Error("alice's checkpoint was accepted for bob")
	}
	if r := w.verify("alice", ofAlice); !r.OK {
		t.Errorf("with the checkpoint of the request: %s, %+v", r.Status, r.Failures)
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
		t.Errorf("%d of %d failures listed, %d problems", len(full.Failures), full.FailureCount, len(full.Problems))
	}
	w.exec(`INSERT INTO listing (id, seller_key, app_id, context_id, asset_id, item_id, amount, price, currency, state, created_at, ended_at)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) SELECT i, 1, 730, '2', 'a', 1, 1, 1, 'USD', 'sold', 1, 2 FROM n`)
	if full := w.verifyAll(); full.FailureCount != 2_800 {
		t.Errorf("got %d failures, want one per listing that was sold without a trade", full.FailureCount)
	}
}
