// Package steaminv pulls users' public inventories from Steam. A pull is all
// pages or nothing: what came is handed on only when it is whole, with how much of
// it is hidden, so that nothing that Steam hides, refuses or breaks off removes a
// stored row.
//
// Steam documents none of this; it is read as it was seen to answer until
// November 2026. Not confirmed, and so tolerated: 401 where others saw 403 (both
// say that the inventory is not public), and amounts, ids and flags in either of
// the forms that its two interfaces write.
package steaminv

import (
	"slices"
	"time"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/provider"
)

// provider names Steam in errors and logs.
const providerName = "steam"

const (
	// firstCount is the count of assets per page; Steam refuses more. If it refuses
	// that, too, later pages use lessCount.
	firstCount = 2000
	lessCount  = 1000
	// maxPage is far more assets, or descriptions, than a page was ever seen to have.
	maxPage = 10_000
	// maxBody is several times what the largest page takes, inflated.
	maxBody = 64 << 20
)

// Tune sets in the options of the client what is particular to inventories.
func Tune(o *provider.Options) {
	o.MaxBody, o.Attempts, o.Backoff, o.Total = maxBody, 4, 2*time.Second, PullTime
	o.Patience, o.Classify = AnswerTime, classify
}

// Place is one part of an inventory: a game and one of its contexts.
type Place struct {
	AppID     int32
	ContextID string
}

// Default is the place that is meant where none is named.
func Default() Place { return Place{AppID: catalog.CS2, ContextID: "2"} }

// Places lists what can be pulled. The second context of CS2 holds assets under
// trade protection.
func Places() []Place {
	return []Place{
		{catalog.CS2, "2"}, {catalog.CS2, "16"}, {catalog.Dota, "2"}, {catalog.TF2, "2"}, {catalog.Rust, "2"},
	}
}

// Check reports whether the place is one that can be pulled.
func (p Place) Check() error {
	if slices.Contains(Places(), p) {
		return nil
	}
	return fault.New(fault.Invalid, "unsupported_inventory",
		"Pulls from Steam support appId 730 with contextId 2 or 16, and 570, 440 and 252490 with contextId 2. Push other inventories as a JSON body.")
}
