// Package user is the one rule for ids of users, which the platform chooses. Whatever
// accepts an id checks it here: users, inventories, listings, trades and wallets.
package user

import (
	"strings"
	"unicode/utf8"

	"assay/internal/fault"
)

// MaxID is the longest id, in bytes.
const MaxID = 128

// House is how the ids of the ledger's own accounts begin. No user of a platform has
// such an id.
const House = "house:"

// User is a user as the platform set it.
type User struct {
	ID          string // the platform's own
	SteamID     string // empty: none
	DisplayName string // empty: none
	Leaderboard bool   // false: opted out
	// KeepLeaderboard leaves Leaderboard as it is stored, if the user is known.
	KeepLeaderboard bool
}

// Held is a user as a transaction holds it.
type Held struct {
	Key     int64  // 0: no user ever had that id
	SteamID string // empty: none
	Deleted bool
}

// Known reports whether there is such a user: one that was created and not deleted.
func (h Held) Known() bool { return h.Key != 0 && !h.Deleted }

// Reserved reports whether an id is one of the ledger's own accounts.
func Reserved(id string) bool { return strings.HasPrefix(id, House) }

// NotFound returns the error for an unknown user, the same on every route.
func NotFound() *fault.Error {
	return fault.New(fault.NotFound, "user_not_found", "Unknown user. Create it with PUT /api/users/{userId} or push an inventory.")
}

// Check refuses what cannot be the id of a platform's user.
func Check(id string) error {
	if err := CheckAny(id); err != nil {
		return err
	}
	if Reserved(id) {
		return fault.New(fault.Unprocessable, "reserved_user", "User ids that begin with %q are reserved for the accounts of the house. Use another id.", House)
	}
	return nil
}

// CheckAny is Check for what also reads the accounts of the house.
func CheckAny(id string) error {
	if id == "" || len(id) > MaxID || !utf8.ValidString(id) || strings.IndexByte(id, 0) >= 0 {
		return fault.New(fault.Invalid, "invalid_user_id", "A user id is 1 to %d bytes of valid UTF-8 without NUL.", MaxID)
	}
	return nil
}
