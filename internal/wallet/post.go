package wallet

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
)

// Request identifies the request for a posting.
type Request struct {
	Scope string // scope of Key: route, role and user
	Key   string // Idempotency-Key; empty: none
	Note  string // reason; may be empty
}

// Posted is a transaction after its posting.
type Posted struct {
	Transaction Transaction
	Entries     []Entry
	Heads       []Head // heads of the transaction's accounts, after the posting
}

// Head returns the head of one of the transaction's accounts. It panics for any other
// account.
func (p *Posted) Head(a Account) Head {
	i := slices.IndexFunc(p.Heads, func(h Head) bool { return h.Account == a })
	return p.Heads[i]
}

// Ledger posts transactions. Its only state is the keys, so it is safe for concurrent use
// by any number of goroutines and processes.
type Ledger struct{ Keys *Ring }

// line is the input for an entry.
type line struct {
	Account
	kind     Type
	amount   int64
	reverses int64
}

// draft is a transaction before it is written.
type draft struct {
	Request
	kind       Kind
	trade      *Trade // state after the transaction; nil: none
	reverses   int64
	feeRule    string
	feeVersion int64
	lines      []line
	// check runs after the accounts are locked, so its result stays valid until the
	// transaction ends. It may be nil.
	check func() error
}

// post writes a transaction. It locks the accounts, verifies their heads, computes and
// seals the entries, and writes the entries and the new heads.
func (l *Ledger) post(tx *db.Tx, p draft) (*Posted, error) {
	if err := p.balanced(); err != nil {
		return nil, err
	}
	s := l.Keys.Sealer()
	heads, id, err := lockHeads(tx, s, p.accounts())
	if err != nil {
		return nil, err
	}
	if p.check != nil {
		if err := p.check(); err != nil {
			return nil, err
		}
	}
	before := slices.Clone(heads)
	out := &Posted{Heads: heads, Transaction: Transaction{
		ID: id, Kind: p.kind, Reverses: p.reverses, Scope: p.Scope, IdempotencyKey: p.Key, Note: p.Note,
		Entries: int64(len(p.lines)), At: tx.Now().UTC().Truncate(time.Microsecond),
	}}
	if p.trade != nil {
		out.Transaction.Trade, out.Transaction.Terms = p.trade.ID, p.trade.Terms()
	}
	s.SealTransaction(&out.Transaction)
	for _, line := range p.lines {
		i := slices.IndexFunc(heads, func(h Head) bool { return h.Account == line.Account })
		e, err := line.apply(&heads[i])
		if err != nil {
			return nil, err
		}
		e.Transaction, e.Trade, e.IdempotencyKey, e.At = id, out.Transaction.Trade, p.Key, out.Transaction.At
		e.Posting = out.Transaction.Hash
		e.FeeRule, e.FeeVersion = p.feeRule, p.feeVersion
		s.SealEntry(&e)
		heads[i].Hash = e.Hash
		out.Entries = append(out.Entries, e)
	}
	for i := range heads {
		s.SealHead(&heads[i])
	}
	newest, err := writePosting(tx, out.Transaction, out.Entries, heads)
	if errors.Is(err, ErrPosted) {
		err = fault.New(fault.Conflict, "already_posted", "The trade already has its %s.", p.kind)
	}
	if err != nil {
		return nil, err
	}
	return out, s.checkNewest(before, newest)
}

// checkNewest returns an error if a head does not match the newest entry of its account, or
// if that entry does not match its seal.
func (s *Sealer) checkNewest(heads []Head, newest []Entry) error {
	used := 0
	for i := range heads {
		h := &heads[i]
		if h.Number == 0 {
			continue
		}
		used++
		at := slices.IndexFunc(newest, func(e Entry) bool { return e.Account == h.Account })
		if at < 0 {
			return tampered(h.Account)
		}
		if err := s.checkHead(h, &newest[at]); err != nil {
			return err
		}
	}
	if used != len(newest) {
		return sealError(nil, "an account has several newest entries", ledgerTampered())
	}
	return nil
}

// checkHead returns an error if the newest entry of an account was changed or does not
// match the head. newest is nil for an account without entries.
func (s *Sealer) checkHead(h *Head, newest *Entry) error {
	if newest == nil || h.Number == 0 {
		return accountError(newest == nil && h.Number == 0, nil, h.Account)
	}
	intact, err := s.EntryIntact(newest)
	same := newest.Account == h.Account && newest.Number == h.Number && newest.Hash == h.Hash && newest.Balance == h.Balance && newest.Held == h.Held
	return accountError(intact && same, err, h.Account)
}

// State is the head of an account with its newest entry.
type State struct {
	Head   Head
	Newest *Entry // nil: the account has no entries
}

// CheckAccounts returns an error if a head does not match its seal or the newest entry of
// its account.
func (r *Ring) CheckAccounts(accounts []State) error {
	s := r.Sealer()
	for i := range accounts {
		h := &accounts[i].Head
		intact, err := s.HeadIntact(h)
		if err := accountError(intact, err, h.Account); err != nil {
			return err
		}
		if i > 0 && accounts[i-1].Head.Account == h.Account {
			return tampered(h.Account)
		}
		if err := s.checkHead(h, accounts[i].Newest); err != nil {
			return err
		}
	}
	return nil
}

