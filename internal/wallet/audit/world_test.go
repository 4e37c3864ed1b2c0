package audit_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/money"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
	"assay/internal/wallet/fee"
	"assay/internal/wallet/fee/feetest"
	"assay/internal/wallet/wallettest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.RunOnEngines(m)) }

// world is a ledger on a database, with its trades and fee rules. It can also change the database
// without the service.
type world struct {
	testing.TB
	*audit.Auditor
	ledger  *wallet.Ledger
	store   *db.DB
	at      dbtest.Database
	raw     *sql.DB
	users   []string
	traders map[string]int64 // keys of users
	trades  int64
	moved   []int64 // reversible transactions
	open    []int64 // open trades
	now     time.Time
	clock   func() time.Time // clock of the service; nil means tick

	loosened bool
}

func newWorld(tb testing.TB, users ...string) *world {
	tb.Helper()
	return newWorldAt(tb, dbtest.NewDatabase(tb), users...)
}

func newWorldAt(tb testing.TB, at dbtest.Database, users ...string) *world {
	tb.Helper()
	w := &world{TB: tb, at: at, users: users, traders: map[string]int64{}, now: time.Unix(1_760_000_000, 0)}
	var err error
	w.store, err = db.Open(tb.Context(), db.Options{Path: w.at.Path, URL: w.at.URL, Now: w.tick})
	w.must(err)
	tb.Cleanup(func() { w.must(w.store.Close()) })
	w.raw = w.at.Raw(tb)
	tb.Cleanup(func() { w.must(w.raw.Close()) })
	keys := wallettest.NewRing(tb, "k1")
	w.ledger = &wallet.Ledger{Keys: keys}
	w.Auditor = &audit.Auditor{
		Keys: keys, Now: time.Now, Scopes: func(user string) []string { return []string{"scope " + user} },
		Read: func(ctx context.Context, use func(*audit.Snapshot) error) error {
			return audit.ReadLedger(ctx, w.store, func(l *audit.Snapshot) error {
				if w.loosened {
					l.LoosenForTests()
				}
				return use(l)
			})
		},
	}
	w.must(w.store.InTx(tb.Context(), func(tx *db.Tx) error { return wallet.SetLedgerKey(tx, keys.Marks()[0]) }))
	feetest.Activate(tb, w.store, keys, fee.BuiltIn())
	for i, u := range users {
		w.traders[u] = int64(i + 1)
		w.exec(`INSERT INTO platform_user (id, user_id, created_at) VALUES ($1, $2, 1)`, i+1, u)
	}
	return w
}

// tick returns a new time at each call.
func (w *world) tick() time.Time {
	if w.clock != nil {
		return w.clock()
	}
	w.now = w.now.Add(time.Second)
	return w.now
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) exec(query string, args ...any) int64 {
	w.Helper()
	r, err := w.raw.ExecContext(context.Background(), query, args...)
	if err != nil {
		w.Fatalf("%s: got error %v, want none", query, err)
	}
	n, err := r.RowsAffected()
	w.must(err)
	return n
}

func (w *world) post(fn func(tx *db.Tx) (*wallet.Posted, error)) *wallet.Posted {
	w.Helper()
	var posted *wallet.Posted
	w.must(w.store.InTx(context.Background(), func(tx *db.Tx) (err error) {
		posted, err = fn(tx)
		return err
	}))
	return posted
}

func in(user string, currency money.Currency) wallet.Account {
	return wallet.Account{User: user, Currency: currency}
}

// request returns a request with a new idempotency key.
func (w *world) request(user string) wallet.Request {
	return wallet.Request{Scope: "scope " + user, Key: fmt.Sprint("key ", w.now.UnixNano()), Note: "a note"}
}

func (w *world) deposit(a wallet.Account, amount int64) *wallet.Posted {
	w.Helper()
	p := w.post(func(tx *db.Tx) (*wallet.Posted, error) { return w.ledger.Deposit(tx, a, amount, w.request(a.User)) })
	w.moved = append(w.moved, p.Transaction.ID)
	return p
}

