package pricing

import "slices"

// columns lists the names of a round in the order of their first appearance. A column is a
// slice with one value per name: the logarithm of the price in the base currency, or none.
// A column may be shorter than the list; missing values are none.
type columns struct {
	index map[uint64]int32 // position of a key in keys
	keys  []uint64
	class []Class
}

// of returns the column of a response. It adds new names to the list.
func (c *columns) of(resp *Response) []Log {
	for _, p := range resp.Points {
		if _, ok := c.index[p.Key]; !ok {
			c.index[p.Key] = int32(len(c.keys))
			c.keys, c.class = append(c.keys, p.Key), append(c.class, p.Traits.Class)
		}
	}
	col := c.empty(nil)
	offset := resp.offset()
	for _, p := range resp.Points {
		col[c.index[p.Key]] = Ln(p.Amount) + offset
	}
	return col
}

// empty returns a column without prices. It reuses the memory of col if possible.
func (c *columns) empty(col []Log) []Log {
	col = slices.Grow(col[:0], len(c.keys))[:len(c.keys)]
	for i := range col {
		col[i] = none
	}
	return col
}

// at returns the value of a column for name i.
func at(col []Log, i int) Log {
	if i < len(col) {
		return col[i]
	}
	return none
}

// fill copies values from base to col where col has none.
func fill(col, base []Log) {
	for i, l := range base {
		if col[i] == none {
			col[i] = l
		}
	}
}
