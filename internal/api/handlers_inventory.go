package api

import (
	"cmp"

	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/view"
)

// inventoryHandlers serve inventories.
type inventoryHandlers struct{ *Deps }

// pushBody describes the body of POST /api/inventory/{userId}/sync. inventory.DecodePush
// decodes it.
type pushBody struct {
	AppID      int32      `json:"appId"`
	ContextID  string     `json:"contextId"`
	SnapshotAt string     `json:"snapshotAt" format:"date-time"`
	Items      []pushItem `json:"items"`
}

type pushItem struct {
	AssetID        string `json:"assetId"`
	MarketHashName string `json:"marketHashName,omitempty"`
	Phase          string `json:"phase,omitempty"`
	ClassID        string `json:"classId,omitempty"`
	InstanceID     string `json:"instanceId,omitempty"`
	Amount         int32  `json:"amount,omitempty"`
	Tradable       bool   `json:"tradable,omitempty"`
	Marketable     bool   `json:"marketable,omitempty"`
	Inspect        string `json:"inspect,omitempty"`
}

func (h inventoryHandlers) syncInventory(c *call) (any, error) {
	fromSteam := c.values["source"] == "steam"
	if fromSteam && c.hasBody {
		if err := refuseContent(c.Body); err != nil {
			return nil, err
		}
	}
	switch {
	case fromSteam:
		place := steaminv.Default()
		if c.values["appId"] != "" {
			place.AppID = int32(c.values.number("appId"))
		}
		place.ContextID = cmp.Or(c.values["contextId"], place.ContextID)
		r, err := h.Syncs.Pull(c.Context(), c.values["userId"], place, inventory.Normal)
		return view.SyncResult(r), err
	case c.values["appId"] != "" || c.values["contextId"] != "":
		return nil, fault.New(fault.Invalid, "invalid_parameters", "The parameters appId and contextId require source=steam. Otherwise send them in the body.")
	case !c.hasBody:
		return nil, bodyRequired()
	}
	push, err := inventory.DecodePush(c.Body, h.Now())
	if err != nil {
		return nil, err
	}
	r, err := h.Syncs.Push(c.Context(), c.values["userId"], push, inventory.Normal)
	return view.SyncResult(r), err
}

func (h inventoryHandlers) values(c *call) (any, error) {
	return h.Readers.Users.Values(c.Context(), c.values["userId"], c.values.moment("from"), c.values.moment("to"), c.currency(), c.values["cursor"], c.limit())
}

func (h inventoryHandlers) inventory(c *call) (any, error) {
	return h.Readers.Users.Inventory(c.Context(), c.values["userId"], int32(c.values.number("appId")), c.fields(), c.currency(), c.values["cursor"], c.limit())
}
