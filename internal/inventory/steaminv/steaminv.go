// Package steaminv pulls users' public inventories from Steam. A pull either returns all
// pages and the number of hidden assets, or fails. Therefore hidden assets and failed
// requests never remove a stored row.
//
// Steam does not document the endpoint. The package supports the responses observed until
// November 2026. It also accepts variants that are not confirmed: status 401 instead of 403
// for a private inventory, and numbers and flags in the formats of both of Steam's APIs.
package steaminv

import (
	"slices"
	"time"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/provider"
)

// providerName is the name of Steam in errors and logs.
const providerName = "steam"

const (
	// firstCount is the number of assets per page. Steam refuses larger numbers. If it also
	// refuses this number, the pull continues with lessCount.
	firstCount = 2000
	lessCount  = 1000
	// maxPage is the maximum number of assets or descriptions on a page. Real pages are much
	// smaller.
	maxPage = 10_000
	// maxBody is the maximum decompressed size of a page. Real pages are much smaller.
	maxBody = 64 << 20
)

// Tune sets the client's options that are specific to inventories.
func Tune(o *provider.Options) {
	o.MaxBody, o.Attempts, o.Backoff, o.Total = maxBody, 4, 2*time.Second, PullTime
	o.Patience, o.Classify = SyncTimeout, classify
}

// Place is a game and one of its contexts. A user has one inventory for each place.
type Place struct {
	AppID     int32
	ContextID string
}

// Default returns the default place.
func Default() Place { return Place{AppID: catalog.CS2, ContextID: "2"} }

// Places returns the supported places. Context 16 of CS2 has the assets under trade
// protection.
func Places() []Place {
	return []Place{
		{catalog.CS2, "2"}, {catalog.CS2, "16"}, {catalog.Dota, "2"}, {catalog.TF2, "2"}, {catalog.Rust, "2"},
	}
}

// Check returns a fault if the place is not supported.
func (p Place) Check() error {
	if slices.Contains(Places(), p) {
		return nil
	}
	return fault.New(fault.Invalid, "unsupported_inventory",
		"Pulls from Steam support appId 730 with contextId 2 or 16, and 570, 440 and 252490 with contextId 2. Push other inventories as a JSON body.")
}
