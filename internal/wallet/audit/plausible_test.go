package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/db/dbtest"
	"assay/internal/wallet/audit"
)

// TestVerify_DetectsImpossibleValuesWithValidSeals forges rows with the key. Every seal,
// link and sum is valid, but the content is impossible.
func TestVerify_DetectsImpossibleValuesWithValidSeals(t *testing.T) {
	w := example(t)
	w.now = w.now.Add(time.Minute)
	w.sell("alice", "bob", "USD", 900) // trade 5, charged by version 3
	w.loosen()
	s := w.save()
	outer := w.TB
	const saleOf3, days = `(SELECT id FROM wallet_transaction WHERE kind = 'sale' AND trade_id = 3)`, 86_400_000_000
	const newest = `(SELECT transaction_id FROM wallet_entry` + ofAlice + `= 19)`
	at := func(shift string) []string {
		return []string{`UPDATE wallet_entry SET at = at ` + shift + ` WHERE transaction_id = ` + newest, `UPDATE wallet_transaction SET at = at ` + shift + ` WHERE id = ` + newest}
	}
	shard := func(name string) []string {
		const first = ` WHERE user_id = (SELECT min(user_id) FROM wallet_account WHERE user_id LIKE 'house:fee:%')`
		return []string{`UPDATE wallet_entry SET user_id = '` + name + `'` + first, `UPDATE wallet_account SET user_id = '` + name + `'` + first}
	}
	cases := []struct {
		name, want, reports, user string
		sql                       []string
	}{
		{"sale without a trade", "trade_crosscheck", "names no trade", "bob", []string{
			`UPDATE wallet_entry SET trade_id = 0 WHERE transaction_id = ` + saleOf3, `UPDATE wallet_transaction SET trade_id = 0 WHERE id = ` + saleOf3,
			`DELETE FROM trade WHERE id = 3`, `DELETE FROM listing WHERE id = 3`,
		}},
		{"held for no sale", "running_held", "sum of its open sales", "bob", []string{
			`UPDATE wallet_entry SET trade_id = 0 WHERE transaction_id = ` + saleOf3, `UPDATE wallet_transaction SET trade_id = 0 WHERE id = ` + saleOf3,
			`DELETE FROM trade WHERE id = 3`, `DELETE FROM listing WHERE id = 3`,
		}},
		{"settlement without a trade", "trade_crosscheck", "names no trade", "bob", []string{
			`UPDATE wallet_entry SET trade_id = 0 WHERE type IN ('release', 'free')`, `UPDATE wallet_transaction SET trade_id = 0 WHERE kind = 'settlement'`,
		}},
		{"state settled without a settlement", "running_held", "sum of its open sales", "bob", []string{`UPDATE trade SET state = 'settled' WHERE id = 3`}},
		{"before the account", "schema_valid", "never writes", "alice", at(fmt.Sprintf(`- %d`, days/12))},
		{"years ahead", "schema_valid", "never writes", "alice", at(fmt.Sprintf(`+ %d`, 3_650*days))},
		{"before 2020", "schema_valid", "never writes", "alice", []string{`UPDATE wallet_entry SET at = 1000000`, `UPDATE wallet_transaction SET at = 1000000`}},
		{"rules of a later version", "fee_crosscheck", "not in force at that time", "alice", []string{`UPDATE wallet_entry SET fee_version = 2 WHERE trade_id = 3 AND fee_version <> 0`, `UPDATE trade SET fee_version = 2 WHERE id = 3`}},
		{"rules of an earlier version", "fee_crosscheck", "not in force at that time", "alice", []string{`UPDATE wallet_entry SET fee_version = 1 WHERE trade_id = 5 AND fee_version <> 0`, `UPDATE trade SET fee_version = 1 WHERE id = 5`}},
		{"rules activated years ahead", "fee_crosscheck", "impossible time", "alice", []string{fmt.Sprintf(`UPDATE fee_rule_set SET activated_at = activated_at + %d WHERE version = 3`, 3_650*days)}},
		{"shard above the last", "schema_valid", "name of the account is invalid", "", shard("house:fee:64")},
		{"shard with another format", "schema_valid", "name of the account is invalid", "", shard("house:fee:7")},
		{"unknown house user", "schema_valid", "name of the account is invalid", "", shard("house:loan:07")},
	}
	if w.at.Engine == dbtest.SQLite { // PostgreSQL rejects NUL in text
		for i, sql := range [][]string{
			{`UPDATE wallet_entry SET user_id = user_id || char(0) WHERE user_id = 'carol'`, `UPDATE wallet_account SET user_id = user_id || char(0) WHERE user_id = 'carol'`},
			{`UPDATE wallet_entry SET idempotency_key = 'k' || char(0) WHERE transaction_id = ` + newest, `UPDATE wallet_transaction SET idempotency_key = 'k' || char(0) WHERE id = ` + newest},
		} {
			c := cases[0]
			c.name, c.want, c.reports, c.user, c.sql = fmt.Sprint("NUL ", i), "schema_valid", "never writes", "", sql
			cases = append(cases, c)
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w.TB = t
			defer func() { w.TB = outer }()
			defer s.restore(w)
			for _, query := range c.sql {
				if w.exec(query) == 0 {
					t.Fatalf("%s: got no changed row, want at least one", query)
				}
			}
			for _, row := range w.rows("trade") {
				w.change(row[0].(int64), `price = price`)
			}
			w.reseal(termsOf)
			reports := func(found []audit.Finding) bool {
				return slices.ContainsFunc(found, func(f audit.Finding) bool { return f.Check == c.want && strings.Contains(f.Message, c.reports) })
			}
			full := w.verifyAll()
			if expect(t, "of the ledger", full.OK, full.Status, full.Checks, full.Failures, c.want); !reports(full.Failures) {
				t.Errorf("full verification: got failures %+v, want one of %s with %q", full.Failures, c.want, c.reports)
			}
			if f := failing(full.Checks); slices.Contains(f, "entry_hash") || slices.Contains(f, "head_mac") {
				t.Errorf("got failed checks %v, want valid seals", f)
			}
			if c.user == "" {
				return
			}
			r := w.verify(c.user, "")
			if expect(t, "of "+c.user, r.OK, r.Status, r.Checks, r.Failures, c.want); !reports(r.Failures) {
				t.Errorf("%s: want a failure of %s with %q, got %+v", c.user, c.want, c.reports, r.Failures)
			}
		})
	}
}

