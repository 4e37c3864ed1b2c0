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

// Name is the key by which configuration and URLs know the provider, and that of
// its market.
const Name = "steam"

// BaseURL is where the market is.
const BaseURL = "https://steamcommunity.com"

// Host is the market's host, with what was seen to be safe without an account;
// Steam documents no limit. It limits an address, whatever is requested: everything
// that is queried of the host goes by one budget, that of this provider and key.
func Host() provider.Host {
	return provider.Host{Key: "steamcommunity.com", Limit: provider.Limit{Requests: 25, Per: 5 * time.Minute}}
}

// Endpoint is what is queried about a name.
type Endpoint string

// The endpoints.
const (
	PriceOverview Endpoint = "priceoverview" // lowest ask, median and number of the sales of a day
	OrderBook     Endpoint = "orderbook"     // lowest ask, highest bid, number of offers
)

const (
	day = 24 * time.Hour
	// interval is how long Steam itself keeps a response.
	interval = 15 * time.Second
	// maxAge outlasts the walk through 20,000 names at what inventories leave of
	// Steam's limit: with the default, what was queried first would be too old before it
	// is its turn again.
	maxAge = 5 * day
	// maxBody is far more than Steam's response for one name.
	maxBody = 4 << 20
)

const terms = "Steam documents no such use of its market and promises nothing: it limits by address, and each request while it refuses prolongs that. " +
	"The data is read for your own site, slowly; the Steam Subscriber Agreement holds."

// Tune sets in the options of the provider's client, where they leave it open, how
// Steam is to be treated: after a refusal the client waits for ten minutes, and up to
// an hour while that lasts.
func Tune(o *provider.Options) {
	o.Wait, o.MostWait = cmp.Or(o.Wait, 10*time.Minute), cmp.Or(o.MostWait, time.Hour)
	o.Attempts = cmp.Or(o.Attempts, 2) // requests are few
	o.MaxBody = cmp.Or(o.MaxBody, maxBody)
	if o.Classify == nil {
		o.Classify = classify
	}
}

// classify classifies Steam's errors: an HTML page with 403 is a refusal
// for too many requests, and 500 may concern the name alone.
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
	BaseURL  string           // without a slash at its end
	Endpoint Endpoint         // default PriceOverview
	Host     provider.Host    // what may be queried of it
	Client   *provider.Client // carries the requests; see Tune
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

// Describe describes the provider.
func (s *Provider) Describe() provider.Description { return s.describe }

// Fetch requests the price of one name.
func (s *Provider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	if !slices.Contains(s.describe.Markets[0].AppIDs, call.AppID) {
		return provider.Result{}, provider.Protocol(Name, "app %d is not quoted", call.AppID)
	}
	if len(call.Names) != 1 || catalog.CheckName(call.Names[0]) != nil {
		return provider.Result{}, provider.Protocol(Name, "a call is about one name that can be one")
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

// overview requests priceoverview, in dollars, whatever currency the address would get.
func (s *Provider) overview(app, name string) provider.Request {
	return s.request("/market/priceoverview/?appid=" + app + "&currency=1&country=US&market_hash_name=" + escape(name))
}

// book requests orderbook, whose query is JSON.
func (s *Provider) book(app, name string) provider.Request {
	quoted, _ := jsontext.AppendQuote(nil, name) // a name is valid UTF-8
	req := s.request("/market/orderbook?q=Load&qp=" + escape("["+app+","+string(quoted)+"]"))
	req.Header.Set("X-Valve-Request-Type", "queryAction")
	return req
}

func (s *Provider) request(path string) provider.Request {
	return provider.Request{URL: s.base + path, Header: http.Header{"Accept": {"application/json"}}}
}

// escape writes a space as Steam's own pages do.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
