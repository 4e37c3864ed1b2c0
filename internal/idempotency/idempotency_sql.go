package idempotency

import (
	"context"
	"fmt"

	"assay/internal/db"
	"assay/internal/wallet"
)

// Find returns the stored response for a key, or nil.
func Find(ctx context.Context, s *db.DB, k Key) (*Response, error) {
	var a Response
	var expires int64
	var request, mac []byte
	err := s.Reserved.QueryRowContext(ctx, `
		SELECT request, status, content_type, location, body, expires_at, version, key_id, mac FROM idempotent_response
		WHERE route = $1 AND role = $2 AND user_id = $3 AND key = $4 AND (expires_at = 0 OR expires_at > $5)`,
		k.Route, k.Role, k.User, k.Key, db.Micros(s.Clock())).
		Scan(&request, &a.Status, &a.ContentType, &a.Location, &a.Body, &expires, &a.Seal.Version, &a.Seal.KeyID, &mac)
	if found, err := db.Found(err); !found {
		return nil, err
	}
	if copy(a.Request[:], request) != len(a.Request) {
		return nil, fmt.Errorf("stored response has a digest of %d bytes, want 32", len(request))
	}
	a.Expires, a.Seal.MAC = db.Moment(expires), wallet.StoredHash(mac)
	return &a, nil
}

// Store stores the response for a key. If another transaction is storing one for the same
// key, Store waits for it. It returns ErrKeyUsed if a response is stored already.
func Store(t *db.Tx, k Key, a Response) error {
	n, err := t.Exec(`
		INSERT INTO idempotent_response (route, role, user_id, key, request, status, content_type, location, body, kept_at, expires_at, version, key_id, mac)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT (route, role, user_id, key) DO UPDATE SET request = excluded.request, status = excluded.status,
			content_type = excluded.content_type, location = excluded.location, body = excluded.body,
			kept_at = excluded.kept_at, expires_at = excluded.expires_at,
			version = excluded.version, key_id = excluded.key_id, mac = excluded.mac
		WHERE idempotent_response.expires_at <> 0 AND idempotent_response.expires_at <= excluded.kept_at`,
		k.Route, k.Role, k.User, k.Key, a.Request[:], a.Status, a.ContentType, a.Location, append([]byte{}, a.Body...), db.Micros(t.Now()), db.Micros(a.Expires),
		a.Seal.Version, a.Seal.KeyID, a.Seal.MAC[:])
	if err == nil && n == 0 {
		err = ErrKeyUsed
	}
	return err
}

// deleteBatch is the number of responses that one transaction deletes.
const deleteBatch = 1_000

// DeleteExpired deletes a batch of expired responses and reports whether there may be
// more.
func DeleteExpired(t *db.Tx) (more bool, err error) {
	n, err := t.Exec(`
		DELETE FROM idempotent_response WHERE (route, role, user_id, key) IN (
			SELECT route, role, user_id, key FROM idempotent_response
			WHERE expires_at <> 0 AND expires_at <= $1 ORDER BY expires_at LIMIT $2)`, db.Micros(t.Now()), deleteBatch)
	return n == deleteBatch, err
}
