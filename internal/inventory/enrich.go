package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/inventory/inspect"
)

// WorkInspect is the kind of the work that decodes what syncs left to decode.
const WorkInspect = "inspect"

// inspectBatch is how many rows are inspected in one transaction: the user's
// next sync waits no longer for it than for a few milliseconds.
const inspectBatch = 200

// InspectState is how far the inspection of a row is.
type InspectState string

// The states of an inspection.
const (
	InspectNone          InspectState = "none"    // not to be decoded before the next normal sync
	InspectPending       InspectState = "pending" // to be decoded
	InspectDone          InspectState = "done"
	InspectFailed        InspectState = "failed"        // Code is the reason
	InspectContradiction InspectState = "contradiction" // decoded; Code is the contradiction
)

// What can be wrong with an inspection, besides the codes of inspect.
const (
	CodeBadProperty = "bad_property" // Steam's seed or wear is no number that it can be
	CodeAssetID     = "asset_id"     // the certificate is of another asset, or of this one before a trade
	CodeSeed        = "seed"         // the certificate has another seed than the asset's properties
	CodeWear        = "wear"         // another wear
	CodeNameTag     = "name_tag"     // another name tag
	CodeLink        = "link"         // the link is of another item than the asset's own certificate
	CodePhase       = "phase"        // the platform's phase differs
	CodeFinish      = "finish"       // the finish is none of those that the name can have
)

// InspectSource is where a certificate comes from.
type InspectSource string

// The sources of a certificate.
const (
	SourceProperty InspectSource = "property" // the asset's own properties, in Steam's response
	SourceLink     InspectSource = "link"     // the inspect action in Steam's response
	SourcePushed   InspectSource = "pushed"   // the platform
)

// Given is the input of an inspection, besides the link of the row.
type Given struct {
	Properties  Properties
	LinkOfSteam bool // the row's link is from Steam's response, not from the platform
}

// Inspected is what a sync needs to know of a row's inspection.
type Inspected struct {
	Given  Given
	State  InspectState
	Phase  string // that the row was moved to; empty: none
	Finish int64
}

// Due is a row that is to be inspected when its State is InspectPending.
type Due struct {
	AssetID string
	Given   Given
	State   InspectState
}

// Uninspected is a row with what there is to inspect of it.
type Uninspected struct {
	ID      int64
	AssetID string
	Name    string
	Phase   string // as the platform pushed it
	Link    string
	Given   Given
}

// Inspection is the result of inspecting a row. Numbers are -1 and texts empty
// where there is no value.
type Inspection struct {
	ID       int64 // of the row
	State    InspectState
	Code     string
	Source   InspectSource
	Phase    string // that the row is to be moved to; empty: it stays
	Wear     string // decimal
	Seed     int64
	Finish   int64 // paint index; vanilla has none
	DefIndex int64
	Quality  int64
	Rarity   int64
	Kills    int64 // of StatTrak
	Charm    int64 // template of a charm
	NameTag  string
	Stickers []Sticker
	Charms   []Sticker
}

// Inspect inspects some rows of a user that wait for it and reports whether there
// may be more. It may run twice, concurrently, and be interrupted: the
// results and the changed rows are written in one transaction.
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

// move gives rows whose phase became known to the phase's item, with its price
// or none, and queues the items that have none.
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
	prices, err := holdPrices(tx, items)
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
	return sooner, nil
}

// examine decodes a row's certificate and link and compares their sources.
//
// A certificate has no signature, so a user can forge one for the most valuable
// finish. It sets the phase that a row is priced by only if it is part of the asset
// in Steam's response and agrees with the asset's seed, wear or id there. The
// content of a link is shown and never affects a price.
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
	if out.State == InspectDone { // the properties may round it
		out.Wear = cmp.Or(item.Wear.String(), out.Wear)
	}
	if out.State == InspectDone && out.Source == SourceProperty && r.Phase == "" && agrees(r, &item) {
		out.Phase = catalog.PhaseOf(r.Name, out.Finish)
	}
	return out
}

// own copies the values of the asset's properties.
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

// take copies the values of a certificate that the properties lack.
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

// charmDefinition is the definition index of charms that are on nothing.
const charmDefinition = 1355

// contradiction returns how a certificate differs from the other sources.
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

// otherItem reports whether a link describes another item than the asset's own
// certificate.
func otherItem(link string, own *inspect.Item) bool {
	decoded, err := inspect.Decode(link)
	return err == nil && (decoded.DefIndex != own.DefIndex || decoded.PaintIndex != own.PaintIndex ||
		decoded.PaintSeed != own.PaintSeed || decoded.Wear != own.Wear)
}

// agrees reports whether at least one value of Steam's response confirms the
// certificate. The caller has ruled out contradictions.
func agrees(r *Uninspected, item *inspect.Item) bool {
	return r.Given.Properties.Seed != "" || r.Given.Properties.Wear != "" || item.ItemID != 0
}

// Sticker is a sticker, patch or charm on an item, as it is stored and shown.
// Fractions are decimal texts. Unknown values are left out.
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
