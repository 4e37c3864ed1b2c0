package api

import (
	"cmp"
	"context"

	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/view"
)

// Inventories reads and syncs the inventories of users.
type Inventories interface {
	// Inventory lists the assets of a user. An appID of 0 means all games.
	Inventory(ctx context.Context, userID string, appID int32, fields view.Fields, cursor string, limit int) (view.Inventory, error)
	Sync(ctx context.Context, userID string, push inventory.Push) (view.SyncResult, error)
	// Pull reads the inventory of the user from Steam. It returns a fault for an unknown
	// game or context.
	Pull(ctx context.Context, userID string, appID int32, contextID string) (view.SyncResult, error)
}

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
		contextID := cmp.Or(c.values["contextId"], place.ContextID)
		return h.Inventories.Pull(c.Context(), c.values["userId"], place.AppID, contextID)
	case c.values["appId"] != "" || c.values["contextId"] != "":
		return nil, fault.New(fault.Invalid, "invalid_parameters", "The parameters appId and contextId require source=steam. Otherwise send them in the body.")
	case !c.hasBody:
		return nil, bodyRequired()
	}
	push, err := inventory.DecodePush(c.Body, h.Now())
	if err != nil {
		return nil, err
	}
	return h.Inventories.Sync(c.Context(), c.values["userId"], push)
}

func (h inventoryHandlers) inventory(c *call) (any, error) {
	return h.Inventories.Inventory(c.Context(), c.values["userId"], int32(c.values.number("appId")), c.fields(), c.values["cursor"], c.limit())
}
