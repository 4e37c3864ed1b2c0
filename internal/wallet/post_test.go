package wallet_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
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

func TestMain(m *testing.M) { os.Exit(dbtest.RunOnEngines(m)) }

// bank is a ledger on a database.
type bank struct {
	testing.TB
	*wallet.Ledger
	store *db.DB
	at    dbtest.Database
}

func newBank(tb testing.TB) *bank {
	tb.Helper()
	b := &bank{TB: tb, Ledger: &wallet.Ledger{Keys: wallettest.NewRing(tb, "k1")}, at: dbtest.NewDatabase(tb)}
	var err error
	b.store, err = db.Open(tb.Context(), db.Options{Path: b.at.Path, URL: b.at.URL})
	b.must(err)
	tb.Cleanup(func() { b.must(b.store.Close()) })
	return b
}

func (b *bank) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// do runs fn in a transaction and returns its posting.
func (b *bank) do(fn func(tx *db.Tx) (*wallet.Posted, error)) (posted *wallet.Posted, err error) {
	err = b.store.InSmallTx(context.Background(), func(tx *db.Tx) error {
		posted, err = fn(tx)
		return err
	})
	return posted, err
}

func usd(user string) wallet.Account { return wallet.Account{User: user, Currency: "USD"} }

func (b *bank) deposit(user string, amount int64) *wallet.Posted {
	b.Helper()
	p, err := b.do(func(tx *db.Tx) (*wallet.Posted, error) {
		return b.Deposit(tx, usd(user), amount, wallet.Request{})
	})
	b.must(err)
	return p
}

// traded returns a trade between buyer and seller.
func traded(id, price, fee int64) *wallet.Trade {
	return &wallet.Trade{ID: id, Buyer: "buyer", Seller: "seller", Currency: "USD", Price: price, Fee: fee, Net: price - fee, FeeRule: "std", FeeVersion: 1}
}

func (b *bank) sell(trade int64, price, fee int64) (*wallet.Posted, error) {
	b.Helper()
	return b.do(func(tx *db.Tx) (*wallet.Posted, error) {
		return b.Sell(tx, traded(trade, price, fee), wallet.Request{})
	})
}

func (b *bank) complete(trade int64) (*wallet.Posted, error) {
	return b.do(func(tx *db.Tx) (*wallet.Posted, error) {
		return b.Complete(tx, traded(trade, 1, 0), wallet.Request{})
	})
}

func (b *bank) settle(trade int64) (*wallet.Posted, error) {
	return b.do(func(tx *db.Tx) (*wallet.Posted, error) { return b.Settle(tx, traded(trade, 1, 0), wallet.Request{}) })
}

func (b *bank) reverse(trade int64) (*wallet.Posted, error) {
	return b.do(func(tx *db.Tx) (*wallet.Posted, error) {
		return b.Reverse(tx, traded(trade, 1, 0), wallet.Request{})
	})
}

// wantBalances compares the balances of users. The map has "balance/held" by user.
func (b *bank) wantBalances(want map[string]string) {
	b.Helper()
	raw := b.raw()
	for user, figures := range want {
		var balance, held int64
		err := raw.QueryRowContext(b.Context(), `SELECT balance, held FROM wallet_account WHERE user_id = '`+user+`'`).Scan(&balance, &held)
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		b.must(err)
		if got := fmt.Sprintf("%d/%d", balance, held); got != figures {
			b.Errorf("%s has %s, want %s", user, got, figures)
		}
	}
}

// raw opens a second connection to the database.
func (b *bank) raw() *sql.DB {
	b.Helper()
	db := b.at.Raw(b)
	b.Cleanup(func() { b.must(db.Close()) })
	return db
}

// audit reads the whole ledger and checks seals, links, balances and sums.
func (b *bank) audit() {
	b.Helper()
	s := b.Keys.Sealer()
	b.must(b.store.InTx(b.Context(), func(tx *db.Tx) error {
		last := map[wallet.Account]wallet.Entry{}
		var accounts []wallet.Account
		sums := map[money.Currency]int64{}
		for id := int64(1); ; id++ {
			t, found, err := wallet.FindTransaction(tx, id)
			if err != nil {
				return err
			}
			if !found {
				if id > 100_000 || !b.any(id) {
					break
				}
				continue
			}
			entries, err := wallet.TransactionEntries(tx, id)
			if err != nil {
				return err
			}
			if ok, err := s.TransactionIntact(&t); !ok || err != nil || t.Entries != int64(len(entries)) {
				b.Errorf("transaction %d: %t, %v, with %d of %d entries", id, ok, err, len(entries), t.Entries)
			}
			for _, e := range entries {
				before := last[e.Account]
				held := before.Held
				if e.Type.Held() {
					held += e.Amount
				}
				ok, err := s.EntryIntact(&e)
				if !ok || err != nil {
					b.Errorf("entry %d of %s: %t, %v", e.Number, e.User, ok, err)
				}
				if before.Number == 0 {
					accounts = append(accounts, e.Account)
				}
				if e.Number == before.Number+1 && (e.Previous != before.Hash || e.Balance != before.Balance+e.Amount || e.Held != held || !wallet.Allowed(e.User, e.Balance, e.Held)) {
					b.Errorf("entry %+v does not follow %+v", e, before)
				}
				if e.Number > before.Number {
					last[e.Account] = e
				}
				sums[e.Currency] += e.Amount
			}
		}
		for currency, sum := range sums {
			if sum != 0 {
				b.Errorf("%d %s came from nowhere", sum, currency)
			}
		}
		heads, _, err := wallet.LockWallets(tx, accounts)
		for _, h := range heads {
			e := last[h.Account]
			if ok, err := s.HeadIntact(&h); !ok || err != nil || h.Number != e.Number || h.Hash != e.Hash || h.Balance != e.Balance || h.Held != e.Held {
				b.Errorf("head %+v of %+v: %t, %v", h, e, ok, err)
			}
		}
		return err
	}))
}

