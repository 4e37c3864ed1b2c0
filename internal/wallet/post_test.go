package wallet_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/fault"
	"assay/internal/idempotency"
	"assay/internal/money"
	"assay/internal/randtest"
	"assay/internal/wallet"
	"assay/internal/wallet/wallettest"
)

func TestReverseTransaction_PostsTheOppositeOnce(t *testing.T) {
	b := newBank(t)
	given := b.deposit("u", 500)
	takeBack := func(user string, id int64) error {
		_, err := b.do(func(tx *db.Tx) (*wallet.Posted, error) { return b.ReverseTransaction(tx, user, id, wallet.Request{}) })
		return err
	}
	wantFault(t, takeBack("other", given.Transaction.ID), "transaction_not_found")
	wantFault(t, takeBack("u", 99), "transaction_not_found")
	b.must(takeBack("u", given.Transaction.ID))
	b.wantBalances(map[string]string{"u": "0/0"})
	wantFault(t, takeBack("u", given.Transaction.ID), "already_reversed")
	wantFault(t, takeBack("u", given.Transaction.ID+1), "not_reversible")
	given = b.deposit("u", 500)
	_, err := b.do(func(tx *db.Tx) (*wallet.Posted, error) { return b.Withdraw(tx, usd("u"), 1, wallet.Request{}) })
	b.must(err)
	wantFault(t, takeBack("u", given.Transaction.ID), "insufficient_funds")
	b.audit()
}

func TestPost_RejectsInvalidPostings(t *testing.T) {
	b := newBank(t)
	b.deposit("u", 1)
	for name, c := range map[string]struct {
		code string
		post func(tx *db.Tx) (*wallet.Posted, error)
	}{
		"zero":       {"amount_out_of_range", func(tx *db.Tx) (*wallet.Posted, error) { return b.Deposit(tx, usd("u"), 0, wallet.Request{}) }},
		"negative":   {"amount_out_of_range", func(tx *db.Tx) (*wallet.Posted, error) { return b.Withdraw(tx, usd("u"), -1, wallet.Request{}) }},
		"smallest":   {"amount_out_of_range", func(tx *db.Tx) (*wallet.Posted, error) { return b.Correct(tx, usd("u"), -1<<63, wallet.Request{}) }},
		"too much":   {"amount_out_of_range", func(tx *db.Tx) (*wallet.Posted, error) { return b.Deposit(tx, usd("u"), 1<<63-1, wallet.Request{}) }},
		"overdraft":  {"insufficient_funds", func(tx *db.Tx) (*wallet.Posted, error) { return b.Withdraw(tx, usd("u"), 2, wallet.Request{}) }},
		"correction": {"insufficient_funds", func(tx *db.Tx) (*wallet.Posted, error) { return b.Correct(tx, usd("u"), -2, wallet.Request{}) }},
		"no wallet":  {"insufficient_funds", func(tx *db.Tx) (*wallet.Posted, error) { return b.Withdraw(tx, usd("new"), 1, wallet.Request{}) }},
		"house": {"reserved_user", func(tx *db.Tx) (*wallet.Posted, error) {
			return b.Deposit(tx, usd("house:fee:00"), 1, wallet.Request{})
		}},
		"no user": {"invalid_user_id", func(tx *db.Tx) (*wallet.Posted, error) { return b.Deposit(tx, usd(""), 1, wallet.Request{}) }},
		"other currency": {"unknown_currency", func(tx *db.Tx) (*wallet.Posted, error) {
			return b.Deposit(tx, wallet.Account{User: "u", Currency: "XXX"}, 1, wallet.Request{})
		}},
	} {
		_, err := b.do(c.post)
		if f := fault.Of(err); f == nil || f.Code != c.code {
			t.Errorf("%s: got error %v, want %s", name, err, c.code)
		}
	}
	b.wantBalances(map[string]string{"u": "1/0", "new": "0/0"})
	b.audit()
}

func TestPost_RejectsBalancesAboveTheMaximum(t *testing.T) {
	b := newBank(t)
	for range wallet.MaxBalance / wallet.MaxAmount {
		b.deposit("u", wallet.MaxAmount)
	}
	_, err := b.do(func(tx *db.Tx) (*wallet.Posted, error) {
		return b.Deposit(tx, usd("u"), wallet.MaxAmount, wallet.Request{})
	})
	wantFault(t, err, "amount_overflow")
	b.audit()
}

func TestPost_RejectsTooManyCurrencies(t *testing.T) {
	b := newBank(t)
	for i, c := range strings.Fields("AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF") {
		_, err := b.do(func(tx *db.Tx) (*wallet.Posted, error) {
			return b.Deposit(tx, wallet.Account{User: "u", Currency: money.Currency(c)}, 1, wallet.Request{})
		})
		if i < wallet.MaxCurrencies {
			b.must(err)
		} else {
			wantFault(t, err, "too_many_currencies")
		}
	}
}

