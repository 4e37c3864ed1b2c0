package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"assay/internal/db"
)

// Limits of sessions.
const (
	MaxSessions = 500 // per role
	// IdleTimeout ends an unused session, such as that of a closed browser. An open page polls and
	// keeps its session in use.
	IdleTimeout = time.Hour
	// ReadTimeout is the longest duration of a session with the role Read.
	ReadTimeout = 7 * 24 * time.Hour
	// AdminTimeout is the longest duration of a session with the role Admin. It is short, because
	// an admin can spend budgets.
	AdminTimeout = 12 * time.Hour
	// touchEvery limits how often the use of a session is written.
	touchEvery = time.Minute
)

// Session is one signed-in browser.
type Session struct {
	ID       string // SHA-256 of the token in hex
	Role     Role
	Operator string // empty: signed in with a configured secret
	// Bond, which the caller sets, binds the session to the secret that opened it.
	Bond      string
	CreatedAt time.Time
	SeenAt    time.Time
}

// SessionID returns the stored form of a token. A token has 256 random bits, so a fast hash
// suffices.
func SessionID(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Open stores a session for a token, which only the browser keeps. If a role then has more than
// MaxSessions sessions, Open deletes the least recently used ones of this role. Sessions of other
// roles stay open.
func (s *Service) Open(ctx context.Context, token string, sess Session) error {
	sess.ID = SessionID(token)
	return s.DB.InTx(ctx, func(t *db.Tx) error {
		if err := insertSession(t, sess); err != nil {
			return err
		}
		if err := deleteExpired(t); err != nil {
			return err
		}
		return deleteExcess(t, sess.Role, MaxSessions)
	})
}

// Session returns the session of a token and records its use. It reports false if there is no such
// session or it has expired.
func (s *Service) Session(ctx context.Context, token string) (Session, bool, error) {
	id := SessionID(token)
	sess, ok, err := s.session(ctx, id)
	now := s.DB.Clock()
	if err != nil || !ok || sess.expired(now) {
		return Session{}, false, err
	}
	if now.Sub(sess.SeenAt) >= touchEvery {
		// The session is valid even if its use cannot be recorded: the page must work while the
		// database is read-only.
		_ = s.DB.InTx(ctx, func(t *db.Tx) error { return touch(t, id) })
	}
	return sess, true, nil
}

// Close ends a session, if it exists.
func (s *Service) Close(ctx context.Context, id string) error {
	return s.DB.InTx(ctx, func(t *db.Tx) error { return deleteSession(t, id) })
}

func (s Session) expired(now time.Time) bool {
	longest := ReadTimeout
	if s.Role == Admin {
		longest = AdminTimeout
	}
	return now.Sub(s.SeenAt) >= IdleTimeout || now.Sub(s.CreatedAt) >= longest
}
