// Package pricempire reads version 4 of Pricempire's price feed. One response has every item
// of a game with the prices of many markets.
//
// Documentation: https://pricempire.com/docs and the published clients of the API, read in
// November 2026. Three facts are unconfirmed: the values of metas, the bodies of 401, 403 and
// 429, and the number of calls per plan. The package therefore treats missing sales as unknown
// and doubles the wait after each 429.
package pricempire

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// Name is the provider's key in configuration and URLs.
const Name = "pricempire"

// BaseURL is the address of the API.
const BaseURL = "https://api.pricempire.com"

// Limit is a precaution. Pricempire documents only a number of calls per month, which depends
// on the plan.
func Limit() provider.Limit { return provider.Limit{Requests: 10, Per: time.Minute} }

// Wait and MostWait are the first and the longest wait after a refusal without Retry-After.
// They are long, because the monthly quota may be exhausted.
const (
	Wait     = 10 * time.Minute
	MostWait = 6 * time.Hour
)

// Markets returns the keys of the markets requested by default. They have the most listings.
func Markets() []string {
	return []string{"buff163", "csfloat", "dmarket", "skinport", "waxpeer", "youpin"}
}

// CheckMarkets returns an error if a key is listed twice or belongs to a market with bids
// only.
func CheckMarkets(keys []string) error {
	seen := map[string]bool{}
	for _, key := range keys {
		if strings.HasSuffix(key, "_buy") {
			return fmt.Errorf("market %s has only bids and no asks: remove it", key)
		}
		if m := market(key); seen[m] {
			return fmt.Errorf("market %s is listed twice: remove one", m)
		}
		seen[market(key)] = true
	}
	return nil
}

// market returns Assay's key for a market key of Pricempire, such as "swapgg" for "swap.gg".
func market(key string) string { return strings.ReplaceAll(key, ".", "") }

const (
	interval = 5 * time.Minute
	window   = 30 * 24 * time.Hour // period of reported sales
	terms    = "Needs the key of a Pricempire API plan. The terms forbid building a similar or competing service from the data. Use the data for your own site only."
)

// Config configures a Provider.
type Config struct {
	BaseURL  string           // without a trailing slash
	Key      string           // a UUID
	Markets  []string         // market keys to request, valid for CheckMarkets; default Markets
	Currency money.Currency   // requested currency: USD, EUR or GBP; otherwise USD
	Host     provider.Host    // budget
	Client   *provider.Client // sends the requests
}

// Provider reads Pricempire. Its methods may be called concurrently.
type Provider struct {
	base, key string
	sources   string // market keys, as a request parameter
	currency  money.Currency
	client    *provider.Client
	describe  provider.Description
	markets   map[string]int // index in describe.Markets by Pricempire's key
}

// New returns a Provider. It sends no request.
func New(c Config) *Provider {
	keys := c.Markets
	if len(keys) == 0 {
		keys = Markets()
	}
	s := &Provider{
		base: c.BaseURL, key: c.Key, sources: strings.Join(keys, ","), currency: "USD", client: c.Client, markets: map[string]int{},
	}
	switch c.Currency {
	case "EUR", "GBP":
		s.currency = c.Currency
	}
	s.describe = provider.Description{
		Name: Name, Title: "Pricempire", Shape: provider.Bulk, Interval: interval, Terms: terms, Hosts: []provider.Host{c.Host},
	}
	games := []int32{catalog.CS2, catalog.Dota, catalog.TF2, catalog.Rust}
	var offered []string
	for i, key := range keys {
		s.markets[key] = i
		offered = append(offered, market(key))
		s.describe.Markets = append(s.describe.Markets, provider.Market{
			Key: offered[i], Title: feed.Title(offered[i]), AppIDs: games, SalesWindow: window, Currencies: []money.Currency{s.currency},
		})
	}
	for _, app := range games {
		s.describe.Files = append(s.describe.Files, provider.File{Key: strconv.Itoa(int(app)), AppID: app, Markets: offered})
	}
	return s
}

// Describe implements provider.Provider.
func (s *Provider) Describe() provider.Description { return s.describe }

// Fetch reads the items of a game.
func (s *Provider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	if _, err := s.describe.FileOf(call); err != nil {
		return provider.Result{}, err
	}
	q := url.Values{
		"app_id": {call.File}, "sources": {s.sources}, "currency": {string(s.currency)},
		"avg": {"false"}, "median": {"false"}, "inflation_threshold": {"-1"}, "metas": {"trades_30d,steam_last_30d"},
	}
	req := provider.Request{
		URL: s.base + "/v4/paid/items/prices?" + q.Encode(), Meter: call.Meter,
		Header: http.Header{"Authorization": {"Bearer " + s.key}, "Accept": {"application/json"}},
	}
	return provider.Read(ctx, s.client, req, func(ctx context.Context, body io.Reader) (provider.Result, error) {
		return s.read(ctx, body, sink)
	})
}
