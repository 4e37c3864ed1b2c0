package api

import (
	"assay/internal/view"
)

// itemHandlers serve items and their prices.
type itemHandlers struct{ *Deps }

func (h itemHandlers) acceptItem(c *call) (any, error) {
	if err := h.Engine.AcceptItem(c.Context(), c.key()); err != nil {
		return nil, err
	}
	return h.Readers.Items.Explain(c.Context(), c.key()) // without the gate, because a completed write must not fail as busy
}

func (h itemHandlers) items(c *call) (any, error) {
	f := view.ItemFilter{
		AppID: int32(c.values.number("appId")), Search: c.values["q"], Status: c.values["status"], Market: c.values["market"],
		Min: c.values.amount("minPrice"), Max: c.values.amount("maxPrice"),
		ChangedSince: c.values.moment("changedSince"), UpdatedSince: c.values.moment("updatedSince"),
		Held: c.values.flag("held"), Sort: c.values["sort"], Fields: c.fields(),
	}
	return h.Readers.Items.Items(c.Context(), f, c.values["cursor"], c.limit())
}

func (h itemHandlers) item(c *call) (any, error) {
	return h.Readers.Items.Item(c.Context(), c.key())
}
