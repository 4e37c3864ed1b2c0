package store

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// table is rows that are handed to a statement as parameters, kept by column.
// It is declared by its columns, "id bigint, name text", of the types bigint,
// text, boolean and bytea, and filled value by value, row by row.
type table struct {
	columns []column
	next    int // the column of the next value
	rows    int
}

// column holds the values of one column, in the field of its type.
type column struct {
	kind  string
	ints  []int64
	texts []string
	bools []bool
	blobs [][]byte
}

// newTable makes a table with room for some rows.
func newTable(columns string, rows int) *table {
	list := strings.Split(columns, ", ")
	t := &table{columns: make([]column, len(list))}
	for i, c := range list {
		_, kind, _ := strings.Cut(c, " ")
		col := &t.columns[i]
		col.kind = kind
		switch kind {
		case "bigint":
			col.ints = make([]int64, 0, rows)
		case "text":
			col.texts = make([]string, 0, rows)
		case "boolean":
			col.bools = make([]bool, 0, rows)
		default:
			col.blobs = make([][]byte, 0, rows)
		}
	}
	return t
}

func (t *table) column() *column {
	c := &t.columns[t.next]
	if t.next++; t.next == len(t.columns) {
		t.next = 0
		t.rows++
	}
	return c
}

// int adds the next values of a row.
func (t *table) int(values ...int64) {
	for _, v := range values {
		c := t.column()
		c.ints = append(c.ints, v)
	}
}

// text adds the next values of a row.
func (t *table) text(values ...string) {
	for _, v := range values {
		c := t.column()
		c.texts = append(c.texts, v)
	}
}

// bool adds the next values of a row.
func (t *table) bool(values ...bool) {
	for _, v := range values {
		c := t.column()
		c.bools = append(c.bools, v)
	}
}

// blob adds the next value of a row; nil is NULL.
func (t *table) blob(v []byte) {
	c := t.column()
	c.blobs = append(c.blobs, v)
}

// params are the parameters that dialect.rows takes the table from, after others.
func (t *table) params(d dialect, before ...any) []any {
	if d == onSQLite {
		return append(before, t.json())
	}
	return append(before, t.arrays()...)
}

// arrays returns the columns.
func (t *table) arrays() []any {
	out := make([]any, len(t.columns))
	for i := range t.columns {
		switch c := &t.columns[i]; c.kind {
		case "bigint":
			out[i] = c.ints
		case "text":
			out[i] = c.texts
		case "boolean":
			out[i] = c.bools
		default:
			out[i] = c.blobs
		}
	}
	return out
}

// json packs the rows as a list of lists, and those of one column as a list.
func (t *table) json() string {
	b := []byte{'['}
	for row := range t.rows {
		if row > 0 {
			b = append(b, ',')
		}
		if len(t.columns) > 1 {
			b = append(b, '[')
		}
		for i := range t.columns {
			if i > 0 {
				b = append(b, ',')
			}
			b = t.columns[i].appendJSON(b, row)
		}
		if len(t.columns) > 1 {
			b = append(b, ']')
		}
	}
	return string(append(b, ']'))
}

func (c *column) appendJSON(b []byte, row int) []byte {
	switch c.kind {
	case "bigint":
		return strconv.AppendInt(b, c.ints[row], 10)
	case "text":
		quoted, _ := jsontext.AppendQuote(b, c.texts[row]) // every text was checked where it came in
		return quoted
	default:
		if c.bools[row] {
			return append(b, '1')
		}
		return append(b, '0')
	}
}

// appendRow appends the values of a row.
func (t *table) appendRow(args []any, row int) []any {
	for i := range t.columns {
		switch c := &t.columns[i]; {
		case c.kind == "bigint":
			args = append(args, c.ints[row])
		case c.kind == "text":
			args = append(args, c.texts[row])
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
