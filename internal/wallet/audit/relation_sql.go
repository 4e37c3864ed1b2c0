package audit

import (
	"fmt"
	"regexp"
	"strings"

	"assay/internal/money"
	"assay/internal/wallet"
)

// scope selects the rows to verify. The zero scope selects everything.
type scope struct {
	names    []string // the user, or the shards of a house user
	requests []string // idempotency scopes of requests about the user
}

// related is one result of a statement: rows that contradict each other.
type related struct {
	check       check
	transaction int64 // 0: the finding concerns no transaction
	changed     bool  // the transaction differs from the one that its entries cover
	Finding
}

// statements compare rows with each other. Each statement selects the failures: name of
// the check, transaction, entry, expected value, actual value, message, and whether the
// transaction differs from the one that its entries cover. Seals are verified while the
// rows are read.
func statements() []string {
	return []string{
		transactionsFitEntries, entriesFitTransactions, transactionsFitTrades, tradesFitTransactions, kindsOfTradesRepeat,
		heldFitsTrades, reversalsFitEntries, reversalsFitTransactions, reversalsRepeat, keysRepeat, listingsFitTrades, usersRepeat,
	}
}

// Conditions for a difference between an entry e and its transaction t, or between e and
// the market's row d of the trade with seller s and buyer b.
const (
	stray = `(e.trade_id IS DISTINCT FROM t.trade_id OR e.idempotency_key IS DISTINCT FROM t.idempotency_key OR e.at IS DISTINCT FROM t.at
	OR e.posting_hash IS DISTINCT FROM t.hash OR t.kind <> 'sale' AND (e.fee_rule <> '' OR e.fee_version <> 0) OR t.kind = 'reversal' AND e.reverses = 0)`
	otherAmount = `(e.amount IS DISTINCT FROM CASE e.type WHEN 'purchase' THEN -{amount d.price} WHEN 'sale' THEN d.net WHEN 'fee' THEN d.fee
	WHEN 'release' THEN -{amount d.net} WHEN 'free' THEN d.net ELSE e.amount END)`
	otherUser = `(e.user_id IS DISTINCT FROM CASE e.type WHEN 'purchase' THEN b.user_id WHEN 'sale' THEN s.user_id WHEN 'release' THEN s.user_id WHEN 'free' THEN s.user_id
	WHEN 'completion' THEN CASE WHEN e.user_id = b.user_id THEN b.user_id ELSE s.user_id END ELSE e.user_id END)`
	otherRule = `(t.kind = 'sale' AND (e.fee_rule IS DISTINCT FROM d.fee_rule OR e.fee_version IS DISTINCT FROM d.fee_version))`
)

// transactionsFitEntries checks that a transaction has all its entries, that they match
// its kind and trade, and that they add up to zero in one currency. The shape is a sum of
// powers of four, one power for each type of entry of a user or the house.
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
	'its entries do not add up to zero.' AS message, 0 AS changed FROM wrong w WHERE w.total <> 0 OR w.absurd <> 0
UNION ALL SELECT 'currency_single', w.id, '', '', 0, w.low, w.high, 'its entries are in several currencies.', 0 FROM wrong w WHERE w.low <> w.high
UNION ALL SELECT 'tx_complete', w.id, '', '', 0, CAST(w.entries AS text), CAST(w.n AS text), 'its number of entries is wrong.', 0
	FROM wrong w WHERE w.n IS DISTINCT FROM w.entries
UNION ALL SELECT 'tx_complete', w.id, '', '', 0, 'the entries of a ' || w.kind, 'entries of another type, account or sign', 'its entries do not match its kind.', 0
	FROM wrong w WHERE w.n = w.entries AND w.misshapen
UNION ALL SELECT 'rounding_residue', w.id, '', '', 0, '0', CAST(w.total AS text), 'the buyer''s payment is not the sum of the seller''s credit and the fee.', 0
	FROM wrong w WHERE w.kind = 'sale' AND w.total <> 0
UNION ALL SELECT 'trade_crosscheck', w.id, '', '', 0, 'a purchase, a credit and a fee', 'other entries', 'its buyer has not paid, its seller has no credit, or no fee was charged.', 0
	FROM wrong w WHERE w.kind = 'sale' AND w.misshapen
UNION ALL SELECT 'fee_crosscheck', w.id, '', '', 0, 'a price and a fee', 'other entries', 'the price and fee of the sale cannot be computed.', 0
	FROM wrong w WHERE w.kind = 'sale' AND w.misshapen
