package audit

import (
	"fmt"
	"slices"

	"assay/internal/wallet"
)

// batch is how many transactions are examined at once.
const batch = 500

// named examines the transactions that were requested for the user.
func (v *audit) named() error {
	if v.Scopes == nil {
		return nil
	}
	for _, scope := range v.Scopes(v.only) {
		for after := int64(-1 << 63); ; {
			ids, err := v.records.ScopedTransactions(scope, after, batch)
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := v.enqueue(id); err != nil {
					return err
				}
			}
			if len(ids) < batch {
				break
			}
			after = ids[len(ids)-1]
		}
	}
	return nil
}

// enqueue notes a transaction that is to be examined. One that was examined just
// before is not again.
func (v *audit) enqueue(id int64) error {
	if v.done[id] {
		return nil
	}
	v.done[id] = true
	v.queue = append(v.queue, id)
	if len(v.queue) < batch {
		return nil
	}
	return v.flush()
}

// flush examines what is in the queue.
func (v *audit) flush() error {
	ids := v.queue
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	if err := v.examine(ids); err != nil {
		return err
	}
	if len(v.done) > 4*batch {
		clear(v.done)
		for _, id := range ids {
			v.done[id] = true
		}
	}
	v.queue = v.queue[:0]
	return nil
}

// payment is a transaction with its entries.
type payment struct {
	*Transaction // nil: only entries name it
	id           int64
	copies       int // rows that have the id
	entries      []Entry
	original     *payment // what it takes back; nil: nothing that is there
	reversals    int      // that take it back
	shared       bool     // another one has its idempotency key
}

// kind is "" where the transaction is missing.
func (p *payment) kind() wallet.Kind {
	if p.Transaction == nil {
		return ""
	}
	return p.Kind
}

// leg returns the only entry of a type that a user or the house has; nil: there is
// none, or several.
func (p *payment) leg(kind wallet.Type) *Entry {
	var found *Entry
	for i := range p.entries {
		if p.entries[i].Type != kind {
			continue
		}
		if found != nil {
			return nil
		}
		found = &p.entries[i]
	}
	return found
}

// part reports whether a user has an entry of the transaction; "" matches all users.
func (p *payment) part(user string) bool {
	return user == "" || slices.ContainsFunc(p.entries, func(e Entry) bool { return e.User == user })
}

// finding is one about the transaction: at the user's entry where there is one.
func (v *audit) finding(p *payment, expected, actual, format string, args ...any) Finding {
	f := Finding{UserID: v.only, Expected: expected, Actual: actual, Message: fmt.Sprintf(format, args...)}
	if p.id != 0 {
		f.Message = fmt.Sprintf("Transaction %d: ", p.id) + f.Message
	}
	i := slices.IndexFunc(p.entries, func(e Entry) bool { return e.User == v.only })
	if i < 0 && v.only == "" && len(p.entries) > 0 {
		i = 0
	}
	if i >= 0 {
		e := &p.entries[i]
		f.UserID, f.Currency, f.Seq = e.User, e.Currency, &e.Number
	}
	return f
}

// load reads transactions with their entries, in the order of the ids.
func (v *audit) load(ids []int64) ([]payment, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := v.records.TransactionsOf(ids)
	if err != nil {
		return nil, err
	}
	entries, err := v.records.EntriesOf(ids)
	if err != nil {
		return nil, err
	}
	out := make([]payment, len(ids))
	at := make(map[int64]int, len(ids))
	for i, id := range ids {
		out[i].id = id
		at[id] = i
	}
	for i := range rows {
		if k, ok := at[rows[i].ID]; ok {
			out[k].Transaction, out[k].copies = &rows[i], out[k].copies+1
		} // else its id is none: it is counted, and was not seen
	}
	for first := 0; first < len(entries); {
		end := first
		for end < len(entries) && entries[end].Transaction == entries[first].Transaction {
			end++
		}
		if k, ok := at[entries[first].Transaction]; ok {
			out[k].entries = entries[first:end:end]
		} // otherwise the transaction id is invalid, which is reported with its account
		first = end
	}
	return out, nil
}

// examine examines transactions of a user: each for itself, and what it takes back
// or was sold by it.
func (v *audit) examine(ids []int64) error {
	payments, err := v.load(ids)
	if err != nil {
		return err
	}
	if err := v.linkReversals(payments); err != nil {
		return err
	}
	if err := v.shareKeys(payments); err != nil {
		return err
	}
	for i := range payments {
		v.payment(&payments[i])
	}
	if err := v.foreign(payments); err != nil {
		return err
	}
	return v.tradesOf(payments)
}

