package feed

import (
	"hash/maphash"
	"math/bits"
)

// Seen holds, by the hash of an item, the markets that quoted it: one bit each. It is an
// open hash table, at a third of the time and memory of a map. Two items with the same
// 64-bit hash count as one. The zero value is ready.
type Seen struct {
	seed  maphash.Seed
	slots []seenItem // the length is a power of two; at most three quarters are used
	n     int        // items
}

type seenItem struct {
	sum     uint64 // 0: free
	markets uint64
}

// Len returns the number of items.
func (s *Seen) Len() int { return s.n }

// Markets returns the bits of an item, which it adds if it is new. The pointer is valid
// until the next call.
func (s *Seen) Markets(name, phase string) *uint64 {
	if 4*(s.n+1) > 3*len(s.slots) {
		s.grow()
	}
	sum := maphash.String(s.seed, name)
	if phase != "" {
		// Rotated, so that the hashes of a name and an equal phase do not cancel out.
		sum ^= bits.RotateLeft64(maphash.String(s.seed, phase), 1)
	}
	slot := s.find(max(sum, 1))
	if slot.sum == 0 {
		slot.sum = max(sum, 1)
		s.n++
	}
	return &slot.markets
}

// find returns the slot of sum, or the free slot for it.
func (s *Seen) find(sum uint64) *seenItem {
	mask := uint64(len(s.slots) - 1)
	for i := sum & mask; ; i = (i + 1) & mask {
		if slot := &s.slots[i]; slot.sum == sum || slot.sum == 0 {
			return slot
		}
	}
}

const (
	// fewSlots is enough for responses with a few names.
	fewSlots = 1 << 6
	// firstSlots takes one megabyte, enough for all names of one game.
	firstSlots = 1 << 16
)

func (s *Seen) grow() {
	old := s.slots
	if old == nil {
		s.seed = maphash.MakeSeed()
		s.slots = make([]seenItem, fewSlots)
		return
	}
	s.slots = make([]seenItem, max(firstSlots, 2*len(old)))
	for _, item := range old {
		if item.sum != 0 {
			*s.find(item.sum) = item
		}
	}
}
