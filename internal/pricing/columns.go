package pricing

import "slices"

// columns lists the names of a round in the order of their first appearance. A column is a
// slice with one value per name: the logarithm of the price in the base currency, or none.
// A column may be shorter than the list; missing values are none.
type columns struct {
	keys  []uint64
	class []Class

	// slots is an open-addressing table of the keys, which takes a fifth of the memory of a map.
	// A slot holds a position in keys plus 1, or 0 if it is free. The number of slots is a power
	// of two, and at most three quarters are in use.
	slots []int32
}

// of returns the column of a response. It adds new names to the list.
func (c *columns) of(resp *Response) []Log {
	for i := range resp.Points {
		c.add(&resp.Points[i])
	}
	col := c.empty(nil)
	offset := resp.offset()
	for i := range resp.Points {
		col[c.position(resp.Points[i].Key)] = Ln(resp.Points[i].Amount) + offset
	}
	return col
}

// add adds the name of a point to the list unless it is in the list.
func (c *columns) add(p *Point) {
	if 4*(len(c.keys)+1) > 3*len(c.slots) {
		c.slots = make([]int32, max(1024, 2*len(c.slots)))
		for i, key := range c.keys {
			*c.slot(key) = int32(i + 1)
		}
	}
	if s := c.slot(p.Key); *s == 0 {
		c.keys, c.class = append(c.keys, p.Key), append(c.class, p.Traits.Class)
		*s = int32(len(c.keys))
	}
}

// position returns the position of a key that is in the list.
func (c *columns) position(key uint64) int { return int(*c.slot(key)) - 1 }

// slot returns the slot of a key, or a free slot if the key is not in the list.
func (c *columns) slot(key uint64) *int32 {
	const mix = 0x9e3779b97f4a7c15 // scatters row ids; 2^64 divided by the golden ratio
	mask := uint64(len(c.slots) - 1)
	for i := key * mix >> 32 & mask; ; i = (i + 1) & mask {
		if at := c.slots[i]; at == 0 || c.keys[at-1] == key {
			return &c.slots[i]
		}
	}
}

// empty returns a column without prices. It reuses the memory of col if possible.
func (c *columns) empty(col []Log) []Log {
	col = slices.Grow(col[:0], len(c.keys))[:len(c.keys)]
	for i := range col {
		col[i] = none
	}
	return col
}

// quoted returns the number of names with a price.
func quoted(col []Log) int {
	n := 0
	for _, l := range col {
		if l != none {
			n++
		}
	}
	return n
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
