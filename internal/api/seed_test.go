package api

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"assay/internal/apikey"
	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/inventory"
	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/operator"
	"assay/internal/provider"
	"assay/internal/user"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
	"assay/internal/webhook"
)

// The items of the sample. The provider sim quotes all of them except unquoted and failing.
const (
	redline  = "AK-47 | Redline" // a new price is held
	asiimov  = "AWP | Asiimov"
	late     = "Sticker | Crown"
	unquoted = "No Such Item"
	failing  = "Hot Rod" // only the failing provider "price list" quotes it
)

// queuedJob is the last job of the sample. Job 1 is a complete bulk job, job 2 a job for
// missing prices, and job 3 a partial bulk job, because an item failed.
const queuedJob = 4

// The sold listings of the sample. The listings 1 and 2 are active.
const (
	pendingListing   = 3 // trade 1, which is pending
	completedListing = 4 // trade 2, which is completed
)

const (
	// deadHook is an address on which nothing listens.
	deadHook = "http://127.0.0.1:1/hook"
	// sampleDelivery is the number of a delivery of the webhook 1.
	sampleDelivery = "1790000000000000"
)

// testProvider is a provider with one file for each market.
type testProvider struct {
	provider.Description
	quotes func(market string) ([]provider.Quote, error)
}

// Describe implements provider.Provider.
func (p *testProvider) Describe() provider.Description { return p.Description }

// Fetch implements provider.Provider.
func (p *testProvider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	if err := call.Meter.Request(ctx); err != nil {
		return provider.Result{}, err
	}
	sink.Restart()
	quotes, err := p.quotes(call.File)
	for i := range quotes {
		if err := sink.Quote(&quotes[i]); err != nil {
			return provider.Result{}, err
		}
	}
	return provider.Result{}, err
}

func newTestProvider(name string, quotes func(market string) ([]provider.Quote, error), markets ...string) *testProvider {
	p := &testProvider{quotes: quotes, Description: provider.Description{
		Name: name, Title: name, Shape: provider.Bulk, Terms: "generated prices for tests",
		Hosts: []provider.Host{{Limit: provider.Limit{Requests: 1000, Per: time.Hour}}},
	}}
	for _, m := range markets {
		p.Markets = append(p.Markets, provider.Market{Key: m, Title: m, AppIDs: []int32{catalog.CS2}, SalesWindow: 30 * 24 * time.Hour})
		p.Files = append(p.Files, provider.File{Key: m, AppID: catalog.CS2, Markets: []string{m}})
	}
	return p
}

// sampleProviders returns the providers of the sample. From noon on, the price of redline is much
// higher and the provider "price list" fails.
func (h *harness) sampleProviders() []provider.Provider {
	quote := func(market, name string, ask money.Micro) provider.Quote {
		return provider.Quote{Market: market, Name: name, Currency: "USD", Ask: ask, Bid: ask * 94 / 100, Sale: ask * 98 / 100, Listings: 400, Sales: 900, SalesWindow: 30 * 24 * time.Hour}
	}
	sim := func(market string) ([]provider.Quote, error) {
		quotes := []provider.Quote{quote(market, asiimov, 50_000_000)}
		if market == "steam" {
			price := money.Micro(12_345_000)
			if !h.clock.Now().Before(noon) {
				price *= 3
			}
			quotes = append(quotes, quote(market, redline, price))
			if h.clock.Now().After(noon.Add(-time.Hour)) {
				quotes = append(quotes, quote(market, late, 3_000_000))
			}
		}
		return quotes, nil
	}
	list := func(market string) ([]provider.Quote, error) {
		if !h.clock.Now().Before(noon) {
			return nil, &provider.Error{Provider: "price list", Kind: provider.KindServer, Status: 503, Detail: "Service Unavailable"}
		}
		return []provider.Quote{quote(market, failing, 8_000_000)}, nil
	}
	return []provider.Provider{newTestProvider("sim", sim, "steam", "a b"), newTestProvider("price list", list, "shop")}
}

var sample struct {
	once   sync.Once
	file   []byte
	secret string // of the API key reader, which has the scope inventory:read
}

// asReader returns the header with the API key of the sample.
func asReader() header { return header("Authorization: Bearer " + sample.secret) }

// sampleData returns a database file with the sample. It is created once.
func sampleData(t *testing.T) []byte {
	t.Helper()
	sample.once.Do(func() { sample.file = newSampleData(t) })
	if sample.file == nil {
		t.Fatal("the sample is missing")
	}
	return sample.file
}