func TestPost_RejectsTamperedAccounts(t *testing.T) {
	for name, edits := range map[string][]string{
		"balance":     {`UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'u'`},
		"held":        {`UPDATE wallet_account SET held = 1 WHERE user_id = 'u'`},
		"last number": {`UPDATE wallet_account SET last_number = 3 WHERE user_id = 'u'`},
		"head hash":   {`UPDATE wallet_account SET head_hash = previous_hash FROM wallet_entry e WHERE e.user_id = 'u' AND number = 1 AND wallet_account.user_id = 'u'`},
		"mac":         {`UPDATE wallet_account SET mac = head_hash WHERE user_id = 'u'`},
		"version":     {`UPDATE wallet_account SET version = 2 WHERE user_id = 'u'`},
		"moved":       {`UPDATE wallet_account SET user_id = 'gone' WHERE user_id = 'u'`},

		"newest entry's amount":      {`UPDATE wallet_entry SET amount = 6 WHERE user_id = 'u' AND number = 2`},
		"newest entry's transaction": {`UPDATE wallet_entry SET transaction_id = 1 WHERE user_id = 'u' AND number = 2`},
		"newest entry's hash":        {`UPDATE wallet_entry SET hash = previous_hash WHERE user_id = 'u' AND number = 2`},
		"newest entry deleted":       {`DELETE FROM wallet_entry WHERE user_id = 'u' AND number = 2`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t)
			b.deposit("u", 5)
			b.deposit("u", 5)
			raw := b.raw()
			if b.at.Engine == dbtest.PostgreSQL {
				edits = append([]string{`ALTER TABLE wallet_entry DISABLE TRIGGER ALL`}, edits...)
			} else {
				edits = append([]string{`DROP TRIGGER wallet_entry_update`, `DROP TRIGGER wallet_entry_delete`}, edits...)
			}
			for _, edit := range edits {
				_, err := raw.ExecContext(t.Context(), edit)
				b.must(err)
			}
			_, err := b.do(func(tx *db.Tx) (*wallet.Posted, error) { return b.Deposit(tx, usd("u"), 1, wallet.Request{}) })
			if !errors.Is(err, wallet.ErrTampered) {
				t.Errorf("got error %v, want ErrTampered", err)
			}
			wantFault(t, err, "ledger_tampered")
			var posted int
			b.must(raw.QueryRowContext(t.Context(), `SELECT count(*) FROM wallet_transaction`).Scan(&posted))
			if posted != 2 {
				t.Errorf("got %d transactions, want 2", posted)
			}
			b.deposit("other", 1)
		})
	}
}

func TestPost_SealsWithTheFirstKeyAndAcceptsOlderKeys(t *testing.T) {
	b := newBank(t)
	b.deposit("u", 5)
	b.Ledger = &wallet.Ledger{Keys: wallettest.NewRing(t, "k2", "k1")}
	if p := b.deposit("u", 5); p.Entries[0].KeyID != "k2" || p.Head(usd("u")).KeyID != "k2" {
		t.Errorf("got an entry with the key %s, want k2 for the entry and the head", p.Entries[0].KeyID)
	}
	b.audit()
	b.Ledger = &wallet.Ledger{Keys: wallettest.NewRing(t, "k1")}
	_, err := b.do(func(tx *db.Tx) (*wallet.Posted, error) { return b.Deposit(tx, usd("u"), 1, wallet.Request{}) })
	if !errors.Is(err, wallet.ErrNoKey) {
		t.Errorf("without the key: got %v, want ErrNoKey", err)
	}
}

// operation is a random posting with an idempotency key.
type operation struct {
	key    string
	user   string
	trade  int64
	amount int64
}

func (b *bank) execute(e operation) error {
	k := idempotency.Key{Route: "POST /test", Role: "admin", User: e.user, Key: e.key}
	request := wallet.Request{Scope: k.Route + " " + k.Role + " " + k.User, Key: k.Key}
	kept, err := idempotency.Find(context.Background(), b.store, k)
	if kept != nil || err != nil {
		return err
	}
	return b.store.InTx(context.Background(), func(tx *db.Tx) error {
		var err error
		if e.trade == 0 {
			_, err = b.Deposit(tx, usd(e.user), e.amount, request)
		} else {
			fee := e.amount / 10
			_, err = b.Sell(tx, &wallet.Trade{ID: e.trade, Buyer: e.user, Seller: "s" + e.user, Currency: "USD", Price: e.amount, Fee: fee, Net: e.amount - fee}, request)
		}
		if err != nil {
			return err
		}
		return idempotency.Store(tx, k, idempotency.Response{Status: 201})
	})
}