// any reports whether a transaction with this id or a greater one exists.
func (b *bank) any(id int64) (there bool) {
	b.must(b.raw().QueryRowContext(b.Context(), `SELECT EXISTS (SELECT 1 FROM wallet_transaction WHERE id >= `+strconv.FormatInt(id, 10)+`)`).Scan(&there))
	return there
}

func wantFault(t *testing.T, err error, code string) {
	t.Helper()
	if f := fault.Of(err); f == nil || f.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestSell_HoldsTheCreditUntilTheTradeSettles(t *testing.T) {
	b := newBank(t)
	b.deposit("buyer", 10_000)
	p, err := b.sell(7, 10_000, 1_500)
	b.must(err)
	b.wantBalances(map[string]string{"buyer": "0/0", "seller": "8500/8500"})
	if h := p.Head(usd("seller")); h.Available() != 0 || len(p.Entries) != 3 {
		t.Errorf("seller: got %d available after %d entries, want 0 after 3", h.Available(), len(p.Entries))
	}
	_, err = b.do(func(tx *db.Tx) (*wallet.Posted, error) { return b.Withdraw(tx, usd("seller"), 1, wallet.Request{}) })
	wantFault(t, err, "insufficient_funds")
	_, err = b.settle(7)
	b.must(err)
	b.wantBalances(map[string]string{"seller": "8500/0"})
	_, err = b.settle(7)
	wantFault(t, err, "trade_settled")
	_, err = b.reverse(7)
	wantFault(t, err, "trade_settled")
	_, err = b.settle(8)
	wantFault(t, err, "trade_not_paid")
	b.audit()
}

func TestComplete_PostsZeroEntriesForBuyerAndSeller(t *testing.T) {
	b := newBank(t)
	b.deposit("buyer", 100)
	_, err := b.complete(7)
	wantFault(t, err, "trade_not_paid")
	_, err = b.sell(7, 100, 10)
	b.must(err)
	p, err := b.complete(7)
	b.must(err)
	b.wantBalances(map[string]string{"buyer": "0/0", "seller": "90/90"})
	if want := traded(7, 1, 0).Terms(); p.Transaction.Terms != want || p.Transaction.Trade != 7 {
		t.Errorf("covered terms: got %s of trade %d, want %s of trade 7", p.Transaction.Terms, p.Transaction.Trade, want)
	}
	for _, e := range p.Entries {
		if e.Amount != 0 || e.Type != wallet.TypeCompletion || e.Posting != p.Transaction.Hash {
			t.Errorf("got entry %+v, want a completion of amount 0", e)
		}
	}
	_, err = b.complete(7)
	wantFault(t, err, "already_posted")
	_, err = b.settle(7)
	b.must(err)
	_, err = b.complete(7)
	wantFault(t, err, "trade_settled")
	b.audit()
}

func TestReverse_ReversesTheWholeSaleFromHeldMoney(t *testing.T) {
	b := newBank(t)
	b.deposit("buyer", 10_001)
	_, err := b.sell(7, 10_000, 1_500)
	b.must(err)
	p, err := b.reverse(7)
	b.must(err)
	b.wantBalances(map[string]string{"buyer": "10001/0", "seller": "0/0"})
	for _, e := range p.Entries {
		if e.Reverses == 0 {
			t.Errorf("entry %+v names no reversed entry", e)
		}
		if wallet.IsHouse(e.User) && e.Balance != 0 {
			t.Errorf("house balance: got %d, want 0", e.Balance)
		}
	}
	_, err = b.reverse(7)
	wantFault(t, err, "already_reversed")
	_, err = b.settle(7)
	wantFault(t, err, "already_reversed")
	b.audit()
}

func TestSell_AllowsZeroFeeAndFeeEqualToPrice(t *testing.T) {
	b := newBank(t)
	b.deposit("buyer", 30)
	for trade, fee := range map[int64]int64{1: 0, 2: 10} {
		p, err := b.sell(trade, 10, fee)
		b.must(err)
		if len(p.Entries) != 3 {
			t.Errorf("fee %d: got %d entries, want 3", fee, len(p.Entries))
		}
	}
	b.wantBalances(map[string]string{"buyer": "10/0", "seller": "10/10"})
	if _, err := b.sell(3, 10, 11); err == nil {
		t.Error("a fee above the price was accepted")
	}
	b.audit()
}

func TestSell_RejectsAPaidTrade(t *testing.T) {
	b := newBank(t)
	b.deposit("buyer", 100)
	_, err := b.sell(1, 10, 1)
	b.must(err)
	_, err = b.sell(1, 10, 1)
	wantFault(t, err, "already_posted")
	b.wantBalances(map[string]string{"buyer": "90/0", "seller": "9/9"})
	b.audit()
}

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
			t.Errorf("%s: got %v, want %s", name, err, c.code)
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
				t.Errorf("got %v, want ErrTampered", err)
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
		t.Errorf("sealed with %s, want k2", p.Entries[0].KeyID)
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
					t.Errorf("operation %+v: %v", e, err)
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
		b.Fatalf("step %d: %v", n, err)
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
