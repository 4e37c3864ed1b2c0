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
	Scope string // of Key: route, role and user
	Key   string // Idempotency-Key; empty: none was given
	Note  string // the reason; may be empty
}

// Posted is a transaction that was posted.
type Posted struct {
	Transaction Transaction
	Entries     []Entry
	Heads       []Head // of all accounts that it touched, after it
}

// Head returns the head of an account that the transaction touched.
func (p *Posted) Head(a Account) Head {
	i := slices.IndexFunc(p.Heads, func(h Head) bool { return h.Account == a })
	return p.Heads[i]
}

// Ledger posts. It keeps nothing in memory but the keys: it may be used
// concurrently, by any number of processes.
type Ledger struct{ Keys *Ring }

// line is an entry to be.
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
	trade      *Trade // as the transaction leaves it; nil: of none
	reverses   int64
	feeRule    string
	feeVersion int64
	lines      []line
	// check runs once the accounts are locked, so that its result holds until the
	// transaction ends. It may be nil.
	check func() error
}

// post writes a transaction: it locks the accounts, makes sure that their heads
// are what was written, works out the entries and seals them.
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

// checkNewest refuses heads of which one is not what the newest entry of its account
// left, or whose newest entry is not what was written.
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
		return examined(nil, "several entries that are the newest of one account", ledgerTampered())
	}
	return nil
}

// checkHead refuses an account whose newest entry was changed or does not match the
// head. newest is nil for an account without entries.
func (s *Sealer) checkHead(h *Head, newest *Entry) error {
	if newest == nil || h.Number == 0 {
		return accountIntact(newest == nil && h.Number == 0, nil, h.Account)
	}
	intact, err := s.EntryIntact(newest)
	same := newest.Account == h.Account && newest.Number == h.Number && newest.Hash == h.Hash && newest.Balance == h.Balance && newest.Held == h.Held
	return accountIntact(intact && same, err, h.Account)
}

// State is an account with its newest entry; nil: it has none.
type State struct {
	Head   Head
	Newest *Entry
}

// CheckAccounts refuses accounts of which a head is not what was written, or not what
// its newest entry left.
func (r *Ring) CheckAccounts(accounts []State) error {
	s := r.Sealer()
	for i := range accounts {
		h := &accounts[i].Head
		intact, err := s.HeadIntact(h)
		if err := accountIntact(intact, err, h.Account); err != nil {
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

// balanced refuses what is no transaction. Amounts that a user chose were checked
// before: an error here is ours.
func (p *draft) balanced() error {
	sums := map[string]int64{}
	for _, l := range p.lines {
		if l.amount > MaxAmount || l.amount < -MaxAmount || l.kind.Held() && IsHouse(l.User) {
			return fmt.Errorf("entry %s of %d for %.100q cannot be", l.kind, l.amount, l.User)
		}
		sums[string(l.Currency)] += l.amount
	}
	for currency, sum := range sums {
		if sum != 0 {
			return fmt.Errorf("a %s does not add up: %d %s remain", p.kind, sum, currency)
		}
	}
	if len(p.lines) < 2 {
		return fmt.Errorf("a %s of %d entries", p.kind, len(p.lines))
	}
	return nil
}

// accounts returns the accounts of a posting, each once, in the order in which
// they are locked.
func (p *draft) accounts() []Account {
	var out []Account
	for _, l := range p.lines {
		out = append(out, l.Account)
	}
	slices.SortFunc(out, Compare)
	return slices.Compact(out)
}

// lockHeads returns the heads of all accounts, making those that are new, and the
// id for a transaction.
func lockHeads(tx *db.Tx, s *Sealer, accounts []Account) (heads []Head, id int64, err error) {
	if heads, id, err = lockWallets(tx, accounts); err != nil {
		return nil, 0, err
	}
	if len(heads) > len(accounts) {
		return nil, 0, examined(nil, "several rows of one account", ledgerTampered())
	}
	if len(heads) < len(accounts) {
		if heads, id, err = addHeads(tx, s, accounts, heads); err != nil {
			return nil, 0, err
		}
	}
	for i := range heads {
		h := &heads[i]
		ok, err := s.HeadIntact(h)
		if err := accountIntact(ok, err, h.Account); err != nil {
			return nil, 0, err
		}
	}
	return heads, id, nil
}

// addHeads adds the accounts that are new, and returns what lockHeads does.
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
			return nil, 0, tampered(a) // it has entries, and no row
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

// tampered returns the error for an account that was changed: its name for the log,
// a fault for callers.
func tampered(a Account) error { return accountIntact(false, nil, a) }

// NotWritten returns the error for a database that did not store a row: its name for
// the log, a fault for callers.
func NotWritten(what string) error {
	return examined(nil, what+" was not written", fault.New(fault.Damaged, "ledger_tampered",
		"The database did not store what the ledger wrote, so nothing was done. Verify the ledger, and remove triggers and rules that were added to its tables."))
}

func ledgerTampered() *fault.Error {
	return fault.New(fault.Damaged, "ledger_tampered",
		"A wallet account was changed outside the ledger, so it is locked. Verify the ledger, and restore it from a backup.")
}

// accountIntact makes an error of what was found of a seal of an account; nil:
// there is nothing wrong.
func accountIntact(intact bool, err error, a Account) error {
	if intact && err == nil {
		return nil
	}
	return examined(err, fmt.Sprintf("account %.130q %s", a.User, a.Currency), ledgerTampered())
}

// apply works out the entry of a line, and moves the head of its account on.
func (l line) apply(h *Head) (Entry, error) {
	e := Entry{Account: l.Account, Number: h.Number + 1, Type: l.kind, Amount: l.amount, Reverses: l.reverses, Previous: h.Hash}
	e.Balance, e.Held = h.Balance+l.amount, h.Held // neither is near the end of an int64
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
		return fmt.Errorf("house account %q %s would have %d", l.User, l.Currency, h.Balance+l.amount)
	}
	return fault.New(fault.Conflict, "insufficient_funds", "Insufficient funds: %d %s available (minor units).", h.Available(), l.Currency)
}

// Allowed reports whether an account may stand as it would: of a user nothing goes
// below zero; the house holds nothing, and has an account below zero only where
// what came in from outside, or a correction, is written against it.
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
