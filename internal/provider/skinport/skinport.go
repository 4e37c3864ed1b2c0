// Package skinport reads Skinport's public price feeds: current offers and recent sales.
// Documentation: https://docs.skinport.com, read in November 2026. Undocumented, so the
// package accepts any form: the body of an error, whether a 429 carries Retry-After, and
// which versions exist.
package skinport

import (
	"context"
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

// Limit is the documented limit of each feed. A refresh requests two feeds, and both count
// against it here, so half of it stays unused.
func Limit() provider.Limit { return provider.Limit{Requests: 8, Per: 5 * time.Minute} }

// interval is how long Skinport caches a response.
const interval = 5 * time.Minute

const terms = "Skinport publishes these feeds without a key. No terms for re-use of the data were found; they are read for your own site."

// Config configures a Provider.
type Config struct {
	BaseURL     string           // without a trailing slash
	Currency    money.Currency   // requested currency; default USD, also for currencies that Skinport lacks
	SalesWindow time.Duration    // minimum window of sales; the shortest reported window of at least this length is used
	Host        provider.Host    // the budget
	Client      *provider.Client // sends the requests
}

// Provider reads Skinport. Its methods may be called concurrently.
type Provider struct {
	base     string
	currency money.Currency
	window   window // whose sales are counted
	client   *provider.Client
	describe provider.Description
}

// New returns a Provider. It sends no request.
func New(c Config) *Provider {
	s := &Provider{base: c.BaseURL, currency: "USD", window: windowFor(c.SalesWindow), client: c.Client}
	switch c.Currency {
	case "EUR", "GBP":
		s.currency = c.Currency // quotes in other documented currencies are converted like any foreign quote
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

// Fetch reads a game: first the sales, then the offers.
func (s *Provider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	file, err := s.describe.FileOf(call)
	if err != nil {
		return provider.Result{}, err
	}
	app := file.Key
	var sold sales
	err = s.client.Do(ctx, s.request("sales/history", app, "", call.Meter), func(resp *provider.Response) error {
		var err error
		sold, err = s.readSales(ctx, resp.Body)
		return err
	})
	if err != nil {
		return provider.Result{}, err
	}
	var answer provider.Result
	err = s.client.Do(ctx, s.request("items", app, "0", call.Meter), func(resp *provider.Response) error {
		var err error
		answer, err = s.readItems(ctx, resp.Body, sold, sink)
		return err
	})
	if err != nil {
		return provider.Result{}, err
	}
	return answer, nil
}

// request returns the request for a feed of a game. Skinport responds 406 to clients that
// do not accept brotli.
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
