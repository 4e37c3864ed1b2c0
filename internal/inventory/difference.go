package inventory

import (
	"fmt"
	"maps"
	"slices"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
)

// difference is the difference between a push and the stored inventory.
type difference struct {
	Result
	push      *Push
	due       InspectState          // state of new inspections
	known     int                   // number of stored rows
	stored    map[string]Row        // stored rows by asset id; compare removes the rows that are in the push
	inspected map[int64]Inspected   // inspections by row id
	prices    map[int64]money.Micro // prices of the push's items; 0 if unknown

	add, change  []Row
	remove       []int64
	uninspected  []UninspectedAsset // rows with a new input for their inspection
	withoutInput []int64            // rows without an input, but with an inspection
	queue        []int64            // rows whose inspection changes from none to pending
}

// newDifference reads the stored inventory.
func newDifference(tx *db.Tx, user int64, push *Push, mode Mode) (*difference, error) {
	rows, err := inventoryRows(tx, user, push.AppID, push.ContextID)
	if err != nil {
		return nil, err
	}
	d := &difference{push: push, due: InspectPending, known: len(rows), stored: make(map[string]Row, len(rows))}
	if mode == Listing {
		d.due = InspectNone
	}
	for _, r := range rows {
		d.stored[r.AssetID] = r
	}
	if push.AppID == catalog.CS2 && len(rows) > 0 {
		if d.inspected, err = inspections(tx, user, push.AppID, push.ContextID); err != nil {
			return nil, fmt.Errorf("inspections: %w", err)
		}
	}
	return d, nil
}

// key returns the key of an asset's item. If an earlier inspection found the phase, and its
// input has not changed since, the key has that phase.
func (d *difference) key(a *Asset) (key catalog.Key, ok bool) {
	key, ok = a.Key(d.push.AppID)
	if key.Phase != "" || len(d.inspected) == 0 {
		return key, ok
	}
	have := d.stored[a.AssetID]
	known := d.inspected[have.ID]
	if known.Phase != "" && a.Inspect == have.Inspect && given(a, &have, known.Given) == known.Given {
		key.Phase = catalog.PhaseOf(a.Name, known.Finish)
	}
	return key, ok
}

// given returns the new input of an asset's inspection without the link. before is the
// previous input.
func given(a *Asset, have *Row, before Given) Given {
	now := before
	if a.Properties != nil {
		now.Properties = *a.Properties
	}
	if a.Inspect != have.Inspect {
		now.LinkOfSteam = a.Properties != nil && a.Inspect != ""
	}
	return now
}

// keys returns the distinct items of the push.
func (d *difference) keys() []catalog.Key {
	seen := make(map[catalog.Key]struct{}, len(d.push.Assets))
	var out []catalog.Key
	for i := range d.push.Assets {
		k, ok := d.key(&d.push.Assets[i])
		if _, twice := seen[k]; ok && !twice {
			seen[k] = struct{}{}
			out = append(out, k)
		}
	}
	return out
}

// find compares the push with the stored inventory. It locks the prices that the sync uses.
func (d *difference) find(tx *db.Tx) error {
	items, err := catalog.EnsureItems(tx, d.push.AppID, d.keys())
	if err != nil {
		return fmt.Errorf("items: %w", err)
	}
	d.compare(items)
	if used := d.used(items); len(used) > 0 {
		prices, err := catalog.LockPrices(tx, used)
		if err != nil {
			return fmt.Errorf("lock prices: %w", err)
		}
		maps.Copy(d.prices, prices)
	}
	return nil
}

