package view

import (
	"cmp"
	"context"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/user"
)

// Inventory is one page of a user's inventory.
type Inventory struct {
	Items             []InventoryRow   `json:"items"`
	TotalValue        money.Sum        `json:"totalValue"` // total of all rows of the game, on all pages
	TotalValueDecimal string           `json:"totalValueDecimal" format:"decimal"`
	Currency          money.Currency   `json:"currency"`
	Rates             []ConversionRate `json:"rates,omitempty"`
	Rows              int64            `json:"rows"`
	UnpricedRows      int64            `json:"unpricedRows"`
	NextCursor        *string          `json:"nextCursor"`
}

// InventoryRow is one asset.
type InventoryRow struct {
	AssetID           string       `json:"assetId"`
	AppID             int32        `json:"appId"`
	ContextID         string       `json:"contextId"`
	MarketHashName    string       `json:"marketHashName"` // empty: not marketable and without a name
	Phase             string       `json:"phase"`
	PhaseUnknown      bool         `json:"phaseUnknown"`
	ClassID           string       `json:"classId"`
	InstanceID        string       `json:"instanceId"`
	Amount            int64        `json:"amount"`
	Tradable          bool         `json:"tradable"`
	Marketable        bool         `json:"marketable"`
	InTransfer        bool         `json:"inTransfer"`     // sold, and not yet removed by an inventory sync
	EstimatedValue    *money.Micro `json:"estimatedValue"` // of one unit; null: unknown
	TotalValue        *money.Sum   `json:"totalValue"`     // estimatedValue × amount
	TotalValueDecimal *string      `json:"totalValueDecimal" format:"decimal"`
	PriceUpdatedAt    *time.Time   `json:"priceUpdatedAt"`
	PriceStatus       string       `json:"priceStatus"` // noPrice if there is no value
	PriceCheckedAt    *time.Time   `json:"priceCheckedAt"`
	*Figures
	// Null or empty means unknown in the following fields.
	Wear       *string             `json:"wear"`
	Seed       *int64              `json:"seed"`
	Finish     *int64              `json:"finish"`
	NameTag    *string             `json:"nameTag"`
	Stickers   []inventory.Sticker `json:"stickers"`
	Charms     []inventory.Sticker `json:"charms"`
	Inspection *Inspection         `json:"inspection"`
}

// Inspection is the result of inspecting an asset, with the origin of its values.
type Inspection struct {
	State       string  `json:"state"`       // none, pending, done, failed or contradiction
	Code        *string `json:"code"`        // reason of a failure or contradiction
	Source      *string `json:"source"`      // property, link or pushed
	Certificate *string `json:"certificate"` // certificate or link, not decoded
	// Phase is derived from the finish. It decides the price only if it equals the phase of
	// the asset.
	Phase         *string `json:"phase"`
	DefIndex      *int64  `json:"defIndex"`
	Quality       *int64  `json:"quality"`
	Rarity        *int64  `json:"rarity"`
	Kills         *int64  `json:"kills"` // StatTrak counter
	CharmTemplate *int64  `json:"charmTemplate"`
}

// SyncResult is the result of an inventory sync.
type SyncResult struct {
	Added       int64 `json:"added"`
	Removed     int64 `json:"removed"`
	Changed     int64 `json:"changed"`
	Unchanged   int64 `json:"unchanged"`
	PricedRows  int64 `json:"pricedRows"`
	QueuedNames int64 `json:"queuedNames"` // names that this sync added to the missing-price queue
	Hidden      int64 `json:"hidden,omitzero"`
}

