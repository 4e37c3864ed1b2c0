package prices

import (
	"context"
	"time"

	"assay/internal/db"
	"assay/internal/money"
)

// Moves holds prices at an earlier time. Relative changes are computed from them.
type Moves struct {
	Since time.Time
	// Before holds the prices at Since of items whose price changed afterwards, by item ID.
	// A price of 0 means unknown.
	Before map[int64]money.Micro
}

// Changed returns the IDs of the items of a game whose price changed after a time.
func (t *Table) Changed(ctx context.Context, app int32, after time.Time) ([]int64, error) {
	var ids []int64
	since := db.Micros(after)
	err := t.each(ctx, func(bucket int, _ string, i *item) {
		if i.app == app && i.updated > since {
			ids = append(ids, idOf(bucket, i))
		}
	})
	return ids, err
}

// of returns the relative change of an item's price in millionths, or nil if it is unknown.
func (m *Moves) of(id int64, i *item) *money.Micro {
	if i.updated <= db.Micros(m.Since) {
		return new(money.Micro)
	}
	before := m.Before[id]
	move, ok := money.Ratio(i.amount-before, before)
	if !ok {
		return nil
	}
	return &move
}

// moveValue returns the sort key of a relative change. It is 0 for an unknown change, and positive
// otherwise, because a price cannot fall by more than 100 %.
func moveValue(move *money.Micro) int64 {
	const most = 1 << 62
	if move == nil {
		return 0
	}
	return int64(min(*move, most)) + money.Scale + 1
}

// idOf returns the ID of an item.
func idOf(bucket int, i *item) int64 { return int64(bucket)<<32 | int64(i.number) }
