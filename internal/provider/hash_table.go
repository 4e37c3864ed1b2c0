package provider

// HashTable maps 64-bit hashes to 64-bit values. It is an open-addressing table, which needs
// a third of the time and memory of a map. Two keys with the same hash share a value. The
// zero value is ready to use.
type HashTable struct {
	slots []slot // the length is a power of two; at most three quarters are in use
	used  int
}

type slot struct {
	hash  uint64 // 0: free
	value uint64
}

const (
	fewSlots  = 1 << 6  // first size: enough for a response with a few names
	manySlots = 1 << 16 // second size: one megabyte, enough for all names of a game
)

// Len returns the number of hashes.
func (t *HashTable) Len() int { return t.used }

// Clear removes all hashes. It keeps the memory unless most of it was unused, because clearing
// a large table for each of many small responses would take longer than filling it.
func (t *HashTable) Clear() {
	switch {
	case t.used == 0:
	case t.used < len(t.slots)/16 && len(t.slots) > fewSlots:
		t.slots = nil
	default:
		clear(t.slots)
	}
	t.used = 0
}

// Get returns the value of a hash, or 0.
func (t *HashTable) Get(hash uint64) uint64 {
	if t.used == 0 {
		return 0
	}
	return t.find(max(hash, 1)).value
}

// At returns the value of a hash. It adds the hash with the value 0 if it is new. The pointer
// is valid until the next call.
func (t *HashTable) At(hash uint64) *uint64 {
	if 4*(t.used+1) > 3*len(t.slots) {
		t.grow()
	}
	hash = max(hash, 1)
	s := t.find(hash)
	if s.hash == 0 {
		s.hash = hash
		t.used++
	}
	return &s.value
}

// find returns the slot of a hash, or a free slot if the hash is missing.
func (t *HashTable) find(hash uint64) *slot {
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.hash == hash || s.hash == 0 {
			return s
		}
	}
}

func (t *HashTable) grow() {
	old := t.slots
	if old == nil {
		t.slots = make([]slot, fewSlots)
		return
	}
	t.slots = make([]slot, max(manySlots, 2*len(old)))
	for _, s := range old {
		if s.hash != 0 {
			*t.find(s.hash) = s
		}
	}
}
