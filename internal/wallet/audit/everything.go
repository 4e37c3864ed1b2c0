package audit

import (
	"cmp"
	"errors"
	"math"
	"time"
)

// everything verifies the whole ledger. It reads every row once: entries in the order
// of their chains, then transactions, then trades. What belongs together is brought
// together by sorters.
func (v *audit) everything(anchor *anchor) (err error) {
	n, err := v.records.Count("")
	if err != nil {
		return err
	}
	v.progress.Total = 2*n.Entries + n.Trades
	v.byTransaction, v.byTrade, v.byHolder = newSorter(v.Memory), newSorter(v.Memory), newSorter(v.Memory)
	defer func() { err = errors.Join(err, v.byTransaction.close(), v.byTrade.close(), v.byHolder.close()) }()
	if err := v.chains(n); err != nil {
		return err
	}
	if err := v.transactions(); err != nil {
		return err
	}
	v.counted(txComplete, v.payments, n.Transactions, "There are transactions that have no id.")
	trades, err := v.allTrades()
	if err != nil {
		return err
	}
	v.counted(tradeCrosscheck, trades, n.Trades, "There are trades that have no id, or one that is taken.")
	if err := v.held(); err != nil {
		return err
	}
	if err := v.unlisted(); err != nil {
		return err
	}
	v.notes()
	if err := v.ruleChain(); err != nil {
		return err
	}
	v.counted(feeCrosscheck, v.versions, n.Rules, "There are fee rules that have no version, or one that is taken.")
	if _, err := v.anchors(anchor); err != nil {
		return err
	}
	if v.heads > 0 || v.entries > 0 {
		v.pass(walletExists)
	}
	return nil
}

// transactions examines all of them, and whatever entries name besides.
func (v *audit) transactions() error {
	repeated, err := v.records.KeysRepeat()
	if err != nil {
		return err
	}
	entries, err := v.byTransaction.sorted()
	if err != nil {
		return err
	}
	rows := readAhead(func(last *Transaction) ([]Transaction, error) {
		after := int64(math.MinInt64)
		if last != nil {
			after = last.ID
		}
		return v.records.Transactions(after, ahead)
	}, func(a, b *Transaction) int { return cmp.Compare(a.ID, b.ID) })
	defer rows.stop()
	var newest time.Time
	for {
		payments, err := v.nextPayments(rows, entries)
		if err != nil || len(payments) == 0 {
			return err
		}
		newest = v.ordered(payments, newest)
		if err := v.examineAll(payments, repeated); err != nil {
			return err
		}
	}
}

// ordered warns of transactions that are of an earlier moment than those whose ids come
// before: so a first entry that was dated back shows, too. newest is the newest moment
// before them.
func (v *audit) ordered(payments []payment, newest time.Time) time.Time {
	for i := range payments {
		p := &payments[i]
		if p.Transaction != nil {
			newest = v.monotonic(newest, p.At, func(f Finding) Finding {
				return v.finding(p, f.Expected, f.Actual, "it is of an earlier moment than those before it.")
			})
		}
	}
	return newest
}

