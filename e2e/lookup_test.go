package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// lookup looks up names of CS2.
func (s *server) lookup(names []string, queueMissing bool) (out []item) {
	s.t.Helper()
	type key struct {
		MarketHashName string `json:"marketHashName"`
	}
	var keys []key
	for _, n := range names {
		keys = append(keys, key{n})
	}
	body, err := json.Marshal(map[string]any{"items": keys, "queueMissing": queueMissing})
	if err != nil {
		s.t.Fatal(err)
	}
	status, response, err := s.call(http.MethodPost, "/api/prices/lookup", bytes.NewReader(body))
	if err != nil || status != http.StatusOK {
		s.t.Fatalf("lookup: got status %d, error %v, want 200: %s", status, err, response)
	}
	var got struct{ Items []item }
	if err := json.Unmarshal(response, &got); err != nil {
		s.t.Fatal(err)
	}
	if len(got.Items) != len(names) {
		s.t.Fatalf("got %d items, want %d", len(got.Items), len(names))
	}
	for i, n := range names {
		if got.Items[i].MarketHashName != n {
			s.t.Errorf("item %d: got %q, want %q", i, got.Items[i].MarketHashName, n)
		}
	}
	return got.Items
}

// TestLookup_QueuesUnknownNamesOnRequest looks up names that no user owns. They stay unknown
// until a lookup queues them. Then they get prices.
func TestLookup_QueuesUnknownNamesOnRequest(t *testing.T) {
	onBoth(t, testLookup)
}

func testLookup(t *testing.T, on engine) {
	config := nameLists(t, map[int][]string{730: trapNames})
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=pricelist", "PRICELIST_CONFIG="+config)
	s.start()
	names := append([]string{"no quotes for this", trapNames[0]}, trapNames...)
	expect := func(what string, queueMissing bool, want func(name string, got item) bool) {
		t.Helper()
		for i, got := range s.lookup(names, queueMissing) {
			if !want(names[i], got) {
				t.Errorf("%s, %q: got the unexpected status %s with price %s, want a different status", what, names[i], got.Status, got.CurrentPrice)
			}
		}
	}
	unknown := func(_ string, got item) bool { return got.Status == "unknown" && got.CurrentPrice == "0" }
	expect("at first", false, unknown)
	expect("again", false, unknown)
	expect("queued", true, func(_ string, got item) bool { return got.Status == "queued" && got.CurrentPrice == "0" })
	s.awaitPriced()
	prices := map[string]string{}
	for i, n := range trapNames {
		prices[n] = price(i)
	}
	expect("priced", true, func(name string, got item) bool {
		if want, quoted := prices[name]; quoted {
			return got.CurrentPrice.String() == want && got.Status == "thin"
		}
		return got.Status == "queued"
	})
	retryAt := s.lookup(names[:1], true)[0].RetryAt
	if in := time.Until(retryAt); in < 50*time.Minute || in > time.Hour {
		t.Errorf("next attempt: got a wait of %v, want 50 minutes to one hour", in)
	}
}
