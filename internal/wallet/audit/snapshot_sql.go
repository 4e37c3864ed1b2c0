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

// Snapshot is a consistent view of the ledger, the trades and the fee rules. Its methods
// do not trust the stored rows: rows may be missing, repeated or have invalid values.
// Invalid values are listed in the faults of the row. An empty user selects all users.
// Lists are ordered and have at most the requested number of rows. A Snapshot is safe for
// concurrent use.
type Snapshot struct {
	d    db.Dialect
	ctx  context.Context //nolint:containedctx // a snapshot exists only during one call of ReadLedger and uses its context
	mu   sync.Mutex      // guards the fields below
	conn *sql.Conn       // connection of the transaction
	tx   *sql.Tx
	db   *db.DB

	loosened bool // for tests: Schema reports no changes
}

// ReadLedger calls use with a snapshot of the ledger. It blocks no other process and
// changes nothing.
func ReadLedger(ctx context.Context, s *db.DB, use func(*Snapshot) error) error {
	return readLedger(ctx, s, use)
}

func readLedger(ctx context.Context, d *db.DB, use func(*Snapshot) error) error {
	return d.Snapshot(ctx, func(conn *sql.Conn, tx *sql.Tx) error {
		l := &Snapshot{d: d.Dialect, ctx: ctx, conn: conn, tx: tx, db: d}
		if d.Dialect == db.PostgreSQL {
			if _, err := tx.ExecContext(ctx, rowSecurityOffOnPostgres); err != nil {
				return err
			}
			return use(l)
		}
		if _, err := tx.ExecContext(ctx, sortInFileOnSQLite); err != nil {
			return err
		}
		err := use(l)
		_, restored := tx.ExecContext(context.WithoutCancel(ctx), sortInMemoryOnSQLite)
		return errors.Join(err, restored)
	})
}

// A verification sorts in a temporary file, because some statements compare more rows than
// should be in memory. It uses a larger cache, because some statements look up entries of
// many accounts.
const (
	sortInFileOnSQLite   = `PRAGMA temp_store = FILE; PRAGMA cache_size = -8000`
	sortInMemoryOnSQLite = `PRAGMA temp_store = MEMORY; PRAGMA cache_size = -2000`
)

