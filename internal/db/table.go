package db

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Table holds rows that are passed to a statement as parameters. It stores them by
// column. NewTable takes the columns as text, such as "id bigint, name text". The types
// are bigint, text, boolean and bytea. Add the values row by row.
type Table struct {
	Columns []column
	next    int // index of the column that gets the next value
	Rows    int
}

// column holds the values of one column. Its kind selects the field that is used.
type column struct {
	kind  string
	Ints  []int64
	Texts []string
	bools []bool
	blobs [][]byte
}

// NewTable returns a table with capacity for some rows.
func NewTable(columns string, rows int) *Table {
	list := strings.Split(columns, ", ")
	t := &Table{Columns: make([]column, len(list))}
	for i, c := range list {
		_, kind, _ := strings.Cut(c, " ")
		col := &t.Columns[i]
		col.kind = kind
		switch kind {
		case "bigint":
			col.Ints = make([]int64, 0, rows)
		case "text":
			col.Texts = make([]string, 0, rows)
		case "boolean":
			col.bools = make([]bool, 0, rows)
		default:
			col.blobs = make([][]byte, 0, rows)
		}
	}
	return t
}

func (t *Table) column() *column {
	c := &t.Columns[t.next]
	if t.next++; t.next == len(t.Columns) {
		t.next = 0
		t.Rows++
	}
	return c
}

// Int adds values to the current row.
func (t *Table) Int(values ...int64) {
	for _, v := range values {
		c := t.column()
		c.Ints = append(c.Ints, v)
	}
}

// Text adds values to the current row.
func (t *Table) Text(values ...string) {
	for _, v := range values {
		c := t.column()
		c.Texts = append(c.Texts, v)
	}
}

// Bool adds values to the current row.
func (t *Table) Bool(values ...bool) {
	for _, v := range values {
		c := t.column()
		c.bools = append(c.bools, v)
	}
}

// Blob adds a value to the current row. Nil is NULL.
func (t *Table) Blob(v []byte) {
	c := t.column()
	c.blobs = append(c.blobs, v)
}

// Params appends the parameters for Dialect.Rows to before.
func (t *Table) Params(d Dialect, before ...any) []any {
	if d == SQLite {
		return append(before, t.json())
	}
	return append(before, t.Arrays()...)
}

// Arrays returns one array for each column.
func (t *Table) Arrays() []any {
	out := make([]any, len(t.Columns))
	for i := range t.Columns {
		switch c := &t.Columns[i]; c.kind {
		case "bigint":
			out[i] = c.Ints
		case "text":
			out[i] = c.Texts
		case "boolean":
			out[i] = c.bools
		default:
			out[i] = c.blobs
		}
	}
	return out
}

// json encodes the rows as an array of arrays. A table with one column is a flat array.
func (t *Table) json() string {
	b := []byte{'['}
	for row := range t.Rows {
		if row > 0 {
			b = append(b, ',')
		}
		if len(t.Columns) > 1 {
			b = append(b, '[')
		}
		for i := range t.Columns {
			if i > 0 {
				b = append(b, ',')
			}
			b = t.Columns[i].appendJSON(b, row)
		}
		if len(t.Columns) > 1 {
			b = append(b, ']')
		}
	}
	return string(append(b, ']'))
}

func (c *column) appendJSON(b []byte, row int) []byte {
	switch c.kind {
	case "bigint":
		return strconv.AppendInt(b, c.Ints[row], 10)
	case "text":
		quoted, _ := jsontext.AppendQuote(b, c.Texts[row]) // all text was validated as UTF-8 on input
		return quoted
	default:
		if c.bools[row] {
			return append(b, '1')
		}
		return append(b, '0')
	}
}

// appendRow appends the values of a row to args.
func (t *Table) appendRow(args []any, row int) []any {
	for i := range t.Columns {
		switch c := &t.Columns[i]; {
		case c.kind == "bigint":
			args = append(args, c.Ints[row])
		case c.kind == "text":
			args = append(args, c.Texts[row])
		case c.kind == "boolean":
			args = append(args, c.bools[row])
		case c.blobs[row] == nil:
			args = append(args, nil)
		default:
			args = append(args, c.blobs[row])
		}
	}
	return args
}

// RowsAtOnce is the maximum number of rows with text in one statement. Each row is in
// memory several times: in the table, in the driver and in the database.
const RowsAtOnce = 2_000
