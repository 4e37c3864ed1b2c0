package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"assay/internal/access"
	"assay/internal/config"
	"assay/internal/operator"
)

// Role is the permission level of a session.
type Role = operator.Role

// A greater role includes the permissions of a lesser one.
const (
	Read  = operator.Read  // an operator, or signed in with the market secret
	Admin = operator.Admin // an operator, or signed in with the admin token
)

// credential returns the config role whose secret opens sessions of role r.
func credential(r Role) string {
	if r == Admin {
		return config.RoleAdmin
	}
	return config.RoleMarket
}

// session is one signed-in browser.
type session struct {
	id       string
	role     Role
	operator string // empty: signed in with a configured secret
	csrf     string // token that every form contains
	flash    *flash
	token    string
}

// newSession returns the session of a stored row. It computes the CSRF token from the session
// token, so every instance accepts it.
func newSession(token string, row operator.Session) session {
	return session{
		id: row.ID, role: row.Role, operator: row.Operator, token: token,
		csrf: base64.RawURLEncoding.EncodeToString(signature(token, "form")),
	}
}

// author returns the name that is recorded as the requester of runs and in the audit log.
func (s *session) author() string {
	if s.operator == "" {
		return author
	}
	return "operator:" + s.operator
}

// owns reports whether a form token belongs to this session.
func (s *session) owns(csrf string) bool {
	return subtle.ConstantTimeCompare([]byte(csrf), []byte(s.csrf)) == 1
}

// signature returns the HMAC-SHA256 of text with the session token as the key.
func signature(token, text string) []byte {
	h := hmac.New(sha256.New, []byte(token))
	h.Write([]byte(text))
	return h.Sum(nil)
}

// randomText returns 256 random bits as text.
func randomText() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: without random bits, the runtime stops the program
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// flash is a message that is shown once, on the page after an action. A signed cookie stores it,
// because another instance may serve the next page.
type flash struct {
	Good   bool
	Text   string
	Href   string // link to more information; may be empty
	Link   string
	Secret string // a new secret; may be empty
}

const (
	// maxFlash limits the text in bytes. Browsers store cookies of at most 4 KB.
	maxFlash = 1_500
	// flashTime is the lifetime of the cookie with a message.
	flashTime = time.Minute
)

// setFlash stores a message for the session's next page.
func (s *pages) setFlash(w http.ResponseWriter, r *http.Request, sess session, f flash) {
	if len(f.Text) > maxFlash {
		f.Text = strings.ToValidUTF8(f.Text[:maxFlash], "") + "…"
	}
	text, err := json.Marshal(f) //nolint:gosec // a new secret is shown once, to the operator who created it
	if err != nil {
		return // cannot happen: the fields are texts
	}
	tls := access.OverTLS(r, s.TrustedProxies)
	value := base64.RawURLEncoding.EncodeToString(append(signature(sess.token, string(text)), text...))
	http.SetCookie(w, cookie(flashCookie, value, tls, int(flashTime/time.Second)))
}

// takeFlash returns the message for this page and deletes it. It ignores a message with a wrong
// signature.
func (s *pages) takeFlash(w http.ResponseWriter, r *http.Request, sess session) *flash {
	tls := access.OverTLS(r, s.TrustedProxies)
	stored, err := r.Cookie(cookieName(flashCookie, tls))
	if err != nil {
		return nil
	}
	http.SetCookie(w, cookie(flashCookie, "", tls, -1))
	value, err := base64.RawURLEncoding.DecodeString(stored.Value)
	if err != nil || len(value) < sha256.Size || !hmac.Equal(value[:sha256.Size], signature(sess.token, string(value[sha256.Size:]))) {
		return nil
	}
	var f flash
	if json.Unmarshal(value[sha256.Size:], &f) != nil {
		return nil
	}
	return &f
}

// Names of cookies.
const (
	tokenCookie = "assay_session"
	flashCookie = "assay_flash"
)

// cookieName returns the full name of a cookie. Over TLS it has the prefix __Host-, which
// prevents other hosts of the domain from setting the cookie.
func cookieName(name string, tls bool) string {
	if tls {
		return "__Host-" + name
	}
	return name
}

// cookie returns a cookie that scripts cannot read. It lasts until the browser closes if
// seconds is 0.
func cookie(name, value string, tls bool, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName(name, tls), Value: value, Path: "/", MaxAge: seconds,
		HttpOnly: true, Secure: tls, SameSite: http.SameSiteStrictMode,
	}
}