func (w *world) withdraw(a wallet.Account, amount int64) *wallet.Posted {
	w.Helper()
	p := w.post(func(tx *db.Tx) (*wallet.Posted, error) { return w.ledger.Withdraw(tx, a, amount, w.request(a.User)) })
	w.moved = append(w.moved, p.Transaction.ID)
	return p
}

func (w *world) takeBack(user string, id int64) *wallet.Posted {
	w.Helper()
	return w.post(func(tx *db.Tx) (*wallet.Posted, error) {
		return w.ledger.ReverseTransaction(tx, user, id, w.request(user))
	})
}

// trade inserts a trade without a payment.
func (w *world) trade(buyer, seller string, currency money.Currency, price int64) int64 {
	w.Helper()
	w.trades++
	w.exec(`INSERT INTO listing (id, seller_key, app_id, context_id, asset_id, item_id, amount, price, currency, state, created_at, ended_at)
		VALUES ($1, $2, 730, '2', 'a', 1, 1, $3, $4, 'sold', 1, 2)`, w.trades, w.traders[seller], price, string(currency))
	w.exec(`INSERT INTO trade (id, listing_id, seller_key, buyer_key, app_id, context_id, asset_id, item_id, amount, price, currency, payment_method, country, state, created_at)
		VALUES ($1, $1, $2, $3, 730, '2', 'a', 1, 1, $4, $5, 'card', 'DE', 'pending', 2)`, w.trades, w.traders[seller], w.traders[buyer], price, string(currency))
	return w.trades
}

// row reads a trade.
func (w *world) row(id int64) (t wallet.Trade) {
	w.Helper()
	w.must(audit.ReadLedger(context.Background(), w.store, func(l *audit.Snapshot) (err error) {
		t, err = l.TradeForTests(id)
		return err
	}))
	return t
}

// change changes a trade and seals it again, as the service does.
func (w *world) change(id int64, set string, args ...any) {
	w.Helper()
	w.exec(`UPDATE trade SET `+set+fmt.Sprintf(` WHERE id = %d`, id), args...)
	t := w.row(id)
	w.Keys.Sealer().Seal(&t)
	w.exec(`UPDATE trade SET version = $1, key_id = $2, mac = $3 WHERE id = $4`, t.Version, t.KeyID, t.MAC[:], id)
}

// move posts a transaction of a trade and stores the trade as changed by fn.
func (w *world) move(id int64, fn func(t *wallet.Trade, now time.Time), post func(*db.Tx, *wallet.Trade, wallet.Request) (*wallet.Posted, error)) *wallet.Posted {
	w.Helper()
	t := w.row(id)
	p := w.post(func(tx *db.Tx) (*wallet.Posted, error) {
		fn(&t, tx.Now())
		return post(tx, &t, wallet.Request{})
	})
	w.change(id, `state = $1, completed_at = $2, settle_at = $3, settled_at = $4, reversed_at = $5, volume = $6, ranked = $7`,
		t.State, stored(t.CompletedAt), stored(t.SettleAt), stored(t.SettledAt), stored(t.ReversedAt), t.Volume, t.Ranked)
	return p
}

// pay posts the payment of a trade.
func (w *world) pay(trade int64, buyer, seller string, currency money.Currency, price int64) *wallet.Posted {
	w.Helper()
	rules, err := fee.ReadActivation(context.Background(), w.store, 0)
	w.must(err)
	t := w.row(trade)
	p := w.post(func(tx *db.Tx) (*wallet.Posted, error) {
		payment := fee.Payment{Kind: fee.Sale, Amount: price, Currency: currency, Method: "card", Country: "DE", At: tx.Now()}
		quote, err := fee.Compute(rules.Set, payment)
		if err != nil {
			return nil, err
		}
		request := w.request(buyer)
		request.Note = payment.Note()
		t.Buyer, t.Seller, t.Currency, t.Price, t.CreatedAt = buyer, seller, currency, price, tx.Now()
		t.Fee, t.Net, t.FeeRule, t.FeeVersion = quote.Fee, quote.Net, quote.Rule, quote.Version
		return w.ledger.Sell(tx, &t, request)
	})
	at := p.Transaction.At.UnixMicro()
	w.exec(`UPDATE listing SET ended_at = $1 WHERE id = $2`, at, trade)
	w.change(trade, `fee = $1, net = $2, fee_rule = $3, fee_version = $4, transaction_id = $5, created_at = $6`,
		t.Fee, t.Net, t.FeeRule, t.FeeVersion, p.Transaction.ID, at)
	w.open = append(w.open, trade)
	return p
}

