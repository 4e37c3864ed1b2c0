// Package web serves the operator's page: runs, providers, and items with explanations of
// their prices. It renders HTML on the server. Scripts only refresh parts of a page, so the
// pages also work without them.
//
// The package stores nothing itself. It reads data from the readers and makes changes with the
// engine and the services.
package web

import (
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"time"

	"assay/internal/access"
	"assay/internal/admission"
	"assay/internal/apikey"
	"assay/internal/config"
	"assay/internal/event"
	"assay/internal/inventory/syncs"
	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/operator"
	"assay/internal/refresh"
	"assay/internal/view"
	"assay/internal/wallet/fee"
	"assay/internal/wallet/ledger"
	"assay/internal/webhook"
)

// Deps are the dependencies of the page. TrustedProxies is optional, and so are Trades, Ledger and
// Fees if PricesOnly is set. All other fields are required.
type Deps struct {
	*view.Readers
	Feed        *event.Feed
	Engine      *refresh.Engine
	Credentials *config.Credentials
	APIKeys     *apikey.Service
	Webhooks    *webhook.Service
	Gate        *admission.Gate // limits verifications of the ledger
	Syncs       *syncs.Service  // syncs inventories
	Trades      *market.Service
	Ledger      *ledger.Service
	Fees        *fee.Service
	Settings    []config.Setting // effective settings of this process; secrets are masked
	Operators   *operator.Service
	Failures    *access.Failures // shared with the API
	Version     string
	Currency    money.Currency // currency of all prices
	PricesOnly  bool           // MODULES: market and wallet are off
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

// New returns the handler of the page for the path "/". It starts no goroutines.
func New(deps Deps) http.Handler {
	p := &pages{
		Deps: deps, streams: &streams{}, assets: loadAssets(),
		verifyLedger: deps.Ledger.VerifyAll, verifyTime: verifyTime,
	}
	p.parse()
	s := &site{&auth{p, http.NewCrossOriginProtection()}, http.NewServeMux()}
	routes := p.routes()
	p.sections = sectionsOf(routes)
	s.register(routes)
	return s
}

// register registers all routes.
func (s *site) register(routes []route) {
	s.mux.HandleFunc("GET /static/{file...}", s.static)
	s.mux.HandleFunc("GET /help", http.RedirectHandler("/help/index.html", http.StatusSeeOther).ServeHTTP)
	s.mux.HandleFunc("GET /help/{$}", http.RedirectHandler("/help/index.html", http.StatusSeeOther).ServeHTTP)
	s.mux.HandleFunc("GET /help/{file...}", s.help)
	s.mux.HandleFunc("GET /llms.txt", s.llms)
	s.mux.HandleFunc("GET /stream", s.stream)
	s.mux.HandleFunc("GET /sign-in", s.signInForm)
	s.mux.HandleFunc("POST /sign-in", s.signIn)
	s.mux.HandleFunc("POST /sign-out", s.act(Read, s.signOut))
	for _, r := range routes {
		if strings.HasPrefix(r.pattern, "GET ") {
			s.mux.HandleFunc(r.pattern, s.read(r.least, r.handle))
		} else {
			s.mux.HandleFunc(r.pattern, s.act(r.least, r.handle))
		}
	}
}

// ServeHTTP sets the headers of every response, and shows a page for unknown paths and
// methods. The address of a form has no page: after a form was sent, a reload or a bookmark requests it,
// so ServeHTTP redirects to the nearest page above.
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
	if refusal.status == http.StatusMethodNotAllowed && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		http.Redirect(w, r, s.pageAbove(r), http.StatusSeeOther)
		return
	}
	if allow := refusal.header.Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
	}
	s.refuse(w, r, refusal.status)
}

// pageAbove returns the URL of the nearest page above the path of a request, with the query of the request.
func (s *site) pageAbove(r *http.Request) string {
	above := url.URL{Path: "/", RawQuery: r.URL.RawQuery}
	for escaped := path.Dir(r.URL.EscapedPath()); escaped != "/"; escaped = path.Dir(escaped) {
		parsed, err := url.Parse(escaped)
		if err != nil {
			break // cannot happen: a part of a valid path is valid
		}
		_, pattern := s.mux.Handler(&http.Request{Method: http.MethodGet, URL: parsed})
		if strings.HasPrefix(pattern, http.MethodGet+" ") {
			above.Path, above.RawPath = parsed.Path, parsed.RawPath
			break
		}
	}
	return above.String()
}

// statusOnly records the status that the standard mux sends and drops the body.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }
func (s *statusOnly) Write(b []byte) (int, error) { return len(b), nil }

// secure sets the security headers. The content security policy allows only files of this site: no
// inline scripts or styles, no other hosts and no frames.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	// no-referrer would also remove the Origin header of the page's forms.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
