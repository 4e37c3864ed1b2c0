package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"

	"assay/internal/view"
)

// walletCmd contains the commands for users' money.
type walletCmd struct {
	Balance walletBalanceCmd `cmd:"" help:"Show a user's balance in each currency: available and held."`
	Entries walletEntriesCmd `cmd:"" help:"List the ledger entries of a user, newest first."`
	Post    walletPostCmd    `cmd:"" help:"Post a deposit, withdrawal or correction."`
}

// walletBalanceCmd shows a balance.
type walletBalanceCmd struct {
	User string `arg:"" complete:"user" help:"The platform's id of the user."`
}

func (*walletBalanceCmd) examples() []example {
	return []example{{"wallet balance u1", "show the balance of u1"}}
}

func (c *walletBalanceCmd) Run(ctx context.Context, s *session) error {
	return show(ctx, s, walletRequest(c.User, "/balance"), func(w io.Writer, has *view.Wallet) {
		if len(has.Accounts) == 0 {
			_, _ = fmt.Fprintf(w, "%s has no accounts\n", printable(has.UserID))
			return
		}
		rows := [][]string{{"CURRENCY", "AVAILABLE", "HELD", "BALANCE", "ENTRIES"}}
		for _, a := range has.Accounts {
			rows = append(rows, []string{printable(a.Currency), units(a.Available, a.Currency), units(a.Held, a.Currency), units(a.Balance, a.Currency), count(a.Entries)})
		}
		table(w, rows)
	})
}

// walletEntriesCmd lists entries.
type walletEntriesCmd struct {
	User     string `arg:"" complete:"user" help:"The platform's id of the user."`
	Currency string `placeholder:"CODE" help:"Only this currency, such as USD."`
	listFlags
}

func (*walletEntriesCmd) examples() []example {
	return []example{
		{"wallet entries u1", "list the 20 newest entries of u1"},
		{"wallet entries u1 --currency EUR --limit 1000 --json", "print up to 1000 entries in euros as JSON"},
	}
}

func (c *walletEntriesCmd) Run(ctx context.Context, s *session) error {
	r := walletRequest(c.User, "/entries")
	r.query = filter("currency", c.Currency)
	header := []string{"CURRENCY", "NO.", "TYPE", "AMOUNT", "BALANCE", "HELD", "TRADE", "TRANSACTION", "CREATED"}
	return showList(ctx, s, c.listFlags, r, header, func(e *view.WalletEntry) []string {
		return []string{
			printable(e.Currency), fmt.Sprint(e.Seq), e.Type, units(e.Amount, e.Currency), units(e.BalanceAfter, e.Currency), units(e.HeldAfter, e.Currency),
			orDash(e.TradeID), e.TransactionID, moment(&e.CreatedAt),
		}
	})
}

// walletPostCmd posts a transaction to a wallet.
type walletPostCmd struct {
	User           string `arg:"" complete:"user" help:"The platform's id of the user."`
	Kind           string `arg:"" enum:"deposit,withdrawal,correction" help:"deposit, withdrawal or correction."`
	Amount         int64  `arg:"" optional:"" help:"Amount in minor units (cents). Only a correction may be negative: write -- before it."`
	Currency       string `arg:"" optional:"" help:"Currency, such as USD."`
	Reverses       string `placeholder:"ID" help:"Reverse this transaction; replaces AMOUNT and CURRENCY."`
	Note           string `help:"Reason. Required for a correction of an amount."`
	IdempotencyKey string `placeholder:"KEY" help:"A unique value per posting; reuse it when you retry. Default: a new value, which is printed."`
}

func (*walletPostCmd) examples() []example {
	return []example{
		{"wallet post u1 deposit 5000 USD --idempotency-key pay-991", "deposit 50.00 dollars once, even if you repeat the command"},
		{"wallet post u1 correction --reverses 81 --note refund", "reverse transaction 81"},
	}
}

func (c *walletPostCmd) Run(ctx context.Context, s *session) error {
	body := map[string]any{"kind": c.Kind}
	for name, text := range map[string]string{"currency": c.Currency, "reverses": c.Reverses, "note": c.Note} {
		if text != "" {
			body[name] = text
		}
	}
	if c.Amount != 0 {
		body["amount"] = c.Amount
	}
	key := c.IdempotencyKey
	if key == "" {
		key = rand.Text()
		s.printf("idempotency key %s; to retry, add --idempotency-key %s", key, key)
	}
	r := walletRequest(c.User, "/entries")
	r.method, r.body, r.idempotencyKey = http.MethodPost, body, key
	return show(ctx, s, r, func(w io.Writer, posted *view.WalletTransaction) {
		_, _ = fmt.Fprintf(w, "transaction %s posted; %s has %s available, %s held\n", posted.ID, printable(c.User),
			minor(posted.Balance.Available, posted.Balance.Currency), minor(posted.Balance.Held, posted.Balance.Currency))
	})
}