func (w *world) sell(buyer, seller string, currency money.Currency, price int64) *wallet.Posted {
	w.Helper()
	return w.pay(w.trade(buyer, seller, currency, price), buyer, seller, currency, price)
}

func (w *world) complete(trade int64) {
	w.Helper()
	w.move(trade, func(t *wallet.Trade, now time.Time) {
		t.State, t.CompletedAt, t.SettleAt, t.Volume, t.Ranked = "completed", now, now.Add(time.Second), t.Price, t.Price
	}, w.ledger.Complete)
}

func (w *world) settle(trade int64) {
	w.Helper()
	w.complete(trade)
	w.move(trade, func(t *wallet.Trade, now time.Time) { t.State, t.SettledAt = "settled", now }, w.ledger.Settle)
}

func (w *world) reverse(trade int64) {
	w.Helper()
	w.move(trade, func(t *wallet.Trade, now time.Time) { t.State, t.ReversedAt = "reversed", now }, w.ledger.Reverse)
}

// example returns a small ledger with each kind of transaction. Alice buys, bob sells, and
// carol trades with neither of them.
func example(tb testing.TB) *world {
	tb.Helper()
	w := newWorld(tb, "alice", "bob", "carol")
	for _, amount := range []int64{10_000, 5_000, 2_500} {
		w.deposit(in("alice", "USD"), amount)
		w.deposit(in("carol", "USD"), amount)
	}
	w.deposit(in("bob", "USD"), 300)
	w.deposit(in("alice", "EUR"), 700)
	w.sell("alice", "bob", "USD", 1_999)
	w.sell("alice", "bob", "USD", 501)
	w.sell("alice", "bob", "USD", 333)
	w.reverse(2)
	w.withdraw(in("bob", "USD"), 100)
	w.takeBack("alice", w.deposit(in("alice", "USD"), 40).Transaction.ID)
	w.sell("alice", "carol", "USD", 777)
	w.settle(1)
	w.deposit(in("alice", "USD"), 50)
	for range 3 {
		w.withdraw(in("alice", "USD"), 50)
		w.deposit(in("alice", "USD"), 50)
	}
	w.deposit(in("alice", "USD"), 11)
	w.deposit(in("bob", "USD"), 12)
	for _, points := range []string{"700", "800"} { // versions that charged no fee
		set, err := fee.Decode(strings.NewReader(`{"rules":[],"fallback":{"basisPoints":` + points + `}}`))
		w.must(err)
		feetest.Activate(tb, w.store, w.Keys, set)
	}
	return w
}

// random adds at least the given number of random entries.
func (w *world) random(r *rand.Rand, entries int) {
	w.Helper()
	currencies := []money.Currency{"USD", "EUR", "JPY"}
	for _, u := range w.users {
		for _, c := range currencies {
			w.deposit(in(u, c), 1_000_000+r.Int64N(1_000_000))
		}
	}
	any := func() string { return w.users[r.IntN(len(w.users))] }
	for w.count("wallet_entry") < int64(entries) {
		buyer, seller, currency, amount := any(), any(), currencies[r.IntN(len(currencies))], 1+r.Int64N(2_000)
		switch r.IntN(8) {
		case 0:
			w.deposit(in(buyer, currency), amount)
		case 1:
			w.withdraw(in(buyer, currency), amount)
		case 2:
			p := w.deposit(in(buyer, currency), amount)
			w.takeBack(buyer, p.Transaction.ID)
		case 3:
			w.post(func(tx *db.Tx) (*wallet.Posted, error) {
				return w.ledger.Correct(tx, in(buyer, currency), 2*amount-2_001, w.request(buyer))
			})
		case 4, 5, 6:
			if buyer != seller {
				w.sell(buyer, seller, currency, amount)
			}
		default:
			if len(w.open) > 0 {
				i := r.IntN(len(w.open))
				if r.IntN(2) == 0 {
					w.settle(w.open[i])
				} else {
					w.reverse(w.open[i])
				}
				w.open = slices.Delete(w.open, i, i+1)
			}
		}
	}
}

