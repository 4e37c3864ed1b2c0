package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"time"
)

// The build copies vendored scripts to static/vendor. The page also works without them.
//
//go:embed static
var staticFiles embed.FS

//go:embed templates
var templateFiles embed.FS

// These are the paths of vendored scripts below static.
const (
	htmxFile  = "vendor/htmx.min.js"
	chartFile = "vendor/uPlot.iife.min.js"
)

// assets are the static files, by their path below /static/.
type assets struct {
	files map[string]asset
}

type asset struct {
	body    []byte
	version string // hash of the content, part of every link
}

// loadAssets reads the embedded files.
func loadAssets() *assets {
	a := &assets{files: map[string]asset{}}
	err := fs.WalkDir(staticFiles, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := staticFiles.ReadFile(name)
		sum := sha256.Sum256(body)
		a.files[name[len("static/"):]] = asset{body: body, version: hex.EncodeToString(sum[:6])}
		return err
	})
	if err != nil {
		panic("web: embedded files: " + err.Error()) // only in a broken build
	}
	return a
}

// has reports whether the build contains a file.
func (a *assets) has(name string) bool {
	_, ok := a.files[name]
	return ok
}

// link returns the URL of a file. The URL changes with the file's content.
func (a *assets) link(name string) string {
	return "/static/" + name + "?v=" + a.files[name].version
}

// static serves a file. Browsers may cache it permanently because its URL contains a hash of
// its content.
func (s *site) static(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	found, ok := s.assets.files[name]
	if !ok {
		s.refuse(w, r, http.StatusNotFound)
		return
	}
	w.Header().Set("ETag", `"`+found.version+`"`)
	w.Header().Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == found.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, path.Base(name), time.Time{}, bytes.NewReader(found.body))
}
