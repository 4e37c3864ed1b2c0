package catalog

import (
	"assay/internal/fault"
	"assay/internal/money"
)

// Item is the part of a stored item that a sync needs.
type Item struct {
	ID    int64
	Price money.Micro // 0: unknown
	New   bool        // created by the current transaction
}

// NotFound returns the API error for an unknown item.
func (k Key) NotFound() *fault.Error {
	return fault.New(fault.NotFound, "item_not_found",
		"No item of game %d has exactly this name and phase. Names are compared byte for byte.", k.AppID)
}
