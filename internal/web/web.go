// Package web serves the operator's page: runs, providers, and items with explanations of
// their prices. It renders HTML on the server. Scripts only refresh parts of a page, so every
// function also works without them.
//
// The package stores only browser sessions. It reads data from the readers and makes changes
// with the engine.
package web

import (
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"time"

	"assay/internal/access"
	"assay/internal/apikey"
	"assay/internal/config"
	"assay/internal/money"
	"assay/internal/refresh"
	"assay/internal/view"
)

// Deps are the dependencies of the page. All fields except TrustedProxies are required.
type Deps struct {
	*view.Readers
	Engine      *refresh.Engine
	Credentials *config.Credentials
	APIKeys     *apikey.Service
	Failures    *access.Failures // shared with the API
	Version     string
	Currency    money.Currency // currency of all prices
	Logger      *slog.Logger
	Now         func() time.Time
	// TrustedProxies may set X-Forwarded-For (client address) and X-Forwarded-Proto (TLS).
	TrustedProxies []netip.Prefix
}

// site handles all requests for the page.
type site struct {
	*auth
	mux *http.ServeMux
}

// These types group the page handlers by subject.
type (
	runPages      struct{ *pages }
	providerPages struct{ *pages }
	itemPages     struct{ *pages }
	accessPages   struct{ *pages }
)

// New returns the handler of the page for the path "/". It starts no goroutines. Sessions are
// in memory.
func New(deps Deps) http.Handler {
	p := &pages{Deps: deps, sessions: newSessions(maxSessions, deps.Now), assets: loadAssets()}
	p.parse()
	s := &site{&auth{p, http.NewCrossOriginProtection()}, http.NewServeMux()}
	s.routes()
	return s
}

// routes registers all routes of the page.
func (s *site) routes() {
	runs, providers, items, access := &runPages{s.pages}, &providerPages{s.pages}, &itemPages{s.pages}, &accessPages{s.pages}
	s.mux.HandleFunc("GET /static/{file...}", s.static)
	s.mux.HandleFunc("GET /help", http.RedirectHandler("/help/index.html", http.StatusSeeOther).ServeHTTP)
	s.mux.HandleFunc("GET /help/{$}", http.RedirectHandler("/help/index.html", http.StatusSeeOther).ServeHTTP)
	s.mux.HandleFunc("GET /help/{file...}", s.help)
	s.mux.HandleFunc("GET /sign-in", s.signInForm)
	s.mux.HandleFunc("POST /sign-in", s.signIn)
	s.mux.HandleFunc("POST /sign-out", s.act(Read, s.signOut))

	s.mux.HandleFunc("GET /{$}", s.read(Read, runs.overview))
	s.mux.HandleFunc("GET /live", s.read(Read, runs.live))
	s.mux.HandleFunc("GET /runs", s.read(Read, runs.runs))
	s.mux.HandleFunc("GET /runs/{id}", s.read(Read, runs.run))
	s.mux.HandleFunc("GET /providers", s.read(Read, providers.providers))
	s.mux.HandleFunc("GET /items", s.read(Read, items.items))
	s.mux.HandleFunc("GET /item", s.read(Read, items.item))
	s.mux.HandleFunc("GET /keys", s.read(Admin, access.keys))
	s.mux.HandleFunc("GET /audit", s.read(Admin, access.audit))
	s.mux.HandleFunc("GET /dry-run", s.read(Admin, runs.dryRun))

	s.mux.HandleFunc("POST /runs", s.act(Admin, runs.start))
	s.mux.HandleFunc("POST /runs/{id}/cancel", s.act(Admin, runs.cancel))
	s.mux.HandleFunc("POST /runs/{id}/retry-failed", s.act(Admin, runs.retryFailed))
	s.mux.HandleFunc("POST /providers/{provider}/pause", s.act(Admin, providers.pauseProvider))
	s.mux.HandleFunc("POST /providers/{provider}/resume", s.act(Admin, providers.resumeProvider))
	s.mux.HandleFunc("POST /providers/{provider}/accept", s.act(Admin, providers.acceptProvider))
	s.mux.HandleFunc("POST /item/accept", s.act(Admin, items.acceptItem))
	s.mux.HandleFunc("POST /keys", s.act(Admin, access.createKey))
	s.mux.HandleFunc("POST /keys/{key}/rotate", s.act(Admin, access.rotateKey))
	s.mux.HandleFunc("POST /keys/{key}/revoke", s.act(Admin, access.revokeKey))
}

// ServeHTTP sets the headers of every response, and shows a page for unknown paths and
// methods.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if r.URL.Path != path.Clean(r.URL.Path) && r.URL.Path != "/help/" {
		// The mux would redirect to the cleaned path. No page links to such a path, and the
		// cleaned path may belong to the API.
		s.refuse(w, r, http.StatusNotFound)
		return
	}
	h, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	refusal := statusOnly{header: http.Header{}}
	h.ServeHTTP(&refusal, r)
	if allow := refusal.header.Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
	}
	s.refuse(w, r, refusal.status)
}

// statusOnly records the status that the standard mux sends and drops the body.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }
func (s *statusOnly) Write(b []byte) (int, error) { return len(b), nil }

// secure sets a content security policy that allows only files of the page: no inline scripts
// or styles, other hosts or frames.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	// no-referrer would also remove the Origin header of the page's forms.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
