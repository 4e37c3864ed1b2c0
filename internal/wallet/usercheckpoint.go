package wallet

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"assay/internal/money"
	"assay/internal/user"
)

// UserCheckpoint is a checkpoint of one user's accounts. The user stores it outside the
// service.
type UserCheckpoint struct {
	User  string
	At    time.Time // whole microseconds
	Marks []Mark    // one per account of User
}

// MaxUserCheckpoint is the maximum length of an encoded UserCheckpoint in characters.
const MaxUserCheckpoint = 2048

// ErrTooLong means that a checkpoint would exceed MaxUserCheckpoint. MaxCurrencies prevents
// this for every user that the ledger accepts.
var ErrTooLong = errors.New("the checkpoint would exceed 2048 characters")

// Encode seals the checkpoint and returns it as base64url without padding.
func (c *UserCheckpoint) Encode(keys *Ring) (string, error) {
	k := keys.keys[0]
	b := []byte{Version}
	b = appendShort(b, k.ID)
	b = appendShort(b, c.User)
	b = binary.BigEndian.AppendUint64(b, uint64(c.At.UnixMicro()))
	for _, m := range c.Marks {
		b = appendShort(b, string(m.Currency))
		b = binary.AppendUvarint(b, uint64(m.Number))
		b = append(b, m.Hash[:]...)
	}
	b = append(b, userCheckpointMAC(k.Bytes, b)...)
	if base64.RawURLEncoding.EncodedLen(len(b)) > MaxUserCheckpoint || len(c.User) > user.MaxID {
		return "", ErrTooLong
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// DecodeUserCheckpoint decodes and verifies the result of Encode. It returns ErrCheckpoint
// for an invalid checkpoint, and ErrNoKey if the key is missing.
func DecodeUserCheckpoint(text string, keys *Ring) (*UserCheckpoint, error) {
	if len(text) > MaxUserCheckpoint {
		return nil, ErrCheckpoint
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 1+len(Hash{}) || b[0] != Version {
		return nil, ErrCheckpoint
	}
	sealed, seal := b[:len(b)-len(Hash{})], b[len(b)-len(Hash{}):]
	r := shortReader{rest: sealed[1:]}
	id := r.text()
	key, err := keys.key(id)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(seal, userCheckpointMAC(key.Bytes, sealed)) {
		return nil, ErrCheckpoint
	}
	c := &UserCheckpoint{User: r.text()}
	c.At = time.UnixMicro(int64(binary.BigEndian.Uint64(r.take(8)))).UTC()
	for len(r.rest) > 0 && !r.failed {
		m := Mark{Account: Account{User: c.User, Currency: money.Currency(r.text())}}
		m.Number = r.uvarint()
		copy(m.Hash[:], r.take(len(m.Hash)))
		c.Marks = append(c.Marks, m)
	}
	if r.failed {
		return nil, ErrCheckpoint
	}
	return c, nil
}

func userCheckpointMAC(key, sealed []byte) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(userCheckpointDomain)) // never fails
	_, _ = h.Write(sealed)
	return h.Sum(nil)
}

// appendShort appends a one-byte length and a text of at most 255 bytes.
func appendShort(b []byte, text string) []byte {
	return append(append(b, byte(len(text))), text...)
}

// shortReader reads the output of appendShort. If bytes are missing, it sets failed and
// returns zeros.
type shortReader struct {
	rest   []byte
	failed bool
}

func (r *shortReader) take(n int) []byte {
	if n > len(r.rest) {
		r.rest, r.failed = nil, true
		return make([]byte, n)
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

func (r *shortReader) text() string { return string(r.take(int(r.take(1)[0]))) }

func (r *shortReader) uvarint() int64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.rest, r.failed = nil, true
		return 0
	}
	r.rest = r.rest[n:]
	return int64(v)
}
