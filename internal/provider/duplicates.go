package provider

import (
	"hash/maphash"
	"math/bits"

	"assay/internal/money"
)

// Reasons why a sink rejects further quotes of the same item and market.
const (
	RejectRepeat   = "name given twice"
	RejectConflict = "name given twice with different prices"
)

// Repetition is how a quote relates to the earlier quotes of its item and market in
// the same response.
type Repetition int

// The kinds of Repetition.
const (
	First       Repetition = iota // no earlier quote: it counts
	Repeated                      // same price as the first quote: only the first counts
	Conflicting                   // first quote with another price: neither counts
	Contested                     // a further quote after a conflict: it does not count
)

// Duplicates finds quotes of one response that name the same item and market more than
// once. If their prices differ, none of them counts, because no choice between them could
// be explained. It holds 16 bytes per item and market in an open hash table; two pairs with
// the same 64-bit hash count as one. The zero value is ready.
type Duplicates struct {
	seed      maphash.Seed
	slots     []quoted // the length is a power of two; at most three quarters are used
	used      int
	conflicts int
}

// quoted is an item on a market, and the hash of its price.
type quoted struct {
	key   uint64 // 0: free
	price uint64 // contested after a conflict
}

// contested marks a slot with a conflict. It is never the hash of a price.
const contested = 0

// Reset removes all quotes.
func (d *Duplicates) Reset() {
	clear(d.slots)
	d.used, d.conflicts = 0, 0
}

// Add records a quote and returns how it relates to the earlier ones.
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
		return Contested
	default:
		d.conflicts++
		slot.price = contested
		return Conflicting
	}
}

// Conflicts returns how many items and markets have quotes with different prices.
func (d *Duplicates) Conflicts() int { return d.conflicts }

// Contested reports whether an item has quotes with different prices on a market.
func (d *Duplicates) Contested(market, name, phase string) bool {
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
		sum ^= bits.RotateLeft64(maphash.String(d.seed, phase), 2) // rotated, so that equal texts do not cancel out
	}
	return max(sum, 1)
}

// price hashes the ask of a quote or, without one, its sale.
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

// find returns the slot of a key, or the free slot for it.
func (d *Duplicates) find(key uint64) *quoted {
	mask := uint64(len(d.slots) - 1)
	for i := key & mask; ; i = (i + 1) & mask {
		if slot := &d.slots[i]; slot.key == key || slot.key == 0 {
			return slot
		}
	}
}

const (
	fewSlots  = 1 << 6  // enough for a response about a few names
	manySlots = 1 << 14 // the next size
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
