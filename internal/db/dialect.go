package db

import (
	"strconv"
	"strings"
)

// Dialect is a database's way of writing what the two write differently. All
// other SQL is one text for both.
type Dialect int

// The dialects.
const (
	SQLite Dialect = iota
	PostgreSQL
)

// A list is one parameter, so that a statement has one text whatever the length
// of the list: JSON text on SQLite, an array on PostgreSQL.

// IDs is what a value is to be IN: parameter n, as made by PackIDs.
func (d Dialect) IDs(n int) string { return d.list(n, "bigint") }

// Texts is what a value is to be IN: parameter n, as made by PackTexts.
func (d Dialect) Texts(n int) string { return d.list(n, "text") }

func (d Dialect) list(n int, kind string) string {
	if d == SQLite {
		return "(SELECT value FROM json_each($" + strconv.Itoa(n) + "))"
	}
	return "(SELECT unnest(CAST($" + strconv.Itoa(n) + " AS " + kind + "[])))"
}

// PackIDs makes a parameter of ids.
func (d Dialect) PackIDs(ids []int64) any {
	if d == PostgreSQL {
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

// PackTexts makes a parameter of texts.
func (d Dialect) PackTexts(texts []string) any {
	if d == PostgreSQL {
		return texts
	}
	t := NewTable("value text", len(texts))
	for _, text := range texts {
		t.Text(text)
	}
	return t.json()
}

// Rows is a table expression: the rows of a table with the given columns, which
// are the parameters from first on; see table.params.
func (d Dialect) Rows(first int, columns string) string {
	var b strings.Builder
	b.WriteString("(SELECT ")
	list := strings.Split(columns, ", ")
	for i, c := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		name, kind, _ := strings.Cut(c, " ")
		switch {
		case d == PostgreSQL:
			b.WriteString("unnest(CAST($" + strconv.Itoa(first+i) + " AS " + kind + "[])) AS " + name)
		case len(list) == 1:
			b.WriteString("value AS " + name)
		default:
			b.WriteString("value ->> " + strconv.Itoa(i) + " AS " + name)
		}
	}
	if d == SQLite {
		b.WriteString(" FROM json_each($" + strconv.Itoa(first) + ")")
	}
	b.WriteString(")")
	return b.String()
}

// values are the rows of a table with the given columns, of which the names are
// column1 and so on: so many tuples of marks on SQLite, where numbered ones cost
// quadratic time in this driver, and one array for each column on PostgreSQL.
func (d Dialect) values(rows int, columns string) string {
	list := strings.Split(columns, ", ")
	if d == SQLite {
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

// SkipLocked makes a query that claims rows of a table pass over those that
// another transaction claims. SQLite has one writer.
func (d Dialect) SkipLocked(table string) string {
	if d == SQLite {
		return ""
	}
	return " FOR NO KEY UPDATE OF " + table + " SKIP LOCKED"
}

// LockOf ends a query that locks the rows that it finds of one of its tables.
func (d Dialect) LockOf(table string) string {
	if d == SQLite {
		return ""
	}
	return " FOR NO KEY UPDATE OF " + table
}

// Clock is the moment, in microseconds, by which budgets are kept: parameter n,
// or, on PostgreSQL where that is null, the database's own clock: those of the
// processes that share a budget differ.
func (d Dialect) Clock(n int) string {
	if d == SQLite {
		return "$" + strconv.Itoa(n)
	}
	return "coalesce(CAST($" + strconv.Itoa(n) + " AS bigint), CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint))"
}

// NewItemID is the id of an item k that is inserted: the next in its bucket.
func (d Dialect) NewItemID() string {
	if d == SQLite {
		return `coalesce((SELECT max(id) FROM item WHERE id >= k.bucket << 32 AND id < (k.bucket + 1) << 32), k.bucket << 32)
			+ row_number() OVER (PARTITION BY k.bucket ORDER BY k.name, k.phase)`
	}
	return "(k.bucket << 32) + nextval('item_number')"
}

// NewTransactionID is an id that no transaction of the wallets has had, the same in
// all rows of a statement.
func (d Dialect) NewTransactionID() string {
	if d == SQLite {
		return "(SELECT coalesce(max(id), 0) + 1 FROM wallet_transaction)"
	}
	return "(SELECT nextval('wallet_transaction_id_seq'))"
}

// NewTradeID is an id that no trade has had.
func (d Dialect) NewTradeID() string {
	if d == SQLite {
		return "(SELECT coalesce(max(id), 0) + 1 FROM trade)"
	}
	return "nextval('trade_id_seq')"
}
