package audit

import (
	"fmt"
	"regexp"
	"strings"

	"assay/internal/money"
	"assay/internal/wallet"
)

// scope is whose rows are verified. The zero scope is everything.
type scope struct {
	names    []string // the user, or the shards of a house account
	requests []string // scopes of the idempotency keys of requests about the user
}

// related is what a statement found of rows that do not go together.
type related struct {
	check       check
	transaction int64 // 0: the finding names no transaction
	changed     bool  // the transaction is not the one that its entries cover
	Finding
}

// statements compare rows with each other. Each selects what is wrong: the check's name,
// the transaction, the place of the entry, what is expected and there, the message, and
// whether the transaction is not the one that its entries cover. The seals of the rows
// themselves are verified while they are read.
func statements() []string {
	return []string{
		transactionsFitEntries, entriesFitTransactions, transactionsFitTrades, tradesFitTransactions, kindsOfTradesRepeat,
		heldFitsTrades, reversalsFitEntries, reversalsFitTransactions, reversalsRepeat, keysRepeat, listingsFitTrades, usersRepeat,
	}
}

// Conditions under which an entry e differs from its transaction t, or from the market's row
// d of the trade between seller s and buyer b.
const (
	stray = `(e.trade_id IS DISTINCT FROM t.trade_id OR e.idempotency_key IS DISTINCT FROM t.idempotency_key OR e.at IS DISTINCT FROM t.at
	OR e.posting_hash IS DISTINCT FROM t.hash OR t.kind <> 'sale' AND (e.fee_rule <> '' OR e.fee_version <> 0) OR t.kind = 'reversal' AND e.reverses = 0)`
	otherAmount = `(e.amount IS DISTINCT FROM CASE e.type WHEN 'purchase' THEN -{amount d.price} WHEN 'sale' THEN d.net WHEN 'fee' THEN d.fee
	WHEN 'release' THEN -{amount d.net} WHEN 'free' THEN d.net ELSE e.amount END)`
	otherUser = `(e.user_id IS DISTINCT FROM CASE e.type WHEN 'purchase' THEN b.user_id WHEN 'sale' THEN s.user_id WHEN 'release' THEN s.user_id WHEN 'free' THEN s.user_id
	WHEN 'completion' THEN CASE WHEN e.user_id = b.user_id THEN b.user_id ELSE s.user_id END ELSE e.user_id END)`
	otherRule = `(t.kind = 'sale' AND (e.fee_rule IS DISTINCT FROM d.fee_rule OR e.fee_version IS DISTINCT FROM d.fee_version))`
)

