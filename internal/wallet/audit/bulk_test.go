package audit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/randtest"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// bulk fills a ledger fast: it posts many ledger transactions in one database transaction.
type bulk struct {
	*world
	tx      *db.Tx // the open transaction
	rand    *rand.Rand
	heads   map[wallet.Account]wallet.Head
	moved   []*wallet.Posted // deposits that may be reversed
	open    []wallet.Trade   // open trades
	entries int              // number of posted entries
}

// bulkEntries is the number of entries per database transaction.
const bulkEntries = 1_000

// fill creates a ledger with at least the given number of entries. Users deposit, buy,
// withdraw and reverse. Some users are far more active than others.
func (w *world) fill(r *rand.Rand, entries, users int) {
	w.Helper()
	b := &bulk{world: w, rand: r, heads: map[wallet.Account]wallet.Head{}}
	b.write(func() {
		for i := range users {
			b.traders[userName(i)] = int64(len(b.traders) + 1)
			b.insert(`INSERT INTO platform_user (id, user_id, created_at) VALUES ($1, $2, 1)`, len(b.traders), userName(i))
		}
	})
	for b.entries < entries {
		b.write(func() {
			for most := min(entries, b.entries+bulkEntries); b.entries < most; {
				b.step(users)
			}
		})
	}
	b.write(func() {
		for i := range b.open {
			b.addTrade(&b.open[i])
		}
	})
}

// write runs fn in a database transaction. There is no other writer, so fn runs once.
func (b *bulk) write(fn func()) {
	b.Helper()
	b.must(b.store.InSmallTx(context.Background(), func(tx *db.Tx) error {
		b.tx = tx
		fn()
		return nil
	}))
}

func (b *bulk) insert(query string, args ...any) {
	b.Helper()
	_, err := b.tx.Exec(query, args...)
	b.must(err)
}

// post posts in the open transaction at a time that no other posting has.
func (b *bulk) post(fn func(tx *db.Tx) (*wallet.Posted, error)) *wallet.Posted {
	b.Helper()
	b.tx.NotBefore(b.tick())
	p, err := fn(b.tx)
	b.must(err)
	b.entries += len(p.Entries)
	for _, h := range p.Heads {
		b.heads[h.Account] = h
	}
	return p
}

func userName(i int) string { return fmt.Sprintf("7656119%010d", i) }

// user returns a random user. Half of the time it is one of the first few.
func (b *bulk) user(users int) string {
	if b.rand.IntN(2) == 0 {
		users = max(users/50, 2)
	}
	return userName(b.rand.IntN(users))
}

// step does one random operation. Half of the operations are sales, which later settle or
// are reversed.
func (b *bulk) step(users int) {
	currency := []money.Currency{"USD", "USD", "USD", "EUR"}[b.rand.IntN(4)]
	of, amount := wallet.Account{User: b.user(users), Currency: currency}, 1+b.rand.Int64N(20_000)
	switch n := b.rand.IntN(10); {
	case n < 5:
		b.sell(of, b.user(users), amount)
	case n < 6 && len(b.moved) > 0:
		i := b.rand.IntN(len(b.moved))
		p := b.moved[i]
		b.moved = slices.Delete(b.moved, i, i+1)
		if e := p.Entries[0]; b.available(e.Account) >= e.Amount {
			b.post(func(tx *db.Tx) (*wallet.Posted, error) {
				return b.ledger.ReverseTransaction(tx, e.User, p.Transaction.ID, b.request(e.User))
			})
		}
	case n < 7 && b.available(of) >= amount:
		b.post(func(tx *db.Tx) (*wallet.Posted, error) { return b.ledger.Withdraw(tx, of, amount, b.request(of.User)) })
	case n < 8:
		b.post(func(tx *db.Tx) (*wallet.Posted, error) { return b.ledger.Correct(tx, of, amount, b.request(of.User)) })
	default:
		b.deposit(of, amount)
	}
	if len(b.open) > 100 {
		b.end()
	}
}

func (b *bulk) deposit(of wallet.Account, amount int64) {
	p := b.post(func(tx *db.Tx) (*wallet.Posted, error) { return b.ledger.Deposit(tx, of, amount, b.request(of.User)) })
	if b.moved = append(b.moved, p); len(b.moved) > 100 {
		b.moved = b.moved[1:]
	}
}

func (b *bulk) sell(buyer wallet.Account, seller string, price int64) {
	if buyer.User == seller {
		return
	}
	if b.available(buyer) < price {
		b.deposit(buyer, 20*price)
	}
	b.trades++
	t := wallet.Trade{
		ID: b.trades, Listing: b.trades, Seller: seller, Buyer: buyer.User, AppID: 730, ContextID: "2", AssetID: "a", Item: 1, Amount: 1,
		Price: price, Currency: buyer.Currency, PaymentMethod: "card", Country: "DE", State: "pending",
	}
	p := b.post(func(tx *db.Tx) (*wallet.Posted, error) {
		payment := fee.Payment{Kind: fee.Sale, Amount: price, Currency: buyer.Currency, Method: "card", Country: "DE", At: tx.Now()}
		quote, err := fee.Compute(fee.BuiltIn(), payment)
		if err != nil {
			return nil, err
		}
		r := b.request(buyer.User)
		r.Note = payment.Note()
		t.Fee, t.Net, t.FeeRule, t.FeeVersion, t.CreatedAt = quote.Fee, quote.Net, quote.Rule, 1, tx.Now()
		return b.ledger.Sell(tx, &t, r)
	})
	t.Transaction = p.Transaction.ID
	b.insert(`INSERT INTO listing (id, seller_key, app_id, context_id, asset_id, item_id, amount, price, currency, state, created_at, ended_at)
		VALUES ($1, $2, 730, '2', 'a', 1, 1, $3, $4, 'sold', 1, $5)`, t.Listing, b.traders[seller], price, string(t.Currency), t.CreatedAt.UnixMicro())
	b.open = append(b.open, t)
}

