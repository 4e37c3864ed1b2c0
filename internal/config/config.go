// Package config holds what an operator can set. It merges flags, environment,
// a file and defaults, checks all of it and lists every fault at once; it
// creates the secrets of a first start and keeps the live ones while they
// rotate. It opens no database and asks no provider.
package config

import (
	"cmp"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// Scope is which items a bulk refresh includes.
type Scope string

// The scopes of MARKET_PRICE_SCOPE.
const (
	ScopeInventory Scope = "inventory" // names now in inventories or active listings
	ScopeAll       Scope = "all"       // every known item
)

// Quota is a number of requests in a day and in a month of the calendar; 0: any.
type Quota struct{ Day, Month int64 }

// Limit is a number of requests in a period.
type Limit struct {
	Requests int
	Per      time.Duration
}

// LogFormat is the form of log lines.
type LogFormat string

// The formats of LOG_FORMAT.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Config is a checked configuration. Load makes it; afterwards only
// CreateSecrets changes it. The field comments name the settings.
type Config struct {
	ListenAddr     string         // LISTEN_ADDR: host:port; port 0 takes a free one
	MaxConnections int            // MAX_CONNECTIONS: of clients, at once
	DataDir        string         // DATA_DIR
	Database       Database       // DATABASE_URL, DATABASE_DIRECT_URL
	TrustedProxies []netip.Prefix // TRUSTED_PROXIES: who may set X-Forwarded-For
	LogLevel       slog.Level     // LOG_LEVEL
	Migrate        bool           // DATABASE_MIGRATE
	DatabaseWait   time.Duration  // DATABASE_WAIT: for a PostgreSQL database
	LogFormat      LogFormat      // LOG_FORMAT

	SyncSecrets    []Secret    // MARKET_PRICE_SYNC_SECRET; none until created
	PlatformTokens []Secret    // PLATFORM_API_TOKEN; likewise
	AdminTokens    []Secret    // ADMIN_API_TOKEN; likewise
	LedgerKeys     []LedgerKey // WALLET_LEDGER_KEY; likewise; the first seals, all verify

	Providers     []string       // MARKET_PRICE_PROVIDERS: names of providers, none twice
	Currency      money.Currency // MARKET_PRICE_CURRENCY: of all market prices
	Rates         pricing.Rates  // MARKET_PRICE_RATES: those that are fixed, into Currency
	RatesECB      bool           // MARKET_PRICE_RATES: the others come from the European Central Bank,
	RatesFile     string         // or from this file; empty: from none
	ECBBaseURL    *url.URL       // ECB_BASE_URL; nil: the real host
	Scope         Scope          // MARKET_PRICE_SCOPE
	TTL           time.Duration  // MARKET_PRICE_TTL: 0 skips nothing for its age
	MissingRetry  time.Duration  // MARKET_PRICE_MISSING_RETRY: doubles up to MaxMissingRetry
	ProviderWait  time.Duration  // MARKET_PRICE_PROVIDER_WAIT
	NoSalesWindow time.Duration  // MARKET_PRICE_NO_SALES_WINDOW
	NoSalesRetry  time.Duration  // MARKET_PRICE_NO_SALES_RETRY
	JobRetention  time.Duration  // MARKET_PRICE_JOB_RETENTION_DAYS, in whole days
	MinJobs       int            // MARKET_PRICE_JOB_RETENTION_MIN_JOBS: of each kind
	Estimate      pricing.Method // MARKET_PRICE_ESTIMATE
	Level         string         // MARKET_PRICE_LEVEL; empty: consensus
	Guard         pricing.Guard  // MARKET_PRICE_GUARD
	Schedule      Schedule       // MARKET_PRICE_SCHEDULE: zero starts no runs
	// VerifySchedule is WALLET_VERIFY_SCHEDULE; zero: the ledger is not verified by itself.
	VerifySchedule Schedule
	Workers        int // MARKET_PRICE_WORKERS: batches estimated at once

	FeeRules        string        // PAYMENT_FEE_RULES: a file; empty: built-in, unless there is an address
	FeeRulesURL     *url.URL      // PAYMENT_FEE_RULES: an address
	TradeHold       time.Duration // TRADE_HOLD
	InventoryMaxAge time.Duration // INVENTORY_MAX_AGE

	Provider        map[string]Provider // <PROVIDER>_BASE_URL and so on, by provider name
	Cs2capShape     string              // CS2CAP_SHAPE: batch, single or stream
	SimShape        string              // SIM_SHAPE: bulk, batch or single
	SimBatchSize    int                 // SIM_BATCH_SIZE: names in a request of shape batch
	SteamEndpoint   string              // STEAM_ENDPOINT: priceoverview or orderbook
	SteamPace       time.Duration       // STEAM_INVENTORY_PACE: between two requests for inventories
	SteamShare      int                 // STEAM_INVENTORY_SHARE: percent of the limit that prices leave to inventories
	PricelistConfig string              // PRICELIST_CONFIG: path; empty: none

	// Warnings name what works and should be checked. They hold no secret.
	Warnings []string

	options  Options
	settings []Setting
}

// MaxMissingRetry is the longest wait until a missing price is retried.
const MaxMissingRetry = 72 * time.Hour

// Provider is how one price provider is reached.
type Provider struct {
	BaseURL *url.URL // nil: the real host; its host may be dialled even if private
	APIKey  Secret   // zero: none
	Limit   Limit    // zero: what the provider documents
	Quota   Quota    // zero: what the provider documents, where it does
	Markets []string // <PROVIDER>_MARKETS of a provider that quotes many: keys; none: those that it quotes by default
}

// Engine is a kind of database.
type Engine string

// The engines that DATABASE_URL can name.
const (
	SQLite   Engine = "sqlite"
	Postgres Engine = "postgres"
)

// Database is where records are kept.
type Database struct {
	Engine Engine
	Path   string // SQLite: the file
	URL    Secret // Postgres: the whole address, which may hold a password
	Direct Secret // Postgres: the address without a pooler; zero: none
}

// SessionURL is the address for what needs a session of its own: listening,
// leading, migrating, PostgreSQL's own programs.
func (d Database) SessionURL() string { return cmp.Or(d.Direct.Reveal(), d.URL.Reveal()) }

// LedgerKey is one of the keys that seal the wallet ledger.
type LedgerKey struct {
	ID  string // named in each entry that the key sealed
	Key Secret // 64 hex digits
}

// Options are what a configuration is read from.
type Options struct {
	// Flags holds settings given on the command line, by the name of the setting.
	Flags map[string]string
	// Environ is the environment, as os.Environ returns it.
	Environ []string
	// File is the path given with --config; empty: there is no file.
	File string
	// Providers lists the names of the price providers that exist, in lower case.
	Providers []string
}

// Setting is one setting as it is in force.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`  // secrets are masked; empty: not set
	Origin string `json:"origin"` // "default", "environment", "--ttl", "assay.conf:3"
}

// ListenHost returns the host of ListenAddr; empty: all addresses of the machine.
func (c *Config) ListenHost() string {
	host, _, _ := net.SplitHostPort(c.ListenAddr) // it was checked
	return host
}

// LedgerKeyGenerated reports whether the wallet ledger's key is the one that
// CreateSecrets put into DATA_DIR.
func (c *Config) LedgerKeyGenerated() bool {
	return slices.ContainsFunc(c.settings, func(s Setting) bool {
		return s.Name == "WALLET_LEDGER_KEY" && strings.HasPrefix(s.Origin, originGenerated)
	})
}

// Effective returns every setting, with secrets masked, in the order of the
// documentation.
func (c *Config) Effective() []Setting { return slices.Clone(c.settings) }
