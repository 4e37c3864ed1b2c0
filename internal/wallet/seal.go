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

// Hash is a seal: an HMAC-SHA256. The zero Hash is the previous hash of an account's first
// entry.
type Hash [sha256.Size]byte

// String returns the hash in hex digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Key is a sealing key of the ledger.
type Key struct {
	ID    string // stored with every seal
	Bytes []byte // 32 bytes
}

// Ring holds the keys of the ledger. The first key seals; all keys verify. The zero
// Ring has no key, so every verification returns ErrNoKey. A Ring is immutable and safe for
// concurrent use.
type Ring struct{ keys []Key }

// ErrNoKey means that a seal has a key id that is missing from the ring.
var ErrNoKey = errors.New("a key of the ledger is missing")

// NewRing returns a ring of keys. It returns an error if keys is empty, if two keys have
// the same id, or if a key has no id or the wrong length.
func NewRing(keys []Key) (*Ring, error) {
	if len(keys) == 0 {
		return nil, errors.New("the ledger has no key: set WALLET_LEDGER_KEY")
	}
	for i, k := range keys {
		if k.ID == "" || len(k.Bytes) != sha256.Size {
			return nil, fmt.Errorf("key %d of the ledger is invalid: it needs an id and %d bytes", i+1, sha256.Size)
		}
		if slices.ContainsFunc(keys[:i], func(other Key) bool { return other.ID == k.ID }) {
			return nil, fmt.Errorf("two keys of the ledger have the id %s", k.ID)
		}
	}
	return &Ring{keys: slices.Clone(keys)}, nil
}

// key returns the key with an id. It returns ErrNoKey if the ring has no such key.
func (r *Ring) key(id string) (Key, error) {
	i := slices.IndexFunc(r.keys, func(k Key) bool { return k.ID == id })
	if i < 0 {
		return Key{}, fmt.Errorf("%w: %.40q", ErrNoKey, id)
	}
	return r.keys[i], nil
}

// KeyMark identifies a key without revealing it. Two different keys with the same id have
// different marks.
type KeyMark struct {
	ID    string
	Check Hash
}

// Marks returns the marks of all keys in the order of the ring.
func (r *Ring) Marks() []KeyMark {
	var out []KeyMark
	for _, k := range r.keys {
		h := hmac.New(sha256.New, k.Bytes)
		_, _ = io.WriteString(h, keyDomain+k.ID) // never fails
		out = append(out, KeyMark{k.ID, Hash(h.Sum(nil))})
	}
	return out
}

// Missing returns the ids of known keys that the ring does not have. A different key with
// the same id counts as missing.
func (r *Ring) Missing(known []KeyMark) (ids []string) {
	have := r.Marks()
	for _, m := range known {
		if !slices.Contains(have, m) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Sealer seals and verifies records with the keys of a ring. It reuses memory, so it is not
// safe for concurrent use.
type Sealer struct {
	ring   *Ring
	hashes []hash.Hash // one per key of the ring; nil until first use
	bytes  []byte
}

// Sealer returns a new sealer.
func (r *Ring) Sealer() *Sealer { return &Sealer{ring: r, hashes: make([]hash.Hash, len(r.keys))} }

// SealEntry sets the version, key id and hash of an entry. All other fields must be set.
func (s *Sealer) SealEntry(e *Entry) {
	e.Version, e.KeyID = Version, s.ring.keys[0].ID
	e.Hash = s.sealRecord(e)
}

// SealHead sets the version, key id and MAC of a head. All other fields must be set.
func (s *Sealer) SealHead(h *Head) {
	h.Version, h.KeyID = Version, s.ring.keys[0].ID
	h.MAC = s.sealRecord(h)
}

// SealTransaction sets the version, key id and hash of a transaction. All other fields must
// be set.
func (s *Sealer) SealTransaction(t *Transaction) {
	t.Version, t.KeyID = Version, s.ring.keys[0].ID
	t.Hash = s.sealRecord(t)
}

// EntryIntact reports whether an entry matches its seal. It does not check the link to the
// previous entry. It returns ErrNoKey if the key is missing.
func (s *Sealer) EntryIntact(e *Entry) (bool, error) { return s.intact(e, e.Version, e.KeyID, e.Hash) }

// HeadIntact reports whether a head matches its seal. It returns ErrNoKey if the key is
// missing.
func (s *Sealer) HeadIntact(h *Head) (bool, error) { return s.intact(h, h.Version, h.KeyID, h.MAC) }

// TransactionIntact reports whether a transaction matches its seal. It does not check the
// entries. It returns ErrNoKey if the key is missing.
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

// sealRecord returns the seal of a record with the first key of the ring.
func (s *Sealer) sealRecord(r record) Hash {
	s.bytes = canonical(s.bytes[:0], r)
	sum, _ := s.mac(s.ring.keys[0].ID) // never fails: the key is in the ring
	return sum
}

// mac returns the HMAC of s.bytes. It returns ErrNoKey if the key is missing.
func (s *Sealer) mac(keyID string) (sum Hash, err error) {
	h, err := s.hash(keyID)
	if err != nil {
		return sum, err
	}
	_, _ = h.Write(s.bytes) // never fails
	h.Sum(sum[:0])
	return sum, nil
}

// hash returns an empty HMAC for a key. It returns ErrNoKey if the key is missing.
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
