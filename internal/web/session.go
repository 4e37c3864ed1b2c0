package web

import (
	"container/list"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"sync"
	"time"

	"assay/internal/config"
)

// Role is the permission level of a session.
type Role uint8

// A greater role includes the permissions of a lesser one.
const (
	Read  Role = iota + 1 // signed in with the market secret
	Admin                 // signed in with the admin token
)

// String returns the name of the role for logs and as the author of runs.
func (r Role) String() string {
	if r == Admin {
		return "admin"
	}
	return "read"
}

// credential returns the role whose secret opens sessions of role r.
func (r Role) credential() string {
	if r == Admin {
		return config.RoleAdmin
	}
	return config.RoleMarket
}

const (
	maxSessions = 500 // per role
	// Open pages poll, which keeps their session. The timeout ends sessions of closed
	// browsers.
	idleTimeout = time.Hour
	readTimeout = 7 * 24 * time.Hour
	// An admin can spend budgets and must sign in again every day.
	adminTimeout = 12 * time.Hour
)

// session is one signed-in browser.
type session struct {
	role   Role
	secret config.Fingerprint // secret that opened the session
	csrf   string             // token that every form contains
	opened time.Time
	seen   time.Time
	key    tokenHash
	flash  *flash
}

// flash is a message that is shown once, on the page after an action.
type flash struct {
	Good   bool
	Text   string
	Href   string // link to more information; may be empty
	Link   string
	Secret string // a new secret; may be empty
}

// tokenHash is the stored form of a session token. A copy of the memory does not reveal
// tokens.
type tokenHash [sha256.Size]byte

// sessions holds a limited number of sessions per role. A new session replaces the least
// recently used one of the same role, so that one role cannot sign out another. The methods
// are safe for concurrent use.
type sessions struct {
	limit int // per role
	now   func() time.Time

	mu    sync.Mutex
	byKey map[tokenHash]*list.Element // values are *session
	used  map[Role]*list.List         // most recently used first
}

func newSessions(limit int, now func() time.Time) *sessions {
	return &sessions{limit: limit, now: now, byKey: map[tokenHash]*list.Element{}, used: map[Role]*list.List{Read: list.New(), Admin: list.New()}}
}

// open creates a session and returns its token. Only the browser stores the token, which has
// 256 random bits.
func (s *sessions) open(role Role, secret config.Fingerprint) string {
	token, now := randomText(), s.now()
	opened := &session{
		role: role, secret: secret, csrf: randomText(),
		opened: now, seen: now, key: sha256.Sum256([]byte(token)),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.used[role]
	for used.Len() >= s.limit {
		s.remove(used.Back())
	}
	s.byKey[opened.key] = used.PushFront(opened)
	return token
}

// find returns the valid session of a token and marks it as used.
func (s *sessions) find(token string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byKey[sha256.Sum256([]byte(token))]
	if e == nil {
		return session{}, false
	}
	found, now := e.Value.(*session), s.now()
	if found.expired(now) {
		s.remove(e)
		return session{}, false
	}
	found.seen = now
	s.used[found.role].MoveToFront(e)
	return *found, true
}

// close ends a session, if it exists.
func (s *sessions) close(key tokenHash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byKey[key]; e != nil {
		s.remove(e)
	}
}

// put stores a message for the session's next page.
func (s *sessions) put(key tokenHash, f flash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byKey[key]; e != nil {
		e.Value.(*session).flash = &f
	}
}

// take returns and removes the message.
func (s *sessions) take(key tokenHash) *flash {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byKey[key]
	if e == nil {
		return nil
	}
	f := e.Value.(*session).flash
	e.Value.(*session).flash = nil
	return f
}

// remove removes a session. The caller must hold the lock.
func (s *sessions) remove(e *list.Element) {
	was := e.Value.(*session)
	delete(s.byKey, was.key)
	s.used[was.role].Remove(e)
}

func (s *session) expired(now time.Time) bool {
	longest := readTimeout
	if s.role == Admin {
		longest = adminTimeout
	}
	return now.Sub(s.seen) >= idleTimeout || now.Sub(s.opened) >= longest
}

// owns reports whether a form token belongs to this session.
func (s *session) owns(csrf string) bool {
	return subtle.ConstantTimeCompare([]byte(csrf), []byte(s.csrf)) == 1
}

// randomText returns 256 random bits as text.
func randomText() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime stops the program first
	return base64.RawURLEncoding.EncodeToString(b[:])
}
