package api

import (
	"context"

	"assay/internal/catalog"
	"assay/internal/view"
)

// ItemReader reads items and their prices.
type ItemReader interface {
	// Items lists the items that match a filter.
	Items(ctx context.Context, f view.ItemFilter, cursor string, limit int) (view.Page[view.PricedItem], error)
	Item(ctx context.Context, key catalog.Key) (view.ItemDetail, error)
	// Lookup returns the prices of items in the order of keys. It changes nothing.
	Lookup(ctx context.Context, keys []catalog.Key, fields view.Fields) (view.Lookup, error)
}

// itemHandlers serve items and their prices.
type itemHandlers struct{ *Deps }

func (h itemHandlers) acceptItem(c *call) (any, error) {
	return h.Refresher.AcceptItem(c.Context(), c.key())
}

func (h itemHandlers) items(c *call) (any, error) {
	f := view.ItemFilter{
		AppID: int32(c.values.number("appId")), Search: c.values["q"], Status: c.values["status"], Market: c.values["market"],
		Min: c.values.amount("minPrice"), Max: c.values.amount("maxPrice"),
		ChangedSince: c.values.moment("changedSince"), UpdatedSince: c.values.moment("updatedSince"),
		Held: c.values.flag("held"), Sort: c.values["sort"], Fields: c.fields(),
	}
	return h.Items.Items(c.Context(), f, c.values["cursor"], c.limit())
}

func (h itemHandlers) item(c *call) (any, error) {
	return h.Items.Item(c.Context(), c.key())
}
