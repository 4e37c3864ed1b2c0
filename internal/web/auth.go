package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"assay/internal/access"
	"assay/internal/auditlog"
	"assay/internal/config"
	"assay/internal/fault"
	"assay/internal/operator"
)

const (
	maxForm   = 16 << 10  // bytes of the sign-in form
	maxAction = 512 << 10 // bytes of any other form, such as one with selected items
)

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
		sess, ok, err := s.session(r)
		switch {
		case err != nil:
			s.fail(w, r, nil, err)
			return
		case !ok:
			s.redirectToSignIn(w, r)
			return
		case !fromScript(r):
			sess.flash = s.takeFlash(w, r, sess)
			s.Overview.Headline(r.Context()) // updates the status dot in the page header
		}
		defer s.Syncs.Priority.Read()() // a refresh on the same processors gives way to pages
		s.allow(w, r, sess, least, h)
	}
}

// act is like read, but for requests that change something. The form must contain the CSRF token of
// the session.
func (s *auth) act(least Role, h sessionHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxAction)
		sess, ok, err := s.session(r)
		if err != nil {
			s.fail(w, r, nil, err)
			return
		}
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
			Actor: sess.author(), Address: access.Client(r, s.TrustedProxies).String(), Action: r.Pattern, Target: auditTarget(r),
			RequestID: w.Header().Get("X-Request-Id"),
		})), sess, least, h)
	}
}

// auditedFields are the fields of forms that say what an action changes. Passwords, secrets and
// addresses are not among them.
var auditedFields = []string{"item", "cause", "market", "force", "digest", "role"}

// auditTarget returns the path and query of a form with its choices, for people. Long lists begin with
// their length, because the audit log stores the beginning only.
func auditTarget(r *http.Request) string {
	var choices []string
	if n := len(r.PostForm["item"]); n > 1 {
		choices = append(choices, fmt.Sprintf("items=%d", n))
	}
	for _, name := range auditedFields {
		for _, value := range r.PostForm[name] {
			if plain, err := url.QueryUnescape(value); err == nil && name == "item" {
				value = plain
			}
			if value != "" {
				choices = append(choices, name+"="+value)
			}
		}
	}
	target := r.URL.RequestURI()
	if len(choices) == 0 {
		return target
	}
	separator := "?"
	if r.URL.RawQuery != "" {
		separator = "&"
	}
	return target + separator + strings.Join(choices, "&")
}

// allow calls h if the session's role is sufficient.
func (s *auth) allow(w http.ResponseWriter, r *http.Request, sess session, least Role, h sessionHandler) {
	if sess.role < least {
		s.fail(w, r, &sess, fault.New(fault.Forbidden, "read_only",
			"Read-only session. Sign in with the admin token, or as an operator with the role admin."))
		return
	}
	if err := h(w, r, sess); err != nil {
		s.fail(w, r, &sess, err)
	}
	if r.Method == http.MethodPost {
		s.Overview.ExpireHeadline()
	}
}

// session returns the valid session of a request. A session that was opened with a configured
// secret becomes invalid when that secret changes.
func (s *auth) session(r *http.Request) (session, bool, error) {
	stored, err := r.Cookie(cookieName(tokenCookie, access.OverTLS(r, s.TrustedProxies)))
	if err != nil {
		return session{}, false, nil //nolint:nilerr // a request without the cookie has no session
	}
	row, ok, err := s.Operators.Session(r.Context(), stored.Value)
	if err != nil || !ok {
		return session{}, false, err
	}
	if row.Operator == "" && !s.Credentials.Bound(credential(row.Role), stored.Value, row.Bond) {
		return session{}, false, s.Operators.Close(r.Context(), row.ID)
	}
	return newSession(stored.Value, row), true, nil
}

// redirectToSignIn redirects to the sign-in form, which redirects back to the requested page.
func (s *auth) redirectToSignIn(w http.ResponseWriter, r *http.Request) {
	target := "/sign-in"
	if r.Method == http.MethodGet && r.URL.Path != "/live" && r.URL.Path != "/health" && r.URL.RequestURI() != "/" {
		target += "?next=" + url.QueryEscape(r.URL.RequestURI())
	}
	if fromScript(r) {
		// After a redirect, the script would insert the form into the page. This header makes the
		// script reload the page instead, so the URL stays.
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
	Name  string // empty: sign in with a configured secret
	Error string
}

func (s *auth) signInForm(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.URL.Query().Get("next"))
	_, ok, err := s.session(r)
	switch {
	case err != nil:
		s.fail(w, r, nil, err)
	case ok:
		http.Redirect(w, r, next, http.StatusSeeOther)
	default:
		s.signInPage(w, r, http.StatusOK, next, "")
	}
}

