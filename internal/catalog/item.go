package catalog

import (
	"assay/internal/fault"
	"assay/internal/money"
)

// Item is what a sync needs of an item.
type Item struct {
	ID    int64
	Price money.Micro // 0: unknown
	New   bool        // made by this transaction, and not there for others yet
}

// NotFound returns the error for an unknown item, the same on every route.
func (k Key) NotFound() *fault.Error {
	return fault.New(fault.NotFound, "item_not_found",
		"No item of game %d has exactly this name and phase. Names are compared byte for byte.", k.AppID)
}
