package view

import (
	"context"

	"assay/internal/admission"
	"assay/internal/user"
)

// User is a user of the platform.
type User struct {
	UserID      string  `json:"userId"`
	SteamID     *string `json:"steamId"`
	DisplayName *string `json:"displayName"`
	Leaderboard bool    `json:"leaderboard"`
}

// Users lists users whose IDs start with prefix, in byte order.
func (r *UserReader) Users(ctx context.Context, prefix, after string, limit int) (Page[User], error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return Page[User]{}, err
	}
	defer leave()
	var id string
	if err := readCursor(after, "users", &id); err != nil {
		return Page[User]{}, err
	}
	rows, err := user.List(ctx, r.o.Store, prefix, id, limit+1)
	if err != nil {
		return Page[User]{}, err
	}
	return page(rows, limit, userOf, func(u *user.User) *string { return cursor("users", u.ID) }), nil
}

// User returns a user, or a fault.NotFound. It does not wait for the admission gate, because
// writes use it to return their results.
func (r *UserReader) User(ctx context.Context, id string) (User, error) {
	stored, err := user.Read(ctx, r.o.Store, id)
	return userOf(&stored), err
}

// userOf converts a user.
func userOf(u *user.User) User {
	return User{UserID: u.ID, SteamID: text(u.SteamID), DisplayName: text(u.DisplayName), Leaderboard: u.Leaderboard}
}