// shareKeys finds the transactions whose idempotency key another one has, too.
func (v *audit) shareKeys(payments []payment) error {
	ids := make([]int64, len(payments))
	for i := range payments {
		ids[i] = payments[i].id
	}
	shared, err := v.records.SameKeys(ids)
	for i := range payments {
		_, payments[i].shared = slices.BinarySearch(shared, payments[i].id)
	}
	return err
}

// payment examines a transaction and its entries.
func (v *audit) payment(p *payment) {
	v.payments += int64(p.copies)
	v.complete(p)
	v.balanced(p)
	v.key(p)
	v.reversal(p)
	v.traded(p)
}

// traded examines whether what only a trade brings about names one. What else is wrong
// with it is examined with its trade.
func (v *audit) traded(p *payment) {
	switch p.kind() {
	case wallet.KindSale, wallet.KindCompletion, wallet.KindSettlement:
		if p.Trade == 0 {
			v.fail(tradeCrosscheck, v.finding(p, "a trade", "none", "it is a %s, and names no trade.", p.Kind))
		}
	}
}

// complete examines whether a transaction has the entries that it was posted with,
// and they say of it what it is.
func (v *audit) complete(p *payment) {
	if p.Transaction == nil {
		v.fail(txComplete, v.finding(p, "a transaction", "none", "entries name it, and it is not there."))
		return
	}
	t := p.Transaction
	v.that(schemaValid, len(t.Faults) == 0 && t.Kind.Known() && t.Entries >= 2 && t.ID > 0, func() Finding {
		return v.finding(p, "values that the ledger writes", list(t.Faults), "columns hold what the ledger never writes.")
	})
	intact, err := v.sealer.TransactionIntact(&t.Transaction)
	if !intact && err == nil || slices.ContainsFunc(p.entries, func(e Entry) bool { return e.Posting != t.Hash }) {
		v.suspect(p, v.finding(p, "the transaction that its entries cover", "another one", "it was changed after its entries were posted."))
	}
	v.sealed(txComplete, intact, err, t.KeyID, func() Finding {
		return v.finding(p, "what key "+quote(t.KeyID)+" sealed", t.Hash.String(), "it is not what was sealed.")
	})
	if p.copies > 1 {
		v.fail(txComplete, v.finding(p, "1", integer(int64(p.copies)), "it is there more than once."))
	}
	if int64(len(p.entries)) != t.Entries {
		v.fail(txComplete, v.finding(p, integer(t.Entries), integer(int64(len(p.entries))), "it has not the entries that it was posted with."))
	} else if wrong := misshapen(p); wrong != "" {
		v.fail(txComplete, v.finding(p, "the entries of a "+string(t.Kind), wrong, "it does not match its kind."))
	}
	for i := range p.entries {
		e := &p.entries[i]
		if wrong := differs(t, e); wrong != "" {
			v.fail(txComplete, of(e, "what transaction "+integer(p.id)+" says", wrong, "The entry and its transaction differ."))
		}
	}
}

// differs names the fields in which an entry is not its transaction's.
func differs(t *Transaction, e *Entry) string {
	var wrong []string
	if e.Trade != t.Trade {
		wrong = append(wrong, "trade_id")
	}
	if e.IdempotencyKey != t.IdempotencyKey {
		wrong = append(wrong, "idempotency_key")
	}
	if !e.At.Equal(t.At) {
		wrong = append(wrong, "at")
	}
	if e.Posting != t.Hash {
		wrong = append(wrong, "posting_hash")
	}
	if (e.FeeRule != "" || e.FeeVersion != 0) && t.Kind != wallet.KindSale {
		wrong = append(wrong, "fee_rule, fee_version")
	}
	if len(wrong) == 0 {
		return ""
	}
	return list(wrong)
}

