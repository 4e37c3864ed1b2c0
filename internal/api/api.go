// Package api is the HTTP interface (contract, sections 4 to 6 and 9). One flat
// table in routes.go says which routes there are, who may use them, what they
// take and what they answer; serving, the OpenAPI document and the tests all go
// by that table. Handlers only translate: they decide nothing about prices.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"assay/internal/access"
	"assay/internal/catalog"
	"assay/internal/idempotency"
	"assay/internal/inventory"
	"assay/internal/market"
	"assay/internal/refresh"
	"assay/internal/user"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
)

// The roles that a credential can have. Admin may use every route.
const (
	Market   = "market"
	Platform = "platform"
	Admin    = "admin"
)

// Reader is what the API tells. An error that is a fault of the caller is a
// *fault.Error; of any other the caller learns nothing.
type Reader interface {
	Status(ctx context.Context) (view.Status, error)
	// Jobs lists jobs, newest first; an empty kind means all.
	Jobs(ctx context.Context, kind, cursor string, limit int) (view.Page[view.Job], error)
	Job(ctx context.Context, id int64) (view.Job, error)
	// JobItems lists a job's items; an empty state means all.
	JobItems(ctx context.Context, id int64, state, cursor string, limit int) (view.Page[view.JobItem], error)
	ProviderDebug(ctx context.Context) (view.ProvidersDebug, error)
	JobDebug(ctx context.Context) (view.JobDebug, error)
	// Items lists the items of a game whose name contains q, in any case.
	Items(ctx context.Context, f view.ItemFilter, cursor string, limit int) (view.Page[view.PricedItem], error)
	Item(ctx context.Context, key catalog.Key) (view.ItemDetail, error)
	// Lookup tells what items are worth, in their order, and queues nothing.
	Lookup(ctx context.Context, keys []catalog.Key, fields view.Fields) (view.Lookup, error)
	// Users lists users whose ids begin with prefix.
	Users(ctx context.Context, prefix, cursor string, limit int) (view.Page[view.User], error)
	// Inventory lists what a user owns; an appID of 0 means all games.
	Inventory(ctx context.Context, userID string, appID int32, fields view.Fields, cursor string, limit int) (view.Inventory, error)
	// Wallet tells what a user has.
	Wallet(ctx context.Context, userID string) (view.Wallet, error)
	// WalletEntries lists a user's entries; an empty currency means all.
	WalletEntries(ctx context.Context, userID, currency, cursor string, limit int) (view.Page[view.WalletEntry], error)
	Listings(ctx context.Context, f view.ListingFilter, cursor string, limit int) (view.Page[view.Listing], error)
	Listing(ctx context.Context, id int64) (view.Listing, error)
	Trades(ctx context.Context, f view.TradeFilter, cursor string, limit int) (view.Page[view.Trade], error)
	Trade(ctx context.Context, id int64) (view.Trade, error)
	// TopTraders ranks who traded most within a period: 7d, 30d or all.
	TopTraders(ctx context.Context, period, by string, limit int) (view.TopTraders, error)
	Health(ctx context.Context, details bool) (view.Health, error)
}

// Refresher starts and steers what refreshes prices.
type Refresher interface {
	// Start starts a bulk job, unless one is live.
	Start(ctx context.Context, forced bool, by string) (refresh.Started, error)
	DryRun(ctx context.Context, forced bool) (view.DryRun, error)
	Cancel(ctx context.Context, id int64) error
	RetryFailed(ctx context.Context, id int64, by string) (refresh.Started, error)
	PauseProvider(ctx context.Context, provider string) error
	ResumeProvider(ctx context.Context, provider string) error
	AcceptProvider(ctx context.Context, provider, market string) error
	// AcceptItem returns the item as it is then.
	AcceptItem(ctx context.Context, key catalog.Key) (view.ItemDetail, error)
}

// Inventories takes what users own.
type Inventories interface {
	Sync(ctx context.Context, userID string, push inventory.Push) (view.SyncResult, error)
	// Pull takes what Steam shows of the user; a place that it does not have is a
	// fault.
	Pull(ctx context.Context, userID string, appID int32, contextID string) (view.SyncResult, error)
}

// MissingQueue takes items that want a price.
type MissingQueue interface {
	// QueueMissing queues those of the items that have no price, each once,
	// creating those that there are not yet.
	QueueMissing(ctx context.Context, keys []catalog.Key) error
}

