// Package steam reads the Steam Community Market, one name at a time: the lowest ask and
// the sales of the last day.
// Steam documents neither endpoint. The package implements the responses observed from 2025
// to September 2026. Unconfirmed: whether 500 with the body null or {"success":false} means
// an unknown name (the package treats it as unknown and does not retry), whether all
// endpoints share one limit (the package counts them together), and that orderbook has
// wrapped its response since August 2026 (the package reads both forms).
// Steam has one page for all phases of a finish such as Doppler. The quote of such a name
// is that of the cheapest phase, and counts for the plain name only.
package steam

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// Name is the key of the provider and of its market in configuration and URLs.
const Name = "steam"

// BaseURL is the address of the market.
const BaseURL = "https://steamcommunity.com"

// Host returns the market's host with a rate observed to be safe without an account; Steam
// documents no limit. Steam limits each address over all endpoints, so all requests to the
// host share this provider's budget.
func Host() provider.Host {
	return provider.Host{Key: "steamcommunity.com", Limit: provider.Limit{Requests: 25, Per: 5 * time.Minute}}
}

// Endpoint is the API that is queried for a name.
type Endpoint string

// The endpoints.
const (
	PriceOverview Endpoint = "priceoverview" // lowest ask, median and number of a day's sales
	OrderBook     Endpoint = "orderbook"     // lowest ask, highest bid, number of offers
)

const (
	day = 24 * time.Hour
	// interval is how long Steam caches a response.
	interval = 15 * time.Second
	// maxAge exceeds the time to fetch 20,000 names within the part of Steam's limit that
	// inventories leave. With the default, the first quotes would be stale before they are
	// fetched again.
	maxAge = 5 * day
	// maxBody is far more than Steam's response for one name.
	maxBody = 4 << 20
)

const terms = "Steam documents no such use of its market and promises nothing: it limits requests per address, and each request during a block prolongs it. " +
	"The data is read for your own site, slowly; the Steam Subscriber Agreement applies."

// Tune sets options of the provider's client that are not set yet: after a refusal the
// client waits ten minutes, and up to an hour while Steam keeps refusing.
func Tune(o *provider.Options) {
	o.Wait, o.MostWait = cmp.Or(o.Wait, 10*time.Minute), cmp.Or(o.MostWait, time.Hour)
	o.Attempts = cmp.Or(o.Attempts, 2) // there are few requests
	o.MaxBody = cmp.Or(o.MaxBody, maxBody)
	if o.Classify == nil {
		o.Classify = classify
	}
}

// classify refines the kind of Steam's errors: an HTML page with 403 is a rate limit, and
// 500 may concern only the name.
func classify(e *provider.Error) {
	switch body := strings.ReplaceAll(strings.TrimSpace(e.Detail), " ", ""); {
	case e.Status == http.StatusForbidden && strings.HasPrefix(body, "<"):
		e.Kind = provider.KindRateLimited
	case e.Status == http.StatusInternalServerError && (body == "null" || body == `{"success":false}`):
		e.Kind = provider.KindStatus
	}
}

// Config configures a Provider.
type Config struct {
	BaseURL  string           // without a trailing slash
	Endpoint Endpoint         // default PriceOverview
	Host     provider.Host    // the budget
	Client   *provider.Client // sends the requests; see Tune
}

// Provider reads the Steam Community Market. Its methods may be called concurrently.
type Provider struct {
	base     string
	endpoint Endpoint
	client   *provider.Client
	describe provider.Description
}

// New returns a Provider. It sends no request.
func New(c Config) *Provider {
	market := provider.Market{
		Key: Name, Title: "Steam Community Market", SalesWindow: day, MaxAge: maxAge,
		AppIDs: []int32{catalog.CS2, catalog.Dota, catalog.TF2, catalog.Rust}, Currencies: []money.Currency{dollars},
	}
	if c.Endpoint == OrderBook {
		market.SalesWindow = 0
	}
	return &Provider{base: c.BaseURL, endpoint: c.Endpoint, client: c.Client, describe: provider.Description{
		Name: Name, Title: "Steam Community Market", Shape: provider.Single, BatchSize: 1, Interval: interval, Terms: terms,
		Hosts: []provider.Host{c.Host}, Markets: []provider.Market{market},
	}}
}

// Describe implements provider.Provider.
func (s *Provider) Describe() provider.Description { return s.describe }

// Fetch requests the price of one name.
func (s *Provider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	if !slices.Contains(s.describe.Markets[0].AppIDs, call.AppID) {
		return provider.Result{}, provider.Protocol(Name, "app %d is not quoted", call.AppID)
	}
	if len(call.Names) != 1 || catalog.CheckName(call.Names[0]) != nil {
		return provider.Result{}, provider.Protocol(Name, "a call needs exactly one valid name")
	}
	request, read := s.overview, s.readOverview
	if s.endpoint == OrderBook {
		request, read = s.book, s.readBook
	}
	name := call.Names[0]
	req := request(strconv.Itoa(int(call.AppID)), name)
	req.Meter = call.Meter
	return provider.Result{}, s.client.Do(ctx, req, func(resp *provider.Response) error {
		return read(ctx, name, resp.Body, sink)
	})
}

// overview returns the priceoverview request, in dollars regardless of the address's
// country.
func (s *Provider) overview(app, name string) provider.Request {
	return s.request("/market/priceoverview/?appid=" + app + "&currency=1&country=US&market_hash_name=" + escape(name))
}

// book returns the orderbook request, whose query is JSON.
func (s *Provider) book(app, name string) provider.Request {
	quoted, _ := jsontext.AppendQuote(nil, name) // a name is valid UTF-8
	req := s.request("/market/orderbook?q=Load&qp=" + escape("["+app+","+string(quoted)+"]"))
	req.Header.Set("X-Valve-Request-Type", "queryAction")
	return req
}

func (s *Provider) request(path string) provider.Request {
	return provider.Request{URL: s.base + path, Header: http.Header{"Accept": {"application/json"}}}
}

// escape escapes a query value like Steam's pages, with %20 for a space.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