// Inventory lists a user's rows in one game (0: all games) with the selected figures. The parameter
// to is the currency of the amounts ("": the base currency). Inventory returns a fault.NotFound if
// the user does not exist.
func (r *UserReader) Inventory(ctx context.Context, userID string, app int32, fields Fields, to money.Currency, after string, limit int) (Inventory, error) {
	leave, err := r.o.enter(ctx, admission.Inventory)
	if err != nil {
		return Inventory{}, err
	}
	defer leave()
	now := r.o.Now()
	convert, err := r.o.converter(ctx, to, now)
	if err != nil {
		return Inventory{}, err
	}
	var last int64
	if err := readCursor(after, "inventory", &last); err != nil {
		return Inventory{}, err
	}
	key, ok, err := user.Key(ctx, r.o.Store, userID)
	if err != nil {
		return Inventory{}, err
	}
	if !ok {
		return Inventory{}, user.NotFound()
	}
	total, err := ReadInventoryTotal(ctx, r.o.Store, key, app)
	if err != nil {
		return Inventory{}, err
	}
	rows, err := ReadInventory(ctx, r.o.Store, key, app, last, limit+1)
	if err != nil {
		return Inventory{}, err
	}
	p := page(rows, limit, func(v *PricedRow) InventoryRow { return inventoryRow(v, fields, convert) }, func(v *PricedRow) *string { return cursor("inventory", v.ID) })
	value := convert.total(total.Value)
	return Inventory{
		Items: p.Items, NextCursor: p.NextCursor, Currency: convert.to, Rates: convert.used(),
		TotalValue: value, TotalValueDecimal: value.String(), Rows: total.Rows, UnpricedRows: total.Unpriced,
	}, nil
}

// UserInventory is the inventory of a user in one game and context.
type UserInventory struct {
	AppID          int32
	ContextID      string
	SyncedAt       time.Time
	Value          money.Sum // in the base currency
	Rows, Unpriced int64
}

// Inventories lists the inventories of a user, by game and context. It returns a fault.NotFound
// if the user does not exist.
func (r *UserReader) Inventories(ctx context.Context, userID string) ([]UserInventory, error) {
	leave, err := r.o.enter(ctx, admission.Inventory)
	if err != nil {
		return nil, err
	}
	defer leave()
	key, ok, err := user.Key(ctx, r.o.Store, userID)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, user.NotFound()
	}
	return readInventories(ctx, r.o.Store, key)
}

func inventoryRow(v *PricedRow, fields Fields, convert *converter) InventoryRow {
	out := InventoryRow{
		AssetID: v.AssetID, AppID: v.AppID, ContextID: v.ContextID, MarketHashName: v.Name, Phase: v.Phase,
		PhaseUnknown: v.Phase == "" && catalog.Phased(v.Name),
		ClassID:      v.ClassID, InstanceID: v.InstanceID, Amount: v.Amount, Tradable: v.Tradable, Marketable: v.Marketable, InTransfer: v.InTransfer,
		PriceStatus: pricing.NoPrice.String(),
	}
	if v.Value > 0 {
		out.PriceStatus, out.PriceCheckedAt = currentStatus(v.Value, v.Status, v.CheckedAt, convert.now).String(), when(v.CheckedAt)
		out.Figures = fields.figures(&v.Figures)
		convert.figures(out.Figures)
		price, total := convert.price(v.Value), convert.total(money.Sum{}.Add(v.Value, v.Amount))
		out.EstimatedValue, out.TotalValue, out.TotalValueDecimal, out.PriceUpdatedAt = &price, &total, new(total.String()), when(v.UpdatedAt)
	}
	n := &v.Inspection
	out.Wear, out.Seed, out.Finish, out.NameTag = text(n.Wear), count(n.Seed), count(n.Finish), text(n.NameTag)
	out.Stickers, out.Charms, out.Inspection = n.Stickers, n.Charms, inspection(v)
	return out
}

// inspection returns the inspection of an asset, or nil if the asset cannot be inspected.
func inspection(v *PricedRow) *Inspection {
	n := &v.Inspection
	if n.State == "" {
		return nil
	}
	return &Inspection{
		State: string(n.State), Code: text(n.Code), Source: text(string(n.Source)), Certificate: text(cmp.Or(v.Certificate, v.Inspect)),
		Phase:    text(catalog.PhaseOf(v.Name, n.Finish)),
		DefIndex: count(n.DefIndex), Quality: count(n.Quality), Rarity: count(n.Rarity), Kills: count(n.Kills), CharmTemplate: count(n.Charm),
	}
}
