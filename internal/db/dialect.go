package db

import (
	"strconv"
	"strings"
)

// Dialect is the SQL dialect of a database. Its methods return the SQL that differs between
// SQLite and PostgreSQL.
type Dialect int

// The supported dialects.
const (
	SQLite Dialect = iota
	PostgreSQL
)

// A list is one parameter, so that the text of a statement does not depend on the length
// of the list. On SQLite the parameter is JSON, on PostgreSQL an array.

// IDs returns the right side of IN for parameter n, which EncodeIDs encodes.
func (d Dialect) IDs(n int) string { return d.list(n, "bigint") }

// Texts returns the right side of IN for parameter n, which EncodeTexts encodes.
func (d Dialect) Texts(n int) string { return d.list(n, "text") }

func (d Dialect) list(n int, kind string) string {
	if d == SQLite {
		return "(SELECT value FROM json_each($" + strconv.Itoa(n) + "))"
	}
	return "(SELECT unnest(CAST($" + strconv.Itoa(n) + " AS " + kind + "[])))"
}

// OneOf returns a condition that matches any id of parameter n, which EncodeIDs encodes. On
// PostgreSQL the condition is = ANY, which uses an index or a hash table. With IN and
// outdated statistics, PostgreSQL could read the whole list once for each row.
func (d Dialect) OneOf(n int) string {
	if d == SQLite {
		return "IN " + d.IDs(n)
	}
	return "= ANY(CAST($" + strconv.Itoa(n) + " AS bigint[]))"
}

// Lookup returns a join that finds the rows of a table for each row of the tables before it. The
// text is "table alias ON condition". An index must support the condition. OFFSET 0 makes
// PostgreSQL keep the order of the join. With outdated statistics, it could otherwise begin with
// the new table and read the tables before it once for each of its rows.
func (d Dialect) Lookup(text string) string {
	if d == SQLite {
		return " CROSS JOIN " + text
	}
	table, condition, _ := strings.Cut(text, " ON ")
	_, alias, _ := strings.Cut(table, " ")
	return " CROSS JOIN LATERAL (SELECT * FROM " + table + " WHERE " + condition + " OFFSET 0) " + alias
}

// EncodeIDs encodes ids as a list parameter.
func (d Dialect) EncodeIDs(ids []int64) any {
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

// EncodeTexts encodes texts as a list parameter.
func (d Dialect) EncodeTexts(texts []string) any {
	if d == PostgreSQL {
		return texts
	}
	t := NewTable("value text", len(texts))
	for _, text := range texts {
		t.Text(text)
	}
	return t.json()
}

// Rows returns a table expression with the given columns. Its rows come from the
// parameters of Table.Params, which start at number first.
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

// values returns a query for rows with the given columns, named column1, column2 and so
// on. On SQLite it contains one tuple of ? marks for each row; numbered parameters would
// take quadratic time in this driver. On PostgreSQL it takes one array for each column.
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

// SkipLocked returns the clause that locks rows of table and skips rows that another
// transaction has locked. SQLite has one writer and needs no clause.
func (d Dialect) SkipLocked(table string) string {
	if d == SQLite {
		return ""
	}
	return " FOR NO KEY UPDATE OF " + table + " SKIP LOCKED"
}

// LockOf returns the clause that locks the rows that a query finds in table.
func (d Dialect) LockOf(table string) string {
	if d == SQLite {
		return ""
	}
	return " FOR NO KEY UPDATE OF " + table
}

// Clock returns an expression for the current time in microseconds, for budgets. It is
// parameter n if that is not null. Otherwise it is the clock of the PostgreSQL server,
// because the clocks of processes that share a budget differ.
func (d Dialect) Clock(n int) string {
	if d == SQLite {
		return "$" + strconv.Itoa(n)
	}
	return "coalesce(CAST($" + strconv.Itoa(n) + " AS bigint), CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint))"
}

// NewItemID returns an expression for the id of an inserted item k. The upper 32 bits are
// the bucket. The lower 32 bits are a number that is unused in the bucket.
func (d Dialect) NewItemID() string {
	if d == SQLite {
		return `coalesce((SELECT max(id) FROM item WHERE id >= k.bucket << 32 AND id < (k.bucket + 1) << 32), k.bucket << 32)
			+ row_number() OVER (PARTITION BY k.bucket ORDER BY k.name, k.phase)`
	}
	return "(k.bucket << 32) + nextval('item_number')"
}

// NewTransactionID returns an expression for an unused id of a wallet transaction. All rows
// of a statement get the same id.
func (d Dialect) NewTransactionID() string {
	if d == SQLite {
		return "(SELECT coalesce(max(id), 0) + 1 FROM wallet_transaction)"
	}
	return "(SELECT nextval('wallet_transaction_id_seq'))"
}

// NewTradeID returns an expression for an unused id of a trade.
func (d Dialect) NewTradeID() string {
	if d == SQLite {
		return "(SELECT coalesce(max(id), 0) + 1 FROM trade)"
	}
	return "nextval('trade_id_seq')"
}
