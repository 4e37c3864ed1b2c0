package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/randtest"
)

// trade contains the required fields of a trade.
type trade struct {
	ID, ListingID, SellerID, BuyerID, State, FeeRule, TransactionID string
	Price, Fee, Net, FeeVersion                                     int64
}

// deposit adds money to a user's wallet.
func (s *server) deposit(user string, amount int) {
	s.t.Helper()
	body := fmt.Sprintf(`{"kind":"deposit","currency":"USD","amount":%d}`, amount)
	if status, response, err := s.keyed(ledgerPath+user+"/entries", fmt.Sprint("deposit ", amount), body); err != nil || status != http.StatusCreated {
		s.t.Fatalf("deposit for %s: got %d %s, %v, want 201", user, status, response, err)
	}
}

// list pushes a user's inventory, lists all assets at the given price, and returns the IDs.
func (s *server) list(user string, assets, price int) (ids []string) {
	s.t.Helper()
	var items []asset
	var offers []map[string]any
	for i := range assets {
		items = append(items, asset{AssetID: strconv.Itoa(i), MarketHashName: "Item"})
		offers = append(offers, map[string]any{"assetId": strconv.Itoa(i), "price": price, "currency": "USD"})
	}
	body, err := json.Marshal(map[string]any{"userId": user, "appId": 730, "contextId": "2", "items": offers, "inventory": map[string]any{"items": items}})
	if err != nil {
		s.t.Fatal(err)
	}
	status, response, err := s.call(http.MethodPost, "/api/listings/batch", bytes.NewReader(body))
	var made struct {
		Items []struct{ Listing struct{ ID string } }
	}
	if err != nil || status != http.StatusOK || json.Unmarshal(response, &made) != nil {
		s.t.Fatalf("create listings: got %d %s, %v, want 200", status, response, err)
	}
	for _, i := range made.Items {
		ids = append(ids, i.Listing.ID)
	}
	return ids
}

// buy purchases a listing.
func (s *server) buy(listing, buyer, key string) (int, []byte, error) {
	return s.keyed("/api/listings/"+listing+"/purchase", key, `{"buyerId":"`+buyer+`"}`)
}

// bought purchases a listing. It fails the test if the purchase fails.
func (s *server) bought(listing, buyer string) (t trade) {
	s.t.Helper()
	status, response, err := s.buy(listing, buyer, "buy "+listing)
	if err != nil || status != http.StatusCreated || json.Unmarshal(response, &t) != nil {
		s.t.Fatalf("purchase by %s: got %d %s, %v, want 201", buyer, status, response, err)
	}
	return t
}

// moveTrade completes or reverses a trade.
func (s *server) moveTrade(id, how string, want int) (t trade) {
	s.t.Helper()
	status, response, err := s.call(http.MethodPost, "/api/trades/"+id+"/"+how, nil)
	if err != nil || status != want || json.Unmarshal(response, &t) != nil {
		s.t.Fatalf("%s %s: got %d %s, %v, want %d", how, id, status, response, err, want)
	}
	return t
}

// balances returns a user's balance and held amount, as "balance/held".
func (s *server) balances(user string) string {
	s.t.Helper()
	var w struct {
		Accounts []struct{ Balance, Held int64 }
	}
	s.get(ledgerPath+user+"/balance", &w)
	return fmt.Sprintf("%d/%d", w.Accounts[0].Balance, w.Accounts[0].Held)
}

func (s *server) checkBalances(when string, want map[string]string) {
	s.t.Helper()
	for user, figures := range want {
		if got := s.balances(user); got != figures {
			s.t.Errorf("%s, balance of %s: got %s, want %s", when, user, got, figures)
		}
	}
}

func TestTrades_MoveMoneyFromPurchaseToSettlement(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		s := on.newServer(t, "TRADE_HOLD=1s")
		s.start()
		listings := s.list("seller", 4, 1_000)
		s.deposit("buyer", 10_000)
		s.deposit("poor", 999)

		status, refused, err := s.buy(listings[0], "poor", "k")
		if err != nil || status != http.StatusConflict || !strings.Contains(string(refused), `"insufficient_funds"`) {
			t.Fatalf("purchase without money: got %d %s, %v, want 409 insufficient_funds", status, refused, err)
		}
		s.deposit("poor", 1)
		if status, again, err := s.buy(listings[0], "poor", "k"); err != nil || status != http.StatusConflict || !bytes.Equal(again, refused) {
			t.Errorf("the same key again: got %d %s, %v, want the same 409", status, again, err)
		}
		s.checkBalances("after a refusal", map[string]string{"poor": "1000/0", "buyer": "10000/0"})

		pending, completed, kept := s.bought(listings[0], "poor"), s.bought(listings[1], "buyer"), s.bought(listings[2], "buyer")
		if kept.Price != 1_000 || kept.Fee != 50 || kept.Net != 950 || kept.FeeRule != "sale" || kept.FeeVersion != 1 || kept.TransactionID == "" {
			t.Errorf("got the trade %+v, want the price 1000, the fee 50 and the net amount 950 by rule sale", kept)
		}
		s.checkBalances("after purchases", map[string]string{"poor": "0/0", "buyer": "8000/0", "seller": "2850/2850", "house:fee": "150/0"})
		s.moveTrade(pending.ID, "reverse", http.StatusOK)
		s.moveTrade(pending.ID, "complete", http.StatusConflict)
		s.moveTrade(kept.ID, "complete", http.StatusOK)
		s.await("the settlement", func() bool {
			var now trade
			s.get("/api/trades/"+kept.ID, &now)
			return now.State == "settled"
		})
		s.moveTrade(kept.ID, "reverse", http.StatusConflict)
		s.moveTrade(completed.ID, "reverse", http.StatusOK)
		s.checkBalances("at the end", map[string]string{
			"poor": "1000/0", "buyer": "9000/0", "seller": "950/0", "house:fee": "50/0", "house:deposit": "-11000/0",
		})
	})
}

