package audit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"assay/internal/money"
	"assay/internal/randtest"
	"assay/internal/store/storetest"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// bulk posts to a ledger that is in memory, and writes what it posted to the
// database many rows at once.
type bulk struct {
	*world
	rand   *rand.Rand
	heads  map[wallet.Account]*wallet.Head
	recent map[int64]posted // transactions that may be taken back, or settled
	moved  []int64          // the first of these
	open   []wallet.Trade   // neither settled nor reversed
	id     int64
	newest map[wallet.Account]wallet.Entry
	// stopped is whether the clock stands still.
	stopped bool
	rows    map[string][][]any  // not written yet, by table
	names   map[string][]string // of the columns
}

// posted is a transaction with its entries.
type posted struct {
	wallet.Transaction
	entries []wallet.Entry
}

// fill makes a ledger of so many entries, or a few more: users who put money in, pay
// each other, take it out again and change their minds, some of them far more often
// than others.
func (w *world) fill(r *rand.Rand, entries, users int) {
	w.Helper()
	b := &bulk{
		world: w, rand: r, heads: map[wallet.Account]*wallet.Head{}, newest: map[wallet.Account]wallet.Entry{}, recent: map[int64]posted{}, rows: map[string][][]any{}, names: map[string][]string{},
	}
	for i := range users {
		b.traders[userName(i)] = int64(len(b.traders) + 1)
		b.exec(`INSERT INTO platform_user (id, user_id, created_at) VALUES ($1, $2, 1)`, len(b.traders), userName(i))
	}
	for _, table := range tables {
		b.names[table] = b.columns(table)
	}
	b.names["listing"] = strings.Split("id,seller_key,app_id,context_id,asset_id,item_id,amount,price,currency,state,created_at,ended_at", ",")
	written := 0
	for n := 0; n < entries; n = written + len(b.rows["wallet_entry"]) {
		b.step(users)
		if len(b.rows["wallet_entry"]) >= 5_000 {
			written += b.write()
		}
	}
	for i := range b.open {
		b.addTrade(&b.open[i])
	}
	for _, h := range b.heads {
		b.add("wallet_account", h.User, string(h.Currency), h.Balance, h.Held, h.Number, h.Hash[:], h.Version, h.KeyID, h.MAC[:])
	}
	b.write()
}

func userName(i int) string { return fmt.Sprintf("7656119%010d", i) }

// user returns one of the users; half of the time one of the first few.
func (b *bulk) user(users int) string {
	if b.rand.IntN(2) == 0 {
		users = max(users/50, 2)
	}
	return userName(b.rand.IntN(users))
}

// step does one thing: of ten, five are sales, each of which settles or is reversed
// later.
func (b *bulk) step(users int) {
	currency := []money.Currency{"USD", "USD", "USD", "EUR"}[b.rand.IntN(4)]
	of, amount := wallet.Account{User: b.user(users), Currency: currency}, 1+b.rand.Int64N(20_000)
	switch n := b.rand.IntN(10); {
	case n < 5:
		b.sell(of, b.user(users), amount)
	case n < 6 && len(b.moved) > 0:
		i := b.rand.IntN(len(b.moved))
		t := b.recent[b.moved[i]]
		b.moved = slices.Delete(b.moved, i, i+1)
		if a := t.entries[0].Account; b.available(a) >= t.entries[0].Amount {
			b.posts(b.ledger.TakeBack(b, a.User, t.ID, b.request(a.User)))
		}
		delete(b.recent, t.ID)
	case n < 7 && b.available(of) >= amount:
		b.posts(b.ledger.Withdraw(b, of, amount, b.request(of.User)))
	case n < 8:
		b.posts(b.ledger.Correct(b, of, amount, b.request(of.User)))
	default:
		b.deposit(of, amount)
	}
	if len(b.open) > 100 {
		b.end()
	}
}

