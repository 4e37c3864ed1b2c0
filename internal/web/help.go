package web

import (
	"bytes"
	"net/http"
	"path"
	"sync"
	"time"

	"assay/docs"
)

// helpPolicy allows the style, scripts and images of the documentation.
const helpPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// helpFiles renders the documentation at the first call.
var helpFiles = sync.OnceValue(func() map[string][]byte { //nolint:gochecknoglobals // constant
	files, err := docs.Site()
	if err != nil {
		panic("web: documentation: " + err.Error()) // only in a broken build
	}
	return files
})

// help serves the documentation. It needs no sign-in.
func (s *site) help(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	content, ok := helpFiles()[name]
	if !ok {
		s.refuse(w, r, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Security-Policy", helpPolicy)
	http.ServeContent(w, r, path.Base(name), time.Time{}, bytes.NewReader(content))
}

// llms serves the index of the documentation for language models at the root of the site. The
// links in the file are relative to the documentation, so llms adds its path.
func (s *site) llms(w http.ResponseWriter, r *http.Request) {
	content := bytes.ReplaceAll(helpFiles()["llms.txt"], []byte("]("), []byte("](/help/"))
	http.ServeContent(w, r, "llms.txt", time.Time{}, bytes.NewReader(content))
}