// transactionsFitEntries: a transaction has the entries that it was posted with, they are
// those of its kind and trade, and they add up to nothing in one currency. The shape is a
// sum of powers of four, one for each type of entry of a user or of the house.
const transactionsFitEntries = `(
WITH legs AS (
	SELECT t.id, min(t.kind) AS kind, min(t.entries) AS entries, count(e.transaction_id) AS n,
		coalesce({sum e.amount}, 0) AS total, count(e.transaction_id) - count({amount e.amount}) AS absurd,
		min(e.currency) AS low, max(e.currency) AS high,
		sum(CASE WHEN e.user_id >= 'house:' AND e.user_id < 'house;' THEN CASE
				WHEN e.type = 'deposit' AND e.user_id > 'house:deposit:' AND e.user_id < 'house:deposit;' THEN 1
				WHEN e.type = 'withdrawal' AND e.user_id > 'house:withdrawal:' AND e.user_id < 'house:withdrawal;' THEN 4
				WHEN e.type = 'correction' AND e.user_id > 'house:correction:' AND e.user_id < 'house:correction;' THEN 16
				WHEN e.type = 'fee' AND e.user_id > 'house:fee:' AND e.user_id < 'house:fee;' AND e.amount >= 0 THEN 64
				ELSE 1048576 END
			WHEN e.type = 'sale' THEN CASE WHEN e.amount >= 0 THEN 65536 ELSE 1048576 END
			WHEN e.type = 'purchase' THEN CASE WHEN e.amount < 0 THEN 16384 ELSE 1048576 END
			WHEN e.type = 'completion' THEN CASE WHEN e.amount <> 0 THEN 1048576 WHEN e.user_id = b.user_id THEN 67108864 ELSE 262144 END
			WHEN e.type = 'deposit' THEN CASE WHEN e.amount > 0 THEN 256 ELSE 1048576 END
			WHEN e.type = 'withdrawal' THEN CASE WHEN e.amount < 0 THEN 1024 ELSE 1048576 END
			WHEN e.type = 'correction' THEN CASE WHEN e.amount <> 0 THEN 4096 ELSE 1048576 END
			WHEN e.type = 'release' THEN CASE WHEN e.amount <= 0 THEN 4194304 ELSE 1048576 END
			WHEN e.type = 'free' THEN CASE WHEN e.amount >= 0 THEN 16777216 ELSE 1048576 END
			ELSE 1048576 END) AS shape,
		sum(CASE WHEN ` + stray + ` OR d.id IS NOT NULL AND (e.currency IS DISTINCT FROM d.currency
			OR ` + otherAmount + ` OR ` + otherUser + ` OR ` + otherRule + `) THEN 1 ELSE 0 END) AS different
	FROM wallet_transaction t LEFT JOIN trade d ON d.id = t.trade_id AND t.trade_id <> 0
		LEFT JOIN platform_user s ON s.id = d.seller_key LEFT JOIN platform_user b ON b.id = d.buyer_key
		LEFT JOIN wallet_entry e ON e.transaction_id = t.id
	WHERE {mine t.id} GROUP BY t.id
), wrong AS MATERIALIZED (
	SELECT f.* FROM (
		SELECT l.*, CASE l.kind
			WHEN 'reversal' THEN FALSE
			WHEN 'deposit' THEN l.n <> 2 OR l.shape <> 257
			WHEN 'withdrawal' THEN l.n <> 2 OR l.shape <> 1028
			WHEN 'correction' THEN l.n <> 2 OR l.shape <> 4112
			WHEN 'sale' THEN l.n <> 3 OR l.shape <> 81984
			WHEN 'completion' THEN l.n <> 2 OR l.shape <> 67371008
			WHEN 'settlement' THEN l.n <> 2 OR l.shape <> 20971520
			ELSE TRUE END AS misshapen
		FROM legs l
	) f WHERE f.misshapen OR f.n IS DISTINCT FROM f.entries OR f.total <> 0 OR f.absurd <> 0 OR f.low <> f.high OR f.different <> 0
), traded AS (
	SELECT e.transaction_id, e.user_id, e.currency, e.number, e.type, t.trade_id, concat_ws(', ', CASE WHEN ` + otherAmount + ` THEN 'amount' END,
		CASE WHEN ` + otherRule + ` THEN 'fee rule' END, CASE WHEN ` + otherUser + ` THEN 'user' END, CASE WHEN e.currency IS DISTINCT FROM d.currency THEN 'currency' END) AS other
	FROM wrong w CROSS JOIN wallet_transaction t CROSS JOIN trade d CROSS JOIN wallet_entry e
		LEFT JOIN platform_user s ON s.id = d.seller_key LEFT JOIN platform_user b ON b.id = d.buyer_key
	WHERE t.id = w.id AND d.id = t.trade_id AND t.trade_id <> 0 AND e.transaction_id = w.id
)
SELECT 'tx_balanced' AS name, w.id AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, '0' AS expected, CAST(w.total AS text) AS actual,
	'its entries do not add up to nothing.' AS message, 0 AS changed FROM wrong w WHERE w.total <> 0 OR w.absurd <> 0
UNION ALL SELECT 'currency_single', w.id, '', '', 0, w.low, w.high, 'its entries are in several currencies.', 0 FROM wrong w WHERE w.low <> w.high
UNION ALL SELECT 'tx_complete', w.id, '', '', 0, CAST(w.entries AS text), CAST(w.n AS text), 'its entries are not as many as it was posted with.', 0
	FROM wrong w WHERE w.n IS DISTINCT FROM w.entries
UNION ALL SELECT 'tx_complete', w.id, '', '', 0, 'the entries of a ' || w.kind, 'entries of another type, account or sign', 'it does not match its kind.', 0
	FROM wrong w WHERE w.n = w.entries AND w.misshapen
UNION ALL SELECT 'rounding_residue', w.id, '', '', 0, '0', CAST(w.total AS text), 'the buyer''s payment is not the sum of the seller''s credit and the fee.', 0
	FROM wrong w WHERE w.kind = 'sale' AND w.total <> 0
UNION ALL SELECT 'trade_crosscheck', w.id, '', '', 0, 'a purchase, a credit and a fee', 'other entries', 'its buyer has not paid, its seller has no credit, or no fee was charged.', 0
	FROM wrong w WHERE w.kind = 'sale' AND w.misshapen
UNION ALL SELECT 'fee_crosscheck', w.id, '', '', 0, 'a price and a fee', 'other entries', 'it cannot be worked out what the sale costs.', 0
	FROM wrong w WHERE w.kind = 'sale' AND w.misshapen
UNION ALL SELECT 'tx_complete', e.transaction_id, e.user_id, e.currency, e.number, 'what the transaction posted', concat_ws(', ',
		CASE WHEN e.trade_id IS DISTINCT FROM t.trade_id THEN 'trade_id' END, CASE WHEN e.idempotency_key IS DISTINCT FROM t.idempotency_key THEN 'idempotency_key' END,
		CASE WHEN e.at IS DISTINCT FROM t.at THEN 'at' END, CASE WHEN e.posting_hash IS DISTINCT FROM t.hash THEN 'posting_hash' END,
		CASE WHEN t.kind <> 'sale' AND (e.fee_rule <> '' OR e.fee_version <> 0) THEN 'fee_rule, fee_version' END,
		CASE WHEN t.kind = 'reversal' AND e.reverses = 0 THEN 'reverses' END),
	'the entry and its transaction differ.', CASE WHEN e.posting_hash IS DISTINCT FROM t.hash THEN 1 ELSE 0 END
	FROM wrong w CROSS JOIN wallet_transaction t CROSS JOIN wallet_entry e WHERE t.id = w.id AND e.transaction_id = w.id AND ` + stray + `
UNION ALL SELECT c.name, x.transaction_id, x.user_id, x.currency, x.number, 'what trade ' || x.trade_id || ' says', 'another ' || x.other, 'the entry and the trade differ.', 0
	FROM traded x JOIN (SELECT 'trade_crosscheck' AS name, '' AS kind UNION ALL SELECT 'fee_crosscheck', 'fee'
		UNION ALL SELECT 'hold_lifecycle', 'release' UNION ALL SELECT 'hold_lifecycle', 'free') c ON c.kind IN ('', x.type)
	WHERE x.other <> ''
)`

