package api

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"assay/internal/admission"
	"assay/internal/db"
	"assay/internal/idempotency"
	"assay/internal/money"
	"assay/internal/strictjson"
	"assay/internal/view"
	"assay/internal/wallet"
)

// walletHandlers serve the wallet ledger.
type walletHandlers struct {
	*Deps
	once *once
}

// entryBody describes the body of a posting to a wallet. decodeEntry decodes it.
type entryBody struct {
	Kind     string  `json:"kind"`
	Currency string  `json:"currency,omitempty"`
	Amount   int64   `json:"amount,omitempty"`
	Reverses *string `json:"reverses,omitempty"`
	Note     *string `json:"note,omitempty"`
}

func (h walletHandlers) postEntries(c *call) (any, error) {
	posting, err := decodeEntry(c.Body)
	if err != nil {
		return nil, err
	}
	posting.User = c.values["userId"]
	posting.Scope, posting.Key = walletScope(c.Method, c.route, c.role, posting.User), c.onceKey
	return h.once.do(c, posting.User, func(seal seal) error {
		return h.Ledger.Post(c.Context(), posting, func(tx *db.Tx, posted *wallet.Posted) error {
			return seal(tx, http.StatusCreated, "", view.WalletPosted(posted, posting.User))
		})
	})
}

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
		in.FaultAt("/reverses", "is allowed in a correction only")
	case reverses && (amount || currency):
		in.FaultAt("/reverses", "must not be combined with currency or amount")
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

// checkAmount reports an amount that is not allowed for the kind of the posting.
func checkAmount(in *strictjson.Reader, o wallet.Posting) {
	switch {
	case o.Amount == 0:
		in.FaultAt("/amount", "must not be 0")
	case o.Amount < 0 && (o.Kind == wallet.KindDeposit || o.Kind == wallet.KindWithdrawal):
		in.FaultAt("/amount", "must not be negative in a %s", o.Kind)
	}
}

func readCurrency(in *strictjson.Reader) money.Currency {
	text, ok := in.Text(1, 16)
	if !ok {
		return ""
	}
	c, err := money.ParseCurrency(text)
	if err != nil || !c.Circulates() {
		in.Fault("must be the ISO 4217 code of a currency in circulation, such as USD")
	}
	return c
}

// readID reads an id that this server assigned. It is a string that contains a positive
// whole number.
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
	return h.Readers.Wallets.WalletEntries(c.Context(), c.values["userId"], c.values["currency"], c.values["cursor"], c.limit())
}

func (h walletHandlers) walletBalance(c *call) (any, error) {
	return h.Readers.Wallets.Wallet(c.Context(), c.values["userId"])
}

// checkCurrency checks the value of a parameter.
func checkCurrency(value string) error {
	_, err := money.ParseCurrency(value)
	return err
}

// verifyWallet needs an admission slot, because a verification reads a whole chain.
func (h walletHandlers) verifyWallet(c *call) (any, error) {
	leave, err := h.Gate.Enter(c.Context(), admission.Verification)
	if err != nil {
		return nil, err
	}
	defer leave()
	return h.Ledger.Verify(c.Context(), c.values["userId"], c.values["checkpoint"])
}

// checkCheckpoint checks the length of a parameter. The ledger checks its content.
func checkCheckpoint(value string) error {
	if len(value) > wallet.MaxUserCheckpoint {
		return fmt.Errorf("must have at most %d characters", wallet.MaxUserCheckpoint)
	}
	return nil
}

// walletScope returns the scope in which an Idempotency-Key of a request that moves money
// must be unique.
func walletScope(method, route, role, user string) string {
	return idempotency.Key{Route: method + " " + route, Role: role, User: user}.Scope()
}

// WalletScopes returns the idempotency scopes of all requests that move money of a user.
func WalletScopes(user string) []string {
	const entries, purchase = "/api/functions/admin/wallet-ledger/{userId}/entries", "/api/listings/{id}/purchase"
	return []string{
		walletScope(http.MethodPost, entries, Admin, user),
		walletScope(http.MethodPost, purchase, Admin, user),
		walletScope(http.MethodPost, purchase, Platform, user),
	}
}
