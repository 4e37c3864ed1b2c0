package wallet

import (
	"fmt"
	"slices"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/user"
)

// Posting is a command of an operator: what to post to a user's wallet.
type Posting struct {
	Account
	Kind     Kind // KindDeposit, KindWithdrawal or KindCorrection
	Amount   int64
	Reverses int64 // for a correction: the transaction to reverse; 0: post Amount
	Request
}

// Execute executes a posting.
func (l *Ledger) Execute(tx *db.Tx, o Posting) (*Posted, error) {
	switch {
	case o.Kind == KindDeposit:
		return l.Deposit(tx, o.Account, o.Amount, o.Request)
	case o.Kind == KindWithdrawal:
		return l.Withdraw(tx, o.Account, o.Amount, o.Request)
	case o.Kind == KindCorrection && o.Reverses != 0:
		return l.TakeBack(tx, o.User, o.Reverses, o.Request)
	case o.Kind == KindCorrection:
		return l.Correct(tx, o.Account, o.Amount, o.Request)
	default:
		return nil, fmt.Errorf("unknown kind of posting %.40q", string(o.Kind))
	}
}

// Deposit gives a user money that came in from outside.
func (l *Ledger) Deposit(tx *db.Tx, to Account, amount int64, r Request) (*Posted, error) {
	if err := checkAmount(to, amount); err != nil {
		return nil, err
	}
	return l.post(tx, draft{Request: r, kind: KindDeposit, lines: transfer(TypeDeposit, to, amount, HouseDeposit)})
}

// Withdraw takes money from a user that goes out.
func (l *Ledger) Withdraw(tx *db.Tx, from Account, amount int64, r Request) (*Posted, error) {
	if err := checkAmount(from, amount); err != nil {
		return nil, err
	}
	return l.post(tx, draft{Request: r, kind: KindWithdrawal, lines: transfer(TypeWithdrawal, from, -amount, HouseWithdrawal)})
}

// Correct gives a user money, or takes some if the amount is negative. The request's
// note is the reason.
func (l *Ledger) Correct(tx *db.Tx, of Account, amount int64, r Request) (*Posted, error) {
	if err := checkAmount(of, max(amount, -amount)); err != nil {
		return nil, err
	}
	return l.post(tx, draft{Request: r, kind: KindCorrection, lines: transfer(TypeCorrection, of, amount, HouseCorrection)})
}

// TakeBack posts the opposite of a deposit, withdrawal or correction of a user.
// Nothing is taken back twice.
func (l *Ledger) TakeBack(tx *db.Tx, id string, transaction int64, r Request) (*Posted, error) {
	if err := user.Check(id); err != nil {
		return nil, err
	}
	t, found, err := findTransaction(tx, transaction)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	if found {
		if entries, err = l.entriesOf(tx, &t); err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(entries, func(e Entry) bool { return e.User == id }) {
		return nil, fault.New(fault.NotFound, "transaction_not_found", "The user has no such transaction.")
	}
	if t.Kind != KindDeposit && t.Kind != KindWithdrawal && t.Kind != KindCorrection {
		return nil, fault.New(fault.Conflict, "not_reversible", "A %s cannot be reversed here. To reverse a sale, reverse its trade.", t.Kind)
	}
	return l.post(tx, reversal(tx, t, entries, r))
}

// Sell moves money for a trade that was made: the buyer pays the price, the house
// keeps the fee, and the seller gets the rest, held until Settle.
func (l *Ledger) Sell(tx *db.Tx, t *Trade, r Request) (*Posted, error) {
	buyer, seller := t.buyer(), t.seller()
	if err := checkAmount(buyer, t.Price); err != nil {
		return nil, err
	}
	if err := user.Check(t.Seller); err != nil {
		return nil, err
	}
	if t.Fee < 0 || t.Fee > t.Price || t.Net != t.Price-t.Fee || t.Buyer == t.Seller || t.ID <= 0 {
		return nil, fmt.Errorf("trade %d with a fee of %d for %d cannot be", t.ID, t.Fee, t.Price)
	}
	return l.post(tx, draft{Request: r, kind: KindSale, trade: t, feeRule: t.FeeRule, feeVersion: t.FeeVersion, lines: []line{
		{Account: buyer, kind: TypePurchase, amount: -t.Price},
		{Account: seller, kind: TypeSale, amount: t.Net},
		{Account: Account{shardFor(HouseFee, t.Seller), t.Currency}, kind: TypeFee, amount: t.Fee},
	}})
}

// Complete adds to the chains of buyer and seller that the asset of a trade was
// handed over, and when its hold ends. It moves no money.
func (l *Ledger) Complete(tx *db.Tx, t *Trade, r Request) (*Posted, error) {
	return l.post(tx, draft{Request: r, kind: KindCompletion, trade: t, check: held(tx, t.ID), lines: []line{
		{Account: t.buyer(), kind: TypeCompletion}, {Account: t.seller(), kind: TypeCompletion},
	}})
}

// Settle makes what the seller of a trade was credited available. The trade is as it
// is once it has settled.
func (l *Ledger) Settle(tx *db.Tx, t *Trade, r Request) (*Posted, error) {
	sale, entries, err := l.sale(tx, t.ID)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Type == TypeSale })
	if i < 0 {
		return nil, tampered(Account{fmt.Sprintf("transaction %d", sale.ID), ""})
	}
	sold := entries[i]
	return l.post(tx, draft{Request: r, kind: KindSettlement, trade: t, check: held(tx, t.ID), lines: []line{
		{Account: sold.Account, kind: TypeRelease, amount: -sold.Amount},
		{Account: sold.Account, kind: TypeFree, amount: sold.Amount},
	}})
}