// entriesFitTransactions: the transaction of an entry is there.
const entriesFitTransactions = `(
SELECT 'tx_complete' AS name, e.transaction_id, e.user_id, e.currency, e.number, 'a transaction' AS expected, 'none' AS actual,
	'entries name it, and it is not there.' AS message, 0 AS changed
FROM wallet_entry e WHERE {mine e.transaction_id} AND NOT EXISTS (SELECT 1 FROM wallet_transaction t WHERE t.id = e.transaction_id)
)`

// transactionsFitTrades: the trade of a transaction is there.
const transactionsFitTrades = `(
SELECT c.name, t.id AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, 'trade ' || t.trade_id AS expected, 'none' AS actual,
	'money was moved or held for a trade that is not there.' AS message, 1 AS changed
FROM wallet_transaction t JOIN (SELECT 'trade_crosscheck' AS name, '' AS kind UNION ALL SELECT 'hold_lifecycle', 'sale') c ON c.kind IN ('', t.kind)
WHERE {mine t.id} AND t.trade_id <> 0 AND NOT EXISTS (SELECT 1 FROM trade d WHERE d.id = t.trade_id)
)`

// tradesFitTransactions: the ledger has the transactions of a trade that its state and
// times say, one after the other.
const tradesFitTransactions = `(
WITH wrong AS MATERIALIZED (
	SELECT t.id, coalesce(s.id, t.transaction_id, 0) AS transaction_id, CASE WHEN s.id IS NULL THEN 'the ledger has no sale' ELSE concat_ws('; ',
			CASE WHEN t.seller_key = t.buyer_key THEN 'its buyer is its seller' END,
			CASE WHEN t.transaction_id IS DISTINCT FROM s.id THEN 'its sale is another transaction' END,
			CASE WHEN s.note IS DISTINCT FROM CASE WHEN t.payment_method = '' AND t.country = '' THEN '' ELSE t.payment_method || '/' || t.country END
				THEN 'it was paid by another method, or from another country' END,
			CASE WHEN {amount t.price} IS DISTINCT FROM {amount t.fee} + {amount t.net} THEN 'its price is not its fee and what the seller gets' END,
			CASE WHEN t.state IS DISTINCT FROM CASE WHEN f.id IS NOT NULL AND r.id IS NOT NULL THEN 'settled and reversed' WHEN f.id IS NOT NULL THEN 'settled'
				WHEN r.id IS NOT NULL THEN 'reversed' WHEN c.id IS NOT NULL THEN 'completed' ELSE 'pending' END THEN 'its state is another one' END,
			CASE WHEN t.created_at IS DISTINCT FROM s.at THEN 'it was sold at another time' END,
			CASE WHEN t.completed_at IS DISTINCT FROM coalesce(c.at, 0) THEN 'it was completed at another time' END,
			CASE WHEN t.settled_at IS DISTINCT FROM coalesce(f.at, 0) THEN 'it was settled at another time' END,
			CASE WHEN t.reversed_at IS DISTINCT FROM coalesce(r.at, 0) THEN 'it was reversed at another time' END,
			CASE WHEN f.at < t.settle_at THEN 'it was settled too early' END) END AS market,
		CASE WHEN c.id IS NOT NULL AND c.id <= coalesce(s.id, c.id) THEN 'a completion of what was not sold'
			WHEN f.id IS NOT NULL AND f.id <= coalesce(c.id, f.id) THEN 'a settlement of what was not completed'
			WHEN c.id > r.id THEN 'a completion of what was reversed'
			WHEN r.id IS NOT NULL AND r.id <= coalesce(s.id, r.id) THEN 'a reversal of what was not sold'
			WHEN f.id IS NOT NULL AND r.id IS NOT NULL THEN 'settled and reversed'
			WHEN s.id IS NOT NULL AND (f.id IS NULL AND t.state = 'settled' OR r.id IS NULL AND t.state = 'reversed') THEN 'still held, and the trade is ' || t.state
			ELSE '' END AS hold
	FROM trade t
		LEFT JOIN wallet_transaction s ON s.trade_id = t.id AND s.trade_id <> 0 AND s.kind = 'sale'
		LEFT JOIN wallet_transaction c ON c.trade_id = t.id AND c.trade_id <> 0 AND c.kind = 'completion'
		LEFT JOIN wallet_transaction f ON f.trade_id = t.id AND f.trade_id <> 0 AND f.kind = 'settlement'
		LEFT JOIN wallet_transaction r ON r.trade_id = t.id AND r.trade_id <> 0 AND r.kind = 'reversal'
	WHERE {deals t.id}
)
SELECT 'trade_crosscheck' AS name, w.transaction_id, '' AS user_id, '' AS currency, 0 AS number, 'trade ' || w.id || ' as the market has it' AS expected, w.market AS actual,
	'the market and the ledger differ.' AS message, 0 AS changed FROM wrong w WHERE w.market <> ''
UNION ALL SELECT 'hold_lifecycle', w.transaction_id, '', '', 0, 'what is held for trade ' || w.id || ', released once', w.hold,
	'what is held for the trade does not match its state.', 0 FROM wrong w WHERE w.hold <> ''
)`

