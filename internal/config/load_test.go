package config

import (
	"errors"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
)

func known() []string { return []string{"sim", "pricelist"} }

// options returns options with an empty DATA_DIR and the given variables.
func options(t *testing.T, environ ...string) Options {
	t.Helper()
	return Options{Environ: append([]string{"DATA_DIR=" + t.TempDir()}, environ...), Providers: known()}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func load(t *testing.T, o Options) *Config {
	t.Helper()
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLoad_ReportsEveryFault loads each file in testdata/bad. The "# want:" comments of
// the file are the expected faults in order. FILE stands for the name of the file.
func TestLoad_ReportsEveryFault(t *testing.T) {
	names, err := filepath.Glob("testdata/bad/*.conf")
	if err != nil || len(names) < 30 {
		t.Fatalf("got %d files, %v; want at least 30", len(names), err)
	}
	for _, name := range names {
		base := filepath.Base(name)
		t.Run(strings.TrimSuffix(base, ".conf"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(text)) {
				if _, message, ok := strings.Cut(line, "# want: "); ok {
					want = append(want, strings.ReplaceAll(strings.TrimRight(message, "\n"), "FILE", base))
				}
			}
			// The replacement above also changes names of settings that end in _FILE.
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "_"+base, "_FILE")
			}
			_, err = Load(Options{File: name, Providers: known(), Environ: []string{"DATA_DIR=" + t.TempDir()}})
			var got []string
			if faults, ok := errors.AsType[Faults](err); ok {
				for _, f := range faults {
					got = append(got, f.Error())
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2secret") {
				t.Errorf("got error %s, want one without a secret", err)
			}
		})
	}
}

func TestLoad_FaultsAreInvalidInput(t *testing.T) {
	_, err := Load(options(t, "LOG_LEVEL=loud", "LOG_FORMAT=xml"))
	f := fault.Of(err)
	if f == nil || f.Kind != fault.Invalid {
		t.Fatalf("%v: got fault %+v, want kind Invalid", err, f)
	}
	want := "configuration has 2 faults:\n" +
		"  environment: LOG_LEVEL: \"loud\" is unknown; want debug, info, warn or error\n" +
		"  environment: LOG_FORMAT: \"xml\" is unknown; want text or json"
	if err.Error() != want {
		t.Errorf("got error\n%s\nwant\n%s", err, want)
	}
}

