package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/inventory/inspect"
)

// WorkInspect is the kind of background work that performs pending inspections.
const WorkInspect = "inspect"

// inspectBatch is the number of rows that are inspected in one transaction. It is small, so
// that the user's next sync waits at most a few milliseconds for the transaction.
const inspectBatch = 200

// InspectState is the state of a row's inspection.
type InspectState string

// The states of an inspection.
const (
	InspectNone          InspectState = "none"          // waits for the next normal sync
	InspectPending       InspectState = "pending"       // ready to be inspected
	InspectDone          InspectState = "done"          // completed
	InspectFailed        InspectState = "failed"        // not decoded; Code has the reason
	InspectContradiction InspectState = "contradiction" // decoded; Code has the contradiction
)

// Codes of failures and contradictions, in addition to those of package inspect.
const (
	CodeBadProperty = "bad_property" // the seed or wear in Steam's response is invalid
	CodeAssetID     = "asset_id"     // the certificate has another asset id, perhaps from before a trade
	CodeSeed        = "seed"         // certificate and properties have different seeds
	CodeWear        = "wear"         // certificate and properties have different wears
	CodeNameTag     = "name_tag"     // certificate and properties have different name tags
	CodeLink        = "link"         // link and certificate describe different items
	CodePhase       = "phase"        // the certificate has another phase than the platform's push
	CodeFinish      = "finish"       // the certificate has a finish that the name does not have
)

// InspectSource is the origin of a certificate.
type InspectSource string

// The sources of a certificate.
const (
	SourceProperty InspectSource = "property" // the asset's properties in Steam's response
	SourceLink     InspectSource = "link"     // the inspect action in Steam's response
	SourcePushed   InspectSource = "pushed"   // a link pushed by the platform
)

// Given is the input of an inspection, in addition to the link of the row.
type Given struct {
	Properties  Properties
	LinkOfSteam bool // whether the row's link is from Steam's response
}

// Inspected is the stored inspection of a row.
type Inspected struct {
	Given  Given
	State  InspectState
	Phase  string // phase that the inspection found, or empty
	Finish int64
}

// UninspectedAsset is the input of an inspection of an asset.
type UninspectedAsset struct {
	AssetID string
	Given   Given
	State   InspectState
}

// Uninspected is a row with a pending inspection.
type Uninspected struct {
	ID      int64
	AssetID string
	Name    string
	Phase   string // phase pushed by the platform
	Link    string
	Given   Given
}

// Inspection is the result of inspecting a row. Unknown numbers are -1. Unknown texts are
// empty.
type Inspection struct {
	ID       int64 // id of the row
	State    InspectState
	Code     string
	Source   InspectSource
	Phase    string // new phase of the row; empty if it does not change
	Wear     string // decimal
	Seed     int64
	Finish   int64 // paint index; -1 for vanilla
	DefIndex int64
	Quality  int64
	Rarity   int64
	Kills    int64 // StatTrak counter
	Charm    int64 // pattern template of a charm
	NameTag  string
	Stickers []Sticker
	Charms   []Sticker
}

// Inspect inspects some pending rows of one user. It reports whether there may be more
// pending rows. It is safe to call it concurrently and to interrupt it, because it writes all
// results in one transaction.
func (s *Service) Inspect(ctx context.Context) (more bool, err error) {
	var sooner bool
	err = s.InTx(ctx, func(tx *db.Tx) error {
		rows, err := claimUninspected(tx, inspectBatch)
		if err != nil {
			return fmt.Errorf("rows to inspect: %w", err)
		}
		if more = len(rows) > 0; !more {
			return nil
		}
		found := make([]Inspection, len(rows))
		for i := range rows {
			found[i] = examine(&rows[i])
		}
		if sooner, err = move(tx, rows, found); err != nil {
			return err
		}
		return setInspections(tx, found)
	})
	if err == nil && sooner {
		s.Queued()
	}
	return more && err == nil, err
}

