// Package audit verifies the ledger. It checks the seal of every entry, account and
// transaction, the relations between these rows, and their agreement with trades and fee
// rules.
//
// A verification reads one snapshot, so concurrent postings cause no false alarm. It never
// repairs anything. It reads each row once, in pages, and verifies the seals: first the
// entries of each account as a chain, then transactions, trades and fee rules. The
// database compares rows with each other; see relation_sql.go. Memory use stays at some
// tens of MiB. A check that could not examine all rows is skipped and never passes.
package audit
