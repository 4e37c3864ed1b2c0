package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// Snapshot is the ledger, with trades and fee rules, at one moment. Nothing that it reads
// is believed: rows may be missing, be there twice, or hold what no column of theirs
// should, which is a fault of the row. A user of "" is all of them. Lists are ordered and
// hold at most the requested number of rows. It may be used concurrently.
type Snapshot struct {
	d    db.Dialect
	ctx  context.Context //nolint:containedctx // a snapshot lives within one call of ReadLedger, which got this context
	mu   sync.Mutex      // held while what follows is used
	conn *sql.Conn       // on which the transaction is
	tx   *sql.Tx
	db   *db.DB

	loosened bool // in tests: Schema finds no changes
}

// ReadLedger calls use with the ledger at one moment. It makes no other process wait, and
// changes nothing.
func ReadLedger(ctx context.Context, s *db.DB, use func(*Snapshot) error) error {
	return readLedger(ctx, s, use)
}

func readLedger(ctx context.Context, d *db.DB, use func(*Snapshot) error) error {
	return d.Snapshot(ctx, func(conn *sql.Conn, tx *sql.Tx) error {
		if d.Dialect == db.PostgreSQL {
			if _, err := tx.ExecContext(ctx, rowSecurityOffOnPostgres); err != nil {
				return err
			}
		}
		return use(&Snapshot{d: d.Dialect, ctx: ctx, conn: conn, tx: tx, db: d})
	})
}

