package web

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"

	"assay/internal/catalog"
	"assay/internal/fault"
)

// frame is what every page has around its own part.
type frame struct {
	Title   string
	Section string // which entry of the navigation is the current one
	User    *user  // nil: not signed in
	Flash   *flash
	Search  search
	// Refresh reloads the page after so many seconds where no script does;
	// 0 is never.
	Refresh int
}

// user is what templates may know of a session.
type user struct {
	Role  string
	Admin bool
	CSRF  string
}

// search fills the search form.
type search struct {
	AppID int32
	Query string
}

func (s *site) frame(title string, sess *session) frame {
	f := frame{Title: title, Search: search{AppID: catalog.CS2}}
	if sess != nil {
		f.User = userOf(*sess)
		f.Flash = s.sessions.take(sess.key)
	}
	return f
}

func userOf(sess session) *user {
	return &user{Role: sess.role.String(), Admin: sess.role >= Admin, CSRF: sess.csrf}
}

// pageNames lists the templates that are pages; each defines "main".
func pageNames() []string {
	return []string{"sign-in", "overview", "runs", "run", "dry-run", "providers", "items", "item", "refusal"}
}

// parse makes one set of templates per page: the frame, the shared parts and
// the page's own.
func (s *site) parse() map[string]*template.Template {
	base := template.Must(template.New("base").Funcs(s.funcs()).
		ParseFS(templateFiles, "templates/base.html", "templates/parts.html", "templates/live.html"))
	pages := map[string]*template.Template{}
	for _, name := range pageNames() {
		pages[name] = template.Must(template.Must(base.Clone()).ParseFS(templateFiles, "templates/"+name+".html"))
	}
	return pages
}

// show answers with a page.
func (s *site) show(w http.ResponseWriter, r *http.Request, status int, page string, data any) {
	s.execute(w, r, status, page, "base.html", data)
}

// execute renders before it answers, so that an error never follows half a
// page.
func (s *site) execute(w http.ResponseWriter, r *http.Request, status int, page, part string, data any) {
	var body bytes.Buffer
	if err := s.pages[page].ExecuteTemplate(&body, part, data); err != nil {
		s.Logger.ErrorContext(r.Context(), "page could not be rendered", "page", page, "error", err)
		writeProblem(w, http.StatusInternalServerError, "internal_error", "The page could not be rendered.")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = body.WriteTo(w) // the browser has disconnected
}

// refusalPage says why there is no page.
type refusalPage struct {
	frame
	Status  int
	Heading string
	Detail  string
}

// fail responds with an error page. An internal error goes to the log, and the page
// shows no detail.
func (s *site) fail(w http.ResponseWriter, r *http.Request, sess *session, err error) {
	known := fault.Of(err)
	if known == nil {
		if r.Context().Err() != nil {
			return // the browser left
		}
		s.Logger.ErrorContext(r.Context(), "page request failed", "method", r.Method, "path", r.URL.Path,
			"request_id", w.Header().Get("X-Request-Id"), "error", err)
		known = fault.New(fault.Internal, "internal", "Something went wrong on the server. See the server's log.")
	}
	status := known.Kind.Status()
	s.show(w, r, status, "refusal", refusalPage{
		frame: s.frame(http.StatusText(status), sess), Status: status,
		Heading: http.StatusText(status), Detail: sentence(known.Error()),
	})
}

// refuse answers for paths and methods that do not exist: with a page where a
// browser asks, as the API does otherwise.
func (s *site) refuse(w http.ResponseWriter, r *http.Request, status int) {
	code, detail := "not_found", "There is no page at this address."
	if status == http.StatusMethodNotAllowed {
		code, detail = "method_not_allowed", "This address does not take "+r.Method+" requests."
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		writeProblem(w, status, code, detail)
		return
	}
	var sess *session
	if live, ok := s.session(r); ok {
		sess = &live
	}
	s.show(w, r, status, "refusal", refusalPage{
		frame: s.frame(http.StatusText(status), sess), Status: status,
		Heading: http.StatusText(status), Detail: detail,
	})
}

// writeProblem answers as the API does, which has set the request's id.
func writeProblem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(fault.Problem{ // the client left
		Type: "about:blank", Title: http.StatusText(status), Status: status,
		Detail: detail, Code: code, RequestID: w.Header().Get("X-Request-Id"),
	})
}
