package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"assay/internal/access"
	"assay/internal/fault"
)

// maxForm bounds the body of every form.
const maxForm = 16 << 10

// auth lets sessions in, and opens them for right secrets.
type auth struct {
	*pages
	origin *http.CrossOriginProtection
}

// sessionHandler serves a request of a session.
type sessionHandler func(w http.ResponseWriter, r *http.Request, sess session) error

// read lets sessions of at least the role in; others are sent to sign in.
func (s *auth) read(least Role, h sessionHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		sess, ok := s.session(r)
		if !ok {
			s.redirectToSignIn(w, r)
			return
		}
		s.allow(w, r, sess, least, h)
	}
}

// act is read for what changes something: the form must come from a page that
// this session was given.
func (s *auth) act(least Role, h sessionHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		sess, ok := s.session(r)
		if !ok {
			s.redirectToSignIn(w, r)
			return
		}
		if s.origin.Check(r) != nil || !sess.owns(r.PostFormValue("csrf")) {
			s.fail(w, r, &sess, fault.New(fault.Forbidden, "foreign_form",
				"This form is not from a page of this session. Go back, reload the page and try again."))
			return
		}
		s.allow(w, r, sess, least, h)
	}
}

// allow calls the handler if the session's role allows it.
func (s *auth) allow(w http.ResponseWriter, r *http.Request, sess session, least Role, h sessionHandler) {
	if sess.role < least {
		s.fail(w, r, &sess, fault.New(fault.Forbidden, "read_only",
			"This session only reads. Sign in with the admin token to do this."))
		return
	}
	if err := h(w, r, sess); err != nil {
		s.fail(w, r, &sess, err)
	}
}

// session returns the live session of a request. It ends with the secret that
// opened it.
func (s *auth) session(r *http.Request) (session, bool) {
	cookie, err := r.Cookie(cookieName(access.OverTLS(r, s.TrustedProxies)))
	if err != nil {
		return session{}, false
	}
	sess, ok := s.sessions.find(cookie.Value)
	if !ok {
		return session{}, false
	}
	if !s.Credentials.Live(sess.role, sess.secret) {
		s.sessions.close(sess.key)
		return session{}, false
	}
	return sess, true
}

// redirectToSignIn sends the browser to the sign-in form. The form returns to the
// requested page.
func (s *auth) redirectToSignIn(w http.ResponseWriter, r *http.Request) {
	target := "/sign-in"
	if r.Method == http.MethodGet && r.URL.Path != "/live" && r.URL.RequestURI() != "/" {
		target += "?next=" + url.QueryEscape(r.URL.RequestURI())
	}
	if fromScript(r) {
		// A redirect would put the form into the middle of a page. The header
		// makes the script leave; reloading keeps the page's own address.
		w.Header().Set("HX-Refresh", "true")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// fromScript reports whether a script requests a part of a page.
func fromScript(r *http.Request) bool { return r.Header.Get("HX-Request") == "true" }

// signInPage is the form.
type signInPage struct {
	frame
	Next  string
	Error string
}

func (s *auth) signInForm(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.session(r); ok {
		http.Redirect(w, r, localPath(r.URL.Query().Get("next")), http.StatusSeeOther)
		return
	}
	s.signInPage(w, r, http.StatusOK, localPath(r.URL.Query().Get("next")), "")
}

// signIn opens a session for a right secret. A right one is never refused;
// wrong ones are counted.
func (s *auth) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	next := localPath(r.PostFormValue("next"))
	if s.origin.Check(r) != nil {
		s.signInPage(w, r, http.StatusForbidden, next, "The form came from another site. Sign in here instead.")
		return
	}
	role, secret, ok := s.match(r.PostFormValue("secret"))
	if !ok {
		s.refuseSecret(w, r, next)
		return
	}
	tls := access.OverTLS(r, s.TrustedProxies)
	if old, err := r.Cookie(cookieName(tls)); err == nil {
		if was, ok := s.sessions.find(old.Value); ok {
			s.sessions.close(was.key)
		}
	}
	http.SetCookie(w, sessionCookie(s.sessions.open(role, secret), tls))
	s.Logger.InfoContext(r.Context(), "operator signed in", "role", role.String(), "client", access.Client(r, s.TrustedProxies).String())
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// match compares with the secrets of both roles, whichever fits.
func (s *auth) match(presented string) (Role, Fingerprint, bool) {
	admin, isAdmin := s.Credentials.Match(Admin, presented)
	reader, isReader := s.Credentials.Match(Read, presented)
	if isAdmin {
		return Admin, admin, true
	}
	return Read, reader, isReader
}

func (s *auth) refuseSecret(w http.ResponseWriter, r *http.Request, next string) {
	client := access.Client(r, s.TrustedProxies)
	failure := s.Limiter.Fail(client)
	if failure.Log {
		s.Logger.WarnContext(r.Context(), "wrong secret at sign-in", "client", client.String(),
			"limited", failure.Over(), "unlogged", failure.Unlogged)
	}
	if failure.Delay > 0 {
		s.Limiter.Wait(r.Context(), failure.Delay)
	}
	if !failure.Over() {
		s.signInPage(w, r, http.StatusUnauthorized, next, "That is neither the market secret nor the admin token.")
		return
	}
	seconds := int(max(failure.RetryAfter, time.Second).Round(time.Second) / time.Second)
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	s.signInPage(w, r, http.StatusTooManyRequests, next,
		"Too many wrong secrets from your address. Try again in "+humanDuration(time.Duration(seconds)*time.Second)+".")
}

func (s *auth) signInPage(w http.ResponseWriter, r *http.Request, status int, next, problem string) {
	s.execute(w, r, status, "sign-in", "base.html", signInPage{frame: s.frame("Sign in", "", nil), Next: next, Error: problem})
}

func (s *auth) signOut(w http.ResponseWriter, r *http.Request, sess session) error {
	s.sessions.close(sess.key)
	gone := sessionCookie("", access.OverTLS(r, s.TrustedProxies))
	gone.MaxAge = -1
	http.SetCookie(w, gone)
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
	return nil
}

// cookieName carries, over TLS, the prefix that keeps other hosts of the domain
// from setting it.
func cookieName(tls bool) string {
	if tls {
		return "__Host-assay_session"
	}
	return "assay_session"
}

func sessionCookie(token string, tls bool) *http.Cookie {
	return &http.Cookie{
		Name: cookieName(tls), Value: token, Path: "/",
		HttpOnly: true, Secure: tls, SameSite: http.SameSiteStrictMode,
	}
}

// localPath returns path if it is one of this site, and "/" otherwise.
func localPath(path string) string {
	parsed, err := url.Parse(path)
	if err != nil || parsed.Scheme != "" || parsed.Host != "" || parsed.Opaque != "" ||
		!strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}
