package store

import (
	"strconv"
	"strings"
)

// dialect is a database's way of writing what the two write differently. All
// other SQL is one text for both.
type dialect int

const (
	onSQLite dialect = iota
	onPostgres
)

// A list is one parameter, so that a statement has one text whatever the length
// of the list: JSON text on SQLite, an array on PostgreSQL.

// ids is what a value is to be IN: parameter n, as packed by list.
func (d dialect) ids(n int) string { return d.list(n, "bigint") }

// texts is what a value is to be IN: parameter n, as packed by textList.
func (d dialect) texts(n int) string { return d.list(n, "text") }

func (d dialect) list(n int, kind string) string {
	if d == onSQLite {
		return "(SELECT value FROM json_each($" + strconv.Itoa(n) + "))"
	}
	return "(SELECT unnest(CAST($" + strconv.Itoa(n) + " AS " + kind + "[])))"
}

// packIDs makes a parameter of ids.
func (d dialect) packIDs(ids []int64) any {
	if d == onPostgres {
		return ids
	}
	b := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return string(append(b, ']'))
}

// packTexts makes a parameter of texts.
func (d dialect) packTexts(texts []string) any {
	if d == onPostgres {
		return texts
	}
	t := newTable("value text", len(texts))
	for _, text := range texts {
		t.text(text)
	}
	return t.json()
}

// rows is a table expression: the rows of a table with the given columns, which
// are the parameters from first on; see table.params.
func (d dialect) rows(first int, columns string) string {
	var b strings.Builder
	b.WriteString("(SELECT ")
	list := strings.Split(columns, ", ")
	for i, c := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		name, kind, _ := strings.Cut(c, " ")
		switch {
		case d == onPostgres:
			b.WriteString("unnest(CAST($" + strconv.Itoa(first+i) + " AS " + kind + "[])) AS " + name)
		case len(list) == 1:
			b.WriteString("value AS " + name)
		default:
			b.WriteString("value ->> " + strconv.Itoa(i) + " AS " + name)
		}
	}
	if d == onSQLite {
		b.WriteString(" FROM json_each($" + strconv.Itoa(first) + ")")
	}
	b.WriteString(")")
	return b.String()
}

// values are the rows of a table with the given columns, of which the names are
// column1 and so on: so many tuples of marks on SQLite, where numbered ones cost
// quadratic time in this driver, and one array for each column on PostgreSQL.
func (d dialect) values(rows int, columns string) string {
	list := strings.Split(columns, ", ")
	if d == onSQLite {
		tuple := "(" + strings.Repeat("?,", len(list)-1) + "?)"
		return "VALUES " + strings.Repeat(tuple+",", rows-1) + tuple
	}
	var b strings.Builder
	for i, c := range list {
		_, kind, _ := strings.Cut(c, " ")
		b.WriteString(", unnest(CAST($" + strconv.Itoa(i+1) + " AS " + kind + "[])) AS column" + strconv.Itoa(i+1))
	}
	return "SELECT " + b.String()[2:]
}

// skipLocked makes a query that claims rows of a table pass over those that
// another transaction claims. SQLite has one writer.
func (d dialect) skipLocked(table string) string {
	if d == onSQLite {
		return ""
	}
	return " FOR NO KEY UPDATE OF " + table + " SKIP LOCKED"
}

// lockOf ends a query that locks the rows that it finds of one of its tables.
func (d dialect) lockOf(table string) string {
	if d == onSQLite {
		return ""
	}
	return " FOR NO KEY UPDATE OF " + table
}

// clock is the moment, in microseconds, by which budgets are kept: parameter n,
// or, on PostgreSQL where that is null, the database's own clock: those of the
// processes that share a budget differ.
func (d dialect) clock(n int) string {
	if d == onSQLite {
		return "$" + strconv.Itoa(n)
	}
	return "coalesce(CAST($" + strconv.Itoa(n) + " AS bigint), CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint))"
}

// newItemID is the id of an item k that is inserted: the next in its bucket.
func (d dialect) newItemID() string {
	if d == onSQLite {
		return `coalesce((SELECT max(id) FROM item WHERE id >= k.bucket << 32 AND id < (k.bucket + 1) << 32), k.bucket << 32)
			+ row_number() OVER (PARTITION BY k.bucket ORDER BY k.name, k.phase)`
	}
	return "(k.bucket << 32) + nextval('item_number')"
}

// newTransactionID is an id that no transaction of the wallets has had, the same in
// all rows of a statement.
func (d dialect) newTransactionID() string {
	if d == onSQLite {
		return "(SELECT coalesce(max(id), 0) + 1 FROM wallet_transaction)"
	}
	return "(SELECT nextval('wallet_transaction_id_seq'))"
}

// newTradeID is an id that no trade has had.
func (d dialect) newTradeID() string {
	if d == onSQLite {
		return "(SELECT coalesce(max(id), 0) + 1 FROM trade)"
	}
	return "nextval('trade_id_seq')"
}
