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
	Conflicting                     // price differs from the first quote; neither is used
	AfterConflict                   // another quote after a conflict; not used
)

// Duplicates finds repeated quotes of the same item and market in one response. If their
// prices differ, none of them is used, because any choice would be arbitrary. It stores 16
// bytes per item and market. Two pairs with the same 64-bit hash count as one. The zero value
// is ready to use.
type Duplicates struct {
	seed      maphash.Seed
	prices    HashTable // by hash of an item and market: the hash of its price, or contested
	conflicts int
}

// contested replaces the hash of a price after a conflict. No price has this hash.
const contested = 1

// Reset removes all quotes.
func (d *Duplicates) Reset() {
	d.prices.Clear()
	d.conflicts = 0
}

// Add records a quote and returns its relation to the earlier quotes.
func (d *Duplicates) Add(q *Quote) Repetition {
	if d.prices.Len() == 0 {
		d.seed = maphash.MakeSeed()
	}
	price := d.price(q)
	switch first := d.prices.At(d.key(q.Market, q.Name, q.Phase)); *first {
	case 0:
		*first = price
		return First
	case price:
		return Repeated
	case contested:
		return AfterConflict
	default:
		d.conflicts++
		*first = contested
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
	return d.prices.Get(d.key(market, name, phase)) == contested
}

func (d *Duplicates) key(market, name, phase string) uint64 {
	sum := maphash.String(d.seed, name)
	sum ^= bits.RotateLeft64(maphash.String(d.seed, market), 1)
	if phase != "" {
		sum ^= bits.RotateLeft64(maphash.String(d.seed, phase), 2) // rotated, because equal texts would cancel out
	}
	return sum
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
