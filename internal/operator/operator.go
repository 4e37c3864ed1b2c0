// Package operator stores the people that use the operator's page: named operators with a role
// and a password, and the sessions of browsers. The database stores both, so a session survives a
// restart and is valid on every instance.
//
// Only hashes of passwords and of session tokens are stored.
package operator

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"

	"assay/internal/auditlog"
	"assay/internal/db"
	"assay/internal/fault"
)

// Role is the permission level of an operator or a session.
type Role uint8

// A greater role includes the permissions of a lesser one.
const (
	Read Role = iota + 1
	Admin
)

// String returns the stored name of the role.
func (r Role) String() string {
	if r == Admin {
		return "admin"
	}
	return "read"
}

// ParseRole returns the role with this name. It returns a fault.Invalid for an unknown name.
func ParseRole(name string) (Role, error) {
	switch name {
	case "read":
		return Read, nil
	case "admin":
		return Admin, nil
	}
	return 0, fault.New(fault.Invalid, "invalid_body", "The role must be read or admin.")
}

// Limits of operators.
const (
	MaxName      = 64  // maximum length of a name in bytes
	minPassword  = 12  // characters
	maxPassword  = 256 // bytes
	maxOperators = 200
)

// Operator is a person with a password.
type Operator struct {
	Name      string
	Role      Role
	CreatedAt time.Time
	ChangedAt time.Time // last change of the password, the role or the state
	Disabled  bool
}

// Service stores operators and sessions.
type Service struct {
	DB *db.DB

	checking sync.Mutex // one password is checked at a time, because a check needs memory
}

// Add stores a new operator. It returns a fault.Conflict if the name is used, and a
// fault.Invalid for a bad name or password.
func (s *Service) Add(ctx context.Context, name string, role Role, password string) error {
	if !validName(name) {
		return fault.New(fault.Invalid, "invalid_body",
			"The name of an operator has at most %d lower-case letters, digits, dots and hyphens, and begins with a letter.", MaxName)
	}
	hash, err := hashed(password)
	if err != nil {
		return err
	}
	return s.DB.InTx(ctx, func(t *db.Tx) error {
		auditlog.Created(t, name)
		return insert(t, name, role, hash)
	})
}

// Get returns an operator, or a fault.NotFound.
func (s *Service) Get(ctx context.Context, name string) (Operator, error) {
	o, hash, err := s.find(ctx, name)
	if err == nil && hash == "" {
		err = notFound()
	}
	return o, err
}

// Change describes changes to an operator. A nil field leaves its value unchanged.
type Change struct {
	Password *string
	Role     *Role
	Disabled *bool
}

// Change changes an operator and ends all sessions of the operator.
func (s *Service) Change(ctx context.Context, name string, c Change) (err error) {
	hash := ""
	if c.Password != nil {
		if hash, err = hashed(*c.Password); err != nil {
			return err
		}
	}
	return s.DB.InTx(ctx, func(t *db.Tx) error {
		if c.Password != nil {
			err = setPassword(t, name, hash)
		}
		if err == nil && c.Role != nil {
			err = setRole(t, name, *c.Role)
		}
		if err == nil && c.Disabled != nil {
			err = setDisabled(t, name, *c.Disabled)
		}
		return err
	})
}

// SetPassword replaces a password and ends all sessions of the operator.
func (s *Service) SetPassword(ctx context.Context, name, password string) error {
	return s.Change(ctx, name, Change{Password: &password})
}

// ChangePassword replaces the password of an operator who knows the current one, and ends all
// sessions of the operator. It reports false, and changes nothing, for a wrong current password.
func (s *Service) ChangePassword(ctx context.Context, name, current, next string) (bool, error) {
	if _, ok, err := s.Check(ctx, name, current); err != nil || !ok {
		return false, err
	}
	return true, s.SetPassword(ctx, name, next)
}

// SetRole changes the role of an operator. It ends all sessions of the operator.
func (s *Service) SetRole(ctx context.Context, name string, role Role) error {
	return s.Change(ctx, name, Change{Role: &role})
}

// SetDisabled disables or enables an operator. It ends all sessions of the operator.
func (s *Service) SetDisabled(ctx context.Context, name string, disabled bool) error {
	return s.Change(ctx, name, Change{Disabled: &disabled})
}

// Check returns the operator with this name and password. It reports false if the name is unknown,
// the password is wrong or the operator is disabled. All cases take the same time.
func (s *Service) Check(ctx context.Context, name, password string) (Operator, bool, error) {
	o, hash, err := s.find(ctx, name)
	if err != nil {
		return Operator{}, false, err
	}
	known := hash != ""
	if !known {
		hash = noPassword
	}
	s.checking.Lock()
	ok, err := matches(hash, password)
	s.checking.Unlock()
	if err != nil || !ok || !known || o.Disabled {
		return Operator{}, false, err
	}
	return o, true, nil
}

func validName(name string) bool {
	for i, c := range name {
		letter, later := c >= 'a' && c <= 'z', c >= '0' && c <= '9' || c == '-' || c == '.'
		if !letter && (i == 0 || !later) {
			return false
		}
	}
	return name != "" && len(name) <= MaxName
}

// Parameters of Argon2id: 19 MiB and two passes, as OWASP recommends. The stored text contains
// them, so that they can be raised later.
const (
	passes   = 2
	memory   = 19 << 10 // KiB
	threads  = 1
	saltSize = 16
	hashSize = 32
	// noPassword is a hash that no password matches.
	noPassword = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" //nolint:gosec // no password has this hash
)

// hashed returns the stored form of a new password.
func hashed(password string) (string, error) {
	if len([]rune(password)) < minPassword || len(password) > maxPassword {
		return "", fault.New(fault.Invalid, "invalid_body", "A password has at least %d characters and at most %d bytes.", minPassword, maxPassword)
	}
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	key := argon2.IDKey([]byte(password), salt, passes, memory, threads, hashSize)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memory, passes, threads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key)), nil
}

// matches reports whether password has the stored hash.
func matches(hash, password string) (bool, error) {
	parts := strings.Split(hash, "$")
	var version int
	var m, t uint32
	var p uint8
	if len(parts) != 6 {
		return false, fmt.Errorf("stored password has %d parts, want 6", len(parts))
	}
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &m, &t, &p); err != nil {
		return false, fmt.Errorf("stored password: %w", err)
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false, fmt.Errorf("salt of a stored password: %w", err)
	}
	want, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil {
		return false, fmt.Errorf("stored password: %w", err)
	}
	if len(password) > maxPassword {
		return false, nil
	}
	got := argon2.IDKey([]byte(password), salt, t, m, p, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}

func notFound() error {
	return fault.New(fault.NotFound, "operator_not_found", "There is no such operator.")
}
