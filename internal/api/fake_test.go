package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/access"
	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/idempotency"
	"assay/internal/inventory"
	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/user"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
	"assay/internal/wallet/fee"
)

// Secrets of the tests. Logs and responses must not contain them.
const (
	marketSecret  = "canary-market-7f3a9c"
	platformToken = "canary-platform-51be02"
	adminToken    = "canary-admin-d8e64f"
	wrongSecret   = "canary-wrong-0b77aa"
)

var allSecrets = []string{marketSecret, platformToken, adminToken, wrongSecret}

// fakes implements all dependencies of the API. It returns complete records, records calls,
// and fails on request.
type fakes struct {
	mu       sync.Mutex
	err      error // returned by every call
	noSlot   bool  // true if no admission slot is free
	panics   any
	failing  bool // true if health reports a failure
	running  bool // true if a bulk job is running
	forced   bool // true if the running job is forced
	recorded []string
	push     inventory.Push
	lastKey  catalog.Key
	counted  map[string]int // requests by method, route and status
	stored   map[idempotency.Key]idempotency.Response
	posted   map[string]int64 // transactions by scope and key
}

// set changes the behavior of the fakes.
func (f *fakes) set(change func(*fakes)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// calls returns the calls since the last call of this method.
func (f *fakes) calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	recorded := f.recorded
	f.recorded = nil
	return recorded
}

func (f *fakes) record(what string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, _ := json.Marshal(args)
	f.recorded = append(f.recorded, what+string(text))
	if f.panics != nil {
		panic(f.panics)
	}
	if f.err == nil && f.noSlot && slices.Contains([]string{"item", "items", "inventory", "jobs", "jobItems", "listing", "listings", "trades", "walletEntries", "jobDebug", "providerDebug"}, what) {
		return fault.New(fault.Busy, "busy", "Too many reads.")
	}
	return f.err
}

var noon = time.Date(2026, 10, 1, 14, 0, 0, 123456000, time.FixedZone("", 2*3600))

func (f *fakes) testJob(id string) view.Job {
	return view.Job{
		ID: id, Kind: "bulk", State: "queued", Stage: "plan", RequestedBy: "market", CreatedAt: noon, StartedAt: new(noon),
		LastError: new("a market failed"), Usage: view.Usage{RequestCount: 3, ByProvider: map[string]int64{"sim": 3}},
	}
}

func testItem(key catalog.Key) view.ItemPrice {
	return view.ItemPrice{AppID: key.AppID, MarketHashName: key.Name, Phase: key.Phase, CurrentPrice: 12_345_000, CurrentPriceDecimal: 12_345_000, Status: "ok", PriceUpdatedAt: new(noon)}
}

func (f *fakes) Status(context.Context) (view.Status, error) {
	return view.Status{Status: view.RunStatus{Running: true, JobID: new("17"), StartedAt: new(noon), EtaSeconds: new(int64(4))}}, f.record("status")
}

func (f *fakes) Jobs(_ context.Context, kind, cursor string, limit int) (view.Page[view.Job], error) {
	return view.Page[view.Job]{Items: []view.Job{f.testJob("17")}, NextCursor: new("n")}, f.record("jobs", kind, cursor, limit)
}

func (f *fakes) Job(_ context.Context, id int64) (view.Job, error) {
	return f.testJob("17"), f.record("job", id)
}

func (f *fakes) JobItems(_ context.Context, id int64, state, cursor string, limit int) (view.Page[view.JobItem], error) {
	item := view.JobItem{AppID: 730, MarketHashName: "x", State: "failed", Error: new("no response"), PriceAfter: new(money.Micro(1))}
	return view.Page[view.JobItem]{Items: []view.JobItem{item}}, f.record("jobItems", id, state, cursor, limit)
}

func (f *fakes) ProviderDebug(context.Context) (view.ProvidersDebug, error) {
	p := view.ProviderDebug{
		Provider: "sim", Health: provider.HealthHealthy, Shape: "bulk", Breaker: "closed", ResponsesByStatus: map[string]int64{"200": 7}, Markets: []view.MarketDebug{{Market: "m", Breaker: "open", AppIDs: []int32{730}, LastFetchedAt: new(noon)}},
		Requests: []view.RequestDebug{{At: noon, Method: "GET", Status: 200, DurationMs: 1.5}}, Budget: view.Budget{Left: new(int64(3))},
		Instances: []view.ProviderInstance{{Owner: "a", ProviderReport: view.ProviderReport{Breaker: "closed", ResponsesByStatus: map[string]int64{"200": 7}, OpenHosts: []string{}}}},
		Workers:   []view.Worker{{Owner: "a", Kind: "fetch", Since: noon}},
	}
	return view.ProvidersDebug{Rates: view.RatesDebug{From: "none"}, Inventories: view.InventoryDebug{HostDebug: view.HostDebug{Breaker: "closed"}}, Providers: []view.ProviderDebug{p}, Unconfigured: []view.Unconfigured{{Provider: "x", Reason: "no key"}}}, f.record("providerDebug")
}

