package store

import (
	"strconv"
	"strings"
)

// Lists of parameters. SQLite takes a list as one JSON text; a statement then
// has one text whatever the length of the list, which is what makes it possible
// to write every step of a sync as a single statement.

// values returns "(?,?),(?,?)" with rows tuples of columns marks. Plain marks
// are used since numbered ones cost quadratic time in this driver.
func values(rows, columns int) string {
	tuple := "(" + strings.Repeat("?,", columns-1) + "?)"
	return strings.Repeat(tuple+",", rows-1) + tuple
}

// maxParams is how many parameters the rows of a statement may have: what SQLite
// allows, less a few for what is no row.
const maxParams = 32_766 - 16

// inRows calls fn with as many rows at a time as a statement can take.
func inRows[T any](rows []T, columns int, fn func([]T) error) error {
	most := maxParams / columns
	for len(rows) > 0 {
		n := min(len(rows), most)
		if err := fn(rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// list packs ids as a parameter for json_each.
func list(ids []int64) string {
	b := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return string(append(b, ']'))
}
