// Package skinport reads Skinport's public price feeds: current offers and recent sales.
//
// Documentation: https://docs.skinport.com, read in November 2026. It does not describe the
// body of an error, whether a 429 has a Retry-After header, or which item versions exist. The
// package therefore accepts any error body, a 429 without Retry-After, and every known phase
// as a version.
package skinport

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// Name is the key of the provider and of its market in configuration and URLs.
const Name = "skinport"

// BaseURL is the address of the feeds.
const BaseURL = "https://api.skinport.com"

// Limit is the documented limit of each feed. A refresh requests two feeds, and Assay counts
// both against one limit. Half of the limit therefore stays unused.
func Limit() provider.Limit { return provider.Limit{Requests: 8, Per: 5 * time.Minute} }

// interval is the time for which Skinport caches a response.
const interval = 5 * time.Minute

const terms = "Skinport publishes these feeds without a key. No terms of reuse were found. Assay reads the data for your own site."

// Config configures a Provider.
type Config struct {
	BaseURL     string           // without a trailing slash
	Currency    money.Currency   // requested currency; USD if empty or not supported by Skinport
	SalesWindow time.Duration    // minimum period of the sales count; the shortest reported period of at least this length is used
	Host        provider.Host    // budget
	Client      *provider.Client // sends the requests
}

// Provider reads Skinport. Its methods may be called concurrently.
type Provider struct {
	base     string
	currency money.Currency
	window   window // period of the sales count
	client   *provider.Client
	describe provider.Description
}

// New returns a Provider. It sends no request.
func New(c Config) *Provider {
	s := &Provider{base: c.BaseURL, currency: "USD", window: windowFor(c.SalesWindow), client: c.Client}
	switch c.Currency {
	case "EUR", "GBP":
		s.currency = c.Currency // for other currencies, Assay converts the quotes from USD
	}
	games := []int32{catalog.CS2, catalog.Dota, catalog.TF2, catalog.Rust}
	s.describe = provider.Description{
		Name: Name, Title: "Skinport", Shape: provider.Bulk, Interval: interval, Terms: terms,
		Hosts:   []provider.Host{c.Host},
		Markets: []provider.Market{{Key: Name, Title: "Skinport", AppIDs: games, SalesWindow: s.window.length, Currencies: []money.Currency{s.currency}}},
	}
	for _, app := range games {
		f := provider.File{Key: strconv.Itoa(int(app)), AppID: app, Markets: []string{Name}, Requests: 2}
		s.describe.Files = append(s.describe.Files, f)
	}
	return s
}

// Describe implements provider.Provider.
func (s *Provider) Describe() provider.Description { return s.describe }

// Fetch reads the sales of a game and then its offers.
func (s *Provider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	file, err := s.describe.FileOf(call)
	if err != nil {
		return provider.Result{}, err
	}
	app := file.Key
	history, err := provider.Read(ctx, s.client, s.request("sales/history", app, "", call.Meter), s.readSales)
	if err != nil {
		return provider.Result{}, err
	}
	return provider.Read(ctx, s.client, s.request("items", app, "0", call.Meter), func(ctx context.Context, body io.Reader) (provider.Result, error) {
		return s.readItems(ctx, body, history, sink)
	})
}

// request returns the request for a feed of a game. Skinport responds 406 to clients that do
// not accept brotli.
func (s *Provider) request(feed, app, tradable string, meter *provider.Meter) provider.Request {
	q := url.Values{"app_id": {app}, "currency": {string(s.currency)}}
	if tradable != "" {
		q.Set("tradable", tradable)
	}
	return provider.Request{
		URL:    s.base + "/v1/" + feed + "?" + q.Encode(),
		Header: http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"br"}},
		Meter:  meter,
	}
}