func TestPost_AppliesEachOf500TransactionsSentTwiceBy20WorkersOnce(t *testing.T) {
	b := newBank(t)
	r := randtest.New(t)
	operations := make([]operation, 500)
	for i := range operations {
		operations[i] = operation{key: strconv.Itoa(i), user: fmt.Sprintf("u%d", r.IntN(8)), amount: 1 + r.Int64N(1_000)}
		if i%2 == 1 {
			operations[i].trade = int64(i)
		}
	}
	for i := range 8 {
		b.deposit(fmt.Sprintf("u%d", i), 1_000_000)
	}
	work := make(chan operation, 2*len(operations))
	for _, i := range r.Perm(2 * len(operations)) {
		work <- operations[i%len(operations)]
	}
	close(work)
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		b.watchSum(stop)
	}()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for e := range work {
				if err := b.execute(e); err != nil && !errors.Is(err, idempotency.ErrKeyUsed) {
					t.Errorf("operation %+v: got error %v, want none or ErrKeyUsed", e, err)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	<-watched
	var applied int
	b.must(b.raw().QueryRowContext(t.Context(), `SELECT count(*) FROM wallet_transaction WHERE idempotency_key <> ''`).Scan(&applied))
	if applied != len(operations) {
		t.Errorf("got %d applied transactions, want %d", applied, len(operations))
	}
	b.audit()
}

// watchSum repeatedly checks that the sum of all accounts is zero until stop is closed.
func (b *bank) watchSum(stop <-chan struct{}) {
	db := b.at.Raw(b)
	defer db.Close()
	for reads := 0; ; reads++ {
		var accounts, entries int64
		err := db.QueryRowContext(context.Background(), `
			SELECT CAST((SELECT coalesce(sum(balance), 0) FROM wallet_account) AS bigint), CAST((SELECT coalesce(sum(amount), 0) FROM wallet_entry) AS bigint)`).
			Scan(&accounts, &entries)
		if err != nil || accounts != 0 || entries != 0 {
			b.Errorf("read %d: accounts add up to %d, entries to %d, want 0; error %v", reads, accounts, entries, err)
		}
		select {
		case <-stop:
			b.Logf("read the sums %d times", reads)
			return
		default:
		}
	}
}

func TestPost_KeepsARandomLedgerValid(t *testing.T) {
	b := newBank(t)
	r := randtest.New(t)
	for i := range randtest.Count(150, 5_000) {
		b.randomStep(r, int64(i+1))
	}
	b.audit()
}

// randomStep posts a random transaction. A posting may fail only with a fault.
func (b *bank) randomStep(r *rand.Rand, n int64) {
	b.Helper()
	user, other := fmt.Sprintf("u%d", r.IntN(4)), fmt.Sprintf("u%d", 4+r.IntN(3))
	amount := 1 + r.Int64N(1_000)
	_, err := b.do(func(tx *db.Tx) (*wallet.Posted, error) {
		switch r.IntN(9) {
		case 0, 1:
			return b.Deposit(tx, usd(user), 3*amount, wallet.Request{Note: "n"})
		case 2:
			return b.Withdraw(tx, usd(user), amount, wallet.Request{})
		case 3:
			return b.Correct(tx, usd(user), amount-500, wallet.Request{})
		case 4:
			return b.ReverseTransaction(tx, user, 1+r.Int64N(n), wallet.Request{})
		case 5:
			return b.Settle(tx, traded(1+r.Int64N(n), 1, 0), wallet.Request{})
		case 6:
			return b.Reverse(tx, traded(1+r.Int64N(n), 1, 0), wallet.Request{})
		default:
			fee := amount / 7
			return b.Sell(tx, &wallet.Trade{ID: n, Buyer: user, Seller: other, Currency: "USD", Price: amount, Fee: fee, Net: amount - fee}, wallet.Request{})
		}
	})
	if err != nil && fault.Of(err) == nil {
		b.Fatalf("step %d: got error %v, want a fault", n, err)
	}
}

func TestLedger_DatabaseRejectsUpdatesAndDeletes(t *testing.T) {
	b := newBank(t)
	b.deposit("u", 5)
	raw := b.raw()
	edits := []string{
		`UPDATE wallet_entry SET amount = 6 WHERE user_id = 'u'`,
		`DELETE FROM wallet_entry WHERE user_id = 'u'`,
		`UPDATE wallet_transaction SET note = 'x'`,
		`DELETE FROM wallet_transaction`,
		`DELETE FROM wallet_account`,
	}
	if b.at.Engine == dbtest.PostgreSQL {
		edits = append(edits, `TRUNCATE wallet_entry`, `TRUNCATE wallet_transaction`, `TRUNCATE wallet_account`)
	} else {
		edits = append(edits, `REPLACE INTO wallet_entry SELECT * FROM wallet_entry`, `REPLACE INTO wallet_transaction SELECT * FROM wallet_transaction`)
	}
	for _, edit := range edits {
		if _, err := raw.ExecContext(t.Context(), edit); err == nil || !strings.Contains(err.Error(), "never") {
			t.Errorf("%s: got error %v, want one with \"never\"", edit, err)
		}
	}
	b.wantBalances(map[string]string{"u": "5/0"})
	b.audit()
}
