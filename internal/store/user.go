package store

import (
	"assay/internal/db"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/user"
)

// The row of a deleted user stays: trades, listings and figures of other users name
// its key, and the seals of trades are over the id that it has. Whatever looks a user
// up by id takes a deleted one for unknown; the same id again is the same key.

// HoldUser returns a user, deleted ones included. No other transaction writes the
// user's inventories, lists an asset, buys for the user or deletes the user before this
// one ends.
func (t *Tx) HoldUser(userID string) (u user.Held, err error) {
	err = t.QueryRow(`SELECT id, steam_id, deleted_at <> 0 FROM platform_user WHERE user_id = $1`+t.Dialect.Lock(), userID).
		Scan(&u.Key, &u.SteamID, &u.Deleted)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return u, err
}

// EnsureUser returns the key of a user and holds the user like HoldUser. An unknown or
// deleted user is created.
func (t *Tx) EnsureUser(userID string) (int64, error) {
	u, err := t.HoldUser(userID)
	if err != nil || u.Known() {
		return u.Key, err
	}
	if u.Key == 0 {
		err = t.QueryRow(`INSERT INTO platform_user (user_id, created_at) VALUES ($1, $2) ON CONFLICT (user_id) DO NOTHING RETURNING id`,
			userID, db.Micros(t.Now())).Scan(&u.Key)
		if !errors.Is(err, sql.ErrNoRows) {
			return u.Key, err
		}
		if u, err = t.HoldUser(userID); err != nil || u.Known() { // another transaction was faster
			return u.Key, err
		}
	}
	_, err = t.Exec(`UPDATE platform_user SET deleted_at = 0, created_at = $2, leaderboard = TRUE WHERE id = $1`, u.Key, db.Micros(t.Now()))
	return u.Key, err
}

// PutUser sets what the platform says of a user, who is created if unknown or deleted.
// Another user's Steam id is a fault.Conflict.
func (t *Tx) PutUser(u inventory.User) error {
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

// OpenDeals reports whether a user has active listings, and trades that are neither
// settled nor reversed. Both are of one moment: a purchase turns one into the other.
func (t *Tx) OpenDeals(key int64) (listings, trades bool, err error) {
	err = t.QueryRow(`
		SELECT EXISTS (SELECT 1 FROM listing WHERE seller_key = $1 AND state = 'active'),
			EXISTS (SELECT 1 FROM trade WHERE seller_key = $1 AND state IN ('pending', 'completed'))
			OR EXISTS (SELECT 1 FROM trade WHERE buyer_key = $1 AND state IN ('pending', 'completed'))`, key).Scan(&listings, &trades)
	return listings, trades, err
}

// DeleteUser deletes a user that is held: Steam id, display name and inventories. The
// id stays, and so does what names it.
func (t *Tx) DeleteUser(key int64) error {
	if err := t.ByIndex(); err != nil {
		return err
	}
	rows, err := db.Collect(t.Context(), t, func(r *sql.Rows, id *int64) error { return r.Scan(id) },
		`SELECT id FROM inventory WHERE user_key = $1 ORDER BY id`+t.Dialect.Lock(), key)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(rows, rowsAtOnce) {
		if err := t.RemoveInventory(part); err != nil {
			return err
		}
	}
	if _, err := t.Exec(`DELETE FROM inventory_snapshot WHERE user_key = $1`, key); err != nil {
		return err
	}
	if _, err := t.Exec(`UPDATE platform_user SET steam_id = '', display_name = '', leaderboard = FALSE, deleted_at = $2 WHERE id = $1`,
		key, db.Micros(t.Now())); err != nil {
		return err
	}
	return t.unrank(key)
}

// UserKey returns the key of a user; ok is false for one that is unknown or deleted.
func (s *Store) UserKey(ctx context.Context, userID string) (key int64, ok bool, err error) {
	err = s.Reserved.QueryRowContext(ctx, `SELECT id FROM platform_user WHERE user_id = $1 AND deleted_at = 0`, userID).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return key, err == nil, err
}

// Users lists users whose ids begin with prefix, in byte order of the ids, after one
// of them, without those that are deleted.
func (s *Store) Users(ctx context.Context, prefix, after string, limit int) ([]inventory.User, error) {
	// No id with the prefix is greater: it has room for fewer of the greatest rune.
	last := prefix + strings.Repeat(string(utf8.MaxRune), user.MaxID/utf8.UTFMax+1)
	return db.Collect(ctx, s.Read, func(r *sql.Rows, u *inventory.User) error {
		return r.Scan(&u.ID, &u.SteamID, &u.DisplayName, &u.Leaderboard)
	}, `
		SELECT user_id, steam_id, display_name, leaderboard FROM platform_user
		WHERE user_id >= $1 AND user_id > $2 AND user_id <= $3 AND deleted_at = 0 ORDER BY user_id LIMIT $4`, prefix, after, last, limit)
}

// User returns what the platform says of a user, or sql.ErrNoRows for one that is
// unknown or deleted.
func (s *Store) User(ctx context.Context, userID string) (inventory.User, error) {
	u := inventory.User{ID: userID}
	err := s.Reserved.QueryRowContext(ctx, `
		SELECT steam_id, display_name, leaderboard FROM platform_user WHERE user_id = $1 AND deleted_at = 0`, userID).
		Scan(&u.SteamID, &u.DisplayName, &u.Leaderboard)
	return u, err
}
