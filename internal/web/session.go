package web

import (
	"container/list"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"sync"
	"time"
)

// Role is what a session may do.
type Role uint8

// The roles; a greater one may do all that a lesser one may.
const (
	Read  Role = iota + 1 // signed in with the market secret
	Admin                 // signed in with the admin token
)

// String names the role in logs and as the author of a run.
func (r Role) String() string {
	if r == Admin {
		return "admin"
	}
	return "read"
}

const (
	maxSessions = 500 // of each role
	// An open page polls and so keeps its session. The timeout is for closed browsers.
	idleTimeout = time.Hour
	readTimeout = 7 * 24 * time.Hour
	// An admin, who can spend budgets, signs in again each day.
	adminTimeout = 12 * time.Hour
)

// session is one signed-in browser.
type session struct {
	role   Role
	secret Fingerprint // that opened it
	csrf   string      // every form carries it
	opened time.Time
	seen   time.Time
	key    tokenHash
	flash  *flash
}

// flash is shown once, on the page that follows an action.
type flash struct {
	Good bool
	Text string
	Href string // where to read on; may be empty
	Link string
}

// tokenHash is what is kept of a session's token: a copy of our memory opens
// no session.
type tokenHash [sha256.Size]byte

// sessions holds a bounded number of sessions of each role; the least recently used
// one of the role makes room, so that no role signs another one out. It is safe for
// concurrent use.
type sessions struct {
	limit int // of each role
	now   func() time.Time

	mu    sync.Mutex
	byKey map[tokenHash]*list.Element // of *session
	used  map[Role]*list.List         // most recent first
}

func newSessions(limit int, now func() time.Time) *sessions {
	return &sessions{limit: limit, now: now, byKey: map[tokenHash]*list.Element{}, used: map[Role]*list.List{Read: list.New(), Admin: list.New()}}
}

// open starts a session and returns its token, 256 random bits, for the
// browser alone.
func (s *sessions) open(role Role, secret Fingerprint) string {
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

// find returns the live session of a token, as it is now, and marks it used.
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

// close ends a session; one that is gone already is fine.
func (s *sessions) close(key tokenHash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byKey[key]; e != nil {
		s.remove(e)
	}
}

// put leaves a message for the session's next page.
func (s *sessions) put(key tokenHash, f flash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byKey[key]; e != nil {
		e.Value.(*session).flash = &f
	}
}

// take returns that message and removes it.
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

// remove needs the lock.
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

// owns reports whether a form was made for this session.
func (s *session) owns(csrf string) bool {
	return subtle.ConstantTimeCompare([]byte(csrf), []byte(s.csrf)) == 1
}

// randomText returns 256 random bits.
func randomText() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime stops the program first
	return base64.RawURLEncoding.EncodeToString(b[:])
}
