package wallet

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
)

// Hash is a seal: HMAC-SHA256. The zero Hash stands before the first entry.
type Hash [sha256.Size]byte

// String returns the hash in hex digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Key is one key of the ledger.
type Key struct {
	ID    string // named in all that it sealed
	Bytes []byte // 32 of them
}

// Ring is the keys of the ledger: the first seals, all verify. It does not change
// and may be used concurrently.
type Ring struct{ keys []Key }

// ErrNoKey means that a seal names a key that the ring has not.
var ErrNoKey = errors.New("a key of the ledger is missing")

// NewRing makes a ring. There is at least one key, and no two have one id.
func NewRing(keys []Key) (*Ring, error) {
	if len(keys) == 0 {
		return nil, errors.New("the ledger has no key")
	}
	for i, k := range keys {
		if k.ID == "" || len(k.Bytes) != sha256.Size {
			return nil, fmt.Errorf("key %d of the ledger has no id, or not %d bytes", i+1, sha256.Size)
		}
		if slices.ContainsFunc(keys[:i], func(other Key) bool { return other.ID == k.ID }) {
			return nil, fmt.Errorf("two keys of the ledger have the id %s", k.ID)
		}
	}
	return &Ring{keys: slices.Clone(keys)}, nil
}

// key returns a key by its id. The error is an ErrNoKey.
func (r *Ring) key(id string) (Key, error) {
	i := slices.IndexFunc(r.keys, func(k Key) bool { return k.ID == id })
	if i < 0 {
		return Key{}, fmt.Errorf("%w: %.40q", ErrNoKey, id)
	}
	return r.keys[i], nil
}

// KeyMark identifies a key without revealing it: another key with the same id has
// another mark.
type KeyMark struct {
	ID    string
	Check Hash
}

// Marks returns the marks of all keys, the first first.
func (r *Ring) Marks() []KeyMark {
	var out []KeyMark
	for _, k := range r.keys {
		h := hmac.New(sha256.New, k.Bytes)
		_, _ = io.WriteString(h, keyDomain+k.ID) // never fails
		out = append(out, KeyMark{k.ID, Hash(h.Sum(nil))})
	}
	return out
}

// Lacks returns the ids of those keys that the ring has not, or has others of.
func (r *Ring) Lacks(known []KeyMark) (ids []string) {
	have := r.Marks()
	for _, m := range known {
		if !slices.Contains(have, m) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Sealer seals and verifies with the keys of a ring. It reuses its memory, and is
// not for concurrent use.
type Sealer struct {
	ring   *Ring
	hashes []hash.Hash // one for each key of the ring; nil until it is used
	bytes  []byte
}

// Sealer returns a new sealer.
func (r *Ring) Sealer() *Sealer { return &Sealer{ring: r, hashes: make([]hash.Hash, len(r.keys))} }

// SealEntry completes an entry whose other fields are set.
func (s *Sealer) SealEntry(e *Entry) {
	e.Version, e.KeyID = Version, s.ring.keys[0].ID
	e.Hash = s.own(e)
}

// SealHead completes a head whose other fields are set.
func (s *Sealer) SealHead(h *Head) {
	h.Version, h.KeyID = Version, s.ring.keys[0].ID
	h.MAC = s.own(h)
}

// SealTransaction completes a transaction whose other fields are set.
func (s *Sealer) SealTransaction(t *Transaction) {
	t.Version, t.KeyID = Version, s.ring.keys[0].ID
	t.Hash = s.own(t)
}

// EntryIntact reports whether an entry is what was sealed. It does not look at
// its neighbours. The error is an ErrNoKey.
func (s *Sealer) EntryIntact(e *Entry) (bool, error) { return s.intact(e, e.Version, e.KeyID, e.Hash) }

// HeadIntact reports whether a head is what was sealed. The error is an ErrNoKey.
func (s *Sealer) HeadIntact(h *Head) (bool, error) { return s.intact(h, h.Version, h.KeyID, h.MAC) }

// TransactionIntact reports whether a transaction is what was sealed. It does not
// look at its entries. The error is an ErrNoKey.
func (s *Sealer) TransactionIntact(t *Transaction) (bool, error) {
	return s.intact(t, t.Version, t.KeyID, t.Hash)
}

func (s *Sealer) intact(r record, version int, keyID string, seal Hash) (bool, error) {
	if version != Version {
		return false, nil
	}
	s.bytes = canonical(s.bytes[:0], r)
	want, err := s.mac(keyID)
	return err == nil && hmac.Equal(want[:], seal[:]), err
}

// own returns the seal of a record by the key that seals.
func (s *Sealer) own(r record) Hash {
	s.bytes = canonical(s.bytes[:0], r)
	sum, _ := s.mac(s.ring.keys[0].ID) // it is there
	return sum
}

// mac seals the bytes that the sealer holds.
func (s *Sealer) mac(keyID string) (sum Hash, err error) {
	h, err := s.hash(keyID)
	if err != nil {
		return sum, err
	}
	_, _ = h.Write(s.bytes) // never fails
	h.Sum(sum[:0])
	return sum, nil
}

// hash returns a keyed hash that nothing was written to.
func (s *Sealer) hash(keyID string) (hash.Hash, error) {
	for i, k := range s.ring.keys {
		if k.ID != keyID {
			continue
		}
		if s.hashes[i] == nil {
			s.hashes[i] = hmac.New(sha256.New, k.Bytes)
		}
		s.hashes[i].Reset()
		return s.hashes[i], nil
	}
	return nil, fmt.Errorf("%w: %.40q", ErrNoKey, keyID)
}