// ReadLedgerBeside is ReadLedger without opening the database: on SQLite it needs no lock,
// and reads beside the process that has it.
func ReadLedgerBeside(ctx context.Context, o db.Options, use func(*Snapshot) error) (err error) {
	d, err := db.OpenBeside(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return readLedger(ctx, d, use)
}

// Count counts the rows of the ledger.
func (l *Snapshot) Count(user string) (n Count, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if user == "" {
		err = l.tx.QueryRowContext(l.ctx, `
			SELECT (SELECT count(*) FROM wallet_account), (SELECT count(*) FROM wallet_entry), (SELECT count(*) FROM wallet_transaction),
				(SELECT count(*) FROM trade), (SELECT count(*) FROM fee_rule_set)`).Scan(&n.Accounts, &n.Entries, &n.Transactions, &n.Trades, &n.Rules)
	} else {
		err = l.tx.QueryRowContext(l.ctx, `
			SELECT (SELECT count(*) FROM wallet_account WHERE user_id = $1), (SELECT count(*) FROM wallet_entry WHERE user_id = $1)`, user).Scan(&n.Accounts, &n.Entries)
	}
	return n, err
}

func takeHead(c *cells) (h Head) {
	h.User, h.Currency = c.text(), money.Currency(c.text())
	h.Balance, h.Held, h.Number = c.int(), c.int(), c.int()
	h.Hash = c.hash()
	h.Version, h.KeyID = int(c.int()), c.text()
	h.MAC = c.hash()
	h.Faults = c.faults
	return h
}

// Heads lists accounts after one.
func (l *Snapshot) Heads(user string, after wallet.Account, most int) ([]Head, error) {
	if user == "" {
		return readCells(l, wallet.HeadColumns, takeHead, `
			SELECT `+wallet.HeadColumns+` FROM wallet_account w WHERE (w.user_id, w.currency) > ($1, $2) ORDER BY w.user_id, w.currency LIMIT $3`,
			after.User, string(after.Currency), most)
	}
	return readCells(l, wallet.HeadColumns, takeHead, `
		SELECT `+wallet.HeadColumns+` FROM wallet_account w WHERE w.user_id = $1 AND w.currency > $2 ORDER BY w.currency LIMIT $3`,
		user, string(after.Currency), most)
}

// HeadsOf returns those accounts that there are.
func (l *Snapshot) HeadsOf(accounts []wallet.Account) ([]Head, error) {
	rows := db.NewTable("user_id text, currency text", len(accounts))
	for _, a := range accounts {
		rows.Text(a.User, string(a.Currency))
	}
	return readCells(l, wallet.HeadColumns, takeHead, `
		SELECT `+wallet.HeadColumns+` FROM `+l.d.Rows(1, "user_id text, currency text")+` k CROSS JOIN wallet_account w
		WHERE w.user_id = k.user_id AND w.currency = k.currency`, rows.Params(l.d)...)
}

func takeEntry(c *cells) (e Entry) {
	e.User, e.Currency = c.text(), money.Currency(c.text())
	e.Number, e.Transaction = c.int(), c.int()
	e.Type = wallet.Type(c.text())
	e.Amount, e.Balance, e.Held, e.Trade, e.Reverses = c.int(), c.int(), c.int(), c.int(), c.int()
	e.IdempotencyKey, e.FeeRule = c.text(), c.text()
	e.FeeVersion, e.At, e.Posting = c.int(), time.UnixMicro(c.int()).UTC(), c.hash()
	e.Version, e.KeyID = int(c.int()), c.text()
	e.Previous, e.Hash = c.hash(), c.hash()
	e.Faults = c.faults
	return e
}

// Entries lists entries after one, by account and number.
func (l *Snapshot) Entries(user string, after Place, most int) ([]Entry, error) {
	if user == "" {
		return readCells(l, wallet.ReadEntryColumns, takeEntry, `
			SELECT `+wallet.ReadEntryColumns+` FROM wallet_entry e WHERE (e.user_id, e.currency, e.number) > ($1, $2, $3)
			ORDER BY e.user_id, e.currency, e.number LIMIT $4`, after.User, string(after.Currency), after.Number, most)
	}
	return readCells(l, wallet.ReadEntryColumns, takeEntry, `
		SELECT `+wallet.ReadEntryColumns+` FROM wallet_entry e WHERE e.user_id = $1 AND (e.currency, e.number) > ($2, $3)
		ORDER BY e.currency, e.number LIMIT $4`, user, string(after.Currency), after.Number, most)
}

// EntriesAt returns the entries that stand at places.
func (l *Snapshot) EntriesAt(places []Place) ([]Entry, error) {
	rows := db.NewTable("user_id text, currency text, number bigint", len(places))
	for _, p := range places {
		rows.Text(p.User, string(p.Currency))
		rows.Int(p.Number)
	}
	return readCells(l, wallet.ReadEntryColumns, takeEntry, `
		SELECT `+wallet.ReadEntryColumns+` FROM `+l.d.Rows(1, "user_id text, currency text, number bigint")+` k CROSS JOIN wallet_entry e
		WHERE e.user_id = k.user_id AND e.currency = k.currency AND e.number = k.number`, rows.Params(l.d)...)
}

// EntriesOf returns the entries of transactions, by transaction and place.
func (l *Snapshot) EntriesOf(transactions []int64) ([]Entry, error) {
	return readCells(l, wallet.ReadEntryColumns, takeEntry, `
		SELECT `+wallet.ReadEntryColumns+` FROM wallet_entry e WHERE e.transaction_id IN `+l.d.IDs(1)+`
		ORDER BY e.transaction_id, e.user_id, e.currency, e.number`, l.d.PackIDs(transactions))
}

// readTransactionColumns are those of transactionColumns, of a table called t.
const readTransactionColumns = `t.id, t.kind, t.trade_id, t.reverses, t.scope, t.idempotency_key, t.note, t.entries, t.at, t.terms, t.version, t.key_id, t.hash`

func takeTransaction(c *cells) (t Transaction) {
	t.ID, t.Kind = c.int(), wallet.Kind(c.text())
	t.Trade, t.Reverses = c.int(), c.int()
	t.Scope, t.IdempotencyKey, t.Note = c.text(), c.text(), c.text()
	t.Entries, t.At, t.Terms = c.int(), time.UnixMicro(c.int()).UTC(), c.hash()
	t.Version, t.KeyID = int(c.int()), c.text()
	t.Hash = c.hash()
	t.Faults = c.faults
	return t
}

// TransactionsOf returns those transactions that there are, by id.
func (l *Snapshot) TransactionsOf(ids []int64) ([]Transaction, error) {
	return readCells(l, readTransactionColumns, takeTransaction, `
		SELECT `+readTransactionColumns+` FROM wallet_transaction t WHERE t.id IN `+l.d.IDs(1)+` ORDER BY t.id`, l.d.PackIDs(ids))
}

// TradeTransactions returns the transactions of trades, by trade and id.
func (l *Snapshot) TradeTransactions(trades []int64) ([]Transaction, error) {
	return readCells(l, readTransactionColumns, takeTransaction, `
		SELECT `+readTransactionColumns+` FROM wallet_transaction t WHERE t.trade_id IN `+l.d.IDs(1)+` AND t.trade_id <> 0 ORDER BY t.trade_id, t.id`,
		l.d.PackIDs(trades))
}

// Reversals returns the transactions that take others back.
func (l *Snapshot) Reversals(of []int64) ([]Transaction, error) {
	return readCells(l, readTransactionColumns, takeTransaction, `
		SELECT `+readTransactionColumns+` FROM wallet_transaction t WHERE t.reverses IN `+l.d.IDs(1)+` AND t.reverses <> 0 ORDER BY t.reverses, t.id`,
		l.d.PackIDs(of))
}

// ReversalsBetween returns those that take back transactions from one id to another.
func (l *Snapshot) ReversalsBetween(from, to int64) ([]Transaction, error) {
	return readCells(l, readTransactionColumns, takeTransaction, `
		SELECT `+readTransactionColumns+` FROM wallet_transaction t WHERE t.reverses >= $1 AND t.reverses <= $2 AND t.reverses <> 0
		ORDER BY t.reverses, t.id`, from, to)
}

// ids reads ids in their order. What is no whole number is none.
func (l *Snapshot) ids(query string, args ...any) ([]int64, error) {
	values, err := readCells(l, "k.id", func(c *cells) cell { return c.values[0] }, query, args...)
	var ids []int64
	for _, v := range values {
		if v.kind == whole {
			ids = append(ids, v.n)
		}
	}
	return ids, err
}

// Transactions lists transactions after an id, by id.
func (l *Snapshot) Transactions(after int64, most int) ([]Transaction, error) {
	return readCells(l, readTransactionColumns, takeTransaction, `
		SELECT `+readTransactionColumns+` FROM wallet_transaction t WHERE t.id > $1 ORDER BY t.id LIMIT $2`, after, most)
}

// KeysRepeat reports whether there are rows of transactions that have one
// idempotency key.
func (l *Snapshot) KeysRepeat() (repeated bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err = l.tx.QueryRowContext(l.ctx, `
		SELECT EXISTS (SELECT 1 FROM wallet_transaction WHERE idempotency_key <> '' GROUP BY scope, idempotency_key HAVING count(*) > 1)`).Scan(&repeated)
	return repeated, err
}

// ScopedTransactions lists ids of transactions that were requested under a scope.
func (l *Snapshot) ScopedTransactions(scope string, after int64, most int) ([]int64, error) {
	return l.ids(`
		SELECT id FROM wallet_transaction WHERE scope = $1 AND idempotency_key <> '' AND id > $2 ORDER BY id LIMIT $3`, scope, after, most)
}

// SameKeys returns, in order, those of the transactions whose idempotency key another one
// has, too.
func (l *Snapshot) SameKeys(ids []int64) ([]int64, error) {
	return l.ids(`
		SELECT t.id FROM wallet_transaction t WHERE t.id IN `+l.d.IDs(1)+` AND t.idempotency_key <> '' AND EXISTS (
			SELECT 1 FROM wallet_transaction o
			WHERE o.scope = t.scope AND o.idempotency_key = t.idempotency_key AND o.idempotency_key <> '' AND o.id <> t.id)
		ORDER BY t.id`, l.d.PackIDs(ids))
}

// readTradeColumns are those of a trade t with its buyer and seller.
const readTradeColumns = `t.id, t.listing_id, coalesce(s.user_id, ''), coalesce(b.user_id, ''), ` + readTradeRest

// tradeNames are their names.
const tradeNames = "t.id, t.listing_id, t.seller_key, t.buyer_key, " + readTradeRest

const readTradeRest = `t.app_id, t.context_id, t.asset_id, t.item_id, t.amount, t.price, t.currency, t.payment_method, t.country, t.fee, t.net,
	t.fee_rule, t.fee_version, t.transaction_id, t.state, t.created_at, t.completed_at, t.settle_at, t.settled_at, t.reversed_at,
	t.volume, t.ranked, t.version, t.key_id, t.mac`

func takeTrade(c *cells) (t Trade) {
	t.ID, t.Listing, t.Seller, t.Buyer = c.int(), c.int(), c.text(), c.text()
	t.AppID, t.ContextID, t.AssetID, t.Item, t.Amount = c.int(), c.text(), c.text(), c.int(), c.int()
	t.Price, t.Currency, t.PaymentMethod, t.Country = c.int(), money.Currency(c.text()), c.text(), c.text()
	t.Fee, t.Net, t.FeeRule, t.FeeVersion = c.int(), c.int(), c.text(), c.int()
	t.Transaction, t.State = c.int(), c.text()
	t.CreatedAt, t.CompletedAt, t.SettleAt, t.SettledAt, t.ReversedAt = db.Moment(c.int()), db.Moment(c.int()), db.Moment(c.int()), db.Moment(c.int()), db.Moment(c.int())
	t.Volume, t.Ranked = c.int(), c.int()
	t.Version, t.KeyID, t.MAC = int(c.int()), c.text(), c.hash()
	t.Faults = c.faults
	return t
}

// TradesOf returns those trades that there are, by id.
func (l *Snapshot) TradesOf(ids []int64) ([]Trade, error) {
	return readCells(l, tradeNames, takeTrade, `
		SELECT `+readTradeColumns+` FROM trade t LEFT JOIN platform_user s ON s.id = t.seller_key LEFT JOIN platform_user b ON b.id = t.buyer_key
		WHERE t.id IN `+l.d.IDs(1)+` ORDER BY t.id`, l.d.PackIDs(ids))
}

// userKey is the key of the user whose id is $3: the first one, where somebody made
// others of that id.
const userKey = `(SELECT min(id) FROM platform_user WHERE user_id = $3)`

// Trades lists trades that a user has part in.
func (l *Snapshot) Trades(user string, after int64, most int) ([]Trade, error) {
	if user == "" {
		return readCells(l, tradeNames, takeTrade, `
			SELECT `+readTradeColumns+` FROM trade t LEFT JOIN platform_user s ON s.id = t.seller_key LEFT JOIN platform_user b ON b.id = t.buyer_key
			WHERE t.id > $1 ORDER BY t.id LIMIT $2`, after, most)
	}
	return readCells(l, tradeNames, takeTrade, `
		SELECT `+readTradeColumns+` FROM trade t LEFT JOIN platform_user s ON s.id = t.seller_key LEFT JOIN platform_user b ON b.id = t.buyer_key
		WHERE t.id IN (
			SELECT id FROM trade WHERE seller_key = `+userKey+` UNION SELECT id FROM trade WHERE buyer_key = `+userKey+`)
		AND t.id > $1 ORDER BY t.id LIMIT $2`, after, most, user)
}

// listed is whether a listing is that of a trade.
const listed = `coalesce(l.state = 'sold' AND l.seller_key = t.seller_key AND l.app_id = t.app_id AND l.context_id = t.context_id
	AND l.asset_id = t.asset_id AND l.item_id = t.item_id AND l.amount = t.amount AND l.price = t.price AND l.currency = t.currency AND l.ended_at = t.created_at, FALSE)`

const unlisted = `SELECT t.id, t.listing_id FROM trade t LEFT JOIN listing l ON l.id = t.listing_id WHERE t.id > $1 AND NOT ` + listed

// Unlisted lists trades that a user has part in, after an id, whose listing is not
// there or is another one.
func (l *Snapshot) Unlisted(user string, after int64, most int) ([]Unlisted, error) {
	take := func(c *cells) Unlisted { return Unlisted{Trade: c.int(), Listing: c.int()} }
	if user == "" {
		return readCells(l, "t.id, t.listing_id", take, unlisted+` ORDER BY t.id LIMIT $2`, after, most)
	}
	return readCells(l, "t.id, t.listing_id", take, unlisted+` AND t.id IN (
			SELECT id FROM trade WHERE seller_key = `+userKey+` UNION SELECT id FROM trade WHERE buyer_key = `+userKey+`)
		ORDER BY t.id LIMIT $2`, after, most, user)
}

const untraded = `
SELECT l.id FROM listing l WHERE l.id > $1 AND l.state = 'sold' AND NOT EXISTS (SELECT 1 FROM trade t WHERE t.listing_id = l.id)`

// Untraded lists listings of a user, after an id, that were sold in no trade.
func (l *Snapshot) Untraded(user string, after int64, most int) ([]int64, error) {
	if user == "" {
		return l.ids(untraded+` ORDER BY l.id LIMIT $2`, after, most)
	}
	return l.ids(untraded+` AND l.seller_key = `+userKey+` ORDER BY l.id LIMIT $2`, after, most, user)
}

// Twins lists ids, after one, that several users have.
func (l *Snapshot) Twins(user, after string, most int) ([]string, error) {
	if user == "" {
		return readCells(l, "u.user_id", (*cells).text, `
			SELECT u.user_id FROM platform_user u WHERE u.user_id > $1 GROUP BY u.user_id HAVING count(*) > 1 ORDER BY u.user_id LIMIT $2`, after, most)
	}
	return readCells(l, "u.user_id", (*cells).text, `
		SELECT u.user_id FROM platform_user u WHERE u.user_id > $1 AND u.user_id = $3 GROUP BY u.user_id HAVING count(*) > 1 LIMIT $2`, after, most, user)
}

const ruleColumns = `r.version, r.digest, r.source, r.mark, r.activated_at, r.activated_by, r.previous_mac, r.seal_version, r.key_id, r.mac`

func takeRules(c *cells) (r Rules) {
	r.Number, r.Digest, r.Source, r.Mark = c.int(), c.text(), c.text(), c.text()
	r.At, r.By, r.Previous = time.UnixMicro(c.int()).UTC(), c.text(), c.hash()
	r.Version, r.KeyID, r.MAC = int(c.int()), c.text(), c.hash()
	r.Faults = c.faults
	return r
}

// FeeVersions lists the versions of the fee rules after one.
func (l *Snapshot) FeeVersions(after int64, most int) ([]Rules, error) {
	return readCells(l, ruleColumns, takeRules, `SELECT `+ruleColumns+` FROM fee_rule_set r WHERE r.version > $1 ORDER BY r.version LIMIT $2`, after, most)
}

// FeeRules returns the text of a version of the fee rules; found is false where there
// is none. The error is an ErrFeeRules where that cannot be read, or does not have
// the version's digest.
// It reads them again, whatever was read before.
func (l *Snapshot) FeeRules(version int64) (set *fee.Set, found bool, err error) {
	type stored struct {
		text, digest string
		faults       []string
	}
	rows, err := readCells(l, "r.rules, r.digest", func(c *cells) stored { return stored{c.text(), c.text(), c.faults} },
		`SELECT r.rules, r.digest FROM fee_rule_set r WHERE r.version = $1`, version)
	if err != nil || len(rows) == 0 {
		return nil, false, err
	}
	if set, err = fee.Decode(strings.NewReader(rows[0].text)); err != nil {
		return nil, true, fmt.Errorf("%w: version %d cannot be read", ErrFeeRules, version)
	}
	text, digest, err := set.Canonical()
	if err != nil {
		return nil, true, err
	}
	if len(rows) > 1 || string(text) != rows[0].text || digest != rows[0].digest {
		return nil, true, fmt.Errorf("%w: version %d is not what was activated", ErrFeeRules, version)
	}
	set.Version = version
	return set, true, nil
}