// nextPayments puts transactions and their entries together.
func (v *audit) nextPayments(rows *cursor[Transaction], entries *sortedRecords) ([]payment, error) {
	var reader recordReader
	out := make([]payment, 0, batch)
	for len(out) < batch {
		row, err := rows.peek()
		if err != nil {
			return nil, err
		}
		key, _, named, err := entries.peek()
		if err != nil {
			return nil, err
		}
		switch {
		case row == nil && !named:
			return out, nil
		case !named || row != nil && row.ID < key:
			key = row.ID
		}
		p := payment{id: key}
		for row != nil && row.ID == key {
			p.Transaction = row
			p.copies++
			rows.take()
			if row, err = rows.peek(); err != nil {
				return nil, err
			}
		}
		if p.entries, err = entriesOf(key, entries, &reader); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// entriesOf takes the entries of a transaction.
func entriesOf(transaction int64, from *sortedRecords, reader *recordReader) (out []Entry, err error) {
	for {
		key, record, ok, err := from.peek()
		if err != nil || !ok || key != transaction {
			return out, err
		}
		reader.read(record)
		out = append(out, reader.entry())
		if reader.err != nil {
			return nil, reader.err
		}
		from.take()
	}
}

// examineAll examines transactions, of which there are no others between, and hands
// on those of trades. Unless keys are repeated, each is its transaction's own.
func (v *audit) examineAll(payments []payment, repeated bool) error {
	if err := v.linkReversals(payments); err != nil {
		return err
	}
	if repeated {
		if err := v.shareKeys(payments); err != nil {
			return err
		}
	}
	legs := 0
	for i := range payments {
		p := &payments[i]
		legs += len(p.entries)
		v.payment(p)
		if err := v.handOn(p); err != nil {
			return err
		}
	}
	v.advance(legs)
	return nil
}

// handOn hands a transaction on to its trade. Others that its entries name, each get
// the first such entry alone: what is written stays in proportion to the entries.
func (v *audit) handOn(p *payment) error {
	own := int64(0)
	if p.Transaction != nil {
		own = p.Trade
	}
	if own != 0 {
		if err := v.byTrade.add(own, func(to []byte) []byte { return putPayment(to, p) }); err != nil {
			return err
		}
	}
	var named map[int64]bool // made where it is needed: hardly ever
	for i := range p.entries {
		trade := p.entries[i].Trade
		if trade == 0 || trade == own || named[trade] {
			continue
		}
		if named == nil {
			named = map[int64]bool{}
		}
		named[trade] = true
		naming := payment{id: p.id, entries: p.entries[i : i+1]}
		if err := v.byTrade.add(trade, func(to []byte) []byte { return putPayment(to, &naming) }); err != nil {
			return err
		}
	}
	return nil
}

// allTrades examines all trades with their transactions, and returns how many there
// are.
func (v *audit) allTrades() (n int64, err error) {
	payments, err := v.byTrade.sorted()
	if err != nil {
		return 0, err
	}
	rows := readAhead(func(last *Trade) ([]Trade, error) {
		after := int64(math.MinInt64)
		if last != nil {
			after = last.ID
		}
		return v.records.Trades("", after, ahead)
	}, func(a, b *Trade) int { return cmp.Compare(a.ID, b.ID) })
	rows.onPage = v.advance
	defer rows.stop()
	var reader recordReader
	for {
		row, err := rows.peek()
		if err != nil {
			return n, err
		}
		id, _, paid, err := payments.peek()
		if err != nil {
			return n, err
		}
		switch {
		case row == nil && !paid:
			return n, nil
		case !paid || row != nil && row.ID < id:
			id = row.ID
		}
		d := &deal{id: id}
		for row != nil && row.ID == id {
			n++
			if err := v.holdFor(row); err != nil {
				return n, err
			}
			d.found(row)
			rows.take()
			if row, err = rows.peek(); err != nil {
				return n, err
			}
		}
		if err := v.paid(d, payments, &reader); err != nil {
			return n, err
		}
	}
}

// paid examines a trade with the transactions that belong to it, and each other one
// that has an entry which names it where there are none.
func (v *audit) paid(d *deal, payments *sortedRecords, reader *recordReader) error {
	var others []*payment
	for {
		id, record, ok, err := payments.peek()
		if err != nil {
			return err
		}
		if !ok || id != d.id {
			break
		}
		reader.read(record)
		p := reader.payment()
		if reader.err != nil {
			return reader.err
		}
		payments.take()
		if p.Transaction != nil && p.Trade == d.id {
			d.payments = append(d.payments, p)
		} else {
			others = append(others, p)
		}
	}
	d.sort()
	if len(d.payments) > 0 {
		return v.deal(d, d.payments[0])
	}
	if d.trade != nil {
		others = append(others, &payment{id: d.trade.Transaction})
	}
	for _, p := range others {
		if err := v.deal(d, p); err != nil {
			return err
		}
	}
	return nil
}
