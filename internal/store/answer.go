package store

import (
	"assay/internal/db"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"assay/internal/idempotency"
)

// StoredResponse returns the stored response to a request, or nil.
func (s *Store) StoredResponse(ctx context.Context, k idempotency.Key) (*idempotency.Response, error) {
	var a idempotency.Response
	var expires int64
	var request, mac []byte
	err := s.Reserved.QueryRowContext(ctx, `
		SELECT request, status, content_type, location, body, expires_at, version, key_id, mac FROM kept_answer
		WHERE route = $1 AND role = $2 AND user_id = $3 AND key = $4 AND (expires_at = 0 OR expires_at > $5)`,
		k.Route, k.Role, k.User, k.Key, db.Micros(s.Clock())).
		Scan(&request, &a.Status, &a.ContentType, &a.Location, &a.Body, &expires, &a.Seal.Version, &a.Seal.KeyID, &mac)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case copy(a.Request[:], request) != len(a.Request):
		return nil, fmt.Errorf("a kept answer has a digest of %d bytes", len(request))
	}
	a.Expires, a.Seal.MAC = db.Moment(expires), storedHash(mac)
	return &a, nil
}

// StoreResponse stores the response to a request. It waits for another transaction
// that does so for the same key; if that one is committed the error is
// idempotency.ErrKeyUsed.
func (t *Tx) StoreResponse(k idempotency.Key, a idempotency.Response) error {
	n, err := t.Exec(`
		INSERT INTO kept_answer (route, role, user_id, key, request, status, content_type, location, body, kept_at, expires_at, version, key_id, mac)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT (route, role, user_id, key) DO UPDATE SET request = excluded.request, status = excluded.status,
			content_type = excluded.content_type, location = excluded.location, body = excluded.body,
			kept_at = excluded.kept_at, expires_at = excluded.expires_at,
			version = excluded.version, key_id = excluded.key_id, mac = excluded.mac
		WHERE kept_answer.expires_at <> 0 AND kept_answer.expires_at <= excluded.kept_at`,
		k.Route, k.Role, k.User, k.Key, a.Request[:], a.Status, a.ContentType, a.Location, append([]byte{}, a.Body...), db.Micros(t.Now()), db.Micros(a.Expires),
		a.Seal.Version, a.Seal.KeyID, a.Seal.MAC[:])
	if err == nil && n == 0 {
		err = idempotency.ErrKeyUsed
	}
	return err
}

// forgottenAtOnce is how many answers are removed in one transaction.
const forgottenAtOnce = 1_000

// ForgetAnswers removes some of the answers that are not to be kept any longer,
// and reports whether there may be more.
func (t *Tx) ForgetAnswers() (more bool, err error) {
	n, err := t.Exec(`
		DELETE FROM kept_answer WHERE (route, role, user_id, key) IN (
			SELECT route, role, user_id, key FROM kept_answer
			WHERE expires_at <> 0 AND expires_at <= $1 ORDER BY expires_at LIMIT $2)`, db.Micros(t.Now()), forgottenAtOnce)
	return n == forgottenAtOnce, err
}
