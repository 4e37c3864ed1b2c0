package marketcsgo

import (
	"context"
	"io"
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

// Limit is lower than the five requests per second at which the site blocks a client.
func Limit() provider.Limit { return provider.Limit{Requests: 3, Per: time.Second} }

const (
	file     = "730"
	interval = time.Minute

	// userAgent has a form that the site's firewall accepts.
	userAgent = "Mozilla/5.0 (compatible; assay)"

	terms = "market.csgo.com publishes these files without a key; it blocks clients with more than 5 requests per second. " +
		"No terms of reuse were found. Assay reads the data for your own site."
)

// Config configures a Provider.
type Config struct {
	BaseURL  string           // without a trailing slash
	Currency money.Currency   // requested currency; USD if empty or not supported by the site
	Host     provider.Host    // budget
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

// Fetch reads the bids and sales and then the offers.
func (s *Provider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	if _, err := s.describe.FileOf(call); err != nil {
		return provider.Result{}, err
	}
	history, err := provider.Read(ctx, s.client, s.request("class_instance/", call.Meter), s.readInstances)
	if err != nil {
		return provider.Result{}, err
	}
	return provider.Read(ctx, s.client, s.request("", call.Meter), func(ctx context.Context, body io.Reader) (provider.Result, error) {
		return s.readPrices(ctx, body, history, sink)
	})
}

func (s *Provider) request(folder string, meter *provider.Meter) provider.Request {
	return provider.Request{
		URL:    s.base + "/api/v2/prices/" + folder + string(s.currency) + ".json",
		Header: http.Header{"Accept": {"application/json"}, "User-Agent": {userAgent}},
		Meter:  meter,
	}
}
