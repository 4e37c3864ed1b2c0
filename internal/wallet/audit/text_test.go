package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"assay/internal/db/dbtest"
	"assay/internal/wallet/audit"
)

// mostReport is the maximum size of a report in bytes.
const mostReport = 256 << 10

// TestVerify_ReportsInvalidTexts writes invalid UTF-8, where the database accepts it, and
// long texts into each column.
func TestVerify_ReportsInvalidTexts(t *testing.T) {
	w := example(t)
	w.loosen()
	s := w.save()
	for _, column := range []string{
		"wallet_account.user_id", "wallet_account.currency", "wallet_account.key_id",
		"wallet_entry.user_id", "wallet_entry.currency", "wallet_entry.type", "wallet_entry.idempotency_key", "wallet_entry.fee_rule", "wallet_entry.key_id",
		"wallet_transaction.kind", "wallet_transaction.scope", "wallet_transaction.idempotency_key", "wallet_transaction.note", "wallet_transaction.key_id",
		"trade.context_id", "trade.asset_id", "trade.currency", "trade.payment_method", "trade.country", "trade.fee_rule", "trade.state", "trade.key_id",
		"platform_user.user_id", "fee_rule_set.rules", "fee_rule_set.digest", "fee_rule_set.source", "fee_rule_set.mark", "fee_rule_set.activated_by", "fee_rule_set.key_id",
	} {
		values := []string{w.long(250), w.long(9_000)}
		if w.at.Engine == dbtest.SQLite {
			values = append(values, `CAST(x'ff75' AS TEXT)`)
		}
		for _, value := range values {
			table, name, _ := strings.Cut(column, ".")
			w.exec(`UPDATE ` + table + ` SET ` + name + ` = ` + value)
			w.reported(column)
			s.restore(w, table)
		}
	}
}

// TestVerify_LimitsMemoryForHugeValues writes megabytes into columns for short values.
func TestVerify_LimitsMemoryForHugeValues(t *testing.T) {
	const little = 16 << 20
	w := example(t)
	w.loosen()
	s := w.save()
	for column, bytes := range map[string]int{
		"wallet_entry.idempotency_key": 1 << 20, "wallet_transaction.note": 1 << 20, "trade.state": 10 << 20, "fee_rule_set.rules": 10 << 20, "fee_rule_set.mark": 10 << 20,
		"platform_user.user_id": 10 << 20, "wallet_account.mac": 10 << 20, "wallet_entry.hash": 1 << 20,
	} {
		value := w.long(bytes)
		table, name, _ := strings.Cut(column, ".")
		if name == "mac" || name == "hash" {
			value = w.bytes(bytes)
		}
		w.exec(`UPDATE ` + table + ` SET ` + name + ` = ` + value)
		if peak := peakHeap(func() { w.reported(column) }); peak > little {
			t.Errorf("%s: verification used %d MiB, want at most %d", column, peak>>20, little>>20)
		}
		s.restore(w, table)
	}
}

// long returns an SQL expression for a text of the given length.
func (w *world) long(bytes int) string {
	if w.at.Engine == dbtest.SQLite {
		return fmt.Sprintf(`printf('%%.*c', %d, 'x')`, bytes)
	}
	return fmt.Sprintf(`repeat('x', %d)`, bytes)
}

// bytes returns an SQL expression for a blob of the given length.
func (w *world) bytes(n int) string {
	if w.at.Engine == dbtest.SQLite {
		return fmt.Sprintf(`zeroblob(%d)`, n)
	}
	return fmt.Sprintf(`decode(repeat('00', %d), 'hex')`, n)
}

// reported verifies the ledger. It fails the test unless the reports are short and valid
// JSON.
func (w *world) reported(what string) {
	w.Helper()
	full, alice := w.verifyAll(), w.verify("alice", "")
	if full.Status != audit.Failed {
		w.Errorf("%s: got status %s, want failed", what, full.Status)
	}
	for _, r := range []any{full, alice} {
		if text, err := json.Marshal(r); err != nil || len(text) > mostReport {
			w.Errorf("%s: got a report of %d bytes, error %v, want a small one", what, len(text), err)
		}
	}
}