func (f *fakes) JobDebug(context.Context) (view.JobDebug, error) {
	return view.JobDebug{
		Queues: []view.QueueDepth{{Kind: "fetch", State: "pending", Count: 1}}, Workers: []view.Worker{{Owner: "a", Kind: "fetch", Since: noon}},
		Instances: []view.Instance{{Owner: "a", StartedAt: noon, Providers: []string{"x"}, HeartbeatAt: new(noon)}},
		Scheduled: []view.ScheduledRun{{Name: "bulk", At: noon}}, Jobs: []view.JobSummary{{Job: f.testJob("17"), DurationSeconds: new(1.5)}},
		Failures: []view.FailureReason{{Cause: "timeout", Count: 1, SampleNames: []string{"x"}}},
		Events:   []view.Event{{ID: "1", Kind: "job.finished", At: noon, Data: []byte(`{"jobId":"17"}`)}},
	}, f.record("jobDebug")
}

func (f *fakes) Items(_ context.Context, by view.ItemFilter, cursor string, limit int) (view.Page[view.PricedItem], error) {
	item := view.PricedItem{ItemPrice: testItem(catalog.Key{AppID: by.AppID, Name: "x"}), PriceCheckedAt: new(noon), Figures: figuresFor(by.Fields)}
	return view.Page[view.PricedItem]{Items: []view.PricedItem{item}}, f.record("items", by, cursor, limit)
}

func (f *fakes) Item(_ context.Context, key catalog.Key) (view.ItemDetail, error) {
	f.set(func(f *fakes) { f.lastKey = key })
	snapshot := view.MarketSnapshot{Provider: "sim", Market: "m", Currency: "EUR", LowestAsk: new(money.Micro(1)), Rate: new(money.Rate(1_083_400_000_000)), RateDate: new(noon), FetchedAt: noon}
	return view.ItemDetail{ItemPrice: testItem(key), Interval: &view.Interval{Low: 4, High: 6}, Currency: "USD", AgeSeconds: new(int64(3)), Snapshots: []view.MarketSnapshot{snapshot}}, f.record("item", key)
}

func (f *fakes) Lookup(_ context.Context, keys []catalog.Key, fields view.Fields) (view.Lookup, error) {
	out := view.Lookup{Items: []view.LookupItem{}, Currency: "USD"}
	for _, key := range keys {
		item := view.LookupItem{ItemPrice: testItem(key), PriceStatus: "ok", PriceCheckedAt: new(noon), Figures: figuresFor(fields)}
		if key.Name == "unknown" {
			item = view.LookupItem{ItemPrice: view.ItemPrice{AppID: key.AppID, MarketHashName: key.Name, Status: view.StatusUnknown}, PriceStatus: "noPrice"}
		}
		out.Items = append(out.Items, item)
	}
	return out, f.record("lookup", keys, fields)
}

// figuresFor returns the selected figures.
func figuresFor(fields view.Fields) *view.Figures {
	out := &view.Figures{}
	if fields&view.FieldInterval != 0 {
		out.Interval = &view.Interval{Low: 4, High: 6}
	}
	if fields&view.FieldAverage != 0 {
		out.Average = new(money.Micro(5))
	}
	if fields&view.FieldUsedMarkets != 0 {
		out.UsedMarkets = new(int64(3))
	}
	return out
}

func (f *fakes) QueueMissing(_ context.Context, keys []catalog.Key) error {
	return f.record("queueMissing", keys)
}

func (f *fakes) Inventory(_ context.Context, userID string, appID int32, fields view.Fields, cursor string, limit int) (view.Inventory, error) {
	row := view.InventoryRow{AssetID: "1", AppID: 730, ContextID: "2", Amount: 1, EstimatedValue: new(money.Micro(5)), PriceUpdatedAt: new(noon), PriceStatus: "ok", PriceCheckedAt: new(noon), Figures: figuresFor(fields)}
	return view.Inventory{Items: []view.InventoryRow{row}, Currency: "USD", Rows: 1}, f.record("inventory", userID, appID, fields, cursor, limit)
}

