package config

import (
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// setting describes a setting.
type setting struct {
	name, def, help string
	secret          bool // masked, and refused as a flag, because all users of the machine can read flags
	file            bool // NAME_FILE can name a file with the value; implied by secret
	generated       bool // a list of secrets that CreateSecrets can create
	set             setter
	show            func(*Config, string) string // formats the value for display; nil: unchanged
}

// takesFile reports whether NAME_FILE can name a file with the value.
func (s *setting) takesFile() bool { return s.secret || s.file }

// table lists all settings in the order of the documentation. DATA_DIR is first, because
// other settings are derived from it. Defaults are parsed like other values.
func table(providers []string) []setting {
	return slices.Concat(serverSettings(), secretSettings(), refreshSettings(providers), platformSettings(), providerSettings(providers))
}

func serverSettings() []setting {
	return []setting{
		{
			name: "DATA_DIR", def: "data", help: "directory of the database, generated secrets and checkpoints",
			set: text(func(c *Config) *string { return &c.DataDir }),
		},
		{
			name: "LISTEN_ADDR", def: "127.0.0.1:8080", help: "address to listen on, host:port; port 0 selects a free port",
			set: into(func(c *Config) *string { return &c.ListenAddr }, parseAddress),
		},
		{
			name: "MAX_CONNECTIONS", def: "2000",
			help: "maximum number of open connections",
			set:  number(func(c *Config) *int { return &c.MaxConnections }, 10, 100_000),
		},
		{
			name: "MODULES", def: allModules,
			help: "comma-separated list of modules: `" + allModules + "`, or `prices` alone, without market, wallet and fees",
			set:  into(func(c *Config) *bool { return &c.PricesOnly }, parseModules),
		},
		{
			name: "DATABASE_URL", def: "sqlite:{DATA_DIR}/assay.db",
			help: "`sqlite:PATH` or `postgres://...`; `{DATA_DIR}` is replaced by the value of that setting",
			file: true, set: setDatabase, show: showDatabase,
		},
		{
			name: "DATABASE_DIRECT_URL", help: "`postgres://...` of the same database without a pooler; required if `DATABASE_URL` is the address of a pooler in transaction mode",
			file: true, set: setDirect, show: showDirect,
		},
		{
			name: "DATABASE_MIGRATE", def: "on",
			help: "`on`: the server migrates a PostgreSQL database when it starts; `off`: `assay migrate` must do so before",
			set:  into(func(c *Config) *bool { return &c.Migrate }, parseSwitch),
		},
		{
			name: "DATABASE_WAIT", def: "30s",
			help: "how long a start waits for an unreachable PostgreSQL database before it ends with exit code 3",
			set:  duration(func(c *Config) *time.Duration { return &c.DatabaseWait }, 0, time.Hour),
		},
		{
			name: "TRUSTED_PROXIES", help: "comma-separated addresses or networks of proxies that may set `X-Forwarded-For`",
			set: into(func(c *Config) *[]netip.Prefix { return &c.TrustedProxies }, parseNetworks),
		},
		{name: "LOG_LEVEL", def: "info", help: "`debug`, `info`, `warn` or `error`", set: into(func(c *Config) *slog.Level { return &c.LogLevel }, parseLogLevel)},
		{
			name: "LOG_FORMAT", def: "text", help: "`text` or `json`",
			set: oneOf(func(c *Config) *LogFormat { return &c.LogFormat }, LogText, LogJSON),
		},
	}
}

func secretSettings() []setting {
	return []setting{
		{
			name: "MARKET_PRICE_SYNC_SECRET", help: "secret for `/api/market-prices` with at least 16 characters; a comma-separated list during a rotation",
			secret: true, generated: true,
			set: into(func(c *Config) *[]Secret { return &c.SyncSecrets }, parseSecrets), show: showSecrets,
		},
		{
			name: "PLATFORM_API_TOKEN", help: "token of the platform's backend with at least 16 characters; a comma-separated list during a rotation",
			secret: true, generated: true,
			set: into(func(c *Config) *[]Secret { return &c.PlatformTokens }, parseSecrets), show: showSecrets,
		},
		{
			name: "ADMIN_API_TOKEN", help: "token with access to all routes and at least 16 characters; a comma-separated list during a rotation",
			secret: true, generated: true,
			set: into(func(c *Config) *[]Secret { return &c.AdminTokens }, parseSecrets), show: showSecrets,
		},
		{
			name: "WALLET_LEDGER_KEY", help: "key that seals the wallet ledger, 64 hex digits. During a rotation, use a comma-separated list of `id:hex` that begins with the key for new entries",
			secret: true, generated: true, set: into(func(c *Config) *[]LedgerKey { return &c.LedgerKeys }, parseLedgerKeys), show: showSecrets,
		},
	}
}

func refreshSettings(providers []string) []setting {
	return slices.Concat([]setting{
		{
			name: "MARKET_PRICE_PROVIDERS", help: "comma-separated list of price providers: " + strings.Join(providers, ", "),
			set: into(func(c *Config) *[]string { return &c.Providers }, providerList(providers)),
		},
		{name: "MARKET_PRICE_CURRENCY", def: "USD", help: "currency of all market prices", set: into(func(c *Config) *money.Currency { return &c.Currency }, parseCurrency)},
		{
			name: "MARKET_PRICE_RATES", help: "comma-separated list of exchange rates into that currency: `ecb` (the European Central Bank's daily file) or `file:PATH`, " +
				"and fixed rates such as `EUR=1.0834@2026-11-20` or `KEY=1.85@2026-11-20`, which override the others",
			set: setRates,
		},
		{
			name: "ECB_BASE_URL", help: "base address of the European Central Bank's file; default: the real host",
			set: into(func(c *Config) **url.URL { return &c.ECBBaseURL }, parseBaseURL),
		},
		{
			name: "MARKET_PRICE_SCOPE", def: "inventory", help: "`inventory`: names in inventories and listings; `all`: every known item",
			set: oneOf(func(c *Config) *Scope { return &c.Scope }, ScopeInventory, ScopeAll),
		},
		{
			name: "MARKET_PRICE_TTL", def: "6h", help: "a run skips items whose price comes from quotes younger than this",
			set: duration(func(c *Config) *time.Duration { return &c.TTL }, 0, maxDuration),
		},
		{
			name: "MARKET_PRICE_MISSING_RETRY", def: "1h", help: "wait until a missing price is retried, doubling up to 72h",
			set: duration(func(c *Config) *time.Duration { return &c.MissingRetry }, time.Second, pricing.MaxMissingRetry),
		},
		{
			name: "MARKET_PRICE_PROVIDER_WAIT", def: "60s", help: "a run continues without a provider that has not responded successfully for this long",
			set: duration(func(c *Config) *time.Duration { return &c.ProviderWait }, time.Second, time.Hour),
		},
		{
			name: "MARKET_PRICE_NO_SALES_WINDOW", def: "720h", help: "an item without a reported sale in this period counts as having no sales",
			set: duration(func(c *Config) *time.Duration { return &c.NoSalesWindow }, time.Hour, maxDuration),
		},
		{
			name: "MARKET_PRICE_NO_SALES_RETRY", def: "72h", help: "how long items without sales are skipped",
			set: duration(func(c *Config) *time.Duration { return &c.NoSalesRetry }, 0, maxDuration),
		},
		{
			name: "MARKET_PRICE_JOB_RETENTION_DAYS", def: "7", help: "number of days for which ended jobs are kept",
			set: into(func(c *Config) *time.Duration { return &c.JobRetention }, parseDays),
		},
		{
			name: "MARKET_PRICE_HISTORY_DAYS", def: "90", help: "number of days for which every price change is kept. Older prices are kept as one candle per day, also those of markets",
			set: into(func(c *Config) *time.Duration { return &c.History }, parseHistory),
		},
		{
			name: "MARKET_PRICE_JOB_RETENTION_MIN_JOBS", def: "3", help: "number of newest ended jobs of each kind that are kept at any age. If this and `MARKET_PRICE_JOB_RETENTION_DAYS` are 0, `assay refresh --wait` may be unable to read its result",
			set: number(func(c *Config) *int { return &c.MinJobs }, 0, 1_000_000),
		},
	}, estimateSettings())
}

func estimateSettings() []setting {
	return []setting{
		{
			name: "MARKET_PRICE_ESTIMATE", def: "consensus", help: "figure that becomes the price: `consensus` (the median of the markets that agree), `average` or `median`",
			set: oneOf(func(c *Config) *pricing.Method { return &c.Estimate }, pricing.Consensus, pricing.Average, pricing.Median),
		},
		{
			name: "MARKET_PRICE_LEVEL", def: "consensus", help: "level of consensus prices: `consensus`, or the level of one market (`skinport`, or `provider/market` if several providers carry it)",
			set: into(func(c *Config) *string { return &c.Level }, parseLevel),
		},
		{
			name: "MARKET_PRICE_GUARD", def: "flag", help: "handling of a large price change in two markets: `flag` accepts it as `suspect`, `hold` waits for new evidence",
			set: oneOf(func(c *Config) *pricing.Guard { return &c.Guard }, pricing.Flag, pricing.Hold),
		},
		{
			name: "MARKET_PRICE_FEES", help: "comma-separated list of fees of markets in basis points (hundredths of a percent), such as `skinport=800,steam=1500`, for the spread after fees of `POST /api/prices/quotes`",
			set: into(func(c *Config) *map[string]int64 { return &c.MarketFees }, parseMarketFees),
		},
		{
			name: "ITEM_METADATA", help: "file with types, rarities, wears, collections and image addresses of items",
			set: text(func(c *Config) *string { return &c.ItemMetadata }),
		},
		{
			name: "WEBHOOK_ALLOW_HOSTS", help: "comma-separated list of hosts, such as `hooks.internal:8080`, that webhooks may reach at a private address or without https. A host without a port allows ports 80 and 443",
			set: into(func(c *Config) *[]string { return &c.WebhookHosts }, parseHosts),
		},
		{
			name: "MARKET_PRICE_SCHEDULE", def: "none", help: "schedule of runs: a cron expression in UTC, `every 30m` or `none`",
			set: into(func(c *Config) *Schedule { return &c.Schedule }, parseSchedule),
		},
		{
			name: "MARKET_PRICE_WORKERS", def: "2", help: "batches that are estimated in parallel",
			set: number(func(c *Config) *int { return &c.Workers }, 1, 64),
		},
	}
}

func platformSettings() []setting {
	return []setting{
		{
			name: "PAYMENT_FEE_RULES", help: "file or https address of the fee rules, read when they are refreshed; default: the built-in rules. An http address is allowed on loopback",
			set: setFeeRules,
		},
		{
			name: "WALLET_VERIFY_SCHEDULE", def: "every 24h", help: "schedule of the verification of the whole wallet ledger: a cron expression in UTC, `every 24h` or `none`",
			set: into(func(c *Config) *Schedule { return &c.VerifySchedule }, parseSchedule),
		},
		{
			name: "TRADE_HOLD", def: "168h", help: "how long a seller's credit is held after a trade was completed",
			set: duration(func(c *Config) *time.Duration { return &c.TradeHold }, 0, maxDuration),
		},
		{
			name: "INVENTORY_MAX_AGE", def: "15m", help: "maximum age of a pushed inventory for a listing",
			set: duration(func(c *Config) *time.Duration { return &c.InventoryMaxAge }, time.Second, maxDuration),
		},
	}
}

// providerSettings returns the settings that every provider has.
func providerSettings(providers []string) []setting {
	var all []setting
	for _, provider := range providers {
		prefix := providerPrefix(provider)
		if _, elsewhere := misplaced()[prefix+"BASE_URL"]; !elsewhere {
			all = append(all, setting{
				name: prefix + "BASE_URL", help: "address of `" + provider + "`; default: the real host",
				set: intoProvider(provider, func(p *Provider) **url.URL { return &p.BaseURL }, parseBaseURL),
			})
		}
		all = append(all, setting{
			name: prefix + "API_KEY", help: "API key of `" + provider + "`", secret: true,
			set: intoProvider(provider, func(p *Provider) *Secret { return &p.APIKey }, parseSecret), show: showSecrets,
		})
		if _, elsewhere := misplaced()[prefix+"LIMIT"]; !elsewhere {
			all = append(all, setting{
				name: prefix + "LIMIT", help: "limit of requests to `" + provider + "`, such as `8/5m`",
				set: intoProvider(provider, func(p *Provider) *Limit { return &p.Limit }, parseLimit),
			}, setting{
				name: prefix + "QUOTA", help: "quota of requests to `" + provider + "`, such as `1000/day,30000/month`",
				set: intoProvider(provider, func(p *Provider) *Quota { return &p.Quota }, parseQuota),
			})
		}
	}
	return append(all, ownSettings()...)
}

// ownSettings returns the settings that only one provider has.
func ownSettings() []setting {
	return []setting{
		{
			name: "CS2CAP_MARKETS", help: "comma-separated list of at most 64 market keys to request from `cs2cap`; default: all 41 documented markets",
			set: markets("cs2cap"),
		},
		{
			name: "CS2CAP_SHAPE", def: "batch", help: "requests to `cs2cap`: `batch`, `single` or `stream`, depending on the plan",
			set: oneOf(func(c *Config) *string { return &c.Cs2capShape }, "batch", "single", "stream"),
		},
		{
			name: "PRICEMPIRE_MARKETS", help: "comma-separated list of at most 64 market keys to request from `pricempire`; default: `buff163,csfloat,dmarket,skinport,waxpeer,youpin`",
			set: markets("pricempire"),
		},
		{
			name: "SIM_SHAPE", def: "bulk", help: "shape of the requests to the simulator: `bulk`, `batch` or `single`",
			set: oneOf(func(c *Config) *string { return &c.SimShape }, "bulk", "batch", "single"),
		},
		{
			name: "SIM_BATCH_SIZE", def: "500", help: "names in a request to the simulator with shape `batch`",
			set: number(func(c *Config) *int { return &c.SimBatchSize }, 1, 500),
		},
		{
			name: "STEAM_ENDPOINT", def: "priceoverview",
			help: "endpoint of `steam` to request for a name: `priceoverview` (asks and sales) or `orderbook` (asks and bids)",
			set:  oneOf(func(c *Config) *string { return &c.SteamEndpoint }, "priceoverview", "orderbook"),
		},
		{
			name: "STEAM_INVENTORY_PACE", def: "4s", help: "minimum time between two inventory requests to Steam, across all instances",
			set: duration(func(c *Config) *time.Duration { return &c.SteamPace }, time.Millisecond, time.Hour),
		},
		{
			name: "STEAM_INVENTORY_SHARE", def: "40", help: "percentage of `STEAM_LIMIT` and `STEAM_QUOTA` that is reserved for inventory requests; 0: none",
			set: number(func(c *Config) *int { return &c.SteamShare }, 0, 90),
		},
		{
			name: "PRICELIST_CONFIG", help: "file that describes the price lists of `pricelist`",
			set: text(func(c *Config) *string { return &c.PricelistConfig }),
		},
	}
}

// misplaced maps names that are not settings to an explanation of where to set the value.
func misplaced() map[string]string {
	return map[string]string{
		"PRICELIST_BASE_URL": "is not a setting; remove it and set `location` of each price list in the file of PRICELIST_CONFIG",
		"PRICELIST_LIMIT":    "is not a setting; remove it and set `limit` of each price list in the file of PRICELIST_CONFIG",
		"PRICELIST_QUOTA":    "is not a setting; remove it and set `quota` of each price list in the file of PRICELIST_CONFIG",
	}
}

// providerPrefix returns the prefix of a provider's settings.
func providerPrefix(provider string) string {
	return strings.ToUpper(strings.ReplaceAll(provider, "-", "_")) + "_"
}

// FlagName returns the flag of a setting, such as "--listen-addr" for LISTEN_ADDR.
func FlagName(setting string) string {
	return "--" + strings.ToLower(strings.ReplaceAll(setting, "_", "-"))
}
