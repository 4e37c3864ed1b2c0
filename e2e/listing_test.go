package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/inventory/steaminv/steaminvtest"
	"assay/internal/provider/providertest"
	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// offer creates a listing of a user's asset. If items is not nil, the request contains the
// whole inventory.
func (s *server) offer(user, assetID, key string, items []asset) (int, []byte, error) {
	body := map[string]any{"userId": user, "appId": 730, "contextId": "2", "assetId": assetID, "price": 100, "currency": "USD"}
	if items != nil {
		body["inventory"] = map[string]any{"items": items}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	return s.keyed("/api/listings", key, string(text))
}

// offered creates a listing that must succeed. It returns the status of the price check, and
// the duration.
func (s *server) offered(user, assetID string, items []asset) (priceStatus string, took time.Duration) {
	s.t.Helper()
	began := time.Now()
	status, response, err := s.offer(user, assetID, "offer "+assetID, items)
	took = time.Since(began)
	var made struct{ PriceCheck struct{ Status string } }
	if err != nil || status != http.StatusCreated || json.Unmarshal(response, &made) != nil {
		s.t.Fatalf("listing of %s: got %d %s, %v, want 201", user, status, response, err)
	}
	return made.PriceCheck.Status, took
}

// spread returns the median and the maximum of the durations.
func spread(all []time.Duration) (middle, slowest time.Duration) {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2], all[len(all)-1]
}

// TestRule4_PricesDoNotBlockListings creates listings without other load. Then it repeats this
// while a provider blocks a run, names wait for a price, and price requests have used their share
// of Steam's budget. The sync of a listing must not start an inspection, or queue a name that has
// a price.
func TestRule4_PricesDoNotBlockListings(t *testing.T) {
	onBoth(t, testListingsWhilePricesHang)
}

func testListingsWhilePricesHang(t *testing.T, on engine) {
	const names, steamUsers = 40, 3
	listings := randtest.Count(30, 300)
	markets, err := sim.NewHandler(sim.Options{Names: names, Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	provider := providertest.NewServer(t, markets)

	inventories := map[string]*steaminvtest.Inventory{}
	steamID := func(i int) string { return strconv.Itoa(76561198000000001 + i) }
	for i := range steamUsers {
		inventories[steamID(i)+"/730/2"] = steaminvtest.New(catalog.CS2, "2", steaminvtest.Item{
			AssetID: "1", ClassID: "1", Name: markets.Names()[0], Properties: `[{"propertyid":1,"int_value":"661"},{"propertyid":6,"string_value":"00180720DA0228"}]`,
		}, steaminvtest.Item{AssetID: "2", ClassID: "2", Name: fmt.Sprint("Steam only ", i)})
	}
	pulls := &steaminvtest.Server{Inventories: inventories}
	var priced atomic.Int64
	steam := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/inventory/") {
			pulls.ServeHTTP(w, r)
			return
		}
		priced.Add(1)
		_, _ = w.Write([]byte(`{"success":true}`))
	}))
	t.Cleanup(steam.Close)

	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim,steam", "SIM_BASE_URL="+provider.URL(),
		"STEAM_BASE_URL="+steam.URL, "STEAM_LIMIT=5/1h", "STEAM_INVENTORY_PACE=1ms")
	s.start()
	pushNames(s, markets.Names(), 1)
	s.awaitPriced()
	for i := range steamUsers {
		body := strings.NewReader(`{"steamId":"` + steamID(i) + `"}`)
		if status, response, err := s.call(http.MethodPut, fmt.Sprint("/api/users/steam", i), body); err != nil || status != http.StatusOK {
			t.Fatalf("put user: got %d %s, %v, want 200", status, response, err)
		}
	}
	list := func(phase string) (took []time.Duration) {
		for i := range listings {
			items := []asset{
				{AssetID: fmt.Sprint(phase, i), MarketHashName: markets.Names()[i%names]}, {AssetID: fmt.Sprint(phase, i, " other"), MarketHashName: fmt.Sprint(phase, " unknown ", i)},
			}
			check, d := s.offered(fmt.Sprint(phase, i), items[0].AssetID, items)
			if check != "known" {
				t.Errorf("price check of %s: got %s, want known", items[0].MarketHashName, check)
			}
			if check, _ := s.offered(fmt.Sprint(phase, i), items[1].AssetID, items); check != "queued" {
				t.Errorf("price check of %s: got %s, want queued", items[1].MarketHashName, check)
			}
			took = append(took, d)
		}
		return took
	}
	quiet, quietMost := spread(list("quiet"))

	s.refresh()
	s.await("the use of the prices' share of Steam's budget", func() bool { return priced.Load() >= 3 })
	s.awaitEnd()
	provider.Reset()
	provider.Always(providertest.Silent())
	s.refresh()
	if err := provider.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	busy, busyMost := spread(list("busy"))
	for i := range 2 { // the share of Steam's budget for inventories
		check, took := s.offered(fmt.Sprint("steam", i), "1", nil)
		if check != "known" {
			t.Errorf("price check: got %s, want known", check)
		}
		t.Logf("listing an item by a sync from Steam took %v", took)
	}
	if !s.status().Status.Running {
		t.Error("got no running job, want a running job with a silent provider")
	}
	if n := priced.Load(); n != 3 {
		t.Errorf("got %d successful price requests to Steam, want 3 of 5", n)
	}
	t.Logf("%d listings: median %v, slowest %v; while the provider does not respond: median %v, slowest %v", listings, quiet, quietMost, busy, busyMost)
	if busy > 3*quiet+200*time.Millisecond || busyMost > 10*quietMost+5*time.Second {
		t.Errorf("listings while the provider does not respond: got median %v, slowest %v, want about %v and %v", busy, busyMost, quiet, quietMost)
	}

	db := s.open()
	for query, want := range map[string]int{
		`SELECT count(*) FROM inspection`:                                                                2,
		`SELECT count(*) FROM inspection WHERE state <> 'none'`:                                          0,
		`SELECT count(*) FROM missing_price m JOIN item i ON i.id = m.item_id WHERE i.price > 0`:         0,
		`SELECT count(*) FROM missing_price m JOIN item i ON i.id = m.item_id WHERE i.name LIKE 'busy%'`: listings,
	} {
		var n int
		if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil || n != want {
			t.Errorf("%s: got %d rows (error %v), want %d", query, n, err, want)
		}
	}
}

