package api

import (
	"io"
	"net/http"
	"strings"
	"unicode"

	"assay/internal/strictjson"
	"assay/internal/user"
)

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
	if err := h.Inventories.PutUser(c.Context(), user); err != nil {
		return nil, err
	}
	return h.user(c)
}

func (h userHandlers) users(c *call) (any, error) {
	return h.Readers.Users.Users(c.Context(), c.values["prefix"], c.values["cursor"], c.limit())
}

func (h userHandlers) user(c *call) (any, error) {
	return h.Readers.Users.User(c.Context(), c.values["userId"])
}

func (h userHandlers) deleteUser(c *call) (any, error) {
	return response{status: http.StatusNoContent}, h.Market.DeleteUser(c.Context(), c.values["userId"])
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
