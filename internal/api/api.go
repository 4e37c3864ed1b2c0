// Package api serves the HTTP API. One table in routes.go lists the routes with their
// roles, parameters, bodies and responses. Serving, the OpenAPI document and the tests
// all use that table. Handlers contain no business rules.
package api

import (
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/internal/access"
	"assay/internal/admission"
	"assay/internal/apikey"
	"assay/internal/config"
	"assay/internal/idempotency"
	"assay/internal/inventory"
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

// The roles that a credential can have. Admin may use every route.
const (
	Market   = "market"
	Platform = "platform"
	Admin    = "admin"
)

// Deps are the dependencies of the API. All fields except Host and TrustedProxies are
// required.
type Deps struct {
	Readers     *view.Readers
	Gate        *admission.Gate // also limits the readers
	Engine      *refresh.Engine
	Inventories *inventory.Service
	Syncs       *syncs.Service
	Market      *market.Service
	Ledger      *ledger.Service
	Fees        *fee.Service
	Webhooks    *webhook.Service
	Responses   *idempotency.Responses
	Credentials *config.Credentials
	Keys        *apikey.Service
	Operators   *operator.Service
	Failures    *access.Failures     // shared with the page
	Registry    *prometheus.Registry // metrics of this process; New adds the request metrics
	Page        http.Handler         // serves all paths outside the API
	PricesOnly  bool                 // true: routes of the market, the wallet and fees are off
	Currency    money.Currency
	Version     string
	Logger      *slog.Logger
	Now         func() time.Time
	// Host is the host name that the server listens on. It may be empty. Metrics are
	// served without a token only for this host name and for loopback names.
	Host string
	// TrustedProxies are the proxies whose X-Forwarded-For header is trusted.
	TrustedProxies []netip.Prefix
}

// server is the HTTP handler of the API and the page.
type server struct {
	Deps
	meter    requestMetrics
	scrape   http.Handler
	routes   routeTable
	off      routeTable // routes of modules that are off
	bodies   *intake    // for routes that accept up to maxBody
	pushes   *intake    // for routes that accept more
	openapi  cached
	docsPage docsPages
}

// New returns the HTTP handler of the API and the page.
func New(deps Deps) http.Handler { return newServer(deps) }

func newServer(deps Deps) *server {
	s := &server{Deps: deps, meter: newRequestMetrics(deps.Registry), scrape: serveMetrics(deps.Registry), bodies: newIntake(false), pushes: newIntake(true)}
	countWrongSecrets(deps.Registry, deps.Failures)
	on, off := s.modules()
	s.routes, s.off = newRouteTable(on), newRouteTable(off)
	s.openapi = cache("application/json", describe(newSchemas(), s.routes.operations, deps.Version))
	s.docsPage = renderDocs(s.routes.operations, deps.Version)
	return s
}

// Limits of connections. The body of an inventory push has a longer limit, pushTimeout.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute
	writeTimeout  = 2 * time.Minute
	idleTimeout   = 2 * time.Minute
	// maxHeader limits headers to 16 KiB: net/http adds 4 KiB to this value.
	maxHeader = 16<<10 - 4<<10
)

// NewServer returns an http.Server for the handler. Its limits protect the server against
// slow clients and large headers. The caller provides the listener.
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