func (f *fakes) Health(_ context.Context, details bool) (view.Health, error) {
	h := view.Health{Status: "ok", Version: "1.2.3", Checks: map[string]string{"database": "ok"}}
	if details {
		h.Details = map[string]any{"goroutines": 7}
	}
	if f.failing {
		h.Status = "failing"
	}
	return h, f.record("health", details)
}

func (f *fakes) Start(_ context.Context, forced bool, by string) (refresh.Started, error) {
	return refresh.Started{JobID: 17, Started: !f.running, ForcedIgnored: f.running && forced && !f.forced}, f.record("start", forced, by)
}

func (f *fakes) DryRun(_ context.Context, forced bool) (view.DryRun, error) {
	return view.DryRun{DryRun: true, Forced: forced, Providers: []view.PlannedCost{{
		Provider: "sim", Requests: 2, Seconds: 0.5, Hosts: []view.PlannedHost{{Requests: 2, Deferred: 1, DeferredFiles: []string{"f"}, Why: new("day"), FreeAt: new(noon), Seconds: 0.5}},
	}}}, f.record("dryRun", forced)
}

func (f *fakes) Cancel(_ context.Context, id int64) error { return f.record("cancel", id) }

func (f *fakes) RetryFailed(_ context.Context, id int64, by string) (refresh.Started, error) {
	return refresh.Started{JobID: 18, Started: !f.running}, f.record("retryFailed", id, by)
}

func (f *fakes) PauseProvider(_ context.Context, provider string) error {
	return f.record("pause", provider)
}

func (f *fakes) ResumeProvider(_ context.Context, provider string) error {
	return f.record("resume", provider)
}

func (f *fakes) AcceptProvider(_ context.Context, provider, market string) error {
	return f.record("acceptSource", provider, market)
}

func (f *fakes) AcceptItem(_ context.Context, key catalog.Key) (view.ItemDetail, error) {
	f.set(func(f *fakes) { f.lastKey = key })
	return view.ItemDetail{ItemPrice: testItem(key), Currency: "USD"}, f.record("acceptItem", key)
}

func (f *fakes) Sync(_ context.Context, userID string, push inventory.Push) (view.SyncResult, error) {
	f.set(func(f *fakes) { f.push = push })
	return view.SyncResult{Added: int64(len(push.Assets))}, f.record("sync", userID, len(push.Assets))
}

func (f *fakes) Pull(_ context.Context, userID string, appID int32, contextID string) (view.SyncResult, error) {
	return view.SyncResult{Added: 1}, f.record("pull", userID, appID, contextID)
}

func (f *fakes) User(_ context.Context, id string) (view.User, error) {
	return view.User{UserID: id, DisplayName: new("Anna")}, f.record("user", id)
}

func (f *fakes) Users(_ context.Context, prefix, cursor string, limit int) (view.Page[view.User], error) {
	return view.Page[view.User]{Items: []view.User{{UserID: "u1"}}}, f.record("users", prefix, cursor, limit)
}

func (f *fakes) PutUser(_ context.Context, user user.User) (view.User, error) {
	return view.User{UserID: user.ID, SteamID: &user.SteamID, DisplayName: &user.DisplayName, Leaderboard: user.Leaderboard}, f.record("putUser", user)
}

func (f *fakes) DeleteUser(_ context.Context, id string) error { return f.record("deleteUser", id) }

func (f *fakes) Refresh(_ context.Context, r fee.Request) (fee.Result, error) {
	large := fee.LargeChange{Payment: fee.Payment{Kind: fee.Sale, Amount: 1000, Currency: "USD", At: noon}, Was: "a", Next: "b", After: 600}
	return fee.Result{Version: 4, Previous: 3, Changed: true, Diff: fee.Diff{Added: []string{"b"}}, Large: []fee.LargeChange{large}}, f.record("refreshFees", r)
}

func (f *fakes) Rollback(_ context.Context, version int64, r fee.Request) (fee.Result, error) {
	return fee.Result{Version: 5, Previous: 4, Changed: true}, f.record("rollbackFees", version, r)
}

func (f *fakes) Version(_ context.Context, version int64) (fee.Activation, error) {
	return fee.Activation{Version: 4, Set: fee.BuiltIn(), Source: "built-in", At: noon, By: "start"}, f.record("feeVersion", version)
}

func (f *fakes) Versions(_ context.Context, before int64, limit int) ([]fee.Activation, error) {
	return []fee.Activation{{Version: 4, At: noon}}, f.record("feeVersions", before, limit)
}