// ReadLedgerBeside does the same as ReadLedger without opening the database for writing.
// On SQLite it needs no lock, so it can run beside the process that holds the lock.
func ReadLedgerBeside(ctx context.Context, o db.Options, use func(*Snapshot) error) (err error) {
	d, err := db.OpenUnlocked(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return readLedger(ctx, d, use)
}

// Count returns the numbers of rows of the ledger.
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

// Heads returns the accounts that follow the given one.
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

// HeadsOf returns the rows of the given accounts. It omits missing ones.
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

// Entries returns the entries that follow the given one, ordered by account and number.
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

// EntriesAt returns the entries at the given places.
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

// EntriesOf returns the entries of transactions, ordered by transaction, account and
// number.
func (l *Snapshot) EntriesOf(transactions []int64) ([]Entry, error) {
	return readCells(l, wallet.ReadEntryColumns, takeEntry, `
		SELECT `+wallet.ReadEntryColumns+` FROM wallet_entry e WHERE e.transaction_id `+l.d.OneOf(1)+`
		ORDER BY e.transaction_id, e.user_id, e.currency, e.number`, l.d.EncodeIDs(transactions))
}

// readTransactionColumns are the columns of a transaction, of a table called t.
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

// transactions calls a function for each transaction of a scope, ordered by id.
func (l *Snapshot) transactions(s scope, use func(*Transaction) error) error {
	text, args := l.scopedQuery(s, readTransactionColumns, `wallet_transaction t WHERE {mine t.id} ORDER BY t.id`)
	return eachCells(l, readTransactionColumns, takeTransaction, use, text, args...)
}

// leg is an entry with the previous entry and the row of its account. Missing rows are
// zero.
type leg struct {
	Entry
	previous Entry
	head     Head
}

// foreignLegs calls a function for each entry that the user's transactions have in other
// users' accounts.
func (l *Snapshot) foreignLegs(s scope, use func(*leg) error) error {
	columns := wallet.ReadEntryColumns + ", " + strings.ReplaceAll(wallet.ReadEntryColumns, "e.", "p.") + ", " + wallet.HeadColumns
	text, args := l.scopedQuery(s, columns, `wallet_entry e
			LEFT JOIN wallet_entry p ON p.user_id = e.user_id AND p.currency = e.currency AND p.number = CASE WHEN e.number > 1 THEN e.number - 1 END
			LEFT JOIN wallet_account w ON w.user_id = e.user_id AND w.currency = e.currency
		WHERE {mine e.transaction_id} AND e.user_id NOT IN (SELECT id FROM names)`)
	return eachCells(l, columns, func(c *cells) (g leg) {
		g.Entry = takeEntry(c)
		c.faults = nil // all columns of a missing row are NULL, which is no fault
		g.previous, g.head = takeEntry(c), takeHead(c)
		return g
	}, use, text, args...)
}

// covering is the digest of a trade's terms that a transaction covers.
type covering struct {
	id, trade int64
	kind      wallet.Kind
	terms     wallet.Hash
}

// coverings returns the digests that transactions cover, ordered by trade.
func (l *Snapshot) coverings(trades []int64) ([]covering, error) {
	return readCells(l, "t.id, t.trade_id, t.kind, t.terms", func(c *cells) covering {
		return covering{id: c.int(), trade: c.int(), kind: wallet.Kind(c.text()), terms: c.hash()}
	}, `SELECT t.id, t.trade_id, t.kind, t.terms FROM wallet_transaction t WHERE t.trade_id `+l.d.OneOf(1)+` AND t.trade_id <> 0 ORDER BY t.trade_id`, l.d.EncodeIDs(trades))
}

// readTradeColumns are the columns of a trade t with its buyer and seller.
const readTradeColumns = `t.id, t.listing_id, coalesce(s.user_id, ''), coalesce(b.user_id, ''), ` + readTradeRest

// tradeNames are the names of the columns in readTradeColumns.
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

const tradesAndUsers = ` FROM trade t LEFT JOIN platform_user s ON s.id = t.seller_key LEFT JOIN platform_user b ON b.id = t.buyer_key `

// trades returns the trades that follow an id.
func (l *Snapshot) trades(after int64, most int) ([]Trade, error) {
	return readCells(l, tradeNames, takeTrade, `SELECT `+readTradeColumns+tradesAndUsers+`WHERE t.id > $1 ORDER BY t.id LIMIT $2`, after, most)
}

// tradesOf returns the trades with the given ids, ordered by id. It omits missing ones.
func (l *Snapshot) tradesOf(ids []int64) ([]Trade, error) {
	return readCells(l, tradeNames, takeTrade, `SELECT `+readTradeColumns+tradesAndUsers+`WHERE t.id `+l.d.OneOf(1)+` ORDER BY t.id`, l.d.EncodeIDs(ids))
}

// userTrades returns the ids of the trades of the user's transactions.
func (l *Snapshot) userTrades(s scope) (ids []int64, err error) {
	text, args := l.scopedQuery(s, "d.id", `deals d ORDER BY d.id`)
	err = eachCells(l, "d.id", func(c *cells) cell { return c.values[0] }, func(v *cell) error {
		if v.kind == whole {
			ids = append(ids, v.n)
		}
		return nil
	}, text, args...)
	return ids, err
}

const ruleColumns = `r.version, r.digest, r.source, r.mark, r.activated_at, r.activated_by, r.previous_mac, r.seal_version, r.key_id, r.mac`

func takeRules(c *cells) (r Rules) {
	r.Number, r.Digest, r.Source, r.Mark = c.int(), c.text(), c.text(), c.text()
	r.At, r.By, r.Previous = time.UnixMicro(c.int()).UTC(), c.text(), c.hash()
	r.Version, r.KeyID, r.MAC = int(c.int()), c.text(), c.hash()
	r.Faults = c.faults
	return r
}

// FeeVersions returns the versions of the fee rules that follow the given one.
func (l *Snapshot) FeeVersions(after int64, most int) ([]Rules, error) {
	return readCells(l, ruleColumns, takeRules, `SELECT `+ruleColumns+` FROM fee_rule_set r WHERE r.version > $1 ORDER BY r.version LIMIT $2`, after, most)
}

// FeeRules returns a version of the fee rules. found is false if it does not exist. The
// error is ErrFeeRules if the text is unreadable or does not match the digest. It does not
// use a cache.
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
		return nil, true, fmt.Errorf("%w: version %d does not match its digest", ErrFeeRules, version)
	}
	set.Version = version
	return set, true, nil
}