// newSampleData creates the sample: users, inventories, jobs with prices, listings, trades
// and a ledger. The last two jobs begin at noon.
func newSampleData(t *testing.T) []byte {
	t.Helper()
	h := openHarness(t, nil)
	h.clock.set(noon.Add(-2 * time.Hour))
	h.must(h.deps.Fees.Begin(t.Context()))
	h.putUser(user.User{ID: "u1", DisplayName: "Anna", Leaderboard: true})
	h.putUser(user.User{ID: "idle", Leaderboard: true})
	h.putUser(user.User{ID: "a/b"})
	h.putUser(user.User{ID: "onsteam", SteamID: steamID})
	h.push("u1", redline, asiimov, unquoted, failing, asiimov, asiimov, asiimov, asiimov)
	h.exec(`DELETE FROM missing_price`) // the job prices all items
	h.bulk(false, "schedule")
	h.clock.set(noon.Add(-time.Hour + time.Minute))
	h.push("u3", late)
	h.drain()
	h.clock.set(noon)
	h.bulk(true, "market")
	h.exec(`UPDATE market_file SET quarantine = 'half of the names are missing', quarantined_since = $1
		WHERE market_id IN (SELECT id FROM market WHERE provider = 'sim' AND key = 'a b')`, db.Micros(noon))
	h.push("u1", redline, asiimov, unquoted, failing, asiimov, asiimov, asiimov, asiimov)
	for _, u := range []string{"u1", "u2"} {
		h.post(wallet.Posting{Account: wallet.Account{User: u, Currency: "USD"}, Kind: wallet.KindDeposit, Amount: 100_000})
	}
	for _, asset := range []string{"0", "1", "4", "5"} {
		h.list("u1", asset)
	}
	h.buy(pendingListing)
	h.buy(completedListing)
	_, err := h.deps.Market.Complete(t.Context(), 2) // the trade of completedListing
	h.must(err)
	h.clock.set(noon.Add(time.Minute))
	h.writeFeeRules(510)
	_, err = h.deps.Fees.Refresh(t.Context(), fee.Request{By: "admin"})
	h.must(err)
	h.must(h.deps.Ledger.VerifyAll(t.Context()))
	h.clock.set(noon)
	_, err = h.deps.Engine.Start(t.Context(), false, "schedule")
	h.must(err)
	_, _, err = h.deps.Webhooks.Create(t.Context(), webhook.Webhook{URL: deadHook, Format: webhook.Standard})
	h.must(err)
	h.exec(`INSERT INTO event (kind, at, number, data) VALUES ('provider.up', 0, $1, '{"provider":"sim"}')`, sampleDelivery)
	h.exec(`INSERT INTO webhook_delivery (webhook_id, number, first, kind, state, attempts, status, duration, error, at)
		VALUES (1, $1, $1, 'provider.up', 'failed', 100, 503, 1000, 'status 503', $2)`, sampleDelivery, db.Micros(noon))
	_, sample.secret, err = h.deps.Keys.Create(t.Context(), nil, apikey.Key{Name: "reader", Scopes: []string{"inventory:read"}})
	h.must(err)
	h.must(h.deps.Operators.Add(t.Context(), "anna", operator.Admin, "a-password-of-anna"))
	path := filepath.Join(t.TempDir(), "sample.db")
	h.exec(`VACUUM INTO $1`, path)
	file, err := os.ReadFile(path)
	h.must(err)
	return file
}

func (h *harness) putUser(u user.User) {
	h.t.Helper()
	h.must(h.deps.Inventories.PutUser(h.t.Context(), u))
}

// push pushes an inventory with one asset for each name. The asset ids begin at 0.
func (h *harness) push(userID string, names ...string) {
	h.t.Helper()
	push := inventory.Push{AppID: catalog.CS2, ContextID: "2", SnapshotAt: h.clock.Now(), Assets: assets(names...)}
	_, err := h.deps.Syncs.Push(h.t.Context(), userID, push, inventory.Normal)
	h.must(err)
}

func assets(names ...string) (all []inventory.Asset) {
	for i, name := range names {
		all = append(all, inventory.Asset{AssetID: strconv.Itoa(i), Name: name, Amount: 1, Tradable: true, Marketable: true})
	}
	return all
}

// bulk runs a bulk job.
func (h *harness) bulk(forced bool, by string) {
	h.t.Helper()
	_, err := h.deps.Engine.Start(h.t.Context(), forced, by)
	h.must(err)
	h.drain()
}

// drain runs the engine until no work is left.
func (h *harness) drain() {
	h.t.Helper()
	for more := true; more; {
		h.woken.Store(false)
		more = false
		for _, worker := range h.deps.Engine.Workers() {
			again, err := worker.Work(h.t.Context())
			h.must(err)
			more = more || again
		}
		more = more || h.woken.Load()
	}
}

// post posts a transaction. It returns the id of the transaction.
func (h *harness) post(p wallet.Posting) (id int64) {
	h.t.Helper()
	h.must(h.deps.Ledger.Post(h.t.Context(), p, func(_ *db.Tx, posted *wallet.Posted) error {
		id = posted.Transaction.ID
		return nil
	}))
	return id
}

func (h *harness) list(userID, assetID string) {
	h.t.Helper()
	offers := market.Offers{UserID: userID, AppID: catalog.CS2, ContextID: "2", Offers: []market.Offer{{AssetID: assetID, Price: 1000, Currency: "USD"}}}
	h.must(h.deps.Market.Create(h.t.Context(), offers, func(_ *db.Tx, created []market.Created) error {
		if created[0].Refused != nil {
			return created[0].Refused
		}
		return nil
	}))
}

func (h *harness) buy(listing int64) {
	h.t.Helper()
	h.must(h.deps.Market.Purchase(h.t.Context(), market.Purchase{ListingID: listing, Buyer: "u2"}, func(*db.Tx, market.Trade) error { return nil }))
}

// writeFeeRules writes a file of fee rules with the given sale fee in basis points.
func (h *harness) writeFeeRules(points int) {
	h.t.Helper()
	rules := `{"rules":[{"id":"sale","priority":100,"conditions":{"kind":"sale"},"basisPoints":` + strconv.Itoa(points) + `}],"fallback":{"basisPoints":0}}`
	h.must(os.WriteFile(h.feeRules, []byte(rules), 0o600))
}
