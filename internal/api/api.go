// Package api is the HTTP interface. One table in routes.go lists the routes with their
// roles, parameters, bodies and responses. Serving, the OpenAPI document and the tests
// all use that table. Handlers only translate; they hold no rules.
package api

import (
	"log/slog"
	"net/http"
	"net/netip"
	"time"
)

// The roles that a credential can have. Admin may use every route.
const (
	Market   = "market"
	Platform = "platform"
	Admin    = "admin"
)

// Deps is what the API needs. All fields but TrustedProxies are required.
type Deps struct {
	Jobs        JobReader
	Items       ItemReader
	Providers   ProviderReader
	Refresher   Refresher
	Inventories Inventories
	Missing     MissingQueue
	Users       Users
	Wallets     Wallets
	Fees        Fees
	Trading     Trading
	Traders     TraderReader
	Health      HealthReader
	Responses   Responses
	Credentials Credentials
	Failures    FailureLimiter
	Metrics     http.Handler
	Meter       Meter
	Page        http.Handler // serves every path that is not the API's
	Version     string
	Logger      *slog.Logger
	Now         func() time.Time
	// Host is the name that the server listens on; empty: none. Requests for metrics
	// without a token come to it, or to a name of loopback.
	Host string
	// TrustedProxies may name the client in X-Forwarded-For.
	TrustedProxies []netip.Prefix
}

// server serves all requests.
type server struct {
	Deps
	routes   routeTable
	bodies   *intake // of up to maxBody
	pushes   *intake // of more
	openapi  cached
	docsPage cached
	docsCSP  string
}

// New returns the handler of the whole server, the page included.
func New(deps Deps) http.Handler { return newServer(deps) }

func newServer(deps Deps) *server {
	s := &server{Deps: deps, bodies: newIntake(false), pushes: newIntake(true)}
	s.routes = newRouteTable(s.operations())
	s.openapi = cache("application/json", describe(newSchemas(), s.routes.operations, deps.Version))
	s.docsPage, s.docsCSP = renderDocs(s.routes.operations, deps.Version)
	return s
}

// Limits of connections. A push of an inventory may take longer: see pushTimeout.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute
	writeTimeout  = 2 * time.Minute
	idleTimeout   = 2 * time.Minute
	// maxHeader makes 16 KiB: net/http takes 4 KiB more.
	maxHeader = 16<<10 - 4<<10
)

// NewServer returns an http.Server for the handler with limits that keep slow
// and greedy clients from holding it up. The caller sets what it listens on.
func NewServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}
