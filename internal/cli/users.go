package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"assay/internal/view"
)

// usersCmd contains the commands for users.
type usersCmd struct {
	Show   usersShowCmd   `cmd:"" help:"Show a user."`
	Put    usersPutCmd    `cmd:"" help:"Create or replace a user."`
	Delete usersDeleteCmd `cmd:"" help:"Delete a user. The wallet ledger, trades and listings keep the ID."`
}

// usersShowCmd shows a user.
type usersShowCmd struct {
	User string `arg:"" complete:"user" help:"The platform's id of the user."`
}

func (*usersShowCmd) examples() []example {
	return []example{{"users show u1", "show the Steam ID, name and leaderboard setting of u1"}}
}

func (c *usersShowCmd) Run(ctx context.Context, s *session) error {
	return show(ctx, s, userRequest(http.MethodGet, c.User), writeUser)
}

// usersPutCmd creates or replaces a user.
type usersPutCmd struct {
	User        string `arg:"" complete:"user" help:"The platform's id of the user."`
	SteamID     string `placeholder:"ID" help:"Steam id, 17 digits. Default: none."`
	DisplayName string `placeholder:"NAME" help:"Name on the leaderboard. Default: none."`
	Leaderboard bool   `default:"true" negatable:"" help:"Show the name on the leaderboard; --no-leaderboard shows \"anonymous\"."`
}

func (*usersPutCmd) examples() []example {
	return []example{
		{"users put u1 --steam-id 76561198000000001 --display-name Ann", "create u1, or replace its Steam ID and name"},
		{"users put u1 --no-leaderboard --json", "opt u1 out of the leaderboard and print the user as JSON"},
	}
}

func (c *usersPutCmd) Run(ctx context.Context, s *session) error {
	r := userRequest(http.MethodPut, c.User)
	r.body = userBody{SteamID: c.SteamID, DisplayName: c.DisplayName, Leaderboard: c.Leaderboard}
	return show(ctx, s, r, writeUser)
}

// userBody is the data of a user.
type userBody struct {
	SteamID     string `json:"steamId,omitzero"`
	DisplayName string `json:"displayName,omitzero"`
	Leaderboard bool   `json:"leaderboard"`
}

// usersDeleteCmd deletes a user.
type usersDeleteCmd struct {
	User string `arg:"" complete:"user" help:"The platform's id of the user."`
}

func (*usersDeleteCmd) examples() []example {
	return []example{
		{"users delete u1", "delete the Steam ID, name and inventories of u1; fails while u1 has active listings, open trades or money"},
		{"users delete u1 --json", "print the result as JSON; deleting again changes nothing"},
	}
}

func (c *usersDeleteCmd) Run(ctx context.Context, s *session) error {
	api, err := s.server()
	if err != nil {
		return err
	}
	if err := api.do(ctx, userRequest(http.MethodDelete, c.User), nil); err != nil {
		return err
	}
	return s.out.result(map[string]any{"userId": c.User, "deleted": true}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s is deleted\n", printable(c.User))
	})
}

func writeUser(w io.Writer, u *view.User) {
	board := "shown"
	if !u.Leaderboard {
		board = "anonymous"
	}
	_, _ = fmt.Fprintln(w, printable(u.UserID))
	table(w, [][]string{
		{"Steam id", printable(orDash(u.SteamID))},
		{"name", printable(orDash(u.DisplayName))},
		{"leaderboard", board},
	})
}