// Users keeps what the platform says of its users.
type Users interface {
	// User returns a user, or a fault.NotFound.
	User(ctx context.Context, id string) (view.User, error)
	// PutUser returns the user as it is stored then.
	PutUser(ctx context.Context, user user.User) (view.User, error)
	// DeleteUser deletes a user. A user with listings, trades or money is a
	// fault.Conflict. Deleting a deleted user changes nothing.
	DeleteUser(ctx context.Context, id string) error
}

// Wallets posts to the ledger, and verifies it.
type Wallets interface {
	// Post carries out an order. sealed is called last in its transaction, with
	// what was posted.
	Post(ctx context.Context, o wallet.Posting, sealed func(idempotency.ResponseStore, view.WalletTransaction) error) error
	// Verify verifies the wallet of a user, and compares it with a checkpoint, or the
	// newest stored one where that is empty.
	Verify(ctx context.Context, userID, checkpoint string) (*audit.Report, error)
}

// Trading lists, sells and hands over what users own. What seals an answer is
// called last in the transaction that does the work.
type Trading interface {
	// List lists what is offered, and tells of each in their order.
	List(ctx context.Context, offers market.Offers, seal func(idempotency.ResponseStore, []view.Offered) error) error
	// CancelListing returns the listing as it is then.
	CancelListing(ctx context.Context, id int64) (view.Listing, error)
	// CancelListings cancels each for itself, and answers in their order.
	CancelListings(ctx context.Context, ids []int64) ([]view.Withdrawn, error)
	// RepriceListing gives an active listing a price in minor units.
	RepriceListing(ctx context.Context, id, price int64) (view.Listing, error)
	Purchase(ctx context.Context, p market.Purchase, seal func(idempotency.ResponseStore, view.Trade) error) error
	// CompleteTrade and ReverseTrade return the trade as it is then.
	CompleteTrade(ctx context.Context, id int64) (view.Trade, error)
	ReverseTrade(ctx context.Context, id int64) (view.Trade, error)
}

// Answers keeps what requests with an Idempotency-Key were answered.
type Answers interface {
	// KeptAnswer returns what a request was answered, or nil; an error if that is
	// not what was kept.
	StoredResponse(ctx context.Context, k idempotency.Key) (*idempotency.Response, error)
	// KeepAnswer keeps the answer to a request that changed nothing; the error is
	// idempotency.ErrKeyUsed if there is one.
	StoreResponse(ctx context.Context, k idempotency.Key, a idempotency.Response) error
	// PostedUnder returns the transaction of the ledger that was posted under a key;
	// 0: there is none.
	PostedUnder(ctx context.Context, scope, key string) (id int64, err error)
}

// Credentials are the live secrets. Match compares in constant time, is safe
// for concurrent use and sees a rotation at once.
type Credentials interface {
	Match(role, presented string) bool
}

// FailureLimiter counts wrong secrets by client address, together with those
// that the page saw.
type FailureLimiter interface {
	// Fail counts one and returns what follows from it.
	Fail(client netip.Addr) access.Failure
	// Wait waits before the answer.
	Wait(ctx context.Context, delay time.Duration)
}

// Meter counts requests. method is one of HTTP's own or "other", and route a pattern
// of the route table, "page" or "unknown".
type Meter interface {
	Observe(method, route string, status int, took time.Duration)
}

// Deps is what the API needs. All fields but TrustedProxies are required.
type Deps struct {
	Reader      Reader
	Refresher   Refresher
	Inventories Inventories
	Missing     MissingQueue
	Users       Users
	Wallets     Wallets
	Fees        Fees
	Trading     Trading
	Answers     Answers
	Credentials Credentials
	Failures    FailureLimiter
	Metrics     http.Handler
	Meter       Meter
	Page        http.Handler // answers every path that is not the API's
	Version     string
	Logger      *slog.Logger
	Now         func() time.Time
	// Host is the name that the server listens on; empty: none. Requests for metrics
	// without a token come to it, or to a name of loopback.
	Host string
	// TrustedProxies may say, in X-Forwarded-For, whom they speak for.
	TrustedProxies []netip.Prefix
}

// server answers all requests.
type server struct {
	Deps
	routes   routeTable
	bodies   *intake // of up to maxBody
	pushes   *intake // of more
	flights  *flights
	openapi  cached
	docsPage cached
	docsCSP  string
}

// New returns the handler of the whole server, the page included.
func New(deps Deps) http.Handler { return newServer(deps) }

func newServer(deps Deps) *server {
	s := &server{Deps: deps, bodies: newIntake(false), pushes: newIntake(true), flights: newFlights()}
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
