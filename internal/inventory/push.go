// Package inventory syncs users' inventories with what platforms and Steam report.
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

// Push is a user's whole inventory of one game and context, as of a moment.
type Push struct {
	AppID      int32
	ContextID  string
	SnapshotAt time.Time
	Assets     []Asset
	SteamID    string // of the account of which Steam showed this; empty: the platform pushed it
	// Hidden is how many assets there are that the push does not show. Where there
	// are any, a stored one that it does not show is hidden or gone: its row stays,
	// and cannot be traded.
	Hidden int64
}

// Asset is one thing in an inventory.
type Asset struct {
	AssetID    string
	Name       string // market hash name; empty only for what is not marketable
	Phase      string
	ClassID    string
	InstanceID string
	Amount     int64
	Tradable   bool
	Marketable bool
	// Inspect is a certificate or inspect link, undecoded: as the platform pushed
	// it, or the inspect action of Steam's response with its placeholders filled in.
	Inspect string
	// Properties are those of Steam's response; nil: the platform pushed the asset,
	// and stored properties stay.
	Properties *Properties
}

// Properties are the asset_properties of Steam's response, each as Steam writes it and
// at most MaxInspect bytes long; empty where there is none.
type Properties struct {
	Seed        string // propertyid 1, int_value: the pattern seed
	Wear        string // propertyid 2, float_value
	Charm       string // propertyid 3, int_value: the template of a charm
	NameTag     string // propertyid 5, string_value
	Certificate string // propertyid 6, string_value, in hex
}

// Key returns which item the asset is; ok is false for an asset without a name.
func (a Asset) Key(appID int32) (key catalog.Key, ok bool) {
	return catalog.Key{AppID: appID, Name: a.Name, Phase: a.Phase}, a.Name != ""
}
