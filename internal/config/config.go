// Package config loads and checks the settings of an operator. It merges flags, the
// environment, a file and defaults, and reports all faults together. It creates secrets on
// the first start and reloads them when they change. It opens no database and sends no
// request to a provider.
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

// Scope states which items a bulk refresh includes.
type Scope string

// The scopes of MARKET_PRICE_SCOPE.
const (
	ScopeInventory Scope = "inventory" // names now in inventories or active listings
	ScopeAll       Scope = "all"       // every known item
)

// Quota limits the requests of a calendar day and of a calendar month. 0 means no limit.
type Quota struct{ Day, Month int64 }

// Limit is a maximum number of requests in a period.
type Limit struct {
	Requests int
	Per      time.Duration
}

// LogFormat is the format of log lines.
type LogFormat string

// The formats of LOG_FORMAT.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Config is a checked configuration. Load creates it, and CreateSecrets adds created secrets.
// The field comments name the settings.
type Config struct {
	ListenAddr     string         // LISTEN_ADDR: host:port; port 0 selects a free port
	MaxConnections int            // MAX_CONNECTIONS: maximum number of open connections
	DataDir        string         // DATA_DIR
	Database       Database       // DATABASE_URL, DATABASE_DIRECT_URL
	TrustedProxies []netip.Prefix // TRUSTED_PROXIES: proxies that may set X-Forwarded-For
	LogLevel       slog.Level     // LOG_LEVEL
	Migrate        bool           // DATABASE_MIGRATE
	DatabaseWait   time.Duration  // DATABASE_WAIT: maximum wait for a PostgreSQL database
	LogFormat      LogFormat      // LOG_FORMAT
	PricesOnly     bool           // MODULES: true if market and wallet are off

	// The secrets are empty until they are set or CreateSecrets creates them.
	SyncSecrets    []Secret    // MARKET_PRICE_SYNC_SECRET
	PlatformTokens []Secret    // PLATFORM_API_TOKEN
	AdminTokens    []Secret    // ADMIN_API_TOKEN
	LedgerKeys     []LedgerKey // WALLET_LEDGER_KEY; new entries use the first key

	Providers     []string       // MARKET_PRICE_PROVIDERS: unique names
	Currency      money.Currency // MARKET_PRICE_CURRENCY: currency of all market prices
	Rates         pricing.Rates  // MARKET_PRICE_RATES: fixed rates into Currency
	RatesECB      bool           // MARKET_PRICE_RATES: true if other rates come from the European Central Bank
	RatesFile     string         // MARKET_PRICE_RATES: file with other rates; empty: none
	ECBBaseURL    *url.URL       // ECB_BASE_URL; nil: the real host
	Scope         Scope          // MARKET_PRICE_SCOPE
	TTL           time.Duration  // MARKET_PRICE_TTL; 0: no item is skipped for its age
	MissingRetry  time.Duration  // MARKET_PRICE_MISSING_RETRY; doubles up to pricing.MaxMissingRetry
	ProviderWait  time.Duration  // MARKET_PRICE_PROVIDER_WAIT
	NoSalesWindow time.Duration  // MARKET_PRICE_NO_SALES_WINDOW
	NoSalesRetry  time.Duration  // MARKET_PRICE_NO_SALES_RETRY
	JobRetention  time.Duration  // MARKET_PRICE_JOB_RETENTION_DAYS, in whole days
	History       time.Duration  // MARKET_PRICE_HISTORY_DAYS, in whole days
	MinJobs       int            // MARKET_PRICE_JOB_RETENTION_MIN_JOBS: jobs of each kind
	Estimate      pricing.Method // MARKET_PRICE_ESTIMATE
	Level         string         // MARKET_PRICE_LEVEL; empty: consensus
	Guard         pricing.Guard  // MARKET_PRICE_GUARD
	// MarketFees is MARKET_PRICE_FEES: basis points by market key or provider/key.
	MarketFees map[string]int64
	Schedule   Schedule // MARKET_PRICE_SCHEDULE; zero: no scheduled runs
	// VerifySchedule is WALLET_VERIFY_SCHEDULE; zero: no scheduled verification.
	VerifySchedule Schedule
	Workers        int // MARKET_PRICE_WORKERS: batches estimated in parallel

	ItemMetadata    string        // ITEM_METADATA: path; empty: none
	FeeRules        string        // PAYMENT_FEE_RULES: path of a file; empty: FeeRulesURL or the built-in rules
	FeeRulesURL     *url.URL      // PAYMENT_FEE_RULES: address; nil: FeeRules or the built-in rules
	TradeHold       time.Duration // TRADE_HOLD
	InventoryMaxAge time.Duration // INVENTORY_MAX_AGE

	// WebhookHosts is WEBHOOK_ALLOW_HOSTS: hosts, with or without a port, that webhooks may
	// reach even at a private address.
	WebhookHosts []string

	Provider        map[string]Provider // <PROVIDER>_BASE_URL and so on, by provider name
	Cs2capShape     string              // CS2CAP_SHAPE: batch, single or stream
	SimShape        string              // SIM_SHAPE: bulk, batch or single
	SimBatchSize    int                 // SIM_BATCH_SIZE: names in a request of shape batch
	SteamEndpoint   string              // STEAM_ENDPOINT: priceoverview or orderbook
	SteamPace       time.Duration       // STEAM_INVENTORY_PACE: minimum time between two inventory requests
	SteamShare      int                 // STEAM_INVENTORY_SHARE: percent of the limit that is reserved for inventories
	PricelistConfig string              // PRICELIST_CONFIG: path; empty: none

	// Warnings are problems that do not prevent a start. They contain no secret.
	Warnings []string

	options  Options
	settings []Setting
}