// move assigns each row to the item of the phase that its inspection found. It adds items
// without a price to the missing-price queue, and reports whether that makes an entry due
// earlier.
func move(tx *db.Tx, rows []Uninspected, found []Inspection) (sooner bool, err error) {
	var keys []catalog.Key
	seen := map[catalog.Key]bool{}
	for i := range found {
		k := catalog.Key{AppID: catalog.CS2, Name: rows[i].Name, Phase: found[i].Phase}
		if k.Phase != "" && !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return false, nil
	}
	items, err := catalog.EnsureItems(tx, catalog.CS2, keys)
	if err != nil {
		return false, fmt.Errorf("items: %w", err)
	}
	prices, err := lockPrices(tx, items)
	if err != nil {
		return false, err
	}
	to := map[int64]int64{}
	for i := range found {
		if item, ok := items[catalog.Key{AppID: catalog.CS2, Name: rows[i].Name, Phase: found[i].Phase}]; ok {
			to[rows[i].ID] = item.ID
		}
	}
	if err := moveInventory(tx, to); err != nil {
		return false, fmt.Errorf("move rows: %w", err)
	}
	if missing := unpriced(prices); len(missing) > 0 {
		if _, sooner, err = catalog.QueueMissing(tx, missing); err != nil {
			return false, fmt.Errorf("queue: %w", err)
		}
	}
	return sooner, awaitMoved(tx, slices.Collect(maps.Keys(to)))
}

// examine decodes a row's certificate or link and compares it with the asset's properties.
//
// Certificates have no signature, so a user can forge one with the most valuable finish. A
// certificate therefore changes the phase of a row only under two conditions: it is part of
// the asset's properties in Steam's response, and it matches the seed, wear or id in that
// response. A link never affects the price.
func examine(r *Uninspected) Inspection {
	p := &r.Given.Properties
	out := Inspection{
		ID: r.ID, State: InspectDone, Source: SourceProperty, NameTag: p.NameTag, Stickers: []Sticker{}, Charms: []Sticker{},
		Seed: -1, Finish: -1, DefIndex: -1, Quality: -1, Rarity: -1, Kills: -1, Charm: -1,
	}
	out.own(p)
	text := cmp.Or(p.Certificate, r.Link)
	switch {
	case text == "":
		return out
	case p.Certificate != "":
	case r.Given.LinkOfSteam:
		out.Source = SourceLink
	default:
		out.Source = SourcePushed
	}
	item, err := inspect.Decode(text)
	if failed, ok := errors.AsType[*inspect.Error](err); ok {
		out.State, out.Code = InspectFailed, cmp.Or(out.Code, string(failed.Code))
		return out
	}
	out.take(&item)
	if code, contradicts := contradiction(r, &item); out.State == InspectDone && contradicts {
		out.State, out.Code = InspectContradiction, code
	}
	if out.State == InspectDone { // the wear in the properties may be rounded
		out.Wear = cmp.Or(item.Wear.String(), out.Wear)
	}
	if out.State == InspectDone && out.Source == SourceProperty && r.Phase == "" && agrees(r, &item) {
		out.Phase = catalog.PhaseOf(r.Name, out.Finish)
	}
	return out
}

// own copies the values from the asset's properties.
func (n *Inspection) own(p *Properties) {
	bad := false
	number := func(text string) int64 {
		v, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			bad = bad || text != ""
			return -1
		}
		return int64(v)
	}
	n.Seed, n.Charm = number(p.Seed), number(p.Charm)
	if wear, ok := inspect.ParseWear(p.Wear); ok {
		n.Wear = wear.String()
	} else {
		bad = bad || p.Wear != ""
	}
	if bad {
		n.State, n.Code = InspectFailed, CodeBadProperty
	}
}