// TestListings_EachAssetIsListedOnceAfterKills kills a server while clients create listings.
// Two clients list each asset. Acknowledged requests must return the same bytes again, and
// each asset must be listed once.
func TestListings_EachAssetIsListedOnceAfterKills(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		const assets = 100
		s := on.newServer(t)
		r := randtest.New(t)
		s.start()
		type attempt struct {
			user, asset, key string
			status           int // 0: no response
			response         []byte
		}
		var sent []*attempt
		rounds := randtest.Count(3, 40)
		for round := range rounds {
			user := fmt.Sprint("s", round)
			var items []asset
			for i := range assets {
				items = append(items, asset{AssetID: strconv.Itoa(i), MarketHashName: "Item"})
			}
			s.push(user, 730, items)
			var mu sync.Mutex
			var wg sync.WaitGroup
			ctx, end := context.WithCancel(t.Context())
			for c := range 4 {
				wg.Go(func() {
					for n := c; ctx.Err() == nil && n < 2*assets; n += 4 {
						o := &attempt{user: user, asset: strconv.Itoa(n / 2), key: fmt.Sprint(round, " ", n)}
						status, response, err := s.offer(o.user, o.asset, o.key, nil)
						if err == nil {
							o.status, o.response = status, response
						}
						mu.Lock()
						sent = append(sent, o)
						mu.Unlock()
						if err != nil {
							return
						}
					}
				})
			}
			time.Sleep(time.Duration(20+r.IntN(200)) * time.Millisecond)
			s.kill()
			end()
			wg.Wait()
			s.start()
		}
		responded := 0
		for _, o := range sent {
			status, response, err := s.offer(o.user, o.asset, o.key, nil)
			if err != nil || status != http.StatusCreated && status != http.StatusConflict {
				t.Fatalf("%s again: got %d %s, %v, want 201 or 409", o.key, status, response, err)
			}
			if o.status != 0 {
				responded++
				if status != o.status || !bytes.Equal(response, o.response) {
					t.Errorf("%s: got first %d %s, then %d %s, want the same twice", o.key, o.status, o.response, status, response)
				}
			}
		}
		listed := map[string]int{}
		for _, l := range all[struct{ UserID, AssetID, State string }](s, "/api/listings") {
			if l.State != "active" {
				t.Errorf("got a listing in state %s, want active", l.State)
			}
			listed[l.UserID+" "+l.AssetID]++
		}
		for _, o := range sent {
			if n := listed[o.user+" "+o.asset]; n != 1 {
				t.Errorf("asset %s of %s: got %d listings, want 1", o.asset, o.user, n)
			}
		}
		t.Logf("%d kills during %d requests, %d acknowledged", rounds, len(sent), responded)
	})
}
