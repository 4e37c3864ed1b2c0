// Package apikey stores named API keys. A key has scopes, and optionally an expiry and a limit of
// requests per minute. Only the hash of a secret is stored: a secret is shown once.
package apikey

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/internal/auditlog"
	"assay/internal/db"
	"assay/internal/fault"
)

// Prefix starts every secret, so that a secret can be recognized in a request, a log or a repository.
const Prefix = "assay_"

// Areas of the API. A scope is an area, a colon, and read or write.
const (
	Prices    = "prices"    // prices, their history and changes
	Inventory = "inventory" // users and inventories
	Market    = "market"    // listings and trades
	Wallet    = "wallet"    // wallets and payment fee rules
	Operate   = "operate"   // refreshes, jobs, providers, metrics, webhooks, API keys and the audit log
)

// PricesWrite is the scope that queues items without a price. All routes of the area Prices only need
// its read scope.
const PricesWrite = Prices + ":write"

// Scopes that also decide which events a key reads: without PricesRead it reads none. InventoryRead,
// MarketRead and WalletRead are for events of inventories, of listings and trades, and of the ledger.
const (
	PricesRead    = Prices + ":read"
	InventoryRead = Inventory + ":read"
	MarketRead    = Market + ":read"
	WalletRead    = Wallet + ":read"
)

// Scopes returns all scopes. A write scope includes the read scope of its area.
func Scopes() []string {
	return []string{
		PricesRead, PricesWrite, InventoryRead, "inventory:write", MarketRead, "market:write",
		WalletRead, "wallet:write", "operate:read", "operate:write",
	}
}

// MaxName is the maximum length of a name in bytes.
const MaxName = 64

// ValidName reports whether name can be the name of a key. It must start with a lower-case letter and
// contain only lower-case letters, digits and hyphens.
func ValidName(name string) bool {
	for i, c := range name {
		letter, later := c >= 'a' && c <= 'z', c >= '0' && c <= '9' || c == '-'
		if !letter && (i == 0 || !later) {
			return false
		}
	}
	return name != "" && len(name) <= MaxName
}

// CheckScopes returns a fault.Invalid if scopes is empty or contains an unknown scope.
func CheckScopes(scopes []string) error {
	if len(scopes) == 0 {
		return fault.New(fault.Invalid, "invalid_body", "A key needs at least one scope.")
	}
	for _, scope := range scopes {
		if !slices.Contains(Scopes(), scope) {
			return fault.New(fault.Invalid, "invalid_body", "Unknown scope %q. The scopes are %s.", scope, strings.Join(Scopes(), ", "))
		}
	}
	return nil
}

// MaxPerMinute is the highest limit of requests per minute.
const MaxPerMinute = 1_000_000

// Key is an API key without its secret.
type Key struct {
	Name      string
	Scopes    []string
	PerMinute int // requests per minute and instance; 0: no limit
	CreatedAt time.Time
	RotatedAt time.Time // zero: never
	ExpiresAt time.Time // zero: never
	OldUntil  time.Time // when the secret before the last rotation expires; zero: none
}

// Allows reports whether the key has a scope.
func (k *Key) Allows(scope string) bool {
	if slices.Contains(k.Scopes, scope) {
		return true
	}
	area, reads := strings.CutSuffix(scope, ":read")
	return reads && slices.Contains(k.Scopes, area+":write")
}

// mayManage returns a fault.Forbidden if the key other could do more than the key k, or for longer.
// A nil key is an operator, who may manage every key.
func (k *Key) mayManage(other *Key) error {
	if k == nil {
		return nil
	}
	for _, scope := range other.Scopes {
		if !k.Allows(scope) {
			return fault.New(fault.Forbidden, "forbidden", "This API key cannot manage a key with the scope %s, because it does not have this scope.", scope)
		}
	}
	switch {
	case !k.ExpiresAt.IsZero() && (other.ExpiresAt.IsZero() || other.ExpiresAt.After(k.ExpiresAt)):
		return fault.New(fault.Forbidden, "forbidden", "This API key cannot manage a key that is valid longer than itself, until %s.", k.ExpiresAt.UTC().Format(time.RFC3339))
	case k.PerMinute > 0 && (other.PerMinute == 0 || other.PerMinute > k.PerMinute):
		return fault.New(fault.Forbidden, "forbidden", "This API key cannot manage a key that may send more than its own %d requests per minute.", k.PerMinute)
	}
	return nil
}

// Service creates and finds keys, and counts their requests.
type Service struct {
	DB *db.DB

	mu     sync.Mutex
	spent  map[string]int // requests of each key in the current minute
	minute time.Time
}

// hash returns the stored form of a secret. A secret has 128 random bits, so a fast hash suffices.
func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func newSecret() string { return Prefix + rand.Text() }

// Create stores a new key and returns it with its secret. The key by is the key of the request; nil:
// another credential. Create returns a fault.Forbidden if by may not manage the new key, a
// fault.Conflict if a key with this name exists, and a fault.Invalid for an expiry in the past. The
// caller must check the other values.
func (s *Service) Create(ctx context.Context, by *Key, k Key) (Key, string, error) {
	secret := newSecret()
	err := s.DB.InTx(ctx, func(t *db.Tx) error {
		if !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(t.Now()) {
			f := fault.New(fault.Invalid, "invalid_body", "The time expiresAt is in the past. Send a later time, or leave it out.")
			f.Fields = []fault.Field{{Pointer: "/expiresAt", Detail: "must be in the future"}}
			return f
		}
		if err := by.mayManage(&k); err != nil {
			return err
		}
		k.CreatedAt = t.Now()
		auditlog.Created(t, k.Name)
		return insert(t, k, hash(secret))
	})
	return k, secret, err
}

// Rotate gives a key a new secret and returns it. The old secret stays valid for the time keep.
// It returns a fault.NotFound for an unknown key, and a fault.Forbidden like Create.
func (s *Service) Rotate(ctx context.Context, by *Key, name string, keep time.Duration) (k Key, secret string, err error) {
	secret = newSecret()
	err = s.DB.InTx(ctx, func(t *db.Tx) error {
		if err := rotate(t, name, hash(secret), keep); err != nil {
			return err
		}
		if k, err = read(t.Context(), t, name); err != nil {
			return err
		}
		return by.mayManage(&k) // after the update, which locks the key
	})
	return k, secret, err
}

// Revoke deletes a key. It returns a fault.NotFound for an unknown key, and a fault.Forbidden like
// Create.
func (s *Service) Revoke(ctx context.Context, by *Key, name string) error {
	return s.DB.InTx(ctx, func(t *db.Tx) error {
		k, err := remove(t, name)
		if err != nil {
			return err
		}
		return by.mayManage(&k)
	})
}

// Get returns a key, or a fault.NotFound.
func Get(ctx context.Context, s *db.DB, name string) (Key, error) { return read(ctx, s.Read, name) }

// Spend counts a request of a key. It returns how many requests the key has left in this minute,
// the time until the next minute, and false if the limit was reached before. Each instance
// counts its own requests.
func (s *Service) Spend(k *Key) (left int, renews time.Duration, ok bool) {
	now := s.DB.Clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if minute := now.Truncate(time.Minute); !minute.Equal(s.minute) {
		s.minute, s.spent = minute, map[string]int{}
	}
	renews = s.minute.Add(time.Minute).Sub(now)
	if s.spent[k.Name] >= k.PerMinute {
		return 0, renews, false
	}
	s.spent[k.Name]++
	return k.PerMinute - s.spent[k.Name], renews, true
}

func notFound() error {
	return fault.New(fault.NotFound, "key_not_found", "There is no such API key.")
}
