package wallet

import (
	"fmt"
	"slices"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/user"
)

// Posting is a ledger command: it states what to post to a user's wallet.
type Posting struct {
	Account
	Kind     Kind // KindDeposit, KindWithdrawal or KindCorrection
	Amount   int64
	Reverses int64 // for a correction: id of the transaction to reverse; 0: post Amount
	Request
}

// Execute posts the transaction of a ledger command.
func (l *Ledger) Execute(tx *db.Tx, o Posting) (*Posted, error) {
	switch {
	case o.Kind == KindDeposit:
		return l.Deposit(tx, o.Account, o.Amount, o.Request)
	case o.Kind == KindWithdrawal:
		return l.Withdraw(tx, o.Account, o.Amount, o.Request)
	case o.Kind == KindCorrection && o.Reverses != 0:
		return l.ReverseTransaction(tx, o.User, o.Reverses, o.Request)
	case o.Kind == KindCorrection:
		return l.Correct(tx, o.Account, o.Amount, o.Request)
	default:
		return nil, fmt.Errorf("unknown kind of posting %.40q", string(o.Kind))
	}
}

// Deposit credits a user with money that was paid in. amount is in minor units.
func (l *Ledger) Deposit(tx *db.Tx, to Account, amount int64, r Request) (*Posted, error) {
	if err := checkAmount(to, amount); err != nil {
		return nil, err
	}
	return l.post(tx, draft{Request: r, kind: KindDeposit, lines: transfer(TypeDeposit, to, amount, HouseDeposit)})
}

// Withdraw debits a user for money that was paid out. amount is in minor units and positive.
func (l *Ledger) Withdraw(tx *db.Tx, from Account, amount int64, r Request) (*Posted, error) {
	if err := checkAmount(from, amount); err != nil {
		return nil, err
	}
	return l.post(tx, draft{Request: r, kind: KindWithdrawal, lines: transfer(TypeWithdrawal, from, -amount, HouseWithdrawal)})
}

// Correct credits a user, or debits the user if amount is negative. The note of the request
// has the reason.
func (l *Ledger) Correct(tx *db.Tx, of Account, amount int64, r Request) (*Posted, error) {
	if err := checkAmount(of, max(amount, -amount)); err != nil {
		return nil, err
	}
	return l.post(tx, draft{Request: r, kind: KindCorrection, lines: transfer(TypeCorrection, of, amount, HouseCorrection)})
}

// ReverseTransaction reverses a deposit, withdrawal or correction of a user. A transaction
// can be reversed once.
func (l *Ledger) ReverseTransaction(tx *db.Tx, id string, transaction int64, r Request) (*Posted, error) {
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

// Sell posts the payment of a trade. The buyer pays the price, the house gets the fee, and
// the seller gets the rest. The seller's credit is held until Settle.
func (l *Ledger) Sell(tx *db.Tx, t *Trade, r Request) (*Posted, error) {
	buyer, seller := t.buyer(), t.seller()
	if err := checkAmount(buyer, t.Price); err != nil {
		return nil, err
	}
	if err := user.Check(t.Seller); err != nil {
		return nil, err
	}
	if t.Fee < 0 || t.Fee > t.Price || t.Net != t.Price-t.Fee || t.Buyer == t.Seller || t.ID <= 0 {
		return nil, fmt.Errorf("invalid trade %d: price %d, fee %d, net %d", t.ID, t.Price, t.Fee, t.Net)
	}
	return l.post(tx, draft{Request: r, kind: KindSale, trade: t, feeRule: t.FeeRule, feeVersion: t.FeeVersion, lines: []line{
		{Account: buyer, kind: TypePurchase, amount: -t.Price},
		{Account: seller, kind: TypeSale, amount: t.Net},
		{Account: Account{shardFor(HouseFee, t.Seller), t.Currency}, kind: TypeFee, amount: t.Fee},
	}})
}

// Complete records the delivery of a trade's asset, and the end of its hold, in the chains
// of buyer and seller. It moves no money.
func (l *Ledger) Complete(tx *db.Tx, t *Trade, r Request) (*Posted, error) {
	return l.post(tx, draft{Request: r, kind: KindCompletion, trade: t, check: held(tx, t.ID), lines: []line{
		{Account: t.buyer(), kind: TypeCompletion}, {Account: t.seller(), kind: TypeCompletion},
	}})
}

// Settle makes the seller's held credit of a trade available. t has the state after the
// settlement.
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

// Reverse reverses the sale of a trade. It returns the price to the buyer and debits the
// seller and the house. t has the state after the reversal.
func (l *Ledger) Reverse(tx *db.Tx, t *Trade, r Request) (*Posted, error) {
	sale, entries, err := l.sale(tx, t.ID)
	if err != nil {
		return nil, err
	}
	p := reversal(tx, sale, entries, r)
	p.trade, p.check = t, held(tx, t.ID)
	return l.post(tx, p)
}

// transfer returns the lines that credit a user with amount and debit the house.
func transfer(kind Type, user Account, amount int64, house string) []line {
	return []line{
		{Account: user, kind: kind, amount: amount},
		{Account: Account{shardFor(house, user.User), user.Currency}, kind: kind, amount: -amount},
	}
}

// reversal returns the draft that reverses a transaction.
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
		reversed, err := isReversed(tx, t.ID)
		if err == nil && reversed {
			err = fault.New(fault.Conflict, "already_reversed", "The transaction is already reversed.")
		}
		return err
	}
	return p
}

// sale returns the sale of a trade with its entries. It verifies their seals.
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

// entriesOf returns the entries of a transaction. It returns an error if the transaction or
// an entry does not match its seal, or if an entry is missing.
func (l *Ledger) entriesOf(tx *db.Tx, t *Transaction) ([]Entry, error) {
	s := l.Keys.Sealer()
	of := Account{fmt.Sprintf("transaction %d", t.ID), ""}
	intact, err := s.TransactionIntact(t)
	if err != nil {
		return nil, accountError(intact, err, of)
	}
	entries, err := transactionEntries(tx, t.ID)
	if err != nil {
		return nil, err
	}
	intact = intact && int64(len(entries)) == t.Entries
	for i := range entries {
		ok, err := s.EntryIntact(&entries[i])
		if err != nil {
			return nil, accountError(ok, err, of)
		}
		intact = intact && ok && entries[i].Transaction == t.ID
	}
	return entries, accountError(intact, nil, of)
}

// held returns a check for a draft. The check fails if the seller's credit for a trade is no
// longer held.
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

// checkAmount returns an error if the account or the amount is invalid.
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