// end settles or reverses a trade.
func (b *bulk) end() {
	i := b.rand.IntN(len(b.open))
	t := b.open[i]
	b.open = slices.Delete(b.open, i, i+1)
	if b.rand.IntN(20) == 0 {
		b.post(func(tx *db.Tx) (*wallet.Posted, error) {
			t.State, t.ReversedAt = "reversed", tx.Now()
			return b.ledger.Reverse(tx, &t, wallet.Request{})
		})
	} else {
		b.post(func(tx *db.Tx) (*wallet.Posted, error) {
			t.State, t.CompletedAt, t.SettleAt = "completed", tx.Now(), tx.Now()
			return b.ledger.Complete(tx, &t, wallet.Request{})
		})
		b.post(func(tx *db.Tx) (*wallet.Posted, error) {
			t.State, t.SettledAt = "settled", tx.Now()
			return b.ledger.Settle(tx, &t, wallet.Request{})
		})
	}
	b.addTrade(&t)
}

func (b *bulk) addTrade(t *wallet.Trade) {
	b.Helper()
	b.Keys.Sealer().Seal(t)
	b.insert(`INSERT INTO trade (id, listing_id, seller_key, buyer_key, app_id, context_id, asset_id, item_id, amount, price, currency,
			payment_method, country, fee, net, fee_rule, fee_version, transaction_id, state, created_at, completed_at, settle_at, settled_at,
			reversed_at, volume, ranked, version, key_id, mac)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29)`,
		t.ID, t.Listing, b.traders[t.Seller], b.traders[t.Buyer], t.AppID, t.ContextID, t.AssetID, t.Item, t.Amount, t.Price, string(t.Currency),
		t.PaymentMethod, t.Country, t.Fee, t.Net, t.FeeRule, t.FeeVersion, t.Transaction, t.State, stored(t.CreatedAt), stored(t.CompletedAt),
		stored(t.SettleAt), stored(t.SettledAt), stored(t.ReversedAt), t.Volume, t.Ranked, t.Version, t.KeyID, t.MAC[:])
}

// stored returns a time in the form that the database stores.
func stored(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func (b *bulk) available(a wallet.Account) int64 {
	h := b.heads[a]
	return h.Available()
}

// must fails the test if err is not nil.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// TestVerify_DetectsTamperingOnLaterPages tampers with a ledger of several pages. Each
// change must fail a different check.
func TestVerify_DetectsTamperingOnLaterPages(t *testing.T) {
	w := newWorld(t)
	w.fill(randtest.New(t), 3_000, 300)
	w.loosen()
	for _, c := range []struct{ want, sql string }{
		{"head_length", `UPDATE wallet_account SET last_number = 99999 WHERE user_id = (SELECT max(user_id) FROM wallet_account)`},
		{"idempotency_unique", `UPDATE wallet_transaction SET scope = (SELECT scope FROM wallet_transaction WHERE id = (SELECT min(id) FROM wallet_transaction WHERE idempotency_key <> '')),
			idempotency_key = (SELECT idempotency_key FROM wallet_transaction WHERE id = (SELECT min(id) FROM wallet_transaction WHERE idempotency_key <> '')) WHERE id = (SELECT max(id) FROM wallet_transaction WHERE idempotency_key <> '')`},
		{"fee_crosscheck", `UPDATE wallet_entry SET fee_rule = 'none' WHERE trade_id = (SELECT max(id) FROM trade) AND type IN ('purchase', 'fee')`},
		{"tx_balanced", `DELETE FROM wallet_entry WHERE user_id LIKE 'house:%' AND transaction_id = (SELECT max(id) FROM wallet_transaction WHERE kind = 'deposit')`},
		{"hold_lifecycle", `UPDATE wallet_transaction SET trade_id = 1 WHERE id = (SELECT max(id) FROM wallet_transaction WHERE kind = 'settlement')`},
		{"reversal_link", `UPDATE wallet_transaction SET reverses = 1 WHERE id = (SELECT max(id) FROM wallet_transaction WHERE kind = 'reversal')`},
	} {
		if full := w.verifyAll(); slices.Contains(failing(full.Checks), c.want) {
			t.Fatalf("check %s before the tampering: got failures %+v, want none", c.want, full.Failures)
		}
		w.exec(c.sql)
		if full := w.verifyAll(); !slices.Contains(failing(full.Checks), c.want) {
			t.Errorf("after %s: got failed checks %v, want %s", c.sql, failing(full.Checks), c.want)
		}
	}
}
