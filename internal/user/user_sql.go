package user

import (
	"cmp"
	"context"
	"database/sql"
	"strings"
	"unicode/utf8"

	"assay/internal/db"
	"assay/internal/fault"
)

// The row of a deleted user stays in the table. Trades, listings and statistics of other
// users contain its key, and the seals of trades contain its id. Lookups by id treat a
// deleted user as unknown. If the same id is created again, it gets the same key.

// Lock locks and returns a user, including deleted ones. Until the transaction ends, no
// other transaction can change the user's inventories, list or buy items for the user, or
// delete the user.
func Lock(t *db.Tx, userID string) (u Locked, err error) {
	err = t.QueryRow(`SELECT id, steam_id, deleted_at <> 0 FROM platform_user WHERE user_id = $1`+t.Dialect.Lock(), userID).
		Scan(&u.Key, &u.SteamID, &u.Deleted)
	_, err = db.Found(err)
	return u, err
}

// Ensure locks a user like Lock and returns the key. It creates an unknown or deleted
// user.
func Ensure(t *db.Tx, userID string) (int64, error) {
	u, err := Lock(t, userID)
	if err != nil || u.Known() {
		return u.Key, err
	}
	if u.Key == 0 {
		err = t.QueryRow(`INSERT INTO platform_user (user_id, created_at) VALUES ($1, $2) ON CONFLICT (user_id) DO NOTHING RETURNING id`,
			userID, db.Micros(t.Now())).Scan(&u.Key)
		if found, err := db.Found(err); found || err != nil {
			return u.Key, err
		}
		if u, err = Lock(t, userID); err != nil || u.Known() { // another transaction created the user first
			return u.Key, err
		}
	}
	_, err = t.Exec(`UPDATE platform_user SET deleted_at = 0, created_at = $2, leaderboard = TRUE WHERE id = $1`, u.Key, db.Micros(t.Now()))
	return u.Key, err
}

// Put stores a user. It creates an unknown or deleted user. It returns a fault.Conflict
// if another user has the same Steam id.
func Put(t *db.Tx, u User) error {
	_, err := t.Exec(`
		INSERT INTO platform_user (user_id, steam_id, display_name, leaderboard, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (user_id) DO UPDATE SET steam_id = excluded.steam_id, display_name = excluded.display_name,
			leaderboard = CASE WHEN $6 AND platform_user.deleted_at = 0 THEN platform_user.leaderboard ELSE excluded.leaderboard END,
			created_at = CASE WHEN platform_user.deleted_at = 0 THEN platform_user.created_at ELSE excluded.created_at END, deleted_at = 0`,
		u.ID, u.SteamID, u.DisplayName, u.Leaderboard, db.Micros(t.Now()), u.KeepLeaderboard)
	if db.IsDuplicate(err) { // only the Steam id can be the cause, because the statement handles duplicate user ids
		return fault.New(fault.Conflict, "steam_id_taken", "Another user has this steamId. Remove it from that user first.")
	}
	return err
}

// Key returns the key of a user. The value ok is false if the user is unknown or deleted.
func Key(ctx context.Context, s *db.DB, userID string) (key int64, ok bool, err error) {
	err = s.Reserved.QueryRowContext(ctx, `SELECT id FROM platform_user WHERE user_id = $1 AND deleted_at = 0`, userID).Scan(&key)
	if found, err := db.Found(err); !found {
		return 0, false, err
	}
	return key, true, nil
}

// List returns users with the given id prefix, sorted by the bytes of their ids. It
// starts after the id after and leaves out deleted users.
func List(ctx context.Context, s *db.DB, prefix, after string, limit int) ([]User, error) {
	// No valid id with the prefix is greater than last, because an id is too short to
	// hold this many maximum runes.
	last := prefix + strings.Repeat(string(utf8.MaxRune), MaxID/utf8.UTFMax+1)
	return db.Collect(ctx, s.Read, func(r *sql.Rows, u *User) error {
		return r.Scan(&u.ID, &u.SteamID, &u.DisplayName, &u.Leaderboard)
	}, `
		SELECT user_id, steam_id, display_name, leaderboard FROM platform_user
		WHERE user_id >= $1 AND user_id > $2 AND user_id <= $3 AND deleted_at = 0 ORDER BY user_id LIMIT $4`, prefix, after, last, limit)
}

// Read returns a user. It returns NotFound if the user is unknown or deleted.
func Read(ctx context.Context, s *db.DB, userID string) (User, error) {
	u := User{ID: userID}
	err := s.Reserved.QueryRowContext(ctx, `
		SELECT steam_id, display_name, leaderboard FROM platform_user WHERE user_id = $1 AND deleted_at = 0`, userID).
		Scan(&u.SteamID, &u.DisplayName, &u.Leaderboard)
	if found, err := db.Found(err); !found {
		return u, cmp.Or[error](err, NotFound())
	}
	return u, nil
}
