// Package inventory stores users' inventories. It syncs them with inventories that platforms
// push or that are pulled from Steam.
package inventory

import (
	"time"

	"assay/internal/catalog"
)

// Limits of a push.
const (
	MaxItems   = 50_000
	MaxAhead   = 5 * time.Minute
	MaxOpaque  = 128 // bytes of asset, class, instance and context ids
	MaxInspect = 4096
)

// Push is a user's whole inventory of one game and context at a time.
type Push struct {
	AppID      int32
	ContextID  string
	SnapshotAt time.Time
	Assets     []Asset
	SteamID    string // Steam account of a pull; empty for a push by the platform
	// Hidden is the number of assets that exist but are not in Assets. If it is not 0,
	// stored rows of missing assets are kept, because they may be hidden. They become not
	// tradable.
	Hidden int64
}

// Asset is one asset in an inventory.
type Asset struct {
	AssetID    string
	Name       string // market hash name; may be empty if the asset is not marketable
	Phase      string
	ClassID    string
	InstanceID string
	Amount     int64
	Tradable   bool
	Marketable bool
	// Inspect is an inspect link or a certificate. The platform pushed it, or it is the
	// inspect action in Steam's response with its placeholders filled in.
	Inspect string
	// Properties are the properties in Steam's response. They are nil for a push by the
	// platform, which keeps the stored properties.
	Properties *Properties
}

// Properties are the asset_properties in Steam's response. Values have Steam's format and at
// most MaxInspect bytes. Missing values are empty.
type Properties struct {
	Seed        string // propertyid 1, int_value: the pattern seed
	Wear        string // propertyid 2, float_value
	Charm       string // propertyid 3, int_value: the template of a charm
	NameTag     string // propertyid 5, string_value
	Certificate string // propertyid 6, string_value, in hex
}

// Key returns the key of the asset's item. The result ok is false for an asset without a
// name.
func (a Asset) Key(appID int32) (key catalog.Key, ok bool) {
	return catalog.Key{AppID: appID, Name: a.Name, Phase: a.Phase}, a.Name != ""
}
