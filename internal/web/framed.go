package web

import (
	"html/template"
	"net/http"
)

// framedPage shows content of another package.
type framedPage struct {
	frame
	Content template.HTML
}

// Frame shows content within the frame of the page. It returns false, and sends nothing, if the
// request has no session. The API calls it, so that its documentation has the navigation.
func (s *site) Frame(w http.ResponseWriter, r *http.Request, title, section string, content template.HTML) bool {
	sess, ok, err := s.session(r)
	if err != nil || !ok {
		return false // the content is public
	}
	s.Overview.Headline(r.Context()) // updates the status dot in the page header
	secure(w.Header())
	s.execute(w, r, http.StatusOK, "framed", "base.html", framedPage{s.frame(title, section, &sess), content})
	return true
}
