package config

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The roles that a secret can give.
const (
	RoleMarket   = "market"   // MARKET_PRICE_SYNC_SECRET
	RolePlatform = "platform" // PLATFORM_API_TOKEN
	RoleAdmin    = "admin"    // ADMIN_API_TOKEN
)

// role is one role with its live secrets.
type role struct {
	name, setting string
	live          []Secret
}

func rolesOf(c *Config) []role {
	return []role{
		{RoleMarket, "MARKET_PRICE_SYNC_SECRET", c.SyncSecrets},
		{RolePlatform, "PLATFORM_API_TOKEN", c.PlatformTokens},
		{RoleAdmin, "ADMIN_API_TOKEN", c.AdminTokens},
	}
}

// Fingerprint identifies a secret within this process and reveals nothing of it.
type Fingerprint [sha256.Size]byte

// Credentials are the live secrets. They can be replaced while the program
// runs; all methods are safe for concurrent use.
type Credentials struct {
	options Options
	key     []byte // of the fingerprints, made anew by each process
	live    atomic.Pointer[map[string][]Fingerprint]
	reading sync.Mutex // one reload at a time, so that the last one wins
}

// NewCredentials takes the secrets of c. A role without one is an error:
// nothing ever starts open.
func NewCredentials(c *Config) (*Credentials, error) {
	k := &Credentials{options: c.options, key: make([]byte, 32)}
	_, _ = rand.Read(k.key) // never fails
	if _, err := k.replace(c); err != nil {
		return nil, err
	}
	return k, nil
}

// Match reports whether presented is one of the role's secrets, in a time that
// depends on neither.
func (k *Credentials) Match(role, presented string) bool {
	_, ok := k.Identify(role, presented)
	return ok
}

// Identify is Match that also returns the fingerprint of the secret.
func (k *Credentials) Identify(role, presented string) (Fingerprint, bool) {
	f := k.fingerprint(presented)
	return f, k.Live(role, f)
}

// Live reports whether a secret with this fingerprint is one of the role's
// still.
func (k *Credentials) Live(role string, f Fingerprint) bool {
	found := 0
	for _, candidate := range (*k.live.Load())[role] {
		found |= subtle.ConstantTimeCompare(candidate[:], f[:])
	}
	return found == 1
}

// Reload reads all secrets again from where they came and reports whether any
// changed. After an error the previous ones stay in force.
func (k *Credentials) Reload() (changed bool, err error) {
	k.reading.Lock()
	defer k.reading.Unlock()
	l := newLoader(k.options)
	c := &Config{}
	for i := range l.table {
		// Only the secrets matter, and the settings that determine where they are. The
		// next start reports faults of the others.
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
		if len(role.live) == 0 {
			return false, fmt.Errorf("%s is not set; set it or %s%s", role.setting, role.setting, fileSuffix)
		}
		for _, s := range role.live {
			next[role.name] = append(next[role.name], k.fingerprint(s.Reveal()))
		}
	}
	before := k.live.Swap(&next)
	return before == nil || !maps.EqualFunc(*before, next, slices.Equal), nil
}

// fingerprint hashes a secret, so that comparing takes the same time for every
// length.
func (k *Credentials) fingerprint(text string) Fingerprint {
	h := hmac.New(sha256.New, k.key)
	h.Write([]byte(text))
	var f Fingerprint
	h.Sum(f[:0])
	return f
}

// Secret returns the value of NAME or NAME_FILE for a price list that names
// ${NAME}. An error reads on after the name and states the fix. Only keys of
// outside services (NAME_API_KEY) are returned. It is read again each time.
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

// Watch reloads the secrets at every tick and every hang-up signal until ctx
// ends. It logs what changed, and each different failure once. Reading a few small files a
// second costs nothing, and unlike a comparison of times it misses no change.
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
			log.ErrorContext(ctx, "secrets not reloaded; the previous ones stay in force", "error", err)
			last = err.Error()
		case err == nil && (changed || requested || last != ""):
			log.InfoContext(ctx, "secrets reloaded", "changed", changed)
			last = ""
		}
	}
}
