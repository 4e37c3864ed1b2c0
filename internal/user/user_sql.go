package user

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"unicode/utf8"

	"assay/internal/db"
	"assay/internal/fault"
)

// The row of a deleted user stays: trades, listings and figures of other users name
// its key, and the seals of trades are over the id that it has. Whatever looks a user
// up by id takes a deleted one for unknown; the same id again is the same key.

// Hold returns a user, deleted ones included. No other transaction writes the
// user's inventories, lists an asset, buys for the user or deletes the user before this
// one ends.
func Hold(t *db.Tx, userID string) (u Held, err error) {
	err = t.QueryRow(`SELECT id, steam_id, deleted_at <> 0 FROM platform_user WHERE user_id = $1`+t.Dialect.Lock(), userID).
		Scan(&u.Key, &u.SteamID, &u.Deleted)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return u, err
}

// Ensure returns the key of a user and holds the user like Hold. An unknown or
// deleted user is created.
func Ensure(t *db.Tx, userID string) (int64, error) {
	u, err := Hold(t, userID)
	if err != nil || u.Known() {
		return u.Key, err
	}
	if u.Key == 0 {
		err = t.QueryRow(`INSERT INTO platform_user (user_id, created_at) VALUES ($1, $2) ON CONFLICT (user_id) DO NOTHING RETURNING id`,
			userID, db.Micros(t.Now())).Scan(&u.Key)
		if !errors.Is(err, sql.ErrNoRows) {
			return u.Key, err
		}
		if u, err = Hold(t, userID); err != nil || u.Known() { // another transaction was faster
			return u.Key, err
		}
	}
	_, err = t.Exec(`UPDATE platform_user SET deleted_at = 0, created_at = $2, leaderboard = TRUE WHERE id = $1`, u.Key, db.Micros(t.Now()))
	return u.Key, err
}

// Put sets what the platform says of a user, who is created if unknown or deleted.
// Another user's Steam id is a fault.Conflict.
func Put(t *db.Tx, u User) error {
	_, err := t.Exec(`
		INSERT INTO platform_user (user_id, steam_id, display_name, leaderboard, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (user_id) DO UPDATE SET steam_id = excluded.steam_id, display_name = excluded.display_name,
			leaderboard = CASE WHEN $6 AND platform_user.deleted_at = 0 THEN platform_user.leaderboard ELSE excluded.leaderboard END,
			created_at = CASE WHEN platform_user.deleted_at = 0 THEN platform_user.created_at ELSE excluded.created_at END, deleted_at = 0`,
		u.ID, u.SteamID, u.DisplayName, u.Leaderboard, db.Micros(t.Now()), u.KeepLeaderboard)
	if db.IsDuplicate(err) { // of users' own ids there is no other row than theirs
		return fault.New(fault.Conflict, "steam_id_taken", "Another user has this steamId: put that one without it first.")
	}
	return err
}

// Key returns the key of a user; ok is false for one that is unknown or deleted.
func Key(ctx context.Context, s *db.DB, userID string) (key int64, ok bool, err error) {
	err = s.Reserved.QueryRowContext(ctx, `SELECT id FROM platform_user WHERE user_id = $1 AND deleted_at = 0`, userID).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return key, err == nil, err
}

// List lists users whose ids begin with prefix, in byte order of the ids, after one
// of them, without those that are deleted.
func List(ctx context.Context, s *db.DB, prefix, after string, limit int) ([]User, error) {
	// No id with the prefix is greater: it has room for fewer of the greatest rune.
	last := prefix + strings.Repeat(string(utf8.MaxRune), MaxID/utf8.UTFMax+1)
	return db.Collect(ctx, s.Read, func(r *sql.Rows, u *User) error {
		return r.Scan(&u.ID, &u.SteamID, &u.DisplayName, &u.Leaderboard)
	}, `
		SELECT user_id, steam_id, display_name, leaderboard FROM platform_user
		WHERE user_id >= $1 AND user_id > $2 AND user_id <= $3 AND deleted_at = 0 ORDER BY user_id LIMIT $4`, prefix, after, last, limit)
}

// Read returns a user as the platform set it, or NotFound for one that is unknown or
// deleted.
func Read(ctx context.Context, s *db.DB, userID string) (User, error) {
	u := User{ID: userID}
	err := s.Reserved.QueryRowContext(ctx, `
		SELECT steam_id, display_name, leaderboard FROM platform_user WHERE user_id = $1 AND deleted_at = 0`, userID).
		Scan(&u.SteamID, &u.DisplayName, &u.Leaderboard)
	if errors.Is(err, sql.ErrNoRows) {
		err = NotFound()
	}
	return u, err
}
