// Package csfloat reads CSFloat's public price list and its list of Doppler knives by phase.
//
// Documentation: https://docs.csfloat.com and the official browser extension
// https://github.com/csfloat/extension, read in November 2026. Neither documents the lists.
// The package therefore accepts an array or an object with an array, sends the key if it is
// configured, and reads the rate limit from the response headers.
package csfloat

import (
	"context"
	"net/http"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// Name is the key of the provider and of its market in configuration and URLs.
const Name = "csfloat"

// BaseURL is the address of the lists.
const BaseURL = "https://csfloat.com"

// interval is much shorter than the two hours for which the official extension caches the
// lists.
const interval = 15 * time.Minute

// Limit allows one refresh per interval with all its retries. CSFloat does not document a
// limit.
func Limit() provider.Limit { return provider.Limit{Requests: 8, Per: interval} }

const (
	file = "730"

	terms = "CSFloat serves these lists to its browser extension. It documents neither the lists nor a limit. " +
		"No terms of reuse were found. Assay reads the data for your own site."
)

// Config configures a Provider.
type Config struct {
	BaseURL string           // without a trailing slash
	Key     string           // sent if set; CSFloat has served the lists without a key so far
	Host    provider.Host    // budget
	Client  *provider.Client // sends the requests
}

// Provider reads CSFloat. Its methods may be called concurrently.
type Provider struct {
	base     string
	key      string
	client   *provider.Client
	describe provider.Description
}

// New returns a Provider. It sends no request.
func New(c Config) *Provider {
	return &Provider{base: c.BaseURL, key: c.Key, client: c.Client, describe: provider.Description{
		Name: Name, Title: "CSFloat", Shape: provider.Bulk, Interval: interval, Terms: terms,
		Hosts:   []provider.Host{c.Host},
		Markets: []provider.Market{{Key: Name, Title: "CSFloat", AppIDs: []int32{catalog.CS2}, Currencies: []money.Currency{"USD"}}},
		Files:   []provider.File{{Key: file, AppID: catalog.CS2, Markets: []string{Name}, Requests: 2}},
	}}
}

// Describe implements provider.Provider.
func (s *Provider) Describe() provider.Description { return s.describe }

// Fetch reads the phases of Dopplers and then all prices.
func (s *Provider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	if _, err := s.describe.FileOf(call); err != nil {
		return provider.Result{}, err
	}
	dopplers, err := provider.Read(ctx, s.client, s.request("/doppler", call.Meter), readDopplers)
	if err != nil {
		return provider.Result{}, err
	}
	err = s.client.Do(ctx, s.request("", call.Meter), func(resp *provider.Response) error {
		return readPrices(ctx, resp.Body, dopplers, sink)
	})
	return provider.Result{}, err
}

// request returns the request for a list. The Authorization header is the key without a
// scheme.
func (s *Provider) request(list string, meter *provider.Meter) provider.Request {
	header := http.Header{"Accept": {"application/json"}}
	if s.key != "" {
		header.Set("Authorization", s.key)
	}
	return provider.Request{URL: s.base + "/api/v1/listings/price-list" + list, Header: header, Meter: meter}
}