// Provider holds the settings of one price provider.
type Provider struct {
	BaseURL *url.URL // nil: the real host; a private address is allowed here
	APIKey  Secret   // zero: none
	Limit   Limit    // zero: the documented limit of the provider
	Quota   Quota    // zero: the documented quota of the provider, if any
	Markets []string // <PROVIDER>_MARKETS: market keys to request; empty: the default markets
}

// Engine is a kind of database.
type Engine string

// The supported engines.
const (
	SQLite   Engine = "sqlite"
	Postgres Engine = "postgres"
)

// Database is the location of the database.
type Database struct {
	Engine Engine
	Path   string // SQLite: path of the file
	URL    Secret // Postgres: address, which may contain a password
	Direct Secret // Postgres: address that bypasses a pooler; zero: none
}

// SessionURL returns the address for connections that need a PostgreSQL session. These are
// notifications, leader election, migrations and PostgreSQL's programs.
func (d Database) SessionURL() string { return cmp.Or(d.Direct.Reveal(), d.URL.Reveal()) }

// LedgerKey is a key that seals entries of the wallet ledger.
type LedgerKey struct {
	ID  string // stored in each entry that the key seals
	Key Secret // 64 hex digits
}

// Options are the inputs of a configuration.
type Options struct {
	// Flags holds settings from the command line by the name of the setting.
	Flags map[string]string
	// Environ is the environment, as os.Environ returns it.
	Environ []string
	// File is the path from --config. It is empty if there is no file.
	File string
	// Providers lists the names of all supported price providers in lower case.
	Providers []string
}

// Setting is the effective value of a setting.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`  // secrets are masked; empty: not set
	Origin string `json:"origin"` // such as "default", "environment", "--ttl" or "assay.conf:3"
}

// ListenHost returns the host of ListenAddr. An empty host means all addresses of the
// machine.
func (c *Config) ListenHost() string {
	host, _, _ := net.SplitHostPort(c.ListenAddr) // Load checked the address
	return host
}

// LedgerKeyGenerated reports whether CreateSecrets created the key of the wallet ledger.
func (c *Config) LedgerKeyGenerated() bool {
	return slices.ContainsFunc(c.settings, func(s Setting) bool {
		return s.Name == "WALLET_LEDGER_KEY" && strings.HasPrefix(s.Origin, originGenerated)
	})
}

// Effective returns all settings in the order of the documentation, with masked secrets.
func (c *Config) Effective() []Setting { return slices.Clone(c.settings) }
