// Package audit verifies the ledger: that every entry, account and transaction is
// what was sealed, that they fit together, and that trades and fee rules agree with
// them.
//
// It reads one snapshot, so that concurrent postings raise no false alarm, and never
// repairs anything. Rows are read once, in pages, and their seals verified in the process:
// the entries of each account as a chain, then transactions, trades and fee rules. How rows
// go with each other the database compares: see relation_sql.go. Memory stays within some
// tens of MiB. A check that could not look at everything is skipped, and never passes.
package audit
