// Package marketcsgo reads the public price files of market.csgo.com: what is
// offered now, and what is bid and was sold in the last week.
//
// Provider: https://market.csgo.com/en/api/content/start, read in November 2026.
// Known from clients only, and so tolerated in any form: that volume counts
// offers and popularity_7d sales, whether numbers are texts, which of them may be
// null, and how large the second file is. Sites of the same owner for other games
// (market.dota2.net, tf2.tm, rust.tm) are reported to respond alike. This is not
// confirmed, so they are not queried.
package marketcsgo

import (
	"context"
	"net/http"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// Name is the key by which configuration and URLs know the provider, and that of
// its market.
const Name = "marketcsgo"

// BaseURL is where the files are.
const BaseURL = "https://market.csgo.com"

// Limit is below the five requests in a second at which the site blocks.
func Limit() provider.Limit { return provider.Limit{Requests: 3, Per: time.Second} }

const (
	file     = "730"
	interval = time.Minute

	// userAgent is of the kind that the site's network lets through.
	userAgent = "Mozilla/5.0 (compatible; assay)"

	terms = "market.csgo.com publishes these files without a key; more than 5 requests in a second get one blocked. " +
		"No terms for re-use of the data were found; they are read for your own site."
)

// Config configures a Provider.
type Config struct {
	BaseURL  string           // without a slash at its end
	Currency money.Currency   // in which prices are requested; default USD, and for what the site does not have
	Host     provider.Host    // what may be queried of it
	Client   *provider.Client // carries the requests
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

// Describe describes the provider.
func (s *Provider) Describe() provider.Description { return s.describe }

// Fetch reads first what is bid and was sold, then what is offered.
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