// TestVerify_WarnsOfBackdatedEntries forges times with the key. A backdated entry is earlier than the
// previous entry of its account. If it has no previous entry, it is earlier than the previous
// transaction.
func TestVerify_WarnsOfBackdatedEntries(t *testing.T) {
	w := example(t)
	w.deposit(in("dave", "USD"), 5)
	if full := w.verifyAll(); !full.OK || len(full.Warnings) > 0 {
		t.Fatalf("before the change: got failures %+v, warnings %+v, want none", full.Failures, full.Warnings)
	}
	w.loosen()
	s := w.save()
	for user, warnings := range map[string]int{
		"alice": 3, // in two chains and among all transactions, beyond the allowed clock error
		"dave":  1, // first entries of the accounts of dave and the shard
	} {
		last := fmt.Sprintf(`(SELECT max(transaction_id) FROM wallet_entry WHERE user_id = '%s' AND currency = 'USD')`, user)
		for _, query := range []string{`UPDATE wallet_entry SET at = at - %d WHERE transaction_id = `, `UPDATE wallet_transaction SET at = at - %d WHERE id = `} {
			w.exec(fmt.Sprintf(query, (50*time.Minute).Microseconds()) + last)
		}
		w.reseal(termsOf)
		full := w.verifyAll()
		if !full.OK || len(full.Warnings) != warnings || full.Warnings[0].Check != "timestamp_monotonic" {
			t.Errorf("%s: got status %s, failures %+v, warnings %+v, want ok and %d of timestamp_monotonic", user, full.Status, full.Failures, full.Warnings, warnings)
		}
		s.restore(w)
	}
}
