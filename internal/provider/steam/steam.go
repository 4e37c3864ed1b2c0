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

// BaseURL is the base URL of the market.
const BaseURL = "https://steamcommunity.com"

// Host returns the market's host and its limit. Steam does not document a limit. Requests
// within the returned limit were observed to be safe without an account. Steam counts the
// requests of an address to all endpoints together, so all requests to the host share this
// budget.
func Host() provider.Host {
	return provider.Host{Key: "steamcommunity.com", Limit: provider.Limit{Requests: 25, Per: 5 * time.Minute}}
}

// Endpoint is an endpoint of the market that returns the price of a name.
type Endpoint string

// The endpoints.
const (
	PriceOverview Endpoint = "priceoverview" // lowest ask; median and number of sales in a day
	OrderBook     Endpoint = "orderbook"     // lowest ask, highest bid, number of offers
)

const (
	day = 24 * time.Hour
	// interval is the time for which Steam caches a response.
	interval = 15 * time.Second
	// maxAge is longer than the time to fetch 20,000 names within Steam's limit, which
	// inventory requests share. With the default, quotes would become stale before they
	// are fetched again.
	maxAge = 5 * day
	// maxBody is the maximum size of a response. Real responses are much smaller.
	maxBody = 4 << 20
)

const terms = "Steam does not document this use of its market and does not guarantee it. It limits requests per address, and each request during a block prolongs the block. " +
	"The data is fetched slowly and only for your own site. The Steam Subscriber Agreement applies."

// Tune sets the unset options of the provider's client. After status 429, the client waits
// ten minutes. The wait doubles, up to an hour, each time Steam then refuses again.
func Tune(o *provider.Options) {
	o.Wait, o.MostWait = cmp.Or(o.Wait, 10*time.Minute), cmp.Or(o.MostWait, time.Hour)
	o.Attempts = cmp.Or(o.Attempts, 2) // few, because the limit allows few requests
	o.MaxBody = cmp.Or(o.MaxBody, maxBody)
	if o.Classify == nil {
		o.Classify = classify
	}
}

// classify sets the kind of errors that are specific to Steam. Status 403 with an HTML page
// is a rate limit. Status 500 with a short body may apply only to the requested name.
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
	BaseURL  string           // base URL without a trailing slash
	Endpoint Endpoint         // default PriceOverview
	Host     provider.Host    // budget of the requests; see the function Host
	Client   *provider.Client // sends the requests; see Tune
}

// Provider reads quotes from the Steam Community Market. Its methods are safe for
// concurrent use.
type Provider struct {
	base     string
	endpoint Endpoint
	client   *provider.Client
	describe provider.Description
}

// New returns a Provider. It does not send requests.
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
		return provider.Result{}, provider.Protocol(Name, "there are no prices for app %d", call.AppID)
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

// overview returns the priceoverview request for a name. It requests prices in dollars.
// Without a country, Steam would use the country of the client's address.
func (s *Provider) overview(app, name string) provider.Request {
	return s.request("/market/priceoverview/?appid=" + app + "&currency=1&country=US&market_hash_name=" + escape(name))
}

// book returns the orderbook request for a name. Its parameter qp is a JSON array.
func (s *Provider) book(app, name string) provider.Request {
	quoted, _ := jsontext.AppendQuote(nil, name) // fails only for invalid UTF-8
	req := s.request("/market/orderbook?q=Load&qp=" + escape("["+app+","+string(quoted)+"]"))
	req.Header.Set("X-Valve-Request-Type", "queryAction")
	return req
}

func (s *Provider) request(path string) provider.Request {
	return provider.Request{URL: s.base + path, Header: http.Header{"Accept": {"application/json"}}}
}

// escape escapes a query value with %20 for a space, like Steam's pages.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
