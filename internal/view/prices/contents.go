package prices

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
)

// contents is a copy of a bucket. It is immutable. Its few pointers keep garbage collection
// fast.
type contents struct {
	version int64  // the bucket's version before the read, so the rows may be newer
	names   string // concatenated
	items   []item // sorted by name, app and phase
	partial bool   // some items did not fit
}

// item is an item with its price. Times are in microseconds.
type item struct {
	nameAt           uint32 // offset in names
	number           uint32 // item ID without the bucket
	nameLen          uint16
	phase            uint8 // index in catalog.Phases, starting at 1; 0: none
	status           pricing.Status
	app              int32
	usedMarkets      uint16
	held             bool
	amount           money.Micro
	updated, checked int64
	interval         pricing.Interval
	average          money.Micro
}

// find returns the price of an item.
func (c *contents) find(key catalog.Key) (Price, bool) {
	if i := c.item(key); i != nil {
		return i.price(), true
	}
	return Price{}, false
}

// item returns an item, or nil if it is not cached.
func (c *contents) item(key catalog.Key) *item {
	phase, ok := phaseNumber(key.Phase)
	if !ok {
		return nil
	}
	at, ok := slices.BinarySearchFunc(c.items, key, func(i item, key catalog.Key) int {
		return cmp.Or(strings.Compare(i.name(c.names), key.Name), cmp.Compare(i.app, key.AppID), cmp.Compare(i.phase, phase))
	})
	if !ok {
		return nil
	}
	return &c.items[at]
}

func (i *item) price() Price {
	return Price{
		Amount: i.amount, Status: i.status, UpdatedAt: db.Moment(i.updated), CheckedAt: db.Moment(i.checked), Held: i.held,
		Figures: Figures{Interval: i.interval, Average: i.average, UsedMarkets: int32(i.usedMarkets)},
	}
}

func (i *item) name(names string) string { return names[i.nameAt : i.nameAt+uint32(i.nameLen)] }

// contentsBuilder builds contents from prices in any order.
type contentsBuilder struct {
	names strings.Builder
	items []item
}

// add adds an item. It skips items with an unknown phase, which are always read from the
// database.
func (p *contentsBuilder) add(id int64, key catalog.Key, price Price) {
	phase, ok := phaseNumber(key.Phase)
	if !ok {
		return
	}
	p.items = append(p.items, item{
		nameAt: uint32(p.names.Len()), number: uint32(id), nameLen: uint16(len(key.Name)), phase: phase, status: price.Status, app: key.AppID,
		amount: price.Amount, updated: db.Micros(price.UpdatedAt), checked: db.Micros(price.CheckedAt), held: price.Held,
		interval: price.Interval, average: price.Average, usedMarkets: uint16(min(price.UsedMarkets, math.MaxUint16)),
	})
	_, _ = p.names.WriteString(key.Name) // never fails
}

func (p *contentsBuilder) build() (string, []item) {
	names := strings.Clone(p.names.String())
	slices.SortFunc(p.items, func(a, b item) int {
		return cmp.Or(strings.Compare(a.name(names), b.name(names)), cmp.Compare(a.app, b.app), cmp.Compare(a.phase, b.phase))
	})
	return names, slices.Clone(p.items)
}

func phaseName(number uint8) string {
	if number == 0 {
		return ""
	}
	return catalog.Phases[number-1]
}

func phaseNumber(phase string) (uint8, bool) {
	if phase == "" {
		return 0, true
	}
	n := slices.Index(catalog.Phases, phase) + 1
	return uint8(n), n > 0
}
