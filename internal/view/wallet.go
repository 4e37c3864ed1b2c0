package view

import (
	"context"
	"time"

	"assay/internal/admission"
	"assay/internal/money"
	"assay/internal/user"
	"assay/internal/wallet"
)

// WalletTransaction is a posted transaction from the point of view of one user.
type WalletTransaction struct {
	ID        string        `json:"id"`
	Kind      string        `json:"kind"`
	Note      *string       `json:"note"`
	Reverses  *string       `json:"reverses"`
	CreatedAt time.Time     `json:"createdAt"`
	Entries   []WalletEntry `json:"entries"`
	Balance   WalletBalance `json:"balance"`
}

// WalletEntry is one entry of an account. Amounts are in minor units.
type WalletEntry struct {
	UserID         string    `json:"userId"`
	Currency       string    `json:"currency"`
	Seq            int64     `json:"seq"`
	TransactionID  string    `json:"transactionId"`
	Type           string    `json:"type"`
	Amount         int64     `json:"amount"`
	BalanceAfter   int64     `json:"balanceAfter"`
	HeldAfter      int64     `json:"heldAfter"`
	TradeID        *string   `json:"tradeId"`
	ReversesSeq    *int64    `json:"reversesSeq"`
	IdempotencyKey *string   `json:"idempotencyKey"`
	FeeRule        *string   `json:"feeRule"`
	FeeVersion     *int64    `json:"feeVersion"`
	CreatedAt      time.Time `json:"createdAt"`
	PreviousHash   string    `json:"previousHash"`
	Hash           string    `json:"hash"`
	KeyID          string    `json:"keyId"`
}

// WalletBalance is a user's balance in one currency, in minor units.
type WalletBalance struct {
	Currency  string `json:"currency"`
	Balance   int64  `json:"balance"`
	Available int64  `json:"available"`
	Held      int64  `json:"held"`
	Entries   int64  `json:"entries"`
}

// Wallet lists a user's balances.
type Wallet struct {
	UserID   string          `json:"userId"`
	Accounts []WalletBalance `json:"accounts"`
}

// WalletPosted converts a posted transaction for the given user.
func WalletPosted(p *wallet.Posted, user string) WalletTransaction {
	t := p.Transaction
	out := WalletTransaction{
		ID: id(t.ID), Kind: string(t.Kind), Note: text(t.Note), Reverses: idOrNil(t.Reverses), CreatedAt: t.At,
	}
	for i := range p.Heads {
		if p.Heads[i].User == user {
			out.Balance = balanceOf(p.Heads[i])
		}
	}
	for i := range p.Entries {
		out.Entries = append(out.Entries, walletEntry(&p.Entries[i]))
	}
	return out
}

func walletEntry(e *wallet.Entry) WalletEntry {
	out := WalletEntry{
		UserID: e.User, Currency: string(e.Currency), Seq: e.Number, TransactionID: id(e.Transaction), Type: string(e.Type),
		Amount: e.Amount, BalanceAfter: e.Balance, HeldAfter: e.Held, TradeID: idOrNil(e.Trade), IdempotencyKey: text(e.IdempotencyKey),
		FeeRule: text(e.FeeRule), CreatedAt: e.At, PreviousHash: e.Previous.String(), Hash: e.Hash.String(), KeyID: e.KeyID,
	}
	if e.Reverses != 0 {
		out.ReversesSeq = &e.Reverses
	}
	if e.FeeVersion != 0 {
		out.FeeVersion = &e.FeeVersion
	}
	return out
}

func balanceOf(h wallet.Head) WalletBalance {
	return WalletBalance{Currency: string(h.Currency), Balance: h.Balance, Available: h.Available(), Held: h.Held, Entries: h.Number}
}

// Wallet returns a user's balances. A user without an account has a zero balance in the base
// currency. For a house user, Wallet adds up the shards. It returns wallet.ErrTampered if an
// account's head or newest entry does not match the ledger.
func (r *WalletReader) Wallet(ctx context.Context, userID string) (Wallet, error) {
	accounts, err := wallet.ReadWallets(ctx, r.o.Store, userID)
	if err != nil {
		return Wallet{}, err
	}
	if r.o.Ledger != nil {
		if err := r.o.Ledger.CheckAccounts(accounts); err != nil {
			return Wallet{}, err
		}
	}
	out := Wallet{UserID: userID}
	if len(accounts) == 0 {
		_, known, err := user.Key(ctx, r.o.Store, userID)
		if err != nil {
			return Wallet{}, err
		}
		if !known {
			return Wallet{}, wallet.NotFound()
		}
		out.Accounts = []WalletBalance{{Currency: string(r.o.Currency)}}
	}
	for i := range accounts {
		b := balanceOf(accounts[i].Head)
		if last := len(out.Accounts) - 1; last >= 0 && out.Accounts[last].Currency == b.Currency {
			sum := &out.Accounts[last]
			sum.Balance, sum.Available, sum.Entries = sum.Balance+b.Balance, sum.Available+b.Available, sum.Entries+b.Entries
			continue
		}
		out.Accounts = append(out.Accounts, b)
	}
	return out, nil
}

// WalletEntries lists a user's entries in a currency ("": all currencies). Within a currency,
// the newest entry is first.
func (r *WalletReader) WalletEntries(ctx context.Context, userID, currency, after string, limit int) (Page[WalletEntry], error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return Page[WalletEntry]{}, err
	}
	defer leave()
	before, seq := "~", int64(0)
	if err := readCursor(after, "entries", &before, &seq); err != nil {
		return Page[WalletEntry]{}, err
	}
	entries, err := wallet.ReadEntries(ctx, r.o.Store, userID, money.Currency(currency), money.Currency(before), seq, limit+1)
	if err != nil {
		return Page[WalletEntry]{}, err
	}
	if len(entries) == 0 && after == "" && currency == "" {
		if _, err := r.Wallet(ctx, userID); err != nil {
			return Page[WalletEntry]{}, err
		}
	}
	return page(entries, limit, walletEntry, func(e *wallet.Entry) *string { return cursor("entries", string(e.Currency), e.Number) }), nil
}

// WalletAccount is the account of a user in one currency, for operators.
type WalletAccount struct {
	UserID string
	WalletBalance
}

// Accounts lists the accounts of users, sorted by user and currency. It does not compare them with
// their entries.
func (r *WalletReader) Accounts(ctx context.Context, after string, limit int) (Page[WalletAccount], error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return Page[WalletAccount]{}, err
	}
	defer leave()
	var last wallet.Account
	if err := readCursor(after, "accounts", &last.User, &last.Currency); err != nil {
		return Page[WalletAccount]{}, err
	}
	heads, err := wallet.Accounts(ctx, r.o.Store, last, limit+1)
	return page(heads, limit, func(h *wallet.Head) WalletAccount { return WalletAccount{h.User, balanceOf(*h)} },
		func(h *wallet.Head) *string { return cursor("accounts", h.User, string(h.Currency)) }), err
}
