package config

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The roles that a secret can grant.
const (
	RoleMarket   = "market"   // MARKET_PRICE_SYNC_SECRET
	RolePlatform = "platform" // PLATFORM_API_TOKEN
	RoleAdmin    = "admin"    // ADMIN_API_TOKEN
)

// role is a role with its current secrets.
type role struct {
	name, setting string
	secrets       []Secret
}

func rolesOf(c *Config) []role {
	return []role{
		{RoleMarket, "MARKET_PRICE_SYNC_SECRET", c.SyncSecrets},
		{RolePlatform, "PLATFORM_API_TOKEN", c.PlatformTokens},
		{RoleAdmin, "ADMIN_API_TOKEN", c.AdminTokens},
	}
}

// Fingerprint identifies a secret. It is not stored or logged, because a weak secret could be
// guessed from it.
type Fingerprint [sha256.Size]byte

// Bond returns an HMAC of the fingerprint with the token as the key. It binds a session to the
// secret that opened it. It may be stored: without the token, it reveals nothing about the secret.
func (f Fingerprint) Bond(token string) string {
	h := hmac.New(sha256.New, []byte(token))
	h.Write(f[:])
	return hex.EncodeToString(h.Sum(nil))
}

// Credentials are the current secrets of all roles. They can be reloaded while the program
// runs. All methods are safe for concurrent use.
type Credentials struct {
	options Options
	live    atomic.Pointer[map[string][]Fingerprint]
	reading sync.Mutex // serializes reloads
}

// NewCredentials returns the secrets of c. It returns an error if a role has no secret, so
// that no route is open by mistake.
func NewCredentials(c *Config) (*Credentials, error) {
	k := &Credentials{options: c.options}
	if _, err := k.replace(c); err != nil {
		return nil, err
	}
	return k, nil
}

// Match reports whether presented is a current secret of the role. The comparison takes
// constant time.
func (k *Credentials) Match(role, presented string) bool {
	_, ok := k.Identify(role, presented)
	return ok
}

// Identify is like Match, but also returns the fingerprint of presented.
func (k *Credentials) Identify(role, presented string) (Fingerprint, bool) {
	f := fingerprint(presented)
	return f, k.Live(role, f)
}

// Live reports whether a current secret of the role has this fingerprint.
func (k *Credentials) Live(role string, f Fingerprint) bool {
	found := 0
	for _, candidate := range (*k.live.Load())[role] {
		found |= subtle.ConstantTimeCompare(candidate[:], f[:])
	}
	return found == 1
}

// Bound reports whether bond belongs to the token and a current secret of the role. See
// Fingerprint.Bond.
func (k *Credentials) Bound(role, token, bond string) bool {
	found := 0
	for _, candidate := range (*k.live.Load())[role] {
		found |= subtle.ConstantTimeCompare([]byte(candidate.Bond(token)), []byte(bond))
	}
	return found == 1
}

// Reload reads all secrets again from their sources and reports whether any changed. After
// an error the previous secrets remain valid.
func (k *Credentials) Reload() (changed bool, err error) {
	k.reading.Lock()
	defer k.reading.Unlock()
	l := newLoader(k.options)
	c := &Config{}
	for i := range l.table {
		// Apply only the secrets and the settings that determine their location. Faults of
		// other settings are reported at the next start.
		if s := &l.table[i]; s.generated || s.name == "DATA_DIR" || s.name == "DATABASE_URL" {
			l.apply(c, s)
		}
	}
	l.refuseWeakSecrets(c)
	if err := l.faults.err(); err != nil {
		return false, err
	}
	return k.replace(c)
}

func (k *Credentials) replace(c *Config) (changed bool, err error) {
	next := map[string][]Fingerprint{}
	for _, role := range rolesOf(c) {
		if len(role.secrets) == 0 {
			return false, fmt.Errorf("%s is not set; set it or %s%s", role.setting, role.setting, fileSuffix)
		}
		for _, s := range role.secrets {
			next[role.name] = append(next[role.name], fingerprint(s.Reveal()))
		}
	}
	before := k.live.Swap(&next)
	return before == nil || !maps.EqualFunc(*before, next, slices.Equal), nil
}

// fingerprint returns a hash of a secret. All hashes have the same length, so that a comparison
// does not reveal the length of a secret.
func fingerprint(text string) Fingerprint { return sha256.Sum256([]byte(text)) }

// Secret returns the value of NAME or NAME_FILE for a price list that contains ${NAME}. The
// name must end in _API_KEY: other secrets are never returned. Each call reads the value
// again. An error message continues a sentence that begins with the name.
func (k *Credentials) Secret(name string) (string, error) {
	if !namedSecret(name) {
		return "", errSecretName
	}
	l := newLoader(k.options)
	s := setting{name: name, secret: true}
	e, found := l.lookup(&Config{}, &s)
	switch {
	case len(l.faults) > 0:
		return "", fmt.Errorf("cannot be read: %w", l.faults[0])
	case !found:
		return "", fmt.Errorf("is not set; set it or %s%s", name, fileSuffix)
	}
	if err := checkSecret(e.text); err != nil {
		return "", err
	}
	return e.text, nil
}

// Watch reloads the secrets at every tick and every hangup signal until ctx ends. It logs
// changes, and it logs a repeated failure once. It always reads the files, because a
// comparison of modification times can miss a change.
func (k *Credentials) Watch(ctx context.Context, ticks <-chan time.Time, hangup <-chan os.Signal, log *slog.Logger) {
	last := ""
	for {
		requested := false
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			requested, last = true, ""
		case <-ticks:
		}
		changed, err := k.Reload()
		switch {
		case err != nil && err.Error() != last:
			log.ErrorContext(ctx, "secrets not reloaded; previous secrets remain valid", "error", err)
			last = err.Error()
		case err == nil && (changed || requested || last != ""):
			log.InfoContext(ctx, "secrets reloaded", "changed", changed)
			last = ""
		}
	}
}
