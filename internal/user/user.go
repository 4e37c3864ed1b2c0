// Package user stores users and defines which user ids are valid. The platform chooses
// the ids. Users, inventories, listings, trades and wallets all check them here.
package user

import (
	"strings"
	"unicode/utf8"

	"assay/internal/fault"
)

// MaxID is the maximum length of an id in bytes.
const MaxID = 128

// House is the prefix of the ledger's own accounts. Platform users cannot have such an
// id.
const House = "house:"

// User is a user with the values that the platform set.
type User struct {
	ID          string // chosen by the platform
	SteamID     string // may be empty
	DisplayName string // may be empty
	Leaderboard bool   // false if the user opted out
	// KeepLeaderboard keeps the stored value of Leaderboard for an existing user.
	KeepLeaderboard bool
}

// Locked is a user row that a transaction has locked.
type Locked struct {
	Key     int64  // 0 if the id was never used
	SteamID string // may be empty
	Deleted bool
}

// Known reports whether the user exists and is not deleted.
func (h Locked) Known() bool { return h.Key != 0 && !h.Deleted }

// Reserved reports whether an id belongs to one of the ledger's own accounts.
func Reserved(id string) bool { return strings.HasPrefix(id, House) }

// NotFound returns the error for an unknown user. It is the same on every route.
func NotFound() *fault.Error {
	return fault.New(fault.NotFound, "user_not_found", "Unknown user. Create it with PUT /api/users/{userId} or push an inventory.")
}

// Check returns an error if id is not valid for a platform user.
func Check(id string) error {
	if err := CheckAny(id); err != nil {
		return err
	}
	if Reserved(id) {
		return fault.New(fault.Unprocessable, "reserved_user", "User ids that begin with %q are reserved for house accounts. Use another id.", House)
	}
	return nil
}

// CheckAny is Check, but also accepts the ids of house accounts.
func CheckAny(id string) error {
	if id == "" || len(id) > MaxID || !utf8.ValidString(id) || strings.IndexByte(id, 0) >= 0 {
		return fault.New(fault.Invalid, "invalid_user_id", "A user id is 1 to %d bytes of valid UTF-8 without NUL.", MaxID)
	}
	return nil
}
