package provider

import (
	"hash/maphash"
	"math/bits"

	"assay/internal/money"
)

// Reasons for which a sink rejects a repeated quote.
const (
	RejectRepeat   = "name given twice"
	RejectConflict = "name given twice with different prices"
)

// Repetition is the relation of a quote to earlier quotes in the same response for the same
// item and market.
type Repetition int

// The kinds of Repetition.
const (
	First         Repetition = iota // no earlier quote; this one is used
	Repeated                        // same price as the first quote; only the first is used
	Conflicting                     // other price than the first quote; neither is used
	AfterConflict                   // another quote after a conflict; not used
)

// Duplicates finds repeated quotes of the same item and market in one response. If their
// prices differ, none of them is used, because any choice would be arbitrary. It stores 16
// bytes per item and market in an open-addressing hash table. Two pairs with the same 64-bit
// hash count as one. The zero value is ready to use.
type Duplicates struct {
	seed      maphash.Seed
	slots     []quoted // the length is a power of two; at most three quarters are in use
	used      int
	conflicts int
}

// quoted is one slot: the hash of an item and market, and the hash of their price.
type quoted struct {
	key   uint64 // 0: free slot
	price uint64 // contested after a conflict
}

// contested marks a slot with a conflict. No price has this hash.
const contested = 0

// Reset removes all quotes.
func (d *Duplicates) Reset() {
	clear(d.slots)
	d.used, d.conflicts = 0, 0
}

// Add records a quote and returns its relation to the earlier quotes.
func (d *Duplicates) Add(q *Quote) Repetition {
	if 4*(d.used+1) > 3*len(d.slots) {
		d.grow()
	}
	key, price := d.key(q.Market, q.Name, q.Phase), d.price(q)
	switch slot := d.find(key); {
	case slot.key == 0:
		d.used++
		*slot = quoted{key, price}
		return First
	case slot.price == price:
		return Repeated
	case slot.price == contested:
		return AfterConflict
	default:
		d.conflicts++
		slot.price = contested
		return Conflicting
	}
}

// Conflicts returns the number of item and market pairs with conflicting prices.
func (d *Duplicates) Conflicts() int { return d.conflicts }

// Conflicting reports whether an item has conflicting prices on a market.
func (d *Duplicates) Conflicting(market, name, phase string) bool {
	if d.conflicts == 0 {
		return false
	}
	slot := d.find(d.key(market, name, phase))
	return slot.key != 0 && slot.price == contested
}

func (d *Duplicates) key(market, name, phase string) uint64 {
	sum := maphash.String(d.seed, name)
	sum ^= bits.RotateLeft64(maphash.String(d.seed, market), 1)
	if phase != "" {
		sum ^= bits.RotateLeft64(maphash.String(d.seed, phase), 2) // rotated, because equal texts would cancel out
	}
	return max(sum, 1)
}

// price hashes the ask of a quote. Without an ask it hashes the sale.
func (d *Duplicates) price(q *Quote) uint64 {
	p := struct {
		currency  money.Currency
		ask, sale money.Micro
	}{currency: q.Currency, ask: q.Ask}
	if q.Ask == 0 {
		p.sale = q.Sale
	}
	return max(maphash.Comparable(d.seed, p), contested+1)
}

// find returns the slot of a key, or a free slot if the key is missing.
func (d *Duplicates) find(key uint64) *quoted {
	mask := uint64(len(d.slots) - 1)
	for i := key & mask; ; i = (i + 1) & mask {
		if slot := &d.slots[i]; slot.key == key || slot.key == 0 {
			return slot
		}
	}
}

const (
	fewSlots  = 1 << 6  // first size: enough for a response with a few names
	manySlots = 1 << 14 // second size
)

func (d *Duplicates) grow() {
	old := d.slots
	if old == nil {
		d.seed = maphash.MakeSeed()
		d.slots = make([]quoted, fewSlots)
		return
	}
	d.slots = make([]quoted, max(manySlots, 2*len(old)))
	for _, q := range old {
		if q.key != 0 {
			*d.find(q.key) = q
		}
	}
}