// order is a purchase with its request and its response, if any.
type order struct {
	listing, buyer, key string
	status              int // 0: no response
	response            []byte
}

// TestTrades_PurchasesAreAtomicAfterKills kills a server while clients buy. A sold listing
// must have a trade and ledger entries. Acknowledged requests must return the same bytes
// again.
func TestTrades_PurchasesAreAtomicAfterKills(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		s := on.newServer(t)
		r := randtest.New(t)
		s.start()
		buyers := []string{"b0", "b1", "b2"}
		for _, b := range buyers {
			s.deposit(b, 1_000_000)
		}
		var sent []*order
		var listings []string
		for round := range randtest.Count(3, 40) {
			fresh := s.list(fmt.Sprint("s", round), 200, 100)
			listings = append(listings, fresh...)
			var mu sync.Mutex
			var wg sync.WaitGroup
			ctx, end := context.WithCancel(t.Context())
			for c := range 4 {
				wg.Go(func() {
					for n := c; ctx.Err() == nil && n < 2*len(fresh); n++ { // several clients buy each listing
						o := &order{listing: fresh[n/2], buyer: buyers[(n+c)%3], key: fmt.Sprintf("%d-%d-%d", round, c, n)}
						var err error
						o.status, o.response, err = s.buy(o.listing, o.buyer, o.key)
						mu.Lock()
						sent = append(sent, o)
						mu.Unlock()
						if err != nil {
							o.status = 0
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
			checkSales(t, s, listings, buyers, sent)
		}
		for _, o := range sent {
			status, response, err := s.buy(o.listing, o.buyer, o.key)
			if err != nil || status != http.StatusCreated && status != http.StatusConflict {
				t.Fatalf("%s again: got %d %s, %v, want 201 or 409", o.key, status, response, err)
			}
			if o.status != 0 && (status != o.status || !bytes.Equal(response, o.response)) {
				t.Errorf("%s: got %d %s, then %d %s, want the same twice", o.key, o.status, o.response, status, response)
			}
		}
		checkSales(t, s, listings, buyers, sent)
	})
}

// checkSales compares listings, trades, the ledger and the acknowledged purchases.
func checkSales(t *testing.T, s *server, listings, buyers []string, sent []*order) {
	t.Helper()
	trades, entries := map[string]trade{}, map[string]int{}
	for _, d := range all[trade](s, "/api/trades") {
		trades[d.ListingID] = d
	}
	paid := 0
	for _, b := range buyers {
		for _, e := range all[struct{ TradeID, Type string }](s, ledgerPath+b+"/entries") {
			if e.Type == "purchase" {
				entries[e.TradeID]++
				paid++
			}
		}
	}
	states := map[string]string{}
	for _, l := range all[struct{ ID, State string }](s, "/api/listings") {
		states[l.ID] = l.State
	}
	for _, id := range listings {
		d, traded := trades[id]
		if sold := states[id] == "sold"; sold != traded || traded != (entries[d.ID] == 1) {
			t.Errorf("listing %s: got the state %s, the trade %q and %d entries of it, want one trade and entry if it is sold", id, states[id], d.ID, entries[d.ID])
		}
	}
	for _, o := range sent {
		var d trade
		if o.status == http.StatusCreated && (json.Unmarshal(o.response, &d) != nil || trades[o.listing].ID != d.ID || trades[o.listing].BuyerID != o.buyer) {
			t.Errorf("%s: got response %s, want the trade %+v", o.key, o.response, trades[o.listing])
		}
	}
	if paid != len(trades) {
		t.Errorf("got %d purchases, want one for each of %d trades", paid, len(trades))
	}
	users := map[string]bool{"house:deposit": true, "house:fee": paid > 0}
	for _, d := range trades {
		users[d.BuyerID], users[d.SellerID] = true, true
	}
	for _, b := range buyers {
		users[b] = true
	}
	sum := 0
	for user, has := range users {
		if has {
			balance, _, _ := strings.Cut(s.balances(user), "/")
			n, err := strconv.Atoi(balance)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	if sum != 0 {
		t.Errorf("sum of all balances: got %d, want 0", sum)
	}
	s.verified()
	t.Logf("%d trades of %d listings; %d requests", len(trades), len(listings), len(sent))
}
