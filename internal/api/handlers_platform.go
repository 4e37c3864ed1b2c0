package api

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"unicode"

	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/strictjson"
	"assay/internal/user"
	"assay/internal/view"
)

func (s *server) items(w http.ResponseWriter, c *call) error {
	f := view.ItemFilter{
		AppID: int32(c.values.number("appId")), Search: c.values["q"], Status: c.values["status"], Market: c.values["market"],
		Min: c.values.amount("minPrice"), Max: c.values.amount("maxPrice"),
		ChangedSince: c.values.moment("changedSince"), UpdatedSince: c.values.moment("updatedSince"),
		Held: c.values.flag("held"), Sort: c.values["sort"], Fields: c.fields(),
	}
	page, err := s.Reader.Items(c.Context(), f, c.values["cursor"], c.limit())
	return answer(w, page, err)
}

func (s *server) item(w http.ResponseWriter, c *call) error {
	detail, err := s.Reader.Item(c.Context(), c.key())
	return answer(w, detail, err)
}

// userBody describes what PUT /api/users/{userId} takes; decodeUser reads it.
type userBody struct {
	SteamID     *string `json:"steamId,omitempty"`
	DisplayName *string `json:"displayName,omitempty"`
	Leaderboard bool    `json:"leaderboard,omitempty"`
}

// maxDisplayName is the longest display name, in bytes.
const maxDisplayName = 256

func (s *server) putUser(w http.ResponseWriter, c *call) error {
	user, err := decodeUser(c.Body)
	if err != nil {
		return err
	}
	user.ID = c.values["userId"]
	stored, err := s.Users.PutUser(c.Context(), user)
	return answer(w, stored, err)
}

func (s *server) users(w http.ResponseWriter, c *call) error {
	page, err := s.Reader.Users(c.Context(), c.values["prefix"], c.values["cursor"], c.limit())
	return answer(w, page, err)
}

func (s *server) user(w http.ResponseWriter, c *call) error {
	found, err := s.Users.User(c.Context(), c.values["userId"])
	return answer(w, found, err)
}

func (s *server) deleteUser(w http.ResponseWriter, c *call) error {
	if err := s.Users.DeleteUser(c.Context(), c.values["userId"]); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// decodeUser reads what is said of a user. Who was opted out of the leaderboard
// stays so until the platform says otherwise.
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

// optional reads a string or null, which is as good as absent.
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

// pushBody describes what POST /api/inventory/{userId}/sync takes;
// inventory.DecodePush reads it.
type pushBody struct {
	AppID      int32      `json:"appId"`
	ContextID  string     `json:"contextId"`
	SnapshotAt string     `json:"snapshotAt" format:"date-time"`
	Items      []pushItem `json:"items"`
}

type pushItem struct {
	AssetID        string `json:"assetId"`
	MarketHashName string `json:"marketHashName,omitempty"`
	Phase          string `json:"phase,omitempty"`
	ClassID        string `json:"classId,omitempty"`
	InstanceID     string `json:"instanceId,omitempty"`
	Amount         int32  `json:"amount,omitempty"`
	Tradable       bool   `json:"tradable,omitempty"`
	Marketable     bool   `json:"marketable,omitempty"`
	Inspect        string `json:"inspect,omitempty"`
}

func (s *server) syncInventory(w http.ResponseWriter, c *call) error {
	fromSteam := c.values["provider"] == "steam"
	if fromSteam && c.hasBody {
		if err := refuseContent(c.Body); err != nil {
			return err
		}
	}
	switch {
	case fromSteam:
		place := steaminv.Default()
		if c.values["appId"] != "" {
			place.AppID = int32(c.values.number("appId"))
		}
		contextID := cmp.Or(c.values["contextId"], place.ContextID)
		result, err := s.Inventories.Pull(c.Context(), c.values["userId"], place.AppID, contextID)
		return answer(w, result, err)
	case c.values["appId"] != "" || c.values["contextId"] != "":
		return fault.New(fault.Invalid, "invalid_parameters", "The parameters appId and contextId require provider=steam. A body contains its own.")
	case !c.hasBody:
		return bodyRequired()
	}
	push, err := inventory.DecodePush(c.Body, s.Now())
	if err != nil {
		return err
	}
	result, err := s.Inventories.Sync(c.Context(), c.values["userId"], push)
	return answer(w, result, err)
}

func (s *server) inventory(w http.ResponseWriter, c *call) error {
	page, err := s.Reader.Inventory(c.Context(), c.values["userId"], int32(c.values.number("appId")), c.fields(), c.values["cursor"], c.limit())
	return answer(w, page, err)
}