func (f *fakes) Quote(_ context.Context, version int64, p fee.Payment) (fee.Explanation, error) {
	e, err := fee.Explain(fee.BuiltIn(), p)
	e.NotMatched = append(e.NotMatched, fee.Miss{Rule: "x", Reason: "y"})
	return e, errors.Join(err, f.record("quoteFee", version, p))
}

func (f *fakes) Match(role, presented string) bool {
	return map[string]string{Market: marketSecret, Platform: platformToken, Admin: adminToken}[role] == presented
}

func (f *fakes) Post(_ context.Context, o wallet.Posting, sealed func(idempotency.ResponseStore, view.WalletTransaction) error) error {
	if err := f.record("post", o); err != nil {
		return err
	}
	return sealed(fakeTx{f}, view.WalletTransaction{ID: "1", Kind: string(o.Kind), CreatedAt: noon, Entries: []view.WalletEntry{{Seq: 1, Type: "deposit"}}})
}

func (f *fakes) Verify(_ context.Context, userID, checkpoint string) (*audit.Report, error) {
	return &audit.Report{
		UserID: userID, Status: audit.Failed, VerifiedAt: noon, Accounts: []audit.Account{{Currency: "USD", Entries: 1, LastSeq: 1}},
		Checks:   []audit.Checked{{Name: "cached_balance", Status: audit.Fail, Examined: 1, Failures: 1}},
		Failures: []audit.Finding{{Check: "cached_balance", UserID: userID, Currency: "USD", Expected: "1", Actual: "2"}}, FailureCount: 1, Warnings: []audit.Finding{},
	}, f.record("verify", userID, checkpoint)
}

func (f *fakes) Wallet(_ context.Context, userID string) (view.Wallet, error) {
	return view.Wallet{UserID: userID, Accounts: []view.WalletBalance{{Currency: "USD", Balance: 3, Available: 2, Held: 1}}}, f.record("wallet", userID)
}

func (f *fakes) WalletEntries(_ context.Context, userID, currency, cursor string, limit int) (view.Page[view.WalletEntry], error) {
	return view.Page[view.WalletEntry]{Items: []view.WalletEntry{{UserID: userID, Seq: 7, Type: "sale", CreatedAt: noon}}}, f.record("walletEntries", userID, currency, cursor, limit)
}

func testListing(id string) view.Listing {
	return view.Listing{ID: id, UserID: "u1", AppID: 730, ContextID: "2", AssetID: "1", MarketHashName: "x", Amount: 1, Price: 100, Currency: "USD", State: "active", CreatedAt: noon, TradeID: new("3")}
}

func testTrade(id string) view.Trade {
	return view.Trade{ID: id, ListingID: "17", SellerID: "u1", BuyerID: "u2", Price: 100, Currency: "USD", State: "completed", CreatedAt: noon, CompletedAt: new(noon), FeeVersion: 4}
}

// fakeTx stores responses in the fakes as a transaction would.
type fakeTx struct{ *fakes }

func (k fakeTx) StoreResponse(key idempotency.Key, a idempotency.Response) error {
	return k.fakes.StoreResponse(context.Background(), key, a)
}

func (f *fakes) List(_ context.Context, o market.Offers, seal func(idempotency.ResponseStore, []view.Offered) error) error {
	if err := f.record("list", o); err != nil {
		return err
	}
	made := make([]view.Offered, len(o.Offers))
	for i, offer := range o.Offers {
		made[i] = view.Offered{AssetID: offer.AssetID, Status: 201, Listing: new(testListing("17")), PriceCheck: &view.PriceCheck{Status: "known", Value: new(money.Micro(1)), Currency: "USD", CheckedAt: new(noon), AgeSeconds: new(int64(3))}}
		if offer.AssetID == "gone" {
			refused := fault.New(fault.Conflict, "not_owned", "No.")
			made[i] = view.Offered{AssetID: offer.AssetID, Status: 409, Error: &view.Refusal{Code: refused.Code, Detail: refused.Detail}, Refused: refused}
		}
	}
	return seal(fakeTx{f}, made)
}

func (f *fakes) CancelListing(_ context.Context, id int64) (view.Listing, error) {
	return testListing("17"), f.record("cancelListing", id)
}

