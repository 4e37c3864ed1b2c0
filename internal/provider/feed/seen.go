package feed

import (
	"hash/maphash"
	"math/bits"

	"assay/internal/provider"
)

// Seen records which markets quoted an item, with one bit per market. Two items with the same
// 64-bit hash count as one. The zero value is ready to use.
type Seen struct {
	seed    maphash.Seed
	markets provider.HashTable // market bits by hash of an item
}

// Len returns the number of items.
func (s *Seen) Len() int { return s.markets.Len() }

// Markets returns the market bits of an item. It adds the item if it is new. The pointer is
// valid until the next call.
func (s *Seen) Markets(name, phase string) *uint64 {
	if s.markets.Len() == 0 {
		s.seed = maphash.MakeSeed()
	}
	sum := maphash.String(s.seed, name)
	if phase != "" {
		// Rotate the hash of the phase, because the hashes of equal texts would cancel out.
		sum ^= bits.RotateLeft64(maphash.String(s.seed, phase), 1)
	}
	return s.markets.At(sum)
}
