package audit

import (
	"fmt"
	"time"

	"assay/internal/wallet"
)

// transactions verifies the rows of transactions. See relations for their entries and
// trades.
type transactions struct {
	*audit
	last   int64     // id of the previous transaction
	newest time.Time // newest time of the previous transactions
}

// verify verifies the transactions in the order of their ids. For a user it also verifies
// their entries in the accounts of other users.
func (v *transactions) verify() error {
	if err := v.records.transactions(v.scope, v.transaction); err != nil || v.only == "" {
		return err
	}
	return v.records.foreignLegs(v.scope, v.foreign)
}

func (v *transactions) transaction(t *Transaction) error {
	about := func(expected, actual, format string, args ...any) Finding {
		return v.transactionFinding(t.ID, expected, actual, fmt.Sprintf(format, args...))
	}
	v.require(schemaValid, len(t.Faults) == 0 && t.Kind.Known() && t.Entries >= 2 && t.ID > 0, func() Finding {
		return about("valid values", list(t.Faults), "columns have values that the ledger never writes.")
	})
	intact, err := v.sealer.TransactionIntact(&t.Transaction)
	if !intact && err == nil {
		v.suspect(about("the transaction that its entries cover", "another transaction", "it was changed after its entries were posted."))
	}
	v.sealed(txComplete, intact, err, t.KeyID, func() Finding {
		return about("the content that key "+quote(t.KeyID)+" sealed", t.Hash.String(), "it does not match its seal.")
	})
	if v.payments > 0 && t.ID == v.last {
		v.fail(txComplete, about("1", "several", "it exists more than once."))
	}
	switch t.Kind {
	case wallet.KindSale, wallet.KindCompletion, wallet.KindSettlement:
		if t.Trade == 0 {
			v.fail(tradeCrosscheck, about("a trade", "none", "it is a %s but names no trade.", t.Kind))
		}
	}
	if v.only == "" { // without the other users' transactions the order of times is incomplete
		v.newest = v.monotonic(v.newest, t.At, func(f Finding) Finding {
			return about(f.Expected, f.Actual, "it is earlier than the transactions before it.")
		})
	}
	v.last = t.ID
	v.compared(t)
	v.advance(1)
	return nil
}

// compared counts a transaction for the checks that relations makes by SQL.
func (v *transactions) compared(t *Transaction) {
	v.payments++
	v.pass(txBalanced)
	v.pass(currencySingle)
	if t.IdempotencyKey != "" {
		v.pass(idempotencyUnique)
	}
	switch t.Kind {
	case wallet.KindReversal:
		v.pass(reversalLink)
	case wallet.KindSale:
		v.pass(roundingResidue)
	}
}

// foreign verifies an entry in another user's account: its seal, the link to the previous
// entry, and the row of the account.
func (v *transactions) foreign(g *leg) error {
	e := &g.Entry
	wrong := func(expected, actual, what string) Finding {
		return entryFinding(e, expected, actual, "Transaction "+integer(e.Transaction)+": the entry in this account "+what)
	}
	intact, err := v.sealer.EntryIntact(&e.Entry)
	v.sealed(txComplete, intact, err, e.KeyID, func() Finding {
		return wrong("the content that key "+quote(e.KeyID)+" sealed", e.Hash.String(), "does not match its seal.")
	})
	if len(e.Faults) > 0 {
		v.fail(txComplete, wrong("valid values", list(e.Faults), "has values that the ledger never writes."))
	}
	before := wallet.Hash{}
	if intact, _ = v.sealer.EntryIntact(&g.previous.Entry); intact {
		before = g.previous.Hash
	}
	if intact != (e.Number > 1) || before != e.Previous {
		v.fail(txComplete, wrong("the hash of the previous entry", e.Previous.String(), "is not linked to the previous entry."))
	}
	if g.head.User == "" {
		v.fail(txComplete, wrong("an account row", "none", "belongs to an account without a row."))
		return nil
	}
	if g.head.Number < e.Number {
		v.fail(txComplete, wrong("at least "+integer(e.Number), integer(g.head.Number), "is not included in the count of the account's row."))
	}
	intact, err = v.sealer.HeadIntact(&g.head.Head)
	v.sealed(txComplete, intact, err, g.head.KeyID, func() Finding {
		return wrong("the content that key "+quote(g.head.KeyID)+" sealed", g.head.MAC.String(), "belongs to an account whose row does not match its seal.")
	})
	return nil
}