// kindsOfTradesRepeat: a trade has one transaction of a kind at most, and of no other kinds.
const kindsOfTradesRepeat = `(
SELECT 'hold_lifecycle' AS name, max(t.id) AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, 'what is held for trade ' || t.trade_id || ', released once' AS expected,
	'too many of: ' || t.kind AS actual, 'what is held for the trade does not match its state.' AS message, 0 AS changed
FROM wallet_transaction t WHERE {deals t.trade_id} AND t.trade_id <> 0 GROUP BY t.trade_id, t.kind
HAVING count(*) > 1 OR t.kind NOT IN ('sale', 'completion', 'settlement', 'reversal')
)`

// heldFitsTrades: an account holds the credits of its open sales, and no more.
const heldFitsTrades = `(
SELECT 'running_held' AS name, 0 AS transaction_id, h.user_id, h.currency, 0 AS number, 'the credits of its open sales' AS expected, CAST({sum h.held} AS text) || ' more' AS actual,
	'What the account holds is not the sum of its sales that are neither settled nor reversed.' AS message, 0 AS changed
FROM (
	SELECT a.user_id, a.currency, a.held AS held FROM wallet_account a WHERE {names a.user_id} AND a.held <> 0
	UNION ALL
	SELECT coalesce(s.user_id, ''), t.currency, -{amount t.net} FROM trade t LEFT JOIN platform_user s ON s.id = t.seller_key
	WHERE {keys t.seller_key} AND t.state IN ('pending', 'completed')
) h GROUP BY h.user_id, h.currency HAVING {sum h.held} <> 0
)`