// signIn opens a session for a valid secret or password. It counts and delays failed attempts, but
// never rejects a valid secret.
func (s *auth) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	next := localPath(r.PostFormValue("next"))
	if s.origin.Check(r) != nil {
		s.signInPage(w, r, http.StatusForbidden, next, "The form came from another site. Sign in here.")
		return
	}
	token := randomText()
	row, ok, err := s.match(r, token)
	if err == nil && !ok {
		s.refuseSecret(w, r, next)
		return
	}
	if err == nil {
		err = s.open(r, token, row)
		if down := fault.Of(err); down != nil && down.Kind == fault.Unavailable {
			s.Logger.WarnContext(r.Context(), "session could not be stored", "error", err)
			s.signInPage(w, r, http.StatusServiceUnavailable, next,
				"Sign-in is not possible now, because the session cannot be stored. Browsers that are signed in keep working. "+sentence(down.Error()))
			return
		}
	}
	if err != nil {
		s.fail(w, r, nil, err)
		return
	}
	http.SetCookie(w, cookie(tokenCookie, token, access.OverTLS(r, s.TrustedProxies), 0))
	s.Logger.InfoContext(r.Context(), "operator signed in", "role", row.Role.String(), "operator", row.Operator,
		"client", access.Client(r, s.TrustedProxies).String())
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// match returns the new session for a sign-in form. If the form has a name, its secret is the
// password of that operator. Otherwise it is a configured secret.
func (s *auth) match(r *http.Request, token string) (operator.Session, bool, error) {
	name, presented := strings.TrimSpace(r.PostFormValue("name")), r.PostFormValue("secret")
	if name != "" {
		found, ok, err := s.Operators.Check(r.Context(), name, presented)
		return operator.Session{Role: found.Role, Operator: found.Name}, ok, err
	}
	admin, isAdmin := s.Credentials.Identify(config.RoleAdmin, presented)
	reader, isReader := s.Credentials.Identify(config.RoleMarket, presented)
	if isAdmin {
		return operator.Session{Role: Admin, Bond: admin.Bond(token)}, true, nil
	}
	return operator.Session{Role: Read, Bond: reader.Bond(token)}, isReader, nil
}

// open replaces the previous session of the browser with a new one.
func (s *auth) open(r *http.Request, token string, row operator.Session) error {
	if old, err := r.Cookie(cookieName(tokenCookie, access.OverTLS(r, s.TrustedProxies))); err == nil {
		if err := s.Operators.Close(r.Context(), operator.SessionID(old.Value)); err != nil {
			return err
		}
	}
	return s.Operators.Open(r.Context(), token, row)
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
	problem := "Wrong secret. Enter the market secret or the admin token."
	if r.PostFormValue("name") != "" {
		problem = "Wrong name or password, or the operator is disabled."
	}
	if !failure.Over() {
		s.signInPage(w, r, http.StatusUnauthorized, next, problem)
		return
	}
	seconds := int(max(failure.RetryAfter, time.Second).Round(time.Second) / time.Second)
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	s.signInPage(w, r, http.StatusTooManyRequests, next,
		"Too many wrong secrets from your address. Try again in "+humanDuration(time.Duration(seconds)*time.Second)+".")
}

func (s *auth) signInPage(w http.ResponseWriter, r *http.Request, status int, next, problem string) {
	s.execute(w, r, status, "sign-in", "base.html", signInPage{
		frame: s.frame("Sign in", "", nil), Next: next, Error: problem, Name: r.PostFormValue("name"),
	})
}

func (s *auth) signOut(w http.ResponseWriter, r *http.Request, sess session) error {
	if err := s.Operators.Close(r.Context(), sess.id); err != nil {
		return err
	}
	http.SetCookie(w, cookie(tokenCookie, "", access.OverTLS(r, s.TrustedProxies), -1))
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
	return nil
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
