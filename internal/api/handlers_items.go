package api

import (
	"time"

	"assay/internal/admission"
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
		Held: c.values.flag("held"), MinDayChange: c.values.amount("minDayChange"), Sort: c.values["sort"], Fields: c.fields(), Currency: c.currency(),
	}
	return h.Readers.Items.Items(c.Context(), f, c.values["cursor"], c.limit())
}

func (h itemHandlers) item(c *call) (any, error) {
	return h.Readers.Items.Item(c.Context(), c.key(), c.currency())
}

// historySteps are the lengths of candles by their names.
var historySteps = map[string]time.Duration{"5m": 5 * time.Minute, "1h": time.Hour, "1d": 24 * time.Hour}

func (h itemHandlers) history(c *call) (any, error) {
	leave, err := h.Gate.Enter(c.Context(), admission.Explanation)
	if err != nil {
		return nil, err
	}
	defer leave()
	f := view.HistoryFilter{
		Market: c.values["market"], From: c.values.moment("from"), To: c.values.moment("to"), Interval: historySteps[c.values["interval"]],
		Currency: c.currency(),
	}
	return h.Readers.History.History(c.Context(), c.key(), f, c.values["cursor"], c.limit())
}

func (h itemHandlers) figures(c *call) (any, error) {
	leave, err := h.Gate.Enter(c.Context(), admission.Explanation)
	if err != nil {
		return nil, err
	}
	defer leave()
	return h.Readers.History.Figures(c.Context(), c.key(), c.currency())
}

func (h itemHandlers) priceAt(c *call) (any, error) {
	leave, err := h.Gate.Enter(c.Context(), admission.Explanation)
	if err != nil {
		return nil, err
	}
	defer leave()
	at := c.values.moment("time")
	if at.IsZero() {
		at = h.Now()
	}
	return h.Readers.History.PriceAt(c.Context(), c.key(), at, c.values.flag("explain"), c.currency())
}