func (b *bulk) deposit(of wallet.Account, amount int64) {
	p := b.posts(b.ledger.Deposit(b, of, amount, b.request(of.User)))
	if b.moved = append(b.moved, p.Transaction.ID); len(b.moved) > 100 {
		delete(b.recent, b.moved[0])
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
	payment := fee.Payment{Kind: fee.Sale, Amount: price, Currency: buyer.Currency, Method: "card", Country: "DE", At: b.Now()}
	rules := fee.BuiltIn()
	quote, err := fee.Compute(rules, payment)
	b.must(err)
	b.trades++
	r := b.request(buyer.User)
	r.Note = payment.Note()
	t := wallet.Trade{
		ID: b.trades, Listing: b.trades, Seller: seller, Buyer: buyer.User, AppID: 730, ContextID: "2", AssetID: "a", Item: 1, Amount: 1,
		Price: price, Currency: buyer.Currency, PaymentMethod: "card", Country: "DE", Fee: quote.Fee, Net: quote.Net, FeeRule: quote.Rule, FeeVersion: 1,
		State: "pending", CreatedAt: b.tick(),
	}
	p := b.posts(b.posting(func() (*wallet.Posted, error) { return b.ledger.Sell(b, &t, r) }))
	t.Transaction = p.Transaction.ID
	b.add("listing", b.trades, b.traders[seller], 730, "2", "a", 1, 1, price, string(buyer.Currency), "sold", 1, t.CreatedAt.UnixMicro())
	b.open = append(b.open, t)
}

// end settles or reverses a trade.
func (b *bulk) end() {
	i := b.rand.IntN(len(b.open))
	t := b.open[i]
	b.open = slices.Delete(b.open, i, i+1)
	if b.rand.IntN(20) == 0 {
		t.State, t.ReversedAt = "reversed", b.tick()
		b.posts(b.posting(func() (*wallet.Posted, error) { return b.ledger.Reverse(b, &t, wallet.Request{}) }))
	} else {
		t.State, t.CompletedAt = "completed", b.tick()
		t.SettleAt = t.CompletedAt
		b.posts(b.posting(func() (*wallet.Posted, error) { return b.ledger.Complete(b, &t, wallet.Request{}) }))
		t.State, t.SettledAt = "settled", b.tick()
		b.posts(b.posting(func() (*wallet.Posted, error) { return b.ledger.Settle(b, &t, wallet.Request{}) }))
	}
	b.addTrade(&t)
	delete(b.recent, t.Transaction)
}

func (b *bulk) addTrade(t *wallet.Trade) {
	b.Keys.Sealer().Seal(t)
	b.add("trade", t.ID, t.Listing, b.traders[t.Seller], b.traders[t.Buyer], t.AppID, t.ContextID, t.AssetID, t.Item, t.Amount, t.Price, string(t.Currency),
		t.PaymentMethod, t.Country, t.Fee, t.Net, t.FeeRule, t.FeeVersion, t.Transaction, t.State, stored(t.CreatedAt), stored(t.CompletedAt),
		stored(t.SettleAt), stored(t.SettledAt), stored(t.ReversedAt), t.Volume, t.Ranked, t.Version, t.KeyID, t.MAC[:])
}

// stored is a time as the database has it.
func stored(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func (b *bulk) available(a wallet.Account) int64 {
	if h := b.heads[a]; h != nil {
		return h.Available()
	}
	return 0
}

func (b *bulk) posts(p *wallet.Posted, err error) *wallet.Posted {
	b.Helper()
	b.must(err)
	return p
}

func (b *bulk) add(table string, row ...any) { b.rows[table] = append(b.rows[table], row) }

// posting posts at the moment of the last tick.
func (b *bulk) posting(fn func() (*wallet.Posted, error)) (*wallet.Posted, error) {
	b.stopped = true
	defer func() { b.stopped = false }()
	return fn()
}

// Now is that of wallet.Tx, as are those that follow.
func (b *bulk) Now() time.Time {
	if b.stopped {
		return b.now
	}
	return b.tick()
}

func (b *bulk) LockWallets(accounts []wallet.Account) (heads []wallet.Head, id int64, err error) {
	for _, a := range accounts {
		if h := b.heads[a]; h != nil {
			heads = append(heads, *h)
		}
	}
	b.id++
	return heads, b.id, nil
}

func (b *bulk) AddWallets(heads []wallet.Head) error {
	for i := range heads {
		b.heads[heads[i].Account] = &heads[i]
	}
	return nil
}

func (b *bulk) WalletCount(string) (int, error) { return 0, nil }

func (b *bulk) Post(t wallet.Transaction, entries []wallet.Entry, heads []wallet.Head) (newest []wallet.Entry, _ error) {
	b.add("wallet_transaction", t.ID, string(t.Kind), t.Trade, t.Reverses, t.Scope, t.IdempotencyKey, t.Note, t.Entries, t.At.UnixMicro(), t.Terms[:],
		t.Version, t.KeyID, t.Hash[:])
	for i := range heads {
		if e, ok := b.newest[heads[i].Account]; ok {
			newest = append(newest, e)
		}
	}
	for _, e := range entries {
		b.add("wallet_entry", e.User, string(e.Currency), e.Number, e.Transaction, string(e.Type), e.Amount, e.Balance, e.Held, e.Trade, e.Reverses,
			e.IdempotencyKey, e.FeeRule, e.FeeVersion, e.At.UnixMicro(), e.Posting[:], e.Version, e.KeyID, e.Previous[:], e.Hash[:])
		b.newest[e.Account] = e
	}
	for i := range heads {
		*b.heads[heads[i].Account] = heads[i]
	}
	if t.Kind == wallet.KindSale || t.Kind == wallet.KindDeposit {
		b.recent[t.ID] = posted{t, entries}
	}
	return newest, nil
}

func (b *bulk) WalletTransaction(id int64) (wallet.Transaction, bool, error) {
	t, found := b.recent[id]
	return t.Transaction, found, nil
}

func (b *bulk) TradeTransactions(trade int64) (out []wallet.Transaction, _ error) {
	for _, t := range b.recent {
		if t.Trade == trade {
			out = append(out, t.Transaction)
		}
	}
	return out, nil
}

func (b *bulk) WalletReversed(int64) (bool, error) { return false, nil }

func (b *bulk) TransactionEntries(id int64) ([]wallet.Entry, error) {
	return b.recent[id].entries, nil
}

// write writes what was not written yet, and returns how many of it are entries.
func (b *bulk) write() (entries int) {
	b.Helper()
	entries = len(b.rows["wallet_entry"])
	for table, rows := range b.rows {
		if b.at.Engine == storetest.SQLite {
			b.insert(table, rows)
		} else {
			b.copy(table, rows)
		}
	}
	clear(b.rows)
	return entries
}

func (b *bulk) insert(table string, rows [][]any) {
	b.Helper()
	tx, err := b.raw.BeginTx(context.Background(), nil)
	b.must(err)
	names := b.names[table]
	s, err := tx.PrepareContext(context.Background(), `INSERT INTO `+table+` (`+strings.Join(names, ", ")+`) VALUES (?`+strings.Repeat(`, ?`, len(names)-1)+`)`)
	b.must(err)
	defer s.Close()
	for _, row := range rows {
		_, err := s.ExecContext(context.Background(), row...)
		b.must(err)
	}
	b.must(tx.Commit())
}

func (b *bulk) copy(table string, rows [][]any) {
	b.Helper()
	conn, err := b.raw.Conn(context.Background())
	b.must(err)
	defer conn.Close()
	names := b.names[table]
	b.must(conn.Raw(func(driver any) error {
		_, err := driver.(*stdlib.Conn).Conn().CopyFrom(context.Background(), pgx.Identifier{table}, names, pgx.CopyFromRows(rows))
		return err
	}))
}

// TestVerify_FindsWhatIsPagesAway tampers with a ledger of several pages, one thing
// after the other, each of which another check finds.
func TestVerify_FindsWhatIsPagesAway(t *testing.T) {
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
			t.Fatalf("%s fails before its turn: %+v", c.want, full.Failures)
		}
		w.exec(c.sql)
		if full := w.verifyAll(); !slices.Contains(failing(full.Checks), c.want) {
			t.Errorf("%s is not among %v after %s", c.want, failing(full.Checks), c.sql)
		}
	}
}