// compare finds the rows to add, change and remove.
func (d *difference) compare(items map[catalog.Key]catalog.Item) {
	d.prices = pricesOf(items)
	for i := range d.push.Assets {
		a := &d.push.Assets[i]
		key, _ := d.key(a)
		item := items[key]
		if item.Price > 0 {
			d.PricedRows++
		}
		want := Row{
			AssetID: a.AssetID, ItemID: item.ID, ClassID: a.ClassID, InstanceID: a.InstanceID,
			Amount: a.Amount, Tradable: a.Tradable, Marketable: a.Marketable, Inspect: a.Inspect,
		}
		have, stored := d.stored[a.AssetID]
		delete(d.stored, a.AssetID)
		want.ID = have.ID
		again := d.inspect(a, &have, &want)
		switch {
		case !stored:
			d.Added++
			d.add = append(d.add, want)
		case have != want || again:
			d.Changed++
			d.change = append(d.change, want)
		default:
			d.Unchanged++
		}
	}
	d.missing()
}

// missing handles the stored rows that are not in the push. It removes them, or makes them
// not tradable if the push has hidden assets.
func (d *difference) missing() {
	d.Hidden = d.push.Hidden
	for _, row := range d.stored {
		switch {
		case d.Hidden == 0:
			d.Removed++
			d.remove = append(d.remove, row.ID)
		case row.Tradable:
			row.Tradable = false
			d.Changed++
			d.change = append(d.change, row)
		default:
			d.Unchanged++
		}
	}
}

// inspect finds the changes to a row's inspection. It reports whether the input of the
// inspection changed.
func (d *difference) inspect(a *Asset, have, want *Row) (again bool) {
	if d.push.AppID != catalog.CS2 {
		return false
	}
	before, known := d.inspected[have.ID]
	now := given(a, have, before.Given)
	switch {
	case a.Inspect == "" && now.Properties == Properties{}:
		if known {
			d.withoutInput = append(d.withoutInput, have.ID)
		}
		return known
	case !known || now != before.Given || have.Inspect != want.Inspect || have.ItemID != want.ItemID:
		d.uninspected = append(d.uninspected, UninspectedAsset{AssetID: a.AssetID, Given: now, State: d.due})
		return true
	case before.State == InspectNone && d.due == InspectPending:
		d.queue = append(d.queue, have.ID)
	}
	return false
}

// inspectable reports whether the sync leaves pending inspections.
func (d *difference) inspectable() bool {
	return d.due == InspectPending && len(d.uninspected)+len(d.queue) > 0
}

// used returns the items whose prices the sync uses: items whose price is copied to a row,
// and items without a price. It excludes new items, because other transactions cannot see
// them.
func (d *difference) used(items map[catalog.Key]catalog.Item) []int64 {
	copied := make(map[int64]bool, len(d.add)+len(d.change))
	for _, rows := range [][]Row{d.add, d.change} {
		for i := range rows {
			copied[rows[i].ItemID] = true
		}
	}
	var ids []int64
	for _, i := range items {
		if !i.New && (i.Price <= 0 || copied[i.ID]) {
			ids = append(ids, i.ID)
		}
		delete(copied, i.ID)
	}
	delete(copied, 0)
	for id := range copied { // items of rows that are not in the push
		ids = append(ids, id)
	}
	return ids
}

// write writes the difference to the database.
func (d *difference) write(tx *db.Tx, user int64) error {
	app, contextID := d.push.AppID, d.push.ContextID
	stored := slices.Clone(d.remove)
	for i := range d.change {
		stored = append(stored, d.change[i].ID)
	}
	for _, step := range []struct {
		name string
		rows int
		do   func() error
	}{
		{"lock", d.known, func() error { return lockRows(tx, user, app, contextID, stored) }},
		{"remove", len(d.remove), func() error { return RemoveInventory(tx, d.remove) }},
		{"change", len(d.change), func() error { return changeInventory(tx, d.change) }},
		{"add", len(d.add), func() error { return addInventory(tx, user, app, contextID, d.add, d.prices) }},
		{"remove inspections", len(d.withoutInput), func() error { return removeInspections(tx, d.withoutInput) }},
		{"store inspections", len(d.uninspected), func() error { return putUninspected(tx, user, app, contextID, d.uninspected) }},
		{"queue inspections", len(d.queue), func() error { return queueInspections(tx, d.queue) }},
	} {
		if step.rows == 0 {
			continue
		}
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}