func (f *fakes) CancelListings(_ context.Context, ids []int64) ([]view.Withdrawn, error) {
	return []view.Withdrawn{
		{ID: "17", Status: 200, Listing: new(testListing("17"))},
		{ID: "18", Status: 404, Error: &view.Refusal{Code: "listing_not_found", Detail: "No."}},
	}, f.record("cancelListings", ids)
}

func (f *fakes) RepriceListing(_ context.Context, id, price int64) (view.Listing, error) {
	return testListing("17"), f.record("repriceListing", id, price)
}

func (f *fakes) Purchase(_ context.Context, p market.Purchase, seal func(idempotency.ResponseStore, view.Trade) error) error {
	if err := f.record("purchase", p); err != nil {
		return err
	}
	return seal(fakeTx{f}, testTrade("3"))
}

func (f *fakes) CompleteTrade(_ context.Context, id int64) (view.Trade, error) {
	return testTrade("3"), f.record("complete", id)
}

func (f *fakes) ReverseTrade(_ context.Context, id int64) (view.Trade, error) {
	return testTrade("3"), f.record("reverse", id)
}

func (f *fakes) Listings(_ context.Context, by view.ListingFilter, cursor string, limit int) (view.Page[view.Listing], error) {
	return view.Page[view.Listing]{Items: []view.Listing{testListing("17")}}, f.record("listings", by, cursor, limit)
}

func (f *fakes) Listing(_ context.Context, id int64) (view.Listing, error) {
	return testListing("17"), f.record("listing", id)
}

func (f *fakes) Trades(_ context.Context, by view.TradeFilter, cursor string, limit int) (view.Page[view.Trade], error) {
	return view.Page[view.Trade]{Items: []view.Trade{testTrade("3")}}, f.record("trades", by, cursor, limit)
}

func (f *fakes) Trade(_ context.Context, id int64) (view.Trade, error) {
	return testTrade("3"), f.record("trade", id)
}

func (f *fakes) TopTraders(_ context.Context, period, by string, limit int) (view.TopTraders, error) {
	return view.TopTraders{Items: []view.TopTrader{{Rank: 1, DisplayName: "anonymous", Trades: 2, Volume: 5, CompletedShare: 0.5}}, Currency: "USD", AsOf: time.Now().Add(-3 * time.Second)}, f.record("topTraders", period, by, limit)
}

func (f *fakes) StoredResponse(_ context.Context, k idempotency.Key) (*idempotency.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a, ok := f.stored[k]; ok {
		return &a, nil
	}
	return nil, nil
}

func (f *fakes) StoreResponse(_ context.Context, k idempotency.Key, a idempotency.Response) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.stored[k]; ok {
		return idempotency.ErrKeyUsed
	}
	if f.stored == nil {
		f.stored = map[idempotency.Key]idempotency.Response{}
	}
	f.stored[k] = a
	return nil
}

func (f *fakes) PostedUnder(_ context.Context, scope, key string) (id int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.posted[scope+" "+key], nil
}

// Observe implements Meter.
func (f *fakes) Observe(method, route string, status int, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counted == nil {
		f.counted = map[string]int{}
	}
	if took >= 0 {
		f.counted[fmt.Sprintf("%s %s %d", method, route, status)]++
	}
}

// noLimit is a FailureLimiter without limit and delay.
type noLimit struct{}

func (noLimit) Fail(netip.Addr) access.Failure { return access.Failure{Log: true} }

func (noLimit) Wait(context.Context, time.Duration) {}

// noDelay is a FailureLimiter without delay.
type noDelay struct{ *access.Failures }

func (noDelay) Wait(context.Context, time.Duration) {}

// logBuffer collects log output. It is safe for concurrent use.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// harness is a server with fake dependencies.
type harness struct {
	t     *testing.T
	fakes *fakes
	log   *logBuffer
	url   string
	api   *server
}

// startServer starts a server. The parameter change may be nil.
func startServer(t *testing.T, change func(*Deps)) *harness {
	t.Helper()
	h := newHarness(t, change)
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = NewServer(h.api, h.api.Logger)
	ts.Start()
	t.Cleanup(ts.Close)
	h.url = ts.URL
	return h
}