// balanced examines whether a transaction moves as much as it takes, in one
// currency.
func (v *audit) balanced(p *payment) {
	if len(p.entries) == 0 {
		return // it is not complete
	}
	var sum int64
	single, absurd := true, false
	for i := range p.entries {
		e := &p.entries[i]
		absurd = absurd || e.Amount > wallet.MaxAmount || e.Amount < -wallet.MaxAmount
		sum += e.Amount
		single = single && e.Currency == p.entries[0].Currency
	}
	v.that(txBalanced, sum == 0 && !absurd, func() Finding {
		return v.finding(p, "0", integer(sum), "its entries do not add up to nothing.")
	})
	v.that(currencySingle, single, func() Finding {
		return v.finding(p, string(p.entries[0].Currency), "several", "its entries are in several currencies.")
	})
}

// key examines whether a transaction's idempotency key is its own.
func (v *audit) key(p *payment) {
	if p.Transaction == nil || p.IdempotencyKey == "" {
		return
	}
	v.that(idempotencyUnique, !p.shared, func() Finding {
		return v.finding(p, "one transaction", "several", "another one was posted with the same idempotency key, which counts once.")
	})
}

// foreign examines the entries that transactions have in other users' accounts:
// whether they are what was sealed, in their chains, and counted by their accounts.
func (v *audit) foreign(payments []payment) error {
	var before []Place
	accounts := map[wallet.Account]*Head{}
	for i := range payments {
		for k := range payments[i].entries {
			e := &payments[i].entries[k]
			if e.User == v.only {
				continue
			}
			accounts[e.Account] = nil
			if e.Number > 1 {
				before = append(before, Place{e.Account, e.Number - 1})
			}
		}
	}
	if len(accounts) == 0 {
		return nil
	}
	previous, err := v.verified(before)
	if err != nil {
		return err
	}
	if err := v.headsAt(accounts); err != nil {
		return err
	}
	for i := range payments {
		p := &payments[i]
		for k := range p.entries {
			if e := &p.entries[k]; e.User != v.only {
				v.otherLeg(p, e, previous, accounts[e.Account])
			}
		}
	}
	return nil
}

// verified returns the hashes of those entries that are what was sealed: the stored
// hash of any other one proves nothing.
func (v *audit) verified(places []Place) (map[Place]wallet.Hash, error) {
	out := make(map[Place]wallet.Hash, len(places))
	for chunk := range slices.Chunk(places, page) {
		rows, err := v.records.EntriesAt(chunk)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if intact, _ := v.sealer.EntryIntact(&rows[i].Entry); intact {
				out[rows[i].place()] = rows[i].Hash
			}
		}
	}
	return out, nil
}

// headsAt fills in the rows of accounts.
func (v *audit) headsAt(accounts map[wallet.Account]*Head) error {
	names := make([]wallet.Account, 0, len(accounts))
	for a := range accounts {
		names = append(names, a)
	}
	for chunk := range slices.Chunk(names, page) {
		rows, err := v.records.HeadsOf(chunk)
		if err != nil {
			return err
		}
		for i := range rows {
			accounts[rows[i].Account] = &rows[i]
		}
	}
	return nil
}

// otherLeg examines an entry in another user's account.
func (v *audit) otherLeg(p *payment, e *Entry, previous map[Place]wallet.Hash, head *Head) {
	wrong := func(expected, actual, what string) {
		v.fail(txComplete, of(e, expected, actual, "Transaction "+integer(p.id)+": its entry in this account "+what))
	}
	intact, err := v.sealer.EntryIntact(&e.Entry)
	v.sealed(txComplete, intact, err, e.KeyID, func() Finding {
		return of(e, "what key "+quote(e.KeyID)+" sealed", e.Hash.String(), "Transaction "+integer(p.id)+": its entry in this account is not what was sealed.")
	})
	if len(e.Faults) > 0 {
		wrong("values that the ledger writes", list(e.Faults), "holds what the ledger never writes.")
	}
	if hash, ok := previous[Place{e.Account, e.Number - 1}]; ok != (e.Number > 1) || hash != e.Previous {
		wrong("the entry before it, as it was sealed", e.Previous.String(), "is not chained to the one before it.")
	}
	if head == nil {
		wrong("an account row", "none", "is of an account that has no row.")
		return
	}
	if head.Number < e.Number {
		wrong("at least "+integer(e.Number), integer(head.Number), "is not counted by the account's row.")
	}
	intact, err = v.sealer.HeadIntact(&head.Head)
	v.sealed(txComplete, intact, err, head.KeyID, func() Finding {
		return of(e, "what key "+quote(head.KeyID)+" sealed", head.MAC.String(), "Transaction "+integer(p.id)+": the row of this account is not what was sealed.")
	})
}
