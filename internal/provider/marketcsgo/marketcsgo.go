// Package marketcsgo reads the public price files of market.csgo.com: current offers, and
// the bids and sales of the last week.
// Documentation: https://market.csgo.com/en/api/content/start, read in November 2026. Known
// only from clients, so the package accepts any form: that volume counts offers and
// popularity_7d sales, whether numbers are strings, which of them may be null, and the size
// of the second file. Sites of the same owner for other games (market.dota2.net, tf2.tm,
// rust.tm) are said to respond alike. This is unconfirmed, so they are not queried.
package marketcsgo

import (
	"context"
	"net/http"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// Name is the key of the provider and of its market in configuration and URLs.
const Name = "marketcsgo"

// BaseURL is the address of the files.
const BaseURL = "https://market.csgo.com"

// Limit stays below the five requests per second at which the site blocks.
func Limit() provider.Limit { return provider.Limit{Requests: 3, Per: time.Second} }

const (
	file     = "730"
	interval = time.Minute

	// userAgent is of a kind that the site's firewall accepts.
	userAgent = "Mozilla/5.0 (compatible; assay)"

	terms = "market.csgo.com publishes these files without a key; it blocks clients with more than 5 requests per second. " +
		"No terms for re-use of the data were found; they are read for your own site."
)

// Config configures a Provider.
type Config struct {
	BaseURL  string           // without a trailing slash
	Currency money.Currency   // requested currency; default USD, also for currencies that the site lacks
	Host     provider.Host    // the budget
	Client   *provider.Client // sends the requests
}

// Provider reads market.csgo.com. Its methods may be called concurrently.
type Provider struct {
	base     string
	currency money.Currency
	client   *provider.Client
	describe provider.Description
}

// New returns a Provider. It sends no request.
func New(c Config) *Provider {
	s := &Provider{base: c.BaseURL, currency: "USD", client: c.Client}
	switch c.Currency {
	case "EUR", "RUB":
		s.currency = c.Currency
	}
	s.describe = provider.Description{
		Name: Name, Title: "market.csgo.com", Shape: provider.Bulk, Interval: interval, Terms: terms,
		Hosts:   []provider.Host{c.Host},
		Markets: []provider.Market{{Key: Name, Title: "market.csgo.com", AppIDs: []int32{catalog.CS2}, SalesWindow: week, Currencies: []money.Currency{s.currency}}},
		Files:   []provider.File{{Key: file, AppID: catalog.CS2, Markets: []string{Name}, Requests: 2}},
	}
	return s
}

// Describe implements provider.Provider.
func (s *Provider) Describe() provider.Description { return s.describe }

// Fetch reads first the bids and sales, then the offers.
func (s *Provider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	if _, err := s.describe.FileOf(call); err != nil {
		return provider.Result{}, err
	}
	var traded trades
	err := s.client.Do(ctx, s.request("class_instance/", call.Meter), func(resp *provider.Response) error {
		var err error
		traded, err = s.readInstances(ctx, resp.Body)
		return err
	})
	if err != nil {
		return provider.Result{}, err
	}
	var answer provider.Result
	err = s.client.Do(ctx, s.request("", call.Meter), func(resp *provider.Response) error {
		var err error
		answer, err = s.readPrices(ctx, resp.Body, traded, sink)
		return err
	})
	if err != nil {
		return provider.Result{}, err
	}
	return answer, nil
}

func (s *Provider) request(folder string, meter *provider.Meter) provider.Request {
	return provider.Request{
		URL:    s.base + "/api/v2/prices/" + folder + string(s.currency) + ".json",
		Header: http.Header{"Accept": {"application/json"}, "User-Agent": {userAgent}},
		Meter:  meter,
	}
}
