package audit_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"assay/internal/wallet/audit"
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

// others are cases beyond the specification.
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
	{"held amount after an entry changed", "running_held", "", "bob", []string{`UPDATE wallet_entry SET held = held + 1` + ofBob + `= 3`}},
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
				if w.exec(query) == 0 {
					t.Fatalf("%s: got no changed row, want at least one", query)
				}
			}
			defer s.restore(w)
			full := w.verifyAll()
			expect(t, "of the ledger", full.OK, full.Status, full.Checks, full.Failures, cmp.Or(c.all, c.want))
			if c.user != "" {
				r := w.verify(c.user, "")
				expect(t, "of "+c.user, r.OK, r.Status, r.Checks, r.Failures, c.want)
			}
		})
	}
	w.TB = t
	if full := w.verifyAll(); !full.OK {
		t.Fatalf("after the restore: got failures %+v, want none", full.Failures)
	}
}

func expect(t *testing.T, of string, ok bool, status audit.Status, checks []audit.Checked, found []audit.Finding, want string) {
	t.Helper()
	if ok || status == audit.OK {
		t.Errorf("verification %s: got status %s, want failed", of, status)
	}
	if f := failing(checks); want != "" && !slices.Contains(f, want) {
		t.Errorf("verification %s: got failed checks %v, want %s: %+v", of, f, want, found)
	}
}