func TestLoad_DefaultsAreTheDocumentedOnes(t *testing.T) {
	c := load(t, Options{Environ: nil, Providers: known()})
	want := &Config{
		ListenAddr: "127.0.0.1:8080", MaxConnections: 2000, DataDir: "data",
		Database: Database{Engine: SQLite, Path: "data/assay.db"},
		Migrate:  true, DatabaseWait: 30 * time.Second, LogLevel: slog.LevelInfo, LogFormat: LogText,
		Currency: "USD", Scope: ScopeInventory,
		TTL: 6 * time.Hour, MissingRetry: time.Hour, ProviderWait: time.Minute, NoSalesWindow: 720 * time.Hour, NoSalesRetry: 72 * time.Hour,
		JobRetention: 7 * 24 * time.Hour, MinJobs: 3, History: 90 * 24 * time.Hour,
		Estimate: pricing.Consensus, Guard: pricing.Flag, Workers: 2,
		TradeHold: 168 * time.Hour, InventoryMaxAge: 15 * time.Minute, Cs2capShape: "batch", SimShape: "bulk", SimBatchSize: 500, SteamEndpoint: "priceoverview",
		SteamPace: 4 * time.Second, SteamShare: 40,
		Provider: map[string]Provider{"sim": {}, "pricelist": {}},
	}
	if diff := cmp.Diff(want, c, ignoreInner); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// ignoreInner ignores unexported fields, schedules and fields with secrets.
var ignoreInner = cmp.FilterPath(func(p cmp.Path) bool {
	field, ok := p.Last().(cmp.StructField)
	return ok && (field.Name() == "options" || field.Name() == "settings" || field.Name() == "Schedule" || field.Name() == "VerifySchedule" || field.Name() == "URL" || field.Name() == "Direct" ||
		field.Name() == "APIKey")
}, cmp.Ignore())

func TestLoad_AppliesPrecedence(t *testing.T) {
	o := options(t)
	o.File = write(t, filepath.Join(t.TempDir(), "assay.conf"),
		"# a comment\r\n\r\n MARKET_PRICE_TTL = 1h \r\nLOG_LEVEL=warn\nLOG_FORMAT=json\nSIM_SHAPE=\n")
	o.Environ = append(o.Environ, "MARKET_PRICE_TTL=2h", "LOG_LEVEL=error", "LOG_FORMAT=", "HOME=/root")
	o.Flags = map[string]string{"MARKET_PRICE_TTL": "3h"}
	c := load(t, o)
	if c.TTL != 3*time.Hour || c.LogLevel != slog.LevelError || c.LogFormat != LogJSON || c.SimShape != "bulk" {
		t.Errorf("got ttl %s, level %s, format %s, shape %s; want 3h, ERROR, json, bulk", c.TTL, c.LogLevel, c.LogFormat, c.SimShape)
	}
	origins := map[string]string{}
	for _, s := range c.Effective() {
		origins[s.Name] = s.Origin
	}
	for name, want := range map[string]string{
		"MARKET_PRICE_TTL": "--market-price-ttl", "LOG_LEVEL": "environment",
		"LOG_FORMAT": "assay.conf:5", "SIM_SHAPE": "default",
	} {
		if origins[name] != want {
			t.Errorf("%s: got origin %q, want %q", name, origins[name], want)
		}
	}
}

func TestLoad_ReadsEverySetting(t *testing.T) {
	c := load(t, options(
		t, "LISTEN_ADDR=[::1]:0", "MAX_CONNECTIONS=300", "DATABASE_URL=sqlite:{DATA_DIR}/other.db", "TRUSTED_PROXIES=10.1.2.3, fd00::/8,10.9.8.7/8",
		"DATABASE_MIGRATE=off", "DATABASE_WAIT=5s", "LOG_LEVEL=debug", "LOG_FORMAT=json", "MARKET_PRICE_PROVIDERS=sim, pricelist", "PRICELIST_CONFIG=lists.json",
		"MARKET_PRICE_CURRENCY=EUR", "MARKET_PRICE_RATES=USD=0.923@2026-11-20,CNY=0.1274@2026-11-19", "MARKET_PRICE_SCOPE=all",
		"MARKET_PRICE_TTL=0", "MARKET_PRICE_MISSING_RETRY=30m", "MARKET_PRICE_PROVIDER_WAIT=90s", "MARKET_PRICE_NO_SALES_WINDOW=168h", "MARKET_PRICE_NO_SALES_RETRY=24h",
		"MARKET_PRICE_JOB_RETENTION_DAYS=0", "MARKET_PRICE_JOB_RETENTION_MIN_JOBS=0", "MARKET_PRICE_ESTIMATE=median",
		"MARKET_PRICE_GUARD=hold", "MARKET_PRICE_SCHEDULE=every 30m", "MARKET_PRICE_WORKERS=4", "PAYMENT_FEE_RULES=https://fees.example/r.json",
		"WALLET_VERIFY_SCHEDULE=30 4 * * *", "TRADE_HOLD=1h", "INVENTORY_MAX_AGE=1h", "SIM_BASE_URL=http://127.0.0.1:9000/v1", "SIM_SHAPE=batch", "CS2CAP_SHAPE=single", "SIM_LIMIT=8/5m", "SIM_QUOTA=30000/month,1000/day", "SIM_BATCH_SIZE=100", "STEAM_ENDPOINT=orderbook",
		"STEAM_INVENTORY_PACE=10s",
		"STEAM_INVENTORY_SHARE=90",
		"MARKET_PRICE_SYNC_SECRET=old-secret-old-secret,new-secret-new-secret", "SIM_API_KEY=sim-key",
	))
	if got := c.Provider["sim"]; got.BaseURL.String() != "http://127.0.0.1:9000/v1" || got.APIKey.Reveal() != "sim-key" ||
		got.Limit != (Limit{Requests: 8, Per: 5 * time.Minute}) || got.Quota != (Quota{Day: 1000, Month: 30000}) {
		t.Errorf("provider sim: got %+v, want the address, key, limit and quota of the environment", got)
	}
	if len(c.SyncSecrets) != 2 || c.SyncSecrets[1].Reveal() != "new-secret-new-secret" {
		t.Errorf("got %d secrets, want 2 with the new one last", len(c.SyncSecrets))
	}
	if c.Database.Path != c.DataDir+"/other.db" || c.Schedule.String() != "every 30m" {
		t.Errorf("got database %v, schedule %s; want other.db, every 30m", c.Database, c.Schedule)
	}
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	want := &Config{
		DatabaseWait: 5 * time.Second,
		ListenAddr:   "[::1]:0", MaxConnections: 300, DataDir: c.DataDir, Database: c.Database, LogLevel: slog.LevelDebug, LogFormat: LogJSON,
		TrustedProxies: []netip.Prefix{
			netip.MustParsePrefix("10.1.2.3/32"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("10.0.0.0/8"),
		},
		Providers: []string{"sim", "pricelist"}, PricelistConfig: "lists.json", Currency: "EUR",
		Rates: pricing.Rates{
			money.Currency("USD"): {Value: 923_000_000_000, Date: day},
			money.Currency("CNY"): {Value: 127_400_000_000, Date: day.AddDate(0, 0, -1)},
		},
		Scope: ScopeAll, MissingRetry: 30 * time.Minute, ProviderWait: 90 * time.Second, NoSalesWindow: 168 * time.Hour, NoSalesRetry: 24 * time.Hour, History: 90 * 24 * time.Hour,
		Estimate: pricing.Median, Guard: pricing.Hold, Workers: 4, FeeRulesURL: &url.URL{Scheme: "https", Host: "fees.example", Path: "/r.json"},
		TradeHold: time.Hour, InventoryMaxAge: time.Hour, Cs2capShape: "single", SimShape: "batch", SimBatchSize: 100, SteamEndpoint: "orderbook", SteamPace: 10 * time.Second, SteamShare: 90,
	}
	c.Provider, c.SyncSecrets = nil, nil
	equalPrefix := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
	if diff := cmp.Diff(want, c, ignoreInner, equalPrefix); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestLoad_RefusesUnknownPrefixedVariables(t *testing.T) {
	_, err := Load(options(
		t, "MARKET_PRICE_PROVIDER=sim", "WALLET_KEY=x", "PAYMENT_FEES=x", "SIM_SPEED=9", "PRICELIST_PATH=x", "PLATFORM_API_KEY=x",
		"LOG_LEVELS=not ours", "TRADE=not ours", "SHADOWPAY_API_KEY=of a price list",
		"WALLET_SERVICE_HOST=10.0.0.1", "WALLET_PORT=tcp://10.0.0.1:80", "WALLET_PORT_80_TCP=x", "MARKET_PRICE_SERVICE_PORT=80",
	))
	faults, ok := errors.AsType[Faults](err)
	if !ok {
		t.Fatal(err)
	}
	var names []string
	for _, f := range faults {
		names = append(names, f.Setting)
	}
	want := []string{"MARKET_PRICE_PROVIDER", "PAYMENT_FEES", "PLATFORM_API_KEY", "PRICELIST_PATH", "SIM_SPEED", "WALLET_KEY"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
}

func TestLoad_MarketKeysAreUnique(t *testing.T) {
	many := make([]string, 65)
	for i := range many {
		many[i] = "m" + strconv.Itoa(i)
	}
	for value, fault := range map[string]string{
		"skinport, csmoney_m,swap.gg":   "",
		strings.Join(many[:64], ","):    "",
		strings.Join(many, ","):         "65 markets are too many; name at most 64",
		"skinport,":                     "\"\" is not the key of a market",
		"Skinport":                      "\"Skinport\" is not the key of a market",
		"skinport&api_key=1":            "is not the key of a market",
		"skinport,csfloat,skinport":     "\"skinport\" occurs twice",
		"skinport,../" + many[0] + ",x": "is not the key of a market",
	} {
		o := options(t, "CS2CAP_MARKETS="+value)
		o.Providers = append(o.Providers, "cs2cap")
		c, err := Load(o)
		switch {
		case fault != "" && (err == nil || !strings.Contains(err.Error(), fault)):
			t.Errorf("%.40q: got %v, want %q", value, err, fault)
		case fault == "" && (err != nil || len(c.Provider["cs2cap"].Markets) != strings.Count(value, ",")+1):
			t.Errorf("%.40q: got %v, want no error and all markets", value, err)
		}
	}
}

func TestLoad_WarnsOfMisspelledVariables(t *testing.T) {
	c := load(t, options(t, "LISTEN_ADRR=:1", "TRUSTED_PROXY=10.0.0.1", "DATADIR=x", "DATABASE_URI=x", "LOGLEVEL=debug",
		"DATABASE_USER=x", "DATABASE_HOST=x", "LOG_FILE=x", "DATA=x", "ACME_API_KEY=x", "SIN_API_KEY=x", "LISTEN_ADR="))
	var want []string
	for _, pair := range [][2]string{
		{"DATABASE_URI", "DATABASE_URL"},
		{"DATADIR", "DATA_DIR"},
		{"LISTEN_ADRR", "LISTEN_ADDR"},
		{"LOGLEVEL", "LOG_LEVEL"},
		{"TRUSTED_PROXY", "TRUSTED_PROXIES"},
	} {
		want = append(want, "the environment sets "+pair[0]+", which is not a setting of Assay; did you mean "+pair[1]+"?")
	}
	if d := cmp.Diff(want, c.Warnings); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}

func TestLoad_RefusesEmptyFlags(t *testing.T) {
	for _, empty := range []string{"", " "} {
		o := options(t)
		o.Flags = map[string]string{"DATA_DIR": empty, "SIM_SHAPE": empty, "ADMIN_API_TOKEN_FILE": empty}
		_, err := Load(o)
		var faults Faults
		if !errors.As(err, &faults) || len(faults) != 3 {
			t.Fatalf("%q: got error %v, want three faults", empty, err)
		}
		for _, f := range faults {
			if !strings.HasPrefix(f.Origin, "--") || !strings.Contains(f.Problem, "is empty; set a value") {
				t.Errorf("%q: got fault %v, want one about an empty flag", empty, f)
			}
		}
	}
}

func TestLoad_RefusesSecretsAsFlags(t *testing.T) {
	o := options(t)
	o.Flags = map[string]string{"ADMIN_API_TOKEN": "canary-on-the-command-line", "LISTEN_ADDR": "", "NO_SUCH": "1"}
	_, err := Load(o)
	want := "configuration has 3 faults:\n" +
		"  --no-such: NO_SUCH: is not a setting; remove it\n" +
		"  --listen-addr: LISTEN_ADDR: is empty; set a value or remove it\n" +
		"  --admin-api-token: ADMIN_API_TOKEN: is a secret that all users of the machine can read on the command line; use --admin-api-token-file"
	if err == nil || err.Error() != want {
		t.Errorf("got error\n%v\nwant\n%s", err, want)
	}
}

func TestLoad_SecretFromFile(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "token"), "first-live-secret\r\nsecond-live-secret\n")
	c := load(t, options(t, "ADMIN_API_TOKEN_FILE="+path))
	if len(c.AdminTokens) != 2 || c.AdminTokens[0].Reveal() != "first-live-secret" || c.AdminTokens[1].Reveal() != "second-live-secret" {
		t.Errorf("got %d tokens, want the two in the file", len(c.AdminTokens))
	}
	o := options(t)
	o.Flags = map[string]string{"ADMIN_API_TOKEN_FILE": path}
	if c := load(t, o); len(c.AdminTokens) != 2 {
		t.Errorf("by flag: got %d tokens, want 2", len(c.AdminTokens))
	}
	write(t, path, " \n")
	if _, err := Load(o); err == nil || !strings.Contains(err.Error(), path+" is empty; write the value into it") {
		t.Errorf("empty file: got %v, want an error", err)
	}
}

func TestLoad_MissingAndOversizedFile(t *testing.T) {
	o := options(t)
	o.File = filepath.Join(t.TempDir(), "none.conf")
	if _, err := Load(o); err == nil || err.Error() != "configuration: --config: "+o.File+" does not exist" {
		t.Errorf("missing file: got %v, want an error", err)
	}
	write(t, o.File, strings.Repeat("#\n", maxFile))
	if _, err := Load(o); err == nil || !strings.HasSuffix(err.Error(), "is larger than 1 MiB: use a smaller file") {
		t.Errorf("oversized file: got %v, want an error", err)
	}
}

func TestLoad_PostgresPasswordIsMasked(t *testing.T) {
	const address, shown = "postgres://assay:canary-pw@db.internal:5432/prices?sslpassword=canary-two", "postgres://assay@db.internal:5432/prices"
	c := load(t, options(t, "DATABASE_URL="+address, "DATABASE_DIRECT_URL="+address))
	if c.Database.Engine != Postgres || c.Database.URL.Reveal() != address || c.Database.SessionURL() != address {
		t.Errorf("got database %v, want PostgreSQL with the complete address", c.Database)
	}
	for _, s := range c.Effective() {
		if strings.HasPrefix(s.Name, "DATABASE_") && strings.HasSuffix(s.Name, "_URL") && s.Value != shown {
			t.Errorf("%s: got value %q, want %q", s.Name, s.Value, shown)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	names, _ := filepath.Glob("testdata/bad/*.conf")
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		values, _ := parseFile("x.conf", text)
		for name, e := range values {
			if !settingName(name) || e.text == "" {
				t.Errorf("got %q = %q, want a setting name and a value", name, e.text)
			}
		}
	})
}
