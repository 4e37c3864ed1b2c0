package db

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
)

// tally holds counts and checksums of the rows of a table. They do not depend on the
// order of the rows or on the engine.
type tally struct {
	seed    maphash.Seed
	rows    int64
	columns []uint64 // for each column, the sum of integers or of hashes, modulo 2^64
	whole   uint64   // sum of the hashes of whole rows, to detect values in the wrong row
	row     []byte
}

func newTally(seed maphash.Seed, t copyTable) *tally {
	return &tally{seed: seed, columns: make([]uint64, len(t.columns))}
}

// add adds a row to the sums.
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

// number returns an integer unchanged, and the hash of any other value.
func (t *tally) number(v any) uint64 {
	switch v := v.(type) {
	case int64:
		return uint64(v)
	case string:
		return maphash.String(t.seed, v)
	case []byte:
		return maphash.Bytes(t.seed, v)
	default: // NULL, which differs from 0 and from an empty value
		return maphash.String(t.seed, "NULL") ^ 1
	}
}

// compare returns ErrCopyDiffers if got, the tally of the target, differs from t, the tally
// of the source.
func (t *tally) compare(got *tally, table copyTable) error {
	if got.rows != t.rows {
		return fmt.Errorf("%w: the source has %d rows, the target has %d", ErrCopyDiffers, t.rows, got.rows)
	}
	for i, c := range table.columns {
		if got.columns[i] != t.columns[i] {
			return fmt.Errorf("%w: the checksums of column %s differ", ErrCopyDiffers, c.name)
		}
	}
	if got.whole != t.whole {
		return fmt.Errorf("%w: values are in the wrong rows", ErrCopyDiffers)
	}
	return nil
}
