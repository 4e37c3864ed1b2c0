package sim

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// Name is the provider's key in configuration and URLs.
const Name = "sim"

// Currency is the currency of simulated markets.
const Currency money.Currency = "USD"

// Config configures a Provider of simulated prices.
type Config struct {
	BaseURL   string           // base URL of the simulator, such as "http://127.0.0.1:8090"
	Shape     provider.Shape   // default provider.Bulk
	Client    *provider.Client // sends the requests; must allow the simulator's host
	Markets   int              // number of simulated markets; default DefaultMarkets
	BatchSize int              // names per request of shape Batch; default and maximum BatchSize
	Interval  time.Duration    // time between changes of a response; default Interval
	Limit     provider.Limit   // rate limit of the simulator; zero: no limit
	Quota     provider.Quota   // quotas of the simulator; zero: no quotas
}

// Provider reads quotes from a market simulator. Its methods are safe for concurrent use.
type Provider struct {
	base        string
	client      *provider.Client
	description provider.Description
	markets     map[string]string // each market key, mapped to itself so that quotes share one string
}

// New returns a Provider. It returns an error for an invalid configuration.
func New(c Config) (*Provider, error) {
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" || base.RawQuery != "" || base.Fragment != "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("invalid base URL of the simulator: use an HTTP address such as http://127.0.0.1:8090")
	}
	n, err := checkMarkets(c.Markets)
	if err != nil {
		return nil, err
	}
	d := provider.Description{
		Name: Name, Title: "Market simulator", Shape: c.Shape, Interval: c.Interval,
		Hosts: []provider.Host{{Limit: c.Limit, Quota: c.Quota}},
		Terms: "Invented items and prices, made on this machine. For demonstrations and tests.",
	}
	if d.Interval <= 0 {
		d.Interval = Interval
	}
	if err := shape(&d, c.BatchSize); err != nil {
		return nil, err
	}
	s := &Provider{base: strings.TrimSuffix(c.BaseURL, "/"), client: c.Client, markets: make(map[string]string, n)}
	for _, v := range firstMarkets(n) {
		s.markets[v.key] = v.key
		d.Markets = append(d.Markets, v.describe())
		if d.Shape == provider.Bulk {
			d.Files = append(d.Files, provider.File{Key: v.key, AppID: catalog.CS2, Markets: []string{v.key}})
		}
	}
	s.description = d
	return s, nil
}

// shape checks the shape of d and sets its batch size.
func shape(d *provider.Description, batchSize int) error {
	switch d.Shape {
	case provider.Bulk, "":
		d.Shape = provider.Bulk
	case provider.Single:
		d.BatchSize = 1
	case provider.Batch:
		if d.BatchSize = batchSize; batchSize == 0 {
			d.BatchSize = BatchSize
		}
		if d.BatchSize < 1 || d.BatchSize > BatchSize {
			return fmt.Errorf("batches of %d names: use 1 to %d", batchSize, BatchSize)
		}
	default:
		return fmt.Errorf("unknown shape %q: use %q, %q or %q", d.Shape, provider.Bulk, provider.Batch, provider.Single)
	}
	return nil
}

// Describe implements provider.Provider.
func (s *Provider) Describe() provider.Description { return s.description }

// Fetch sends one request and decodes the response into sink.
func (s *Provider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	req, err := s.request(call)
	if err != nil {
		return provider.Result{}, err
	}
	decode := (*reader).names
	if s.description.Shape == provider.Bulk {
		decode = func(r *reader) error { return r.file(call.File) }
	}
	return provider.Read(ctx, s.client, req, func(ctx context.Context, body io.Reader) (provider.Result, error) {
		return s.read(ctx, body, sink, decode)
	})
}

// request returns the request for a call.
func (s *Provider) request(call provider.Call) (provider.Request, error) {
	// The simulator runs on the same machine, where compression only costs CPU time.
	req := provider.Request{Method: http.MethodGet, Header: http.Header{"Accept-Encoding": {"identity"}}, Meter: call.Meter}
	d := &s.description
	if call.AppID != catalog.CS2 {
		return req, provider.Protocol(Name, "there are no prices for app %d", call.AppID)
	}
	if d.Shape == provider.Bulk {
		if _, ok := s.markets[call.File]; !ok {
			return req, provider.Protocol(Name, "unknown file")
		}
		req.URL = s.base + "/v1/markets/" + url.PathEscape(call.File) + "/prices.json"
		return req, nil
	}
	if len(call.Names) == 0 || len(call.Names) > d.BatchSize {
		return req, provider.Protocol(Name, "%d names in a call: use 1 to %d", len(call.Names), d.BatchSize)
	}
	if d.Shape == provider.Single {
		req.URL = s.base + "/v1/prices?name=" + url.QueryEscape(call.Names[0])
		return req, nil
	}
	req.Method, req.URL = http.MethodPost, s.base+"/v1/prices/batch"
	req.Header.Set("Content-Type", "application/json")
	req.Body = []byte(`{"names":[`)
	for _, name := range call.Names {
		req.Body = append(appendString(req.Body, name), ',')
	}
	req.Body = append(closeList(req.Body, ']'), '}')
	return req, nil
}