UNION ALL SELECT 'tx_complete', e.transaction_id, e.user_id, e.currency, e.number, 'the entry that the transaction posted', concat_ws(', ',
		CASE WHEN e.trade_id IS DISTINCT FROM t.trade_id THEN 'trade_id' END, CASE WHEN e.idempotency_key IS DISTINCT FROM t.idempotency_key THEN 'idempotency_key' END,
		CASE WHEN e.at IS DISTINCT FROM t.at THEN 'at' END, CASE WHEN e.posting_hash IS DISTINCT FROM t.hash THEN 'posting_hash' END,
		CASE WHEN t.kind <> 'sale' AND (e.fee_rule <> '' OR e.fee_version <> 0) THEN 'fee_rule, fee_version' END,
		CASE WHEN t.kind = 'reversal' AND e.reverses = 0 THEN 'reverses' END),
	'the entry and its transaction differ.', CASE WHEN e.posting_hash IS DISTINCT FROM t.hash THEN 1 ELSE 0 END
	FROM wrong w CROSS JOIN wallet_transaction t CROSS JOIN wallet_entry e WHERE t.id = w.id AND e.transaction_id = w.id AND ` + stray + `
UNION ALL SELECT c.name, x.transaction_id, x.user_id, x.currency, x.number, 'the terms of trade ' || x.trade_id, 'another ' || x.other, 'the entry and the trade differ.', 0
	FROM traded x JOIN (SELECT 'trade_crosscheck' AS name, '' AS kind UNION ALL SELECT 'fee_crosscheck', 'fee'
		UNION ALL SELECT 'hold_lifecycle', 'release' UNION ALL SELECT 'hold_lifecycle', 'free') c ON c.kind IN ('', x.type)
	WHERE x.other <> ''
)`

// entriesFitTransactions checks that the transaction of an entry exists.
const entriesFitTransactions = `(
SELECT 'tx_complete' AS name, e.transaction_id, e.user_id, e.currency, e.number, 'a transaction' AS expected, 'none' AS actual,
	'entries name it, but it does not exist.' AS message, 0 AS changed
FROM wallet_entry e WHERE {mine e.transaction_id} AND NOT EXISTS (SELECT 1 FROM wallet_transaction t WHERE t.id = e.transaction_id)
)`

// transactionsFitTrades checks that the trade of a transaction exists.
const transactionsFitTrades = `(
SELECT c.name, t.id AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, 'trade ' || t.trade_id AS expected, 'none' AS actual,
	'money was moved or held for a trade that does not exist.' AS message, 1 AS changed
FROM wallet_transaction t JOIN (SELECT 'trade_crosscheck' AS name, '' AS kind UNION ALL SELECT 'hold_lifecycle', 'sale') c ON c.kind IN ('', t.kind)
WHERE {mine t.id} AND t.trade_id <> 0 AND NOT EXISTS (SELECT 1 FROM trade d WHERE d.id = t.trade_id)
)`

// tradesFitTransactions checks that a trade has the transactions that match its state and
// times, in the right order.
const tradesFitTransactions = `(
WITH wrong AS MATERIALIZED (
	SELECT t.id, coalesce(s.id, t.transaction_id, 0) AS transaction_id, CASE WHEN s.id IS NULL THEN 'the ledger has no sale' ELSE concat_ws('; ',
			CASE WHEN t.seller_key = t.buyer_key THEN 'the buyer is the seller' END,
			CASE WHEN t.transaction_id IS DISTINCT FROM s.id THEN 'the sale is another transaction' END,
			CASE WHEN s.note IS DISTINCT FROM CASE WHEN t.payment_method = '' AND t.country = '' THEN '' ELSE t.payment_method || '/' || t.country END
				THEN 'the payment method or country differs' END,
			CASE WHEN {amount t.price} IS DISTINCT FROM {amount t.fee} + {amount t.net} THEN 'the price is not the sum of fee and net amount' END,
			CASE WHEN t.state IS DISTINCT FROM CASE WHEN f.id IS NOT NULL AND r.id IS NOT NULL THEN 'settled and reversed' WHEN f.id IS NOT NULL THEN 'settled'
				WHEN r.id IS NOT NULL THEN 'reversed' WHEN c.id IS NOT NULL THEN 'completed' ELSE 'pending' END THEN 'the state differs' END,
			CASE WHEN t.created_at IS DISTINCT FROM s.at THEN 'the time of the sale differs' END,
			CASE WHEN t.completed_at IS DISTINCT FROM coalesce(c.at, 0) THEN 'the time of the completion differs' END,
			CASE WHEN t.settled_at IS DISTINCT FROM coalesce(f.at, 0) THEN 'the time of the settlement differs' END,
			CASE WHEN t.reversed_at IS DISTINCT FROM coalesce(r.at, 0) THEN 'the time of the reversal differs' END,
			CASE WHEN f.at < t.settle_at THEN 'the settlement was too early' END) END AS market,
		CASE WHEN c.id IS NOT NULL AND c.id <= coalesce(s.id, c.id) THEN 'a completion before the sale'
			WHEN f.id IS NOT NULL AND f.id <= coalesce(c.id, f.id) THEN 'a settlement before the completion'
			WHEN c.id > r.id THEN 'a completion after the reversal'
			WHEN r.id IS NOT NULL AND r.id <= coalesce(s.id, r.id) THEN 'a reversal before the sale'
			WHEN f.id IS NOT NULL AND r.id IS NOT NULL THEN 'settled and reversed'
			WHEN s.id IS NOT NULL AND (f.id IS NULL AND t.state = 'settled' OR r.id IS NULL AND t.state = 'reversed') THEN 'still held, but the trade is ' || t.state
			ELSE '' END AS hold
	FROM trade t
		LEFT JOIN wallet_transaction s ON s.trade_id = t.id AND s.trade_id <> 0 AND s.kind = 'sale'
		LEFT JOIN wallet_transaction c ON c.trade_id = t.id AND c.trade_id <> 0 AND c.kind = 'completion'
		LEFT JOIN wallet_transaction f ON f.trade_id = t.id AND f.trade_id <> 0 AND f.kind = 'settlement'
		LEFT JOIN wallet_transaction r ON r.trade_id = t.id AND r.trade_id <> 0 AND r.kind = 'reversal'
	WHERE {deals t.id}
)
SELECT 'trade_crosscheck' AS name, w.transaction_id, '' AS user_id, '' AS currency, 0 AS number, 'trade ' || w.id || ' in the market' AS expected, w.market AS actual,
	'the market and the ledger differ.' AS message, 0 AS changed FROM wrong w WHERE w.market <> ''
UNION ALL SELECT 'hold_lifecycle', w.transaction_id, '', '', 0, 'the held credit of trade ' || w.id || ', released once', w.hold,
	'the held credit of the trade does not match its state.', 0 FROM wrong w WHERE w.hold <> ''
)`

// kindsOfTradesRepeat checks that a trade has at most one transaction of each kind and no
// other kinds.
const kindsOfTradesRepeat = `(
SELECT 'hold_lifecycle' AS name, max(t.id) AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, 'the held credit of trade ' || t.trade_id || ', released once' AS expected,
	'too many of: ' || t.kind AS actual, 'the held credit of the trade does not match its state.' AS message, 0 AS changed
FROM wallet_transaction t WHERE {deals t.trade_id} AND t.trade_id <> 0 GROUP BY t.trade_id, t.kind
HAVING count(*) > 1 OR t.kind NOT IN ('sale', 'completion', 'settlement', 'reversal')
)`

// heldFitsTrades checks that the held amount of an account equals the credits of its open
// sales.
const heldFitsTrades = `(
SELECT 'running_held' AS name, 0 AS transaction_id, h.user_id, h.currency, 0 AS number, 'the credits of its open sales' AS expected, CAST({sum h.held} AS text) || ' more' AS actual,
	'The held amount of the account is not the sum of its open sales.' AS message, 0 AS changed
FROM (
	SELECT a.user_id, a.currency, a.held AS held FROM wallet_account a WHERE {names a.user_id} AND a.held <> 0
	UNION ALL
	SELECT coalesce(s.user_id, ''), t.currency, -{amount t.net} FROM trade t LEFT JOIN platform_user s ON s.id = t.seller_key
	WHERE {keys t.seller_key} AND t.state IN ('pending', 'completed')
) h GROUP BY h.user_id, h.currency HAVING {sum h.held} <> 0
)`

// reversalsFitEntries checks that a reversing entry is the opposite of the reversed entry,
// and that its transaction reverses the other entry's transaction.
const reversalsFitEntries = `(
SELECT 'reversal_link' AS name, e.transaction_id, e.user_id, e.currency, e.number, 'the opposite of entry ' || e.reverses AS expected, 'something else' AS actual,
	'the entry is not the opposite of the entry that it reverses.' AS message, 0 AS changed
FROM wallet_entry e LEFT JOIN wallet_transaction t ON t.id = e.transaction_id
	LEFT JOIN wallet_entry o ON o.user_id = e.user_id AND o.currency = e.currency AND o.number = e.reverses
WHERE {mine e.transaction_id} AND e.reverses <> 0 AND NOT coalesce(
	t.kind = 'reversal' AND o.transaction_id = t.reverses AND o.number < e.number AND e.amount = -{amount o.amount}
	AND e.type = CASE o.type WHEN 'sale' THEN 'saleReversal' ELSE 'reversal' END, FALSE)
)`

// reversalsFitTransactions checks that a transaction reverses all entries of a reversible
// transaction of the same trade.
const reversalsFitTransactions = `(
SELECT 'reversal_link' AS name, t.id AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, 'a reversible transaction' AS expected,
	coalesce(o.kind, 'none') AS actual, 'it is not a valid reversal of that transaction.' AS message, 0 AS changed
FROM wallet_transaction t LEFT JOIN wallet_transaction o ON o.id = t.reverses
WHERE {mine t.id} AND (t.kind = 'reversal' OR t.reverses <> 0) AND NOT coalesce(
	t.kind = 'reversal' AND o.id <> t.id AND o.trade_id = t.trade_id AND o.kind IN ('deposit', 'withdrawal', 'correction', 'sale') AND o.entries = t.entries, FALSE)
)`

// reversalsRepeat checks that each transaction and entry is reversed at most once.
const reversalsRepeat = `(
SELECT 'reversal_link' AS name, t.reverses AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, '1' AS expected, CAST(count(*) AS text) AS actual,
	'it was reversed more than once.' AS message, 0 AS changed
FROM wallet_transaction t WHERE {mine t.reverses} AND t.reverses <> 0 GROUP BY t.reverses HAVING count(*) > 1
UNION ALL
SELECT 'reversal_link', max(e.transaction_id), e.user_id, e.currency, e.reverses, '1', CAST(count(*) AS text), 'the entry was reversed more than once.', 0
FROM wallet_entry e WHERE {mine e.transaction_id} AND e.reverses <> 0 GROUP BY e.user_id, e.currency, e.reverses HAVING count(*) > 1
)`

// keysRepeat checks that an idempotency key is used once.
const keysRepeat = `(
SELECT 'idempotency_unique' AS name, max(t.id) AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, 'one transaction' AS expected, CAST(count(*) AS text) AS actual,
	'another transaction has the same idempotency key.' AS message, 0 AS changed
FROM wallet_transaction t WHERE {requests t.scope} AND t.idempotency_key <> '' GROUP BY t.scope, t.idempotency_key HAVING count(*) > 1
)`

// listingsFitTrades checks that each trade sold its listing, and that each sold listing
// has a trade.
const listingsFitTrades = `(
SELECT 'trade_crosscheck' AS name, 0 AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, 'listing ' || t.listing_id || ', sold by trade ' || t.id AS expected,
	'no listing, or another trade' AS actual, 'Trade ' || t.id || ' does not match its listing.' AS message, 0 AS changed
FROM trade t LEFT JOIN listing l ON l.id = t.listing_id
WHERE {own t.id} AND NOT coalesce(l.state = 'sold' AND l.seller_key = t.seller_key AND l.app_id = t.app_id AND l.context_id = t.context_id
	AND l.asset_id = t.asset_id AND l.item_id = t.item_id AND l.amount = t.amount AND l.price = t.price AND l.currency = t.currency AND l.ended_at = t.created_at, FALSE)
UNION ALL
SELECT 'trade_crosscheck', 0, '', '', 0, 'a trade', 'none', 'Listing ' || l.id || ' is sold, but no trade names it.', 0
FROM listing l WHERE {keys l.seller_key} AND l.state = 'sold' AND NOT EXISTS (SELECT 1 FROM trade t WHERE t.listing_id = l.id)
)`

// usersRepeat checks that an id belongs to one user.
const usersRepeat = `(
SELECT 'schema_valid' AS name, 0 AS transaction_id, '' AS user_id, '' AS currency, 0 AS number, 'one user with the id ' || substr(u.user_id, 1, 256) AS expected, 'several' AS actual,
	'Another user with that id exists, so it is unknown which trades belong to which user.' AS message, 0 AS changed
FROM platform_user u WHERE {names u.user_id} GROUP BY u.user_id HAVING count(*) > 1
)`

// marker is a part of a statement that depends on the scope, or an amount. Amounts are
// limited and added up in two parts, so no sum can overflow.
var marker = regexp.MustCompile(`\{(\w+) (\w\.\w+)\}`)

// scoped fills in the markers of a statement. For a user, it selects only rows whose ids
// are in the list that the marker names; see lists.
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

// lists select the ids that belong to a user: account names, user keys, own trades,
// transactions that involve the user, the trades of these transactions, and scopes of
// requests.
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

// scopedQuery selects columns of the rows of a scope. args are the query parameters.
func (l *Snapshot) scopedQuery(s scope, columns, from string) (text string, args []any) {
	text = bounded("SELECT " + columns + " FROM " + s.scoped(from))
	if s.names == nil {
		return text, nil
	}
	return "WITH " + l.lists() + text, []any{l.d.EncodeTexts(s.names), l.d.EncodeTexts(s.requests)}
}

// related calls a function for each result of a statement.
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
