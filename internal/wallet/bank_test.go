package wallet_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/fault"
	"assay/internal/money"
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

// wantBalances compares the balances of users with want, which has "balance/held" by user.
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
			b.Errorf("wallet of %s: got %s, want %s", user, got, figures)
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
				b.Errorf("transaction %d: got intact %t, error %v, %d entries recorded, want a valid seal and %d", id, ok, err, len(entries), t.Entries)
			}
			for _, e := range entries {
				before := last[e.Account]
				held := before.Held
				if e.Type.Held() {
					held += e.Amount
				}
				ok, err := s.EntryIntact(&e)
				if !ok || err != nil {
					b.Errorf("entry %d of %s: got intact %t, error %v, want a valid seal", e.Number, e.User, ok, err)
				}
				if before.Number == 0 {
					accounts = append(accounts, e.Account)
				}
				if e.Number == before.Number+1 && (e.Previous != before.Hash || e.Balance != before.Balance+e.Amount || e.Held != held || !wallet.Allowed(e.User, e.Balance, e.Held)) {
					b.Errorf("entry after %+v: got %+v, want the hash of that entry as the previous hash, and an allowed balance and held amount", before, e)
				}
				if e.Number > before.Number {
					last[e.Account] = e
				}
				sums[e.Currency] += e.Amount
			}
		}
		for currency, sum := range sums {
			if sum != 0 {
				b.Errorf("sum of all entries: got %d %s, want 0", sum, currency)
			}
		}
		heads, _, err := wallet.LockWallets(tx, accounts)
		for _, h := range heads {
			e := last[h.Account]
			if ok, err := s.HeadIntact(&h); !ok || err != nil || h.Number != e.Number || h.Hash != e.Hash || h.Balance != e.Balance || h.Held != e.Held {
				b.Errorf("head: got %+v, intact %t, error %v, want a valid seal and the state after the last entry %+v", h, ok, err, e)
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
		t.Errorf("got error %v, want %s", err, code)
	}
}