func (w *world) count(table string) (n int64) {
	w.Helper()
	w.must(w.raw.QueryRowContext(context.Background(), `SELECT count(*) FROM `+table).Scan(&n))
	return n
}

// loosen drops the triggers, keys, types and constraints of the ledger's tables, as an
// owner of the database can.
func (w *world) loosen() {
	w.Helper()
	w.loosened = true
	for _, table := range tables {
		if w.at.Engine == dbtest.SQLite {
			w.exec(`ALTER TABLE ` + table + ` RENAME TO strict_` + table)
			w.exec(`CREATE TABLE ` + table + ` AS SELECT * FROM strict_` + table)
			w.exec(`DROP TABLE strict_` + table)
			continue
		}
		w.exec(`ALTER TABLE ` + table + ` DISABLE TRIGGER ALL`)
		w.exec(`DO $$ DECLARE r record; BEGIN
			FOR r IN SELECT conname FROM pg_constraint WHERE conrelid = '` + table + `'::regclass LOOP
				EXECUTE 'ALTER TABLE ` + table + ` DROP CONSTRAINT ' || quote_ident(r.conname) || ' CASCADE'; END LOOP;
			FOR r IN SELECT i.indexrelid::regclass AS name FROM pg_index i WHERE i.indrelid = '` + table + `'::regclass LOOP
				EXECUTE 'DROP INDEX ' || r.name; END LOOP;
			FOR r IN SELECT attname, attidentity FROM pg_attribute WHERE attrelid = '` + table + `'::regclass AND attnum > 0 LOOP
				IF r.attidentity <> '' THEN EXECUTE 'ALTER TABLE ` + table + ` ALTER COLUMN ' || quote_ident(r.attname) || ' DROP IDENTITY'; END IF;
				EXECUTE 'ALTER TABLE ` + table + ` ALTER COLUMN ' || quote_ident(r.attname) || ' DROP NOT NULL'; END LOOP; END $$`)
	}
}

// tables are the tables that the ledger consists of or depends on.
var tables = []string{"wallet_account", "wallet_entry", "wallet_transaction", "trade", "fee_rule_set", "platform_user", "listing"}

func (w *world) verifyAll() *audit.FullReport {
	w.Helper()
	r, err := w.VerifyAll(context.Background(), nil)
	w.must(err)
	return r
}

func (w *world) verify(user, checkpoint string) *audit.Report {
	w.Helper()
	r, err := w.VerifyUser(context.Background(), user, checkpoint)
	w.must(err)
	return r
}

// failing returns the names of the checks that did not pass.
func failing(checks []audit.Checked) (out []string) {
	for _, c := range checks {
		if c.Status == audit.Fail || c.Status == audit.Skipped {
			out = append(out, c.Name)
		}
	}
	return out
}

// failuresOf returns the number of failures of a check.
func failuresOf(checks []audit.Checked, name string) int64 {
	return checks[slices.Index(audit.Names(), name)].Failures
}

// checkpoint returns a new checkpoint of the whole ledger.
func (w *world) checkpoint() []byte {
	w.Helper()
	var b bytes.Buffer
	a, err := fee.ReadActivation(context.Background(), w.store, 0)
	w.must(err)
	c := wallet.NewCheckpointWriter(&b, w.Keys, w.now, wallet.RulesMark(a.Version, a.Seal.MAC))
	w.must(audit.ReadLedger(context.Background(), w.store, func(l *audit.Snapshot) error {
		heads, err := l.Heads("", wallet.Account{}, 1000)
		for i := range heads {
			if err == nil {
				err = c.Add(wallet.Mark{Account: heads[i].Account, Number: heads[i].Number, Hash: heads[i].Hash})
			}
		}
		return err
	}))
	w.must(c.Finish())
	return b.Bytes()
}

// keep makes a checkpoint the newest stored one.
func (w *world) keep(checkpoint []byte) {
	w.Stored = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(checkpoint)), nil }
}