// take copies the values from a certificate that are missing in the properties.
func (n *Inspection) take(item *inspect.Item) {
	if n.Seed < 0 && item.HasSeed {
		n.Seed = int64(item.PaintSeed)
	}
	if item.HasKills {
		n.Kills = int64(item.Kills)
	}
	if item.PaintIndex > 0 {
		n.Finish = int64(item.PaintIndex)
	}
	if len(item.Charms) == 1 && n.Charm < 0 && item.DefIndex == charmDefinition {
		n.Charm = int64(item.Charms[0].Pattern)
	}
	n.Wear = cmp.Or(n.Wear, item.Wear.String())
	n.NameTag = cmp.Or(n.NameTag, item.NameTag)
	n.DefIndex, n.Quality, n.Rarity = int64(item.DefIndex), int64(item.Quality), int64(item.Rarity)
	n.Stickers, n.Charms = stickers(item.Stickers), stickers(item.Charms)
}

// charmDefinition is the definition index of a charm that is not attached to a weapon.
const charmDefinition = 1355

// contradiction returns the code of the first contradiction between a certificate and the
// other data of its row.
func contradiction(r *Uninspected, item *inspect.Item) (code string, found bool) {
	p := &r.Given.Properties
	phase := catalog.PhaseOf(r.Name, int64(item.PaintIndex))
	switch {
	case item.ItemID != 0 && strconv.FormatUint(item.ItemID, 10) != r.AssetID:
		return CodeAssetID, true
	case p.Seed != "" && strconv.FormatUint(uint64(item.PaintSeed), 10) != p.Seed:
		return CodeSeed, true
	case p.Wear != "" && !item.Wear.Agrees(p.Wear):
		return CodeWear, true
	case p.NameTag != "" && p.NameTag != item.NameTag:
		return CodeNameTag, true
	case p.Certificate != "" && otherItem(r.Link, item):
		return CodeLink, true
	case phase == "" && catalog.Phased(r.Name):
		return CodeFinish, true
	case r.Phase != "" && phase != "" && r.Phase != phase:
		return CodePhase, true
	}
	return "", false
}

// otherItem reports whether a link describes a different item than the certificate own.
func otherItem(link string, own *inspect.Item) bool {
	decoded, err := inspect.Decode(link)
	return err == nil && (decoded.DefIndex != own.DefIndex || decoded.PaintIndex != own.PaintIndex ||
		decoded.PaintSeed != own.PaintSeed || decoded.Wear != own.Wear)
}

// agrees reports whether at least one value in Steam's response confirms the certificate.
// The caller must first check that there is no contradiction.
func agrees(r *Uninspected, item *inspect.Item) bool {
	return r.Given.Properties.Seed != "" || r.Given.Properties.Wear != "" || item.ItemID != 0
}

// Sticker is a sticker, patch or charm on an item, in the form that is stored and returned
// by the API. Fractions are decimal texts. Unknown values are omitted.
type Sticker struct {
	Slot          uint32 `json:"slot"`
	ID            uint32 `json:"id"`
	Wear          string `json:"wear,omitempty"`
	Scale         string `json:"scale,omitempty"`
	Rotation      string `json:"rotation,omitempty"`
	OffsetX       string `json:"offsetX,omitempty"`
	OffsetY       string `json:"offsetY,omitempty"`
	OffsetZ       string `json:"offsetZ,omitempty"`
	Tint          uint32 `json:"tint,omitempty"`
	Pattern       uint32 `json:"pattern,omitempty"`
	HighlightReel uint32 `json:"highlightReel,omitempty"`
	Wrapped       uint32 `json:"wrapped,omitempty"`
}

func stickers(applied []inspect.Applied) []Sticker {
	out := make([]Sticker, len(applied))
	for i, a := range applied {
		out[i] = Sticker{
			Slot: a.Slot, ID: a.ID, Wear: a.Wear.String(), Scale: a.Scale.String(), Rotation: a.Rotation.String(),
			OffsetX: a.OffsetX.String(), OffsetY: a.OffsetY.String(), OffsetZ: a.OffsetZ.String(),
			Tint: a.Tint, Pattern: a.Pattern, HighlightReel: a.HighlightReel, Wrapped: a.Wrapped,
		}
	}
	return out
}
