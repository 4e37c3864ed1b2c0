package api

import (
	"context"
	"io"
	"net/http"
	"strings"
	"unicode"

	"assay/internal/strictjson"
	"assay/internal/user"
	"assay/internal/view"
)

// Users reads and writes the users of the platform.
type Users interface {
	// Users lists users whose ids begin with prefix.
	Users(ctx context.Context, prefix, cursor string, limit int) (view.Page[view.User], error)
	// User returns a user, or a fault.NotFound.
	User(ctx context.Context, id string) (view.User, error)
	// PutUser creates or replaces a user. It returns the stored user.
	PutUser(ctx context.Context, user user.User) (view.User, error)
	// DeleteUser deletes a user. It returns a fault.Conflict if the user has listings,
	// trades or money. Deleting an unknown user changes nothing.
	DeleteUser(ctx context.Context, id string) error
}

// userHandlers serve users.
type userHandlers struct{ *Deps }

// userBody describes the body of PUT /api/users/{userId}. decodeUser decodes it.
type userBody struct {
	SteamID     *string `json:"steamId,omitempty"`
	DisplayName *string `json:"displayName,omitempty"`
	Leaderboard bool    `json:"leaderboard,omitempty"`
}

// maxDisplayName is the maximum length of a display name in bytes.
const maxDisplayName = 256

func (h userHandlers) putUser(c *call) (any, error) {
	user, err := decodeUser(c.Body)
	if err != nil {
		return nil, err
	}
	user.ID = c.values["userId"]
	return h.Users.PutUser(c.Context(), user)
}

func (h userHandlers) users(c *call) (any, error) {
	return h.Users.Users(c.Context(), c.values["prefix"], c.values["cursor"], c.limit())
}

func (h userHandlers) user(c *call) (any, error) {
	return h.Users.User(c.Context(), c.values["userId"])
}

func (h userHandlers) deleteUser(c *call) (any, error) {
	return response{status: http.StatusNoContent}, h.Users.DeleteUser(c.Context(), c.values["userId"])
}

// decodeUser decodes a user without its id. A body without the member leaderboard keeps the
// leaderboard setting of an existing user.
func decodeUser(body io.Reader) (user.User, error) {
	in := strictjson.NewReader(body)
	user := user.User{Leaderboard: true, KeepLeaderboard: true}
	in.Object([]string{"steamId", "displayName", "leaderboard"}, func(member string) bool {
		switch member {
		case "steamId":
			user.SteamID = optional(in, 20)
			if user.SteamID != "" && !isSteamID(user.SteamID) {
				in.Fault("must be a SteamID64: 17 digits that begin with 7656119")
			}
		case "displayName":
			user.DisplayName = optional(in, maxDisplayName)
			if strings.ContainsFunc(user.DisplayName, unicode.IsControl) {
				in.Fault("must not contain control characters")
			}
		case "leaderboard":
			user.Leaderboard, _ = in.Bool()
			user.KeepLeaderboard = false
		default:
			return false
		}
		return true
	})
	return user, in.Finish()
}

// optional reads a string. It returns an empty string for null.
func optional(in *strictjson.Reader, maxBytes int) string {
	if in.Null() {
		return ""
	}
	text, _ := in.Text(1, maxBytes)
	return text
}

func isSteamID(id string) bool {
	digit := func(c rune) bool { return c >= '0' && c <= '9' }
	return len(id) == 17 && strings.HasPrefix(id, "7656119") && strings.TrimFunc(id, digit) == ""
}
