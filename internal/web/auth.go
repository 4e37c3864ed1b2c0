package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"assay/internal/access"
	"assay/internal/auditlog"
	"assay/internal/config"
	"assay/internal/fault"
)

// maxForm is the maximum size of a form in bytes.
const maxForm = 16 << 10

// auth checks sessions, and opens a session for a valid secret.
type auth struct {
	*pages
	origin *http.CrossOriginProtection
}

// sessionHandler handles a request that belongs to a session.
type sessionHandler func(w http.ResponseWriter, r *http.Request, sess session) error

// read calls h for sessions with at least the given role. It redirects requests without a
// session to the sign-in form.
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

// act is like read, but for changes. The form must contain the token of the session.
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
				"This form belongs to another session. Go back, reload the page and try again."))
			return
		}
		s.allow(w, r.WithContext(auditlog.With(r.Context(), auditlog.Entry{
			Actor: author, Address: access.Client(r, s.TrustedProxies).String(), Action: r.Pattern, Target: r.URL.RequestURI(),
			RequestID: w.Header().Get("X-Request-Id"),
		})), sess, least, h)
	}
}

// allow calls h if the session's role is sufficient.
func (s *auth) allow(w http.ResponseWriter, r *http.Request, sess session, least Role, h sessionHandler) {
	if sess.role < least {
		s.fail(w, r, &sess, fault.New(fault.Forbidden, "read_only",
			"This session is read-only. Sign in with the admin token."))
		return
	}
	if err := h(w, r, sess); err != nil {
		s.fail(w, r, &sess, err)
	}
}

// session returns the valid session of a request. A session is valid only as long as its
// secret.
func (s *auth) session(r *http.Request) (session, bool) {
	cookie, err := r.Cookie(cookieName(access.OverTLS(r, s.TrustedProxies)))
	if err != nil {
		return session{}, false
	}
	sess, ok := s.sessions.find(cookie.Value)
	if !ok {
		return session{}, false
	}
	if !s.Credentials.Live(sess.role.credential(), sess.secret) {
		s.sessions.close(sess.key)
		return session{}, false
	}
	return sess, true
}

// redirectToSignIn redirects to the sign-in form, which redirects back to the requested page.
func (s *auth) redirectToSignIn(w http.ResponseWriter, r *http.Request) {
	target := "/sign-in"
	if r.Method == http.MethodGet && r.URL.Path != "/live" && r.URL.RequestURI() != "/" {
		target += "?next=" + url.QueryEscape(r.URL.RequestURI())
	}
	if fromScript(r) {
		// A redirect would insert the form into the page. With this header the script reloads
		// the page instead, which keeps its URL.
		w.Header().Set("HX-Refresh", "true")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// fromScript reports whether a script requested a part of a page.
func fromScript(r *http.Request) bool { return r.Header.Get("HX-Request") == "true" }

// signInPage is the data of the sign-in form.
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

// signIn opens a session for a valid secret. It counts wrong secrets, but never rejects a
// valid one.
func (s *auth) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	next := localPath(r.PostFormValue("next"))
	if s.origin.Check(r) != nil {
		s.signInPage(w, r, http.StatusForbidden, next, "The form came from another site. Sign in here.")
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

// match compares a secret with those of both roles.
func (s *auth) match(presented string) (Role, config.Fingerprint, bool) {
	admin, isAdmin := s.Credentials.Identify(Admin.credential(), presented)
	reader, isReader := s.Credentials.Identify(Read.credential(), presented)
	if isAdmin {
		return Admin, admin, true
	}
	return Read, reader, isReader
}

func (s *auth) refuseSecret(w http.ResponseWriter, r *http.Request, next string) {
	client := access.Client(r, s.TrustedProxies)
	failure := s.Failures.Fail(client)
	if failure.Log {
		s.Logger.WarnContext(r.Context(), "wrong secret at sign-in", "client", client.String(),
			"limited", failure.Over(), "unlogged", failure.Unlogged)
	}
	if failure.Delay > 0 {
		s.Failures.Wait(r.Context(), failure.Delay)
	}
	if !failure.Over() {
		s.signInPage(w, r, http.StatusUnauthorized, next, "Wrong secret. Enter the market secret or the admin token.")
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

// cookieName returns the name of the session cookie. Over TLS it has the prefix __Host-, which
// prevents other hosts of the domain from setting the cookie.
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

// localPath returns path if it belongs to this site, otherwise "/".
func localPath(path string) string {
	parsed, err := url.Parse(path)
	if err != nil || parsed.Scheme != "" || parsed.Host != "" || parsed.Opaque != "" ||
		!strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}
