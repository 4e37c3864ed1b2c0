package apikey

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
)

// maxKeys limits the number of keys.
const maxKeys = 1_000

func insert(t *db.Tx, k Key, secret string) error {
	var keys int
	if err := t.QueryRow(`SELECT count(*) FROM api_key`).Scan(&keys); err != nil {
		return err
	}
	if keys >= maxKeys {
		return fault.New(fault.Conflict, "too_many_keys", "There are %d API keys. Revoke a key that is no longer used.", keys)
	}
	n, err := t.Exec(`
		INSERT INTO api_key (name, scopes, per_minute, secret, old_secret, old_until, created_at, rotated_at, expires_at)
		VALUES ($1, $2, $3, $4, '', 0, $5, 0, $6) ON CONFLICT (name) DO NOTHING`,
		k.Name, strings.Join(k.Scopes, " "), k.PerMinute, secret, db.Micros(k.CreatedAt), micros(k.ExpiresAt))
	if err == nil && n == 0 {
		return fault.New(fault.Conflict, "key_exists", "There is an API key with this name. Rotate it, or use another name.")
	}
	return err
}

func rotate(t *db.Tx, name, secret string, keep time.Duration) error {
	n, err := t.Exec(`
		UPDATE api_key SET old_secret = secret, old_until = $3, secret = $2, rotated_at = $4 WHERE name = $1`,
		name, secret, db.Micros(t.Now().Add(keep)), db.Micros(t.Now()))
	if err == nil && n == 0 {
		return notFound()
	}
	return err
}

// remove deletes a key and returns it.
func remove(t *db.Tx, name string) (Key, error) {
	return one(db.Collect(t.Context(), t, scan, `
		DELETE FROM api_key WHERE name = $1 RETURNING name, scopes, per_minute, created_at, rotated_at, expires_at, old_until`, name))
}

// Find returns the key of a secret, or nil if there is none or it has expired.
func (s *Service) Find(ctx context.Context, secret string) (*Key, error) {
	keys, err := db.Collect(ctx, s.DB.Frequent, scan, `
		SELECT name, scopes, per_minute, created_at, rotated_at, expires_at, old_until FROM api_key
		WHERE (expires_at = 0 OR expires_at > $2) AND (secret = $1 OR old_secret = $1 AND old_until > $2)`,
		hash(secret), db.Micros(s.DB.Clock()))
	if err != nil || len(keys) == 0 {
		return nil, db.Transient(err)
	}
	return &keys[0], nil
}

// List returns up to limit keys whose names sort after the name after, ordered by name.
func List(ctx context.Context, s *db.DB, after string, limit int) ([]Key, error) {
	return db.Collect(ctx, s.Read, scan, `
		SELECT name, scopes, per_minute, created_at, rotated_at, expires_at, old_until FROM api_key
		WHERE name > $1 ORDER BY name LIMIT $2`, after, limit)
}

func read(ctx context.Context, q db.Querier, name string) (Key, error) {
	return one(db.Collect(ctx, q, scan, `
		SELECT name, scopes, per_minute, created_at, rotated_at, expires_at, old_until FROM api_key WHERE name = $1`, name))
}

// one returns the only key of a result, or a fault.NotFound.
func one(keys []Key, err error) (Key, error) {
	if err != nil {
		return Key{}, err
	}
	if len(keys) == 0 {
		return Key{}, notFound()
	}
	return keys[0], nil
}

func scan(r *sql.Rows, k *Key) error {
	var scopes string
	var created, rotated, expires, old int64
	err := r.Scan(&k.Name, &scopes, &k.PerMinute, &created, &rotated, &expires, &old)
	k.Scopes = strings.Fields(scopes)
	k.CreatedAt, k.RotatedAt, k.ExpiresAt, k.OldUntil = moment(created), moment(rotated), moment(expires), moment(old)
	return err
}

// micros and moment convert a time that may be zero.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return db.Micros(t)
}

func moment(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return db.Moment(micros)
}