// reversalsFitEntries: an entry that takes another one back is its opposite, and of the
// transaction that its own takes back.
const reversalsFitEntries = `(
SELECT 'reversal_link' AS name, e.transaction_id, e.user_id, e.currency, e.number, 'the opposite of entry ' || e.reverses AS expected, 'something else' AS actual,
	'the entry is not the opposite of what it takes back.' AS message, 0 AS changed
FROM wallet_entry e LEFT JOIN wallet_transaction t ON t.id = e.transaction_id
	LEFT JOIN wallet_entry o ON o.user_id = e.user_id AND o.currency = e.currency AND o.number = e.reverses
WHERE {mine e.transaction_id} AND e.reverses <> 0 AND NOT coalesce(
	t.kind = 'reversal' AND o.transaction_id = t.reverses AND o.number < e.number AND e.amount = -{amount o.amount}
	AND e.type = CASE o.type WHEN 'sale' THEN 'saleReversal' ELSE 'reversal' END, FALSE)
)`

// reversalsFitTransactions: a transaction takes back, entry by entry, one of its trade that
// can be taken back.
const reversalsFitTransactions = `(
SELECT 'reversal_link' AS name, t.id AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, 'a transaction that can be taken back' AS expected,
	coalesce(o.kind, 'none') AS actual, 'it takes back what is not there, is of another kind or trade, or has other entries; or it is no reversal.' AS message, 0 AS changed
FROM wallet_transaction t LEFT JOIN wallet_transaction o ON o.id = t.reverses
WHERE {mine t.id} AND (t.kind = 'reversal' OR t.reverses <> 0) AND NOT coalesce(
	t.kind = 'reversal' AND o.id <> t.id AND o.trade_id = t.trade_id AND o.kind IN ('deposit', 'withdrawal', 'correction', 'sale') AND o.entries = t.entries, FALSE)
)`

// reversalsRepeat: what was taken back was taken back once.
const reversalsRepeat = `(
SELECT 'reversal_link' AS name, t.reverses AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, '1' AS expected, CAST(count(*) AS text) AS actual,
	'it was taken back more than once.' AS message, 0 AS changed
FROM wallet_transaction t WHERE {mine t.reverses} AND t.reverses <> 0 GROUP BY t.reverses HAVING count(*) > 1
UNION ALL
SELECT 'reversal_link', max(e.transaction_id), e.user_id, e.currency, e.reverses, '1', CAST(count(*) AS text), 'the entry was taken back more than once.', 0
FROM wallet_entry e WHERE {mine e.transaction_id} AND e.reverses <> 0 GROUP BY e.user_id, e.currency, e.reverses HAVING count(*) > 1
)`

// keysRepeat: an idempotency key counts once.
const keysRepeat = `(
SELECT 'idempotency_unique' AS name, max(t.id) AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, 'one transaction' AS expected, CAST(count(*) AS text) AS actual,
	'another one was posted with the same idempotency key, which counts once.' AS message, 0 AS changed
FROM wallet_transaction t WHERE {requests t.scope} AND t.idempotency_key <> '' GROUP BY t.scope, t.idempotency_key HAVING count(*) > 1
)`

// listingsFitTrades: a trade is that of a listing that it sold, and every listing that was
// sold is that of a trade.
const listingsFitTrades = `(
SELECT 'trade_crosscheck' AS name, 0 AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, 'listing ' || t.listing_id || ', sold by trade ' || t.id AS expected,
	'none, or another one' AS actual, 'Trade ' || t.id || ' does not match its listing.' AS message, 0 AS changed
FROM trade t LEFT JOIN listing l ON l.id = t.listing_id
WHERE {own t.id} AND NOT coalesce(l.state = 'sold' AND l.seller_key = t.seller_key AND l.app_id = t.app_id AND l.context_id = t.context_id
	AND l.asset_id = t.asset_id AND l.item_id = t.item_id AND l.amount = t.amount AND l.price = t.price AND l.currency = t.currency AND l.ended_at = t.created_at, FALSE)
UNION ALL
SELECT 'trade_crosscheck', 0, '', '', 0, 'a trade', 'none', 'Listing ' || l.id || ' is sold, and no trade names it.', 0
FROM listing l WHERE {keys l.seller_key} AND l.state = 'sold' AND NOT EXISTS (SELECT 1 FROM trade t WHERE t.listing_id = l.id)
)`