// newHarness returns a server that does not listen yet.
func newHarness(t *testing.T, change func(*Deps)) *harness {
	t.Helper()
	h := &harness{t: t, fakes: &fakes{}, log: &logBuffer{}}
	logger := slog.New(slog.NewJSONHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	deps := Deps{
		Jobs: h.fakes, Items: h.fakes, Providers: h.fakes, Refresher: h.fakes, Inventories: h.fakes, Missing: h.fakes, Users: h.fakes, Wallets: h.fakes,
		Trading: h.fakes, Traders: h.fakes, Health: h.fakes, Fees: h.fakes, Responses: h.fakes, Credentials: h.fakes, Failures: noLimit{},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = io.WriteString(w, "up 1\n")
		}),
		Meter:   h.fakes,
		Page:    http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "page "+r.URL.Path) }),
		Version: "1.2.3", Logger: logger, Now: time.Now,
	}
	if change != nil {
		change(&deps)
	}
	h.api = newServer(deps)
	t.Cleanup(func() {
		for _, secret := range allSecrets {
			if strings.Contains(h.log.String(), secret) {
				t.Errorf("the log contains the secret %s", secret)
			}
		}
	})
	return h
}

// startWithLimiter starts a server that counts wrong secrets. It trusts a proxy on loopback,
// so that tests can use any client address.
func startWithLimiter(t *testing.T) *harness {
	t.Helper()
	return startServer(t, func(d *Deps) {
		d.Failures = noDelay{access.NewFailures(d.Now)}
		d.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
}

// result is a response with its complete body.
type result struct {
	*http.Response
	body string
}

// problem decodes the body as a problem and checks its members.
func (a result) problem(t *testing.T) fault.Problem {
	t.Helper()
	var p fault.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.Header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("got status %d, %s: %s; want a problem", a.StatusCode, a.Header.Get("Content-Type"), a.body)
	}
	if p.Status != a.StatusCode || p.Type == "" || p.Title == "" || p.Detail == "" || p.Code == "" || p.RequestID != a.Header.Get("X-Request-Id") {
		t.Errorf("incomplete problem: %s", a.body)
	}
	return p
}

// header is a request header in the form "Name: value".
type header string

// request sends a request. An empty body means no body.
func (h *harness) request(method, path, body string, headers ...header) result {
	h.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, h.url+path, reader)
	if err != nil {
		h.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if method == "POST" && (strings.HasSuffix(path, "/entries") || strings.HasSuffix(path, "/purchase")) {
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	for _, one := range headers {
		name, value, _ := strings.Cut(string(one), ": ")
		r.Header.Set(name, value)
	}
	return h.send(r)
}

func (h *harness) send(r *http.Request) result {
	h.t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, secret := range allSecrets {
		if strings.Contains(string(body), secret) {
			h.t.Errorf("%s %s: the response contains the secret %s", r.Method, r.URL, secret)
		}
	}
	return result{resp, string(body)}
}

const (
	asMarket   header = "X-Market-Sync-Secret: " + marketSecret
	asPlatform header = "Authorization: Bearer " + platformToken
	asAdmin    header = "Authorization: Bearer " + adminToken
)

// example returns the path and body of a valid request.
func example(op operation) (path, body string) {
	path = strings.NewReplacer("{id}", "17", "{name}", "AK-47%20%7C%20Redline", "{userId}", "u1", "{provider}", "sim").Replace(op.path)
	if strings.HasSuffix(op.path, "/rollback") {
		path += "?version=1"
	}
	if op.body == nil {
		return path, ""
	}
	if strings.HasSuffix(op.path, "/sync") {
		return path, `{"appId":730,"contextId":"2","snapshotAt":"2026-01-01T00:00:00Z","items":[{"assetId":"1","marketHashName":"x"}]}`
	}
	if strings.HasSuffix(op.path, "/entries") {
		return path, `{"kind":"deposit","currency":"USD","amount":100}`
	}
	if strings.HasSuffix(op.path, "/quote") {
		return path, `{"kind":"sale","amount":1000,"currency":"USD"}`
	}
	switch op.path {
	case "/api/listings":
		return path, `{"userId":"u1","appId":730,"contextId":"2","assetId":"1","price":100,"currency":"USD"}`
	case "/api/listings/batch":
		return path, `{"userId":"u1","appId":730,"contextId":"2","items":[{"assetId":"1","price":100,"currency":"USD"},{"assetId":"gone","price":100,"currency":"USD"}]}`
	case "/api/listings/cancel":
		return path, `{"ids":["17","18"]}`
	case "/api/listings/{id}":
		return path, `{"price":100}`
	case "/api/listings/{id}/purchase":
		return path, `{"buyerId":"u2"}`
	}
	if strings.HasSuffix(op.path, "/lookup") {
		return path, `{"items":[{"marketHashName":"x"},{"appId":440,"marketHashName":"y","phase":"Ruby"}]}`
	}
	return path, `{"steamId":"76561198000000001","displayName":"Anna","leaderboard":false}`
}
