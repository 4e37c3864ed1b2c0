package web

import (
	"bytes"
	"context"
	"encoding/json"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/view"
)

// pages renders pages.
type pages struct {
	Deps
	assets    *assets
	streams   *streams
	sections  []section                            // sections that have a page
	templates map[string]func() *template.Template // by page; parsed at the first call

	verifyLedger func(context.Context) error // verifies the whole ledger; tests replace it
	verifyTime   time.Duration               // limit of verifyLedger
}

// frame is the common data of all pages.
type frame struct {
	Title   string
	Section string // name of the current section
	Nav     []navGroup
	User    *user // nil: not signed in
	Flash   *flash
	Search  search
	// Health is the state of the service. The dot in the page header shows it.
	Health view.Verdict
	// Refresh is the reload interval in seconds for browsers without scripts. 0 means never.
	Refresh int
}

// user is the part of a session that templates use.
type user struct {
	Name  string // of the operator; empty: signed in with a configured secret
	Admin bool
	CSRF  string
}

// search is the data of the search form.
type search struct {
	AppID int32
	Query string
}

// frame returns the common data of a page in a section of the navigation.
func (s *pages) frame(title, section string, sess *session) frame {
	f := frame{Title: title, Section: section, Search: search{AppID: catalog.CS2}}
	if sess != nil {
		f.User = userOf(*sess)
		f.Nav = s.nav(sess.role, section)
		f.Flash, f.Health = sess.flash, s.Overview.LastHeadline()
	}
	return f
}

func userOf(sess session) *user {
	return &user{Name: sess.operator, Admin: sess.role >= Admin, CSRF: sess.csrf}
}

// parse prepares one set of templates per page. A page is a template file that defines "main".
// All pages share the other files. A set is parsed when its page is first shown: all sets
// together take 9 MiB.
func (s *pages) parse() {
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		panic("web: templates: " + err.Error()) // only if the pattern is malformed
	}
	base := template.New("base").Funcs(s.funcs())
	s.templates = map[string]func() *template.Template{}
	for _, file := range files {
		content, err := templateFiles.ReadFile(file)
		if err != nil {
			panic("web: templates: " + err.Error()) // only in a broken build
		}
		text := string(content)
		if name := strings.TrimSuffix(path.Base(file), ".html"); strings.Contains(text, `{{define "main"}}`) {
			s.templates[name] = sync.OnceValue(func() *template.Template {
				return template.Must(template.Must(base.Clone()).New(name).Parse(text))
			})
		} else {
			template.Must(base.New(path.Base(file)).Parse(text))
		}
	}
}

// show responds with a page.
func (s *pages) show(w http.ResponseWriter, r *http.Request, page string, data any) error {
	s.execute(w, r, http.StatusOK, page, "base.html", data)
	return nil
}

// showHealth responds with the status dot only. The script of an open page requests it.
func (s *pages) showHealth(w http.ResponseWriter, r *http.Request, _ session) error {
	s.execute(w, r, http.StatusOK, "refusal", "health", s.Overview.Headline(r.Context()))
	return nil
}

// execute renders the page into a buffer before it responds, so that an error does not send
// half a page.
func (s *pages) execute(w http.ResponseWriter, r *http.Request, status int, page, part string, data any) {
	var body bytes.Buffer
	if err := s.templates[page]().ExecuteTemplate(&body, part, data); err != nil {
		s.Logger.ErrorContext(r.Context(), "page could not be rendered", "page", page, "error", err)
		writeProblem(w, http.StatusInternalServerError, "internal_error", "The page could not be rendered.")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = body.WriteTo(w) // fails if the browser has disconnected
}

// refusalPage explains why a request was rejected.
type refusalPage struct {
	frame
	Status  int
	Heading string
	Detail  string
}

// fail responds with an error page. It logs internal errors and hides their details.
func (s *pages) fail(w http.ResponseWriter, r *http.Request, sess *session, err error) {
	known := fault.Of(err)
	if known == nil {
		if r.Context().Err() != nil {
			return // the browser has disconnected
		}
		s.Logger.ErrorContext(r.Context(), "page request failed", "method", r.Method, "path", r.URL.Path,
			"request_id", w.Header().Get("X-Request-Id"), "error", err)
		known = fault.New(fault.Internal, "internal", "Something went wrong on the server. See the server's log.")
	}
	s.showRefusal(w, r, sess, known.Kind.Status(), faultText(known))
}

func (s *pages) showRefusal(w http.ResponseWriter, r *http.Request, sess *session, status int, detail string) {
	heading := http.StatusText(status)
	s.execute(w, r, status, "refusal", "base.html", refusalPage{frame: s.frame(heading, "", sess), Status: status, Heading: heading, Detail: detail})
}

// refuse responds to unknown paths and methods. A browser gets a page. Other clients get a
// problem in the format of the API.
func (s *site) refuse(w http.ResponseWriter, r *http.Request, status int) {
	code, detail := "not_found", "There is no page at this address."
	if status == http.StatusMethodNotAllowed {
		code, detail = "method_not_allowed", "This address does not support "+r.Method+" requests."
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		writeProblem(w, status, code, detail)
		return
	}
	var sess *session
	if live, ok, err := s.session(r); ok && err == nil {
		sess = &live
	}
	s.showRefusal(w, r, sess, status, detail)
}

// writeProblem responds with a problem in the format of the API. The API, which calls the handler of
// the page, has already set the request ID.
func writeProblem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(fault.Problem{ // fails if the client has disconnected
		Type: "about:blank", Title: http.StatusText(status), Status: status,
		Detail: detail, Code: code, RequestID: w.Header().Get("X-Request-Id"),
	})
}