// usersRepeat: an id leads to one user.
const usersRepeat = `(
SELECT 'schema_valid' AS name, 0 AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, 'one user of the id ' || substr(u.user_id, 1, 256) AS expected, 'several' AS actual,
	'Another user with that id exists, so it is unknown which trades belong to which user.' AS message, 0 AS changed
FROM platform_user u WHERE {names u.user_id} GROUP BY u.user_id HAVING count(*) > 1
)`

// marker is a part of a statement that depends on the scope, or an amount. Amounts are
// bounded, and added up in two parts, so that whatever is stored no sum overflows.
var marker = regexp.MustCompile(`\{(\w+) (\w\.\w+)\}`)

// scoped fills in the markers of a statement. Of a user it selects those rows that a list
// of ids names.
func (s scope) scoped(statement string) string {
	return marker.ReplaceAllStringFunc(statement, func(m string) string {
		list, column, _ := strings.Cut(strings.Trim(m, "{}"), " ")
		const bounded = "(CASE WHEN %[1]s BETWEEN -%[2]d AND %[2]d THEN %[1]s END)"
		switch {
		case list == "amount":
			return fmt.Sprintf(bounded, column, int64(wallet.MaxAmount))
		case list == "sum":
			return fmt.Sprintf("(sum(%[1]s / 1048576) * 1048576 + sum(%[1]s %% 1048576))", fmt.Sprintf(bounded, column, int64(wallet.MaxBalance)))
		case s.names == nil:
			return "TRUE"
		}
		return column + " IN (SELECT id FROM " + list + ")"
	})
}

// lists are the ids that belong to a user: names of accounts, keys of the user, own trades,
// transactions that the user has part in, all of their trades, and scopes of requests.
func (l *Snapshot) lists() string {
	return `names (id) AS ` + l.d.Texts(1) + `,
	keys (id) AS (SELECT u.id FROM platform_user u WHERE u.user_id IN (SELECT id FROM names)),
	own (id) AS (SELECT id FROM trade WHERE seller_key IN (SELECT id FROM keys) UNION SELECT id FROM trade WHERE buyer_key IN (SELECT id FROM keys)),
	requests (id) AS ` + l.d.Texts(2) + `,
	mine (id) AS (SELECT transaction_id FROM wallet_entry WHERE user_id IN (SELECT id FROM names)
		UNION SELECT id FROM wallet_transaction WHERE scope IN (SELECT id FROM requests) AND idempotency_key <> ''
		UNION SELECT id FROM wallet_transaction WHERE trade_id IN (SELECT id FROM own) AND trade_id <> 0),
	deals (id) AS (SELECT id FROM own UNION SELECT trade_id FROM wallet_transaction WHERE id IN (SELECT id FROM mine)
		UNION SELECT trade_id FROM wallet_entry WHERE transaction_id IN (SELECT id FROM mine))
	`
}

// scopedQuery selects columns of rows that belong to a scope; args are its parameters.
func (l *Snapshot) scopedQuery(s scope, columns, from string) (text string, args []any) {
	text = bounded("SELECT " + columns + " FROM " + s.scoped(from))
	if s.names == nil {
		return text, nil
	}
	return "WITH " + l.lists() + text, []any{l.d.PackTexts(s.names), l.d.PackTexts(s.requests)}
}

// related passes on what a statement finds.
func (l *Snapshot) related(s scope, statement string, use func(related)) error {
	const columns = "r.name, r.transaction_id, r.user_id, r.currency, r.number, r.expected, r.actual, r.message, r.changed"
	text, args := l.scopedQuery(s, `r.name, r.transaction_id, r.user_id, r.currency, r.number, substr(r.expected, 1, 256), substr(r.actual, 1, 512), r.message, r.changed`, statement+` r`)
	return eachCells(l, columns, func(c *cells) (r related) {
		r.check = named(c.text())
		r.transaction, r.UserID, r.Currency = c.int(), c.text(), money.Currency(c.text())
		if n := c.int(); n != 0 {
			r.Seq = &n
		}
		r.Expected, r.Actual, r.Message = c.text(), c.text(), c.text()
		r.changed = c.int() != 0
		return r
	}, func(r *related) error { use(*r); return nil }, text, args...)
}
