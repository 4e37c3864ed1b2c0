package db

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
)

// tally is what the rows of a table come to, whatever their order and whichever
// database they are in.
type tally struct {
	seed    maphash.Seed
	rows    int64
	columns []uint64 // sums of numbers, and of hashes of all else, modulo 2^64
	whole   uint64   // the sum of the rows' hashes, which tells values that changed places
	row     []byte
}

func newTally(seed maphash.Seed, t copyTable) *tally {
	return &tally{seed: seed, columns: make([]uint64, len(t.columns))}
}

// add adds a row.
func (t *tally) add(row []any) {
	t.rows++
	t.row = t.row[:0]
	for i, v := range row {
		n := t.number(v)
		t.columns[i] += n
		t.row = binary.LittleEndian.AppendUint64(t.row, n)
	}
	t.whole += maphash.Bytes(t.seed, t.row)
}

// number stands for a value.
func (t *tally) number(v any) uint64 {
	switch v := v.(type) {
	case int64:
		return uint64(v)
	case string:
		return maphash.String(t.seed, v)
	case []byte:
		return maphash.Bytes(t.seed, v)
	default: // nothing, which is neither 0 nor empty
		return maphash.String(t.seed, "NULL") ^ 1
	}
}

// compare reports how the rows of a target, got, differ from those of its source.
func (t *tally) compare(got *tally, table copyTable) error {
	if got.rows != t.rows {
		return fmt.Errorf("%w: %d rows were read from the source, the target has %d", ErrCopyDiffers, t.rows, got.rows)
	}
	for i, c := range table.columns {
		if got.columns[i] != t.columns[i] {
			return fmt.Errorf("%w: the sums of column %s are not the same", ErrCopyDiffers, c.name)
		}
	}
	if got.whole != t.whole {
		return fmt.Errorf("%w: values are in the wrong rows", ErrCopyDiffers)
	}
	return nil
}
