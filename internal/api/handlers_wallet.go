package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"assay/internal/idempotency"
	"assay/internal/money"
	"assay/internal/strictjson"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
)

// Wallets reads the ledger, posts to it and verifies it.
type Wallets interface {
	// Wallet returns the balances of a user.
	Wallet(ctx context.Context, userID string) (view.Wallet, error)
	// WalletEntries lists a user's entries; an empty currency means all.
	WalletEntries(ctx context.Context, userID, currency, cursor string, limit int) (view.Page[view.WalletEntry], error)
	// Post carries out an order. sealed is called last in its transaction, with
	// what was posted.
	Post(ctx context.Context, o wallet.Posting, sealed func(idempotency.ResponseStore, view.WalletTransaction) error) error
	// Verify verifies the wallet of a user, and compares it with a checkpoint, or the
	// newest stored one where that is empty.
	Verify(ctx context.Context, userID, checkpoint string) (*audit.Report, error)
}

// walletHandlers serve the ledger.
type walletHandlers struct {
	*Deps
	once *once
}

// entryBody describes what is posted to a wallet; decodeEntry reads it.
type entryBody struct {
	Kind     string  `json:"kind"`
	Currency string  `json:"currency,omitempty"`
	Amount   int64   `json:"amount,omitempty"`
	Reverses *string `json:"reverses,omitempty"`
	Note     *string `json:"note,omitempty"`
}

func (h walletHandlers) postEntries(c *call) (any, error) {
	order, err := decodeEntry(c.Body)
	if err != nil {
		return nil, err
	}
	order.User = c.values["userId"]
	order.Scope, order.Key = walletScope(c.Method, c.route, c.role, order.User), c.onceKey
	return h.once.do(c, order.User, func(seal seal) error {
		return h.Wallets.Post(c.Context(), order, func(tx idempotency.ResponseStore, posted view.WalletTransaction) error {
			return seal(tx, http.StatusCreated, "", posted)
		})
	})
}

// decodeEntry reads what is to be posted.
func decodeEntry(body io.Reader) (wallet.Posting, error) {
	in := strictjson.NewReader(body)
	var o wallet.Posting
	var kind, amount, currency, reverses, note, valued bool
	in.Object([]string{"kind", "currency", "amount", "reverses", "note"}, func(member string) bool {
		switch member {
		case "kind":
			kind = true
			text, ok := in.Text(1, 32)
			o.Kind = wallet.Kind(text)
			if ok && o.Kind != wallet.KindDeposit && o.Kind != wallet.KindWithdrawal && o.Kind != wallet.KindCorrection {
				in.Fault("must be deposit, withdrawal or correction")
			}
		case "currency":
			currency = true
			o.Currency = readCurrency(in)
		case "amount":
			amount = true
			o.Amount, valued = in.Int(-wallet.MaxAmount, wallet.MaxAmount)
		case "reverses":
			if !in.Null() {
				reverses = true
				o.Reverses = readID(in, "transaction")
			}
		case "note":
			if in.Null() {
				break
			}
			note = true
			o.Note, _ = in.Text(1, wallet.MaxNote)
			switch {
			case strings.ContainsFunc(o.Note, unicode.IsControl):
				in.Fault("must not contain control characters")
			case o.Note != "" && strings.TrimSpace(o.Note) == "":
				in.Fault("must not be blank")
			}
		default:
			return false
		}
		return true
	})
	in.Require("", "kind", kind)
	switch {
	case reverses && o.Kind != wallet.KindCorrection:
		in.FaultAt("/reverses", "is for a correction only")
	case reverses && (amount || currency):
		in.FaultAt("/reverses", "takes the place of currency and amount")
	case !reverses:
		in.Require("", "currency", currency)
		in.Require("", "amount", amount)
		if !note && o.Kind == wallet.KindCorrection {
			in.CodeAt("/note", strictjson.Required, "is required for a correction: state the reason")
		}
		if valued {
			checkAmount(in, o)
		}
	}
	return o, in.Finish()
}

// checkAmount refuses amounts that a posting of its kind cannot have.
func checkAmount(in *strictjson.Reader, o wallet.Posting) {
	switch {
	case o.Amount == 0:
		in.FaultAt("/amount", "must not be 0")
	case o.Amount < 0 && (o.Kind == wallet.KindDeposit || o.Kind == wallet.KindWithdrawal):
		in.FaultAt("/amount", "must not be negative: the kind %s is its direction", o.Kind)
	}
}

func readCurrency(in *strictjson.Reader) money.Currency {
	text, ok := in.Text(1, 16)
	if !ok {
		return ""
	}
	c, err := money.ParseCurrency(text)
	if err != nil || !c.Circulates() {
		in.Fault("must be a code of ISO 4217 that circulates, such as USD")
	}
	return c
}

// readID reads an id of ours: a whole number as a string.
func readID(in *strictjson.Reader, what string) int64 {
	text, ok := in.Text(1, 20)
	if !ok {
		return 0
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != text {
		in.Fault("must be the id of a %s", what)
	}
	return id
}

func (h walletHandlers) walletEntries(c *call) (any, error) {
	return h.Wallets.WalletEntries(c.Context(), c.values["userId"], c.values["currency"], c.values["cursor"], c.limit())
}

func (h walletHandlers) walletBalance(c *call) (any, error) {
	return h.Wallets.Wallet(c.Context(), c.values["userId"])
}

// checkCurrency is for a parameter.
func checkCurrency(value string) error {
	_, err := money.ParseCurrency(value)
	return err
}

func (h walletHandlers) verifyWallet(c *call) (any, error) {
	return h.Wallets.Verify(c.Context(), c.values["userId"], c.values["checkpoint"])
}

// checkCheckpoint is for a parameter; what is in it, the ledger checks.
func checkCheckpoint(value string) error {
	if len(value) > wallet.MaxUserCheckpoint {
		return fmt.Errorf("must have at most %d characters", wallet.MaxUserCheckpoint)
	}
	return nil
}

// walletScope is what an Idempotency-Key counts in where a request moves money.
func walletScope(method, route, role, user string) string {
	return idempotency.Key{Route: method + " " + route, Role: role, User: user}.Scope()
}

// WalletScopes are those under which requests move money of a user.
func WalletScopes(user string) []string {
	const entries, purchase = "/api/functions/admin/wallet-ledger/{userId}/entries", "/api/listings/{id}/purchase"
	return []string{
		walletScope(http.MethodPost, entries, Admin, user),
		walletScope(http.MethodPost, purchase, Admin, user),
		walletScope(http.MethodPost, purchase, Platform, user),
	}
}