// balanced returns an error if a draft is not a valid transaction. Callers validate the
// amounts that clients send, so an error here is a bug in this package.
func (p *draft) balanced() error {
	sums := map[string]int64{}
	for _, l := range p.lines {
		if l.amount > MaxAmount || l.amount < -MaxAmount || l.kind.Held() && IsHouse(l.User) {
			return fmt.Errorf("invalid entry: %s of %d for %.100q", l.kind, l.amount, l.User)
		}
		sums[string(l.Currency)] += l.amount
	}
	for currency, sum := range sums {
		if sum != 0 {
			return fmt.Errorf("unbalanced %s: the entries add up to %d %s, want 0", p.kind, sum, currency)
		}
	}
	if len(p.lines) < 2 {
		return fmt.Errorf("%s has %d entries, want at least 2", p.kind, len(p.lines))
	}
	return nil
}

// accounts returns the distinct accounts of a draft in locking order.
func (p *draft) accounts() []Account {
	var out []Account
	for _, l := range p.lines {
		out = append(out, l.Account)
	}
	slices.SortFunc(out, Compare)
	return slices.Compact(out)
}

// lockHeads locks the accounts and returns their verified heads and a new transaction id.
// It creates missing accounts.
func lockHeads(tx *db.Tx, s *Sealer, accounts []Account) (heads []Head, id int64, err error) {
	if heads, id, err = lockWallets(tx, accounts); err != nil {
		return nil, 0, err
	}
	if len(heads) > len(accounts) {
		return nil, 0, sealError(nil, "an account has several rows", ledgerTampered())
	}
	if len(heads) < len(accounts) {
		if heads, id, err = addHeads(tx, s, accounts, heads); err != nil {
			return nil, 0, err
		}
	}
	for i := range heads {
		h := &heads[i]
		ok, err := s.HeadIntact(h)
		if err := accountError(ok, err, h.Account); err != nil {
			return nil, 0, err
		}
	}
	return heads, id, nil
}

// addHeads creates the missing accounts, locks all accounts, and returns their heads and a
// new transaction id.
func addHeads(tx *db.Tx, s *Sealer, accounts []Account, have []Head) (heads []Head, id int64, err error) {
	var missing []Head
	for _, a := range accounts {
		if slices.ContainsFunc(have, func(h Head) bool { return h.Account == a }) {
			continue
		}
		if err := checkCount(tx, a); err != nil {
			return nil, 0, err
		}
		h := Head{Account: a}
		s.SealHead(&h)
		missing = append(missing, h)
	}
	if err := addWallets(tx, missing); err != nil {
		return nil, 0, err
	}
	if heads, id, err = lockWallets(tx, accounts); err != nil {
		return nil, 0, err
	}
	for _, a := range accounts {
		if !slices.ContainsFunc(heads, func(h Head) bool { return h.Account == a }) {
			return nil, 0, tampered(a) // the account has entries but no row
		}
	}
	return heads, id, nil
}

func checkCount(tx *db.Tx, a Account) error {
	if IsHouse(a.User) {
		return nil
	}
	n, err := walletCount(tx, a.User)
	if err == nil && n >= MaxCurrencies {
		err = fault.New(fault.Unprocessable, "too_many_currencies", "The user already has wallets in %d currencies, which is the maximum.", n)
	}
	return err
}

// tampered returns the error for an account that was changed outside the ledger. The error
// names the account for the log and wraps a fault for API clients.
func tampered(a Account) error { return accountError(false, nil, a) }

// NotWritten returns the error for a row that the database did not store. The error names
// the row for the log and wraps a fault for API clients.
func NotWritten(what string) error {
	return sealError(nil, what+" was not written", fault.New(fault.Damaged, "ledger_tampered",
		"The database did not store what the ledger wrote, so nothing was done. Verify the ledger, and remove triggers and rules that were added to its tables."))
}

func ledgerTampered() *fault.Error {
	return fault.New(fault.Damaged, "ledger_tampered",
		"A wallet account was changed outside the ledger, so it is locked. Verify the ledger, and restore it from a backup.")
}

// accountError returns an error if an account is not intact or its check failed with err.
// Otherwise it returns nil.
func accountError(intact bool, err error, a Account) error {
	if intact && err == nil {
		return nil
	}
	return sealError(err, fmt.Sprintf("account %.130q %s", a.User, a.Currency), ledgerTampered())
}

// apply returns the entry for a line and updates the head of its account.
func (l line) apply(h *Head) (Entry, error) {
	e := Entry{Account: l.Account, Number: h.Number + 1, Type: l.kind, Amount: l.amount, Reverses: l.reverses, Previous: h.Hash}
	e.Balance, e.Held = h.Balance+l.amount, h.Held // cannot overflow: both are far below 1<<63
	if l.kind.Held() {
		e.Held += l.amount
	}
	if e.Balance > MaxBalance || e.Balance < -MaxBalance {
		return e, fault.New(fault.Unprocessable, "amount_overflow", "The balance would exceed %d minor units.", int64(MaxBalance))
	}
	if !Allowed(l.User, e.Balance, e.Held) {
		return e, insufficient(l, h)
	}
	h.Number, h.Balance, h.Held = e.Number, e.Balance, e.Held
	return e, nil
}

func insufficient(l line, h *Head) error {
	if IsHouse(l.User) {
		return fmt.Errorf("invalid balance %d for house account %q %s", h.Balance+l.amount, l.User, l.Currency)
	}
	return fault.New(fault.Conflict, "insufficient_funds", "Insufficient funds: %d %s available (minor units).", h.Available(), l.Currency)
}

// Allowed reports whether an account may have a balance and held amount. For a user,
// balance, held and available money are never negative. A house account never holds money.
// Only the house accounts for deposits, corrections and rounding may be negative.
func Allowed(user string, balance, held int64) bool {
	if !IsHouse(user) {
		return held >= 0 && balance >= held
	}
	switch name := HouseName(user); {
	case held != 0:
		return false
	case name == HouseFee || name == HouseWithdrawal:
		return balance >= 0
	case name == HouseDeposit:
		return balance <= 0
	default:
		return true
	}
}
