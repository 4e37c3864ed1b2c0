package audit

import (
	"fmt"
	"time"

	"assay/internal/wallet"
)

// transactions verifies transactions, each by itself. How they go with their entries,
// trades and each other is what relations compare.
type transactions struct {
	*audit
	last   int64     // the transaction before
	newest time.Time // of those before
}

// verify examines transactions in the order of their ids, and of a user the entries that
// they have in accounts of others.
func (v *transactions) verify() error {
	if err := v.records.transactions(v.scope, v.transaction); err != nil || v.only == "" {
		return err
	}
	return v.records.foreignLegs(v.scope, v.foreign)
}

func (v *transactions) transaction(t *Transaction) error {
	about := func(expected, actual, format string, args ...any) Finding {
		return v.about(t.ID, expected, actual, fmt.Sprintf(format, args...))
	}
	v.that(schemaValid, len(t.Faults) == 0 && t.Kind.Known() && t.Entries >= 2 && t.ID > 0, func() Finding {
		return about("values that the ledger writes", list(t.Faults), "columns hold what the ledger never writes.")
	})
	intact, err := v.sealer.TransactionIntact(&t.Transaction)
	if !intact && err == nil {
		v.suspect(about("the transaction that its entries cover", "another one", "it was changed after its entries were posted."))
	}
	v.sealed(txComplete, intact, err, t.KeyID, func() Finding {
		return about("what key "+quote(t.KeyID)+" sealed", t.Hash.String(), "it is not what was sealed.")
	})
	if v.payments > 0 && t.ID == v.last {
		v.fail(txComplete, about("1", "several", "it is there more than once."))
	}
	switch t.Kind {
	case wallet.KindSale, wallet.KindCompletion, wallet.KindSettlement:
		if t.Trade == 0 {
			v.fail(tradeCrosscheck, about("a trade", "none", "it is a %s, and names no trade.", t.Kind))
		}
	}
	if v.only == "" { // otherwise there are others between them
		v.newest = v.monotonic(v.newest, t.At, func(f Finding) Finding {
			return about(f.Expected, f.Actual, "it is of an earlier moment than those before it.")
		})
	}
	v.last = t.ID
	v.compared(t)
	v.advance(1)
	return nil
}

// compared counts a transaction for the checks that relations make of it.
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

// foreign examines an entry in another user's account: whether it is what was sealed, in
// its chain, and counted by its account.
func (v *transactions) foreign(g *leg) error {
	e := &g.Entry
	wrong := func(expected, actual, what string) Finding {
		return of(e, expected, actual, "Transaction "+integer(e.Transaction)+": its entry in this account "+what)
	}
	intact, err := v.sealer.EntryIntact(&e.Entry)
	v.sealed(txComplete, intact, err, e.KeyID, func() Finding {
		return wrong("what key "+quote(e.KeyID)+" sealed", e.Hash.String(), "is not what was sealed.")
	})
	if len(e.Faults) > 0 {
		v.fail(txComplete, wrong("values that the ledger writes", list(e.Faults), "holds what the ledger never writes."))
	}
	before := wallet.Hash{}
	if intact, _ = v.sealer.EntryIntact(&g.previous.Entry); intact {
		before = g.previous.Hash
	}
	if intact != (e.Number > 1) || before != e.Previous {
		v.fail(txComplete, wrong("the entry before it, as it was sealed", e.Previous.String(), "is not chained to the one before it."))
	}
	if g.head.User == "" {
		v.fail(txComplete, wrong("an account row", "none", "is of an account that has no row."))
		return nil
	}
	if g.head.Number < e.Number {
		v.fail(txComplete, wrong("at least "+integer(e.Number), integer(g.head.Number), "is not counted by the account's row."))
	}
	intact, err = v.sealer.HeadIntact(&g.head.Head)
	v.sealed(txComplete, intact, err, g.head.KeyID, func() Finding {
		return wrong("what key "+quote(g.head.KeyID)+" sealed", g.head.MAC.String(), "is in an account whose row is not what was sealed.")
	})
	return nil
}
