// Package waxpeer reads Waxpeer's public price list and its listings of Doppler knives by
// phase.
//
// Documentation: the official wrapper https://github.com/skylight-ity/waxpeer and its wiki,
// read in November 2026. It does not describe the responses to refused and rate-limited
// requests, the age of the data, or whether the Doppler listings are complete. The package
// makes no assumption about these.
package waxpeer

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
const Name = "waxpeer"

// BaseURL is the address of the lists.
const BaseURL = "https://api.waxpeer.com"

// Limit is the limit of each list according to the official wrapper. Assay counts both lists
// against one limit.
func Limit() provider.Limit { return provider.Limit{Requests: 60, Per: time.Minute} }

const interval = time.Minute

const terms = "Waxpeer publishes these lists without a key; its own wrapper warns that more than 60 calls per minute may block your address. " +
	"No terms of reuse were found. Assay reads the data for your own site."

// gameName returns Waxpeer's name of a game, or "" if Waxpeer does not have the game.
func gameName(app int32) string {
	return map[int32]string{catalog.CS2: "csgo", catalog.Dota: "dota2", catalog.TF2: "tf2", catalog.Rust: "rust"}[app]
}

// Config configures a Provider.
type Config struct {
	BaseURL string           // without a trailing slash
	Host    provider.Host    // budget
	Client  *provider.Client // sends the requests
}

// Provider reads Waxpeer. Its methods may be called concurrently.
type Provider struct {
	base     string
	client   *provider.Client
	describe provider.Description
}

// New returns a Provider. It sends no request.
func New(c Config) *Provider {
	s := &Provider{base: c.BaseURL, client: c.Client}
	s.describe = provider.Description{
		Name: Name, Title: "Waxpeer", Shape: provider.Bulk, Interval: interval, Terms: terms, Hosts: []provider.Host{c.Host},
	}
	games := []int32{catalog.CS2, catalog.Dota, catalog.TF2, catalog.Rust}
	s.describe.Markets = []provider.Market{{Key: Name, Title: "Waxpeer", AppIDs: games, Currencies: []money.Currency{"USD"}}}
	for _, app := range games {
		f := provider.File{Key: strconv.Itoa(int(app)), AppID: app, Markets: []string{Name}, Requests: 1}
		if phased(app) {
			f.Requests = 2
		}
		s.describe.Files = append(s.describe.Files, f)
	}
	return s
}

// phased reports whether a game has Doppler knives.
func phased(app int32) bool { return app == catalog.CS2 }

// Describe implements provider.Provider.
func (s *Provider) Describe() provider.Description { return s.describe }

// Probe returns a call for the shortest list. It takes one request.
func (s *Provider) Probe() provider.Call {
	return provider.Call{AppID: catalog.TF2, File: strconv.Itoa(int(catalog.TF2))}
}

// Fetch reads the Doppler listings of a game, if there are any, and then its prices.
func (s *Provider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	if _, err := s.describe.FileOf(call); err != nil {
		return provider.Result{}, err
	}
	game := gameName(call.AppID)
	var dopplers phases
	if phased(call.AppID) {
		var err error
		q := url.Values{"phase": {"any"}, "minified": {"1"}}
		if dopplers, err = provider.Read(ctx, s.client, s.request("prices/dopplers", q, call.Meter), readDopplers); err != nil {
			return provider.Result{}, err
		}
	}
	q := url.Values{"game": {game}, "minified": {"1"}}
	err := s.client.Do(ctx, s.request("prices", q, call.Meter), func(resp *provider.Response) error {
		return readPrices(ctx, resp.Body, dopplers, sink)
	})
	return provider.Result{}, err
}

func (s *Provider) request(list string, q url.Values, meter *provider.Meter) provider.Request {
	return provider.Request{
		URL:    s.base + "/v1/" + list + "?" + q.Encode(),
		Header: http.Header{"Accept": {"application/json"}},
		Meter:  meter,
	}
}