// Reverse gives back what a sale moved: the price to the buyer, out of what the
// seller was credited and what the house kept. The trade is as it is once it is
// reversed.
func (l *Ledger) Reverse(tx *db.Tx, t *Trade, r Request) (*Posted, error) {
	sale, entries, err := l.sale(tx, t.ID)
	if err != nil {
		return nil, err
	}
	p := reversal(tx, sale, entries, r)
	p.trade, p.check = t, held(tx, t.ID)
	return l.post(tx, p)
}

// transfer moves an amount between a user and the house.
func transfer(kind Type, user Account, amount int64, house string) []line {
	return []line{
		{Account: user, kind: kind, amount: amount},
		{Account: Account{shardFor(house, user.User), user.Currency}, kind: kind, amount: -amount},
	}
}

// reversal takes back a transaction.
func reversal(tx *db.Tx, t Transaction, entries []Entry, r Request) draft {
	p := draft{Request: r, kind: KindReversal, reverses: t.ID}
	for _, e := range entries {
		kind := TypeReversal
		if e.Type == TypeSale {
			kind = TypeSaleReversal
		}
		p.lines = append(p.lines, line{e.Account, kind, -e.Amount, e.Number})
	}
	p.check = func() error {
		reversed, err := walletReversed(tx, t.ID)
		if err == nil && reversed {
			err = fault.New(fault.Conflict, "already_reversed", "The transaction is already reversed.")
		}
		return err
	}
	return p
}

// sale returns the sale of a trade.
func (l *Ledger) sale(tx *db.Tx, trade int64) (Transaction, []Entry, error) {
	all, err := tradeTransactions(tx, trade)
	if err != nil {
		return Transaction{}, nil, err
	}
	for i := range all {
		if all[i].Kind == KindSale {
			entries, err := l.entriesOf(tx, &all[i])
			return all[i], entries, err
		}
	}
	return Transaction{}, nil, notPaid()
}

func notPaid() error {
	return fault.New(fault.Conflict, "trade_not_paid", "The trade has no payment.")
}

// entriesOf returns the entries of a transaction, all of which are what was
// written.
func (l *Ledger) entriesOf(tx *db.Tx, t *Transaction) ([]Entry, error) {
	s := l.Keys.Sealer()
	of := Account{fmt.Sprintf("transaction %d", t.ID), ""}
	intact, err := s.TransactionIntact(t)
	if err != nil {
		return nil, accountIntact(intact, err, of)
	}
	entries, err := transactionEntries(tx, t.ID)
	if err != nil {
		return nil, err
	}
	intact = intact && int64(len(entries)) == t.Entries
	for i := range entries {
		ok, err := s.EntryIntact(&entries[i])
		if err != nil {
			return nil, accountIntact(ok, err, of)
		}
		intact = intact && ok && entries[i].Transaction == t.ID
	}
	return entries, accountIntact(intact, nil, of)
}

// held makes a check of a posting: what a trade's seller was credited is held
// still.
func held(tx *db.Tx, trade int64) func() error {
	return func() error {
		all, err := tradeTransactions(tx, trade)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(t Transaction) bool { return t.Kind == KindSale }) {
			return notPaid()
		}
		for _, t := range all {
			switch t.Kind {
			case KindSettlement:
				return fault.New(fault.Conflict, "trade_settled", "The trade is settled and can no longer be changed.")
			case KindReversal:
				return fault.New(fault.Conflict, "already_reversed", "The trade is already reversed.")
			}
		}
		return nil
	}
}

// checkAmount refuses an invalid amount or account.
func checkAmount(a Account, amount int64) error {
	if err := user.Check(a.User); err != nil {
		return err
	}
	if !a.Currency.Circulates() {
		return fault.New(fault.Unprocessable, "unknown_currency", "%.10q is not a circulating ISO 4217 currency.", string(a.Currency))
	}
	if amount < 1 || amount > MaxAmount {
		return fault.New(fault.Unprocessable, "amount_out_of_range", "An amount must be 1 to %d minor units.", int64(MaxAmount))
	}
	return nil
}
