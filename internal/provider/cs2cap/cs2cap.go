package cs2cap

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// Name is the provider's key in configuration and URLs.
const Name = "cs2cap"

// BaseURL is the address of the API.
const BaseURL = "https://api.cs2c.app"

// Error codes of cs2cap. The first two are in a 429 when the monthly or the stream quota is
// exhausted. The third is in a 409 while the key has an open stream.
const (
	QuotaExceededCode       = "RATE_LIMIT_MONTHLY_QUOTA_EXCEEDED"
	StreamQuotaExceededCode = "RATE_LIMIT_STREAM_QUOTA_EXCEEDED"
	StreamActiveCode        = "STREAM_ALREADY_ACTIVE"
)

// Tune sets unset client options for requests of this shape. A stream takes longer and is
// larger than other responses.
func Tune(o *provider.Options, shape provider.Shape) {
	o.Classify = classify
	if shape == provider.Bulk {
		o.Timeout, o.Total = cmp.Or(o.Timeout, 4*time.Minute), cmp.Or(o.Total, 6*time.Minute)
		o.MaxBody = cmp.Or(o.MaxBody, 512<<20)
	}
}

// classify changes the kind of two errors. An exhausted quota differs from a per-minute limit.
// An open stream ends soon, so it is not a permanent refusal.
func classify(e *provider.Error) {
	switch {
	case e.Kind == provider.KindRateLimited && (strings.Contains(e.Detail, QuotaExceededCode) || strings.Contains(e.Detail, StreamQuotaExceededCode)):
		e.Kind = provider.KindBudget
	case e.Status == http.StatusConflict && strings.Contains(e.Detail, StreamActiveCode):
		e.Kind = provider.KindRateLimited
	}
}

// Host returns the budget of the cheapest plan that allows this shape: Starter for batches,
// Free for single names, Pro for a stream. A stream has a separate host, because a limit on
// stream starts per 24 hours applies. The rate-limit headers of a stream describe that limit.
func Host(shape provider.Shape) provider.Host {
	h := provider.Host{Limit: provider.Limit{Requests: 40, Per: time.Minute}, Quota: provider.Quota{Month: 50_000}, Headers: provider.HeadersOfMonth}
	switch shape {
	case provider.Single:
		h.Limit.Requests, h.Quota.Month = 20, 1000
	case provider.Bulk:
		h = provider.Host{Key: "stream", Limit: provider.Limit{Requests: 50, Per: 24 * time.Hour}}
	}
	return h
}

// SalesHost returns the budget of the Pro plan for all requests except streams.
func SalesHost() provider.Host {
	return provider.Host{Limit: provider.Limit{Requests: 100, Per: time.Minute}, Quota: provider.Quota{Month: 500_000}, Headers: provider.HeadersOfMonth}
}

// Markets returns the keys of all documented markets.
func Markets() []string {
	return []string{
		"avanmarket", "buff163", "buffmarket", "c5", "csdeals", "csfloat", "csgo500", "csgoempire", "csmoney_m", "csmoney_t", "cstrade",
		"dmarket", "dupefi", "ecosteam", "gameboost", "haloskins", "itradegg", "lisskins", "lootfarm", "mannco", "marketcsgo", "pirateswap",
		"rapidskins", "shadowpay", "skinbaron", "skinflow", "skinland", "skinout", "skinplace", "skinport", "skinscom", "skinsmonkey",
		"skinswap", "skinswap_t", "skinvault", "steam", "swapgg", "tradeit", "waxpeer", "whitemarket", "youpin",
	}
}

const (
	batchSize = 100 // names per request
	pageSize  = 100 // rows per response about one name, on the cheapest plan
	maxPages  = 10  // pages per name; a name needs far fewer for its markets and phases

	// maxAge is the age after which a quote by name is stale. It is long, because the free
	// plan allows 33 names a day, so each name is requested rarely.
	maxAge = 7 * 24 * time.Hour

	streamFile = "prices.ndjson"
	month      = 30 * 24 * time.Hour // period of reported sales
)

const terms = "Needs the key of a cs2cap plan. The terms of cs2cap apply. For an item with phases, the quote without a phase is the quote of the cheapest phase."

// Config configures a Provider.
type Config struct {
	BaseURL  string // without a trailing slash
	Key      string
	Shape    provider.Shape   // Batch (default), Single (for the free plan) or Bulk (a stream of all items)
	Markets  []string         // market keys to request, at most 64; default: all documented markets
	Currency money.Currency   // requested currency: USD, EUR or GBP; otherwise, and for a stream, USD
	Host     provider.Host    // budget
	Client   *provider.Client // sends the requests; see Tune
	Sales    *provider.Client // for Bulk: sends requests for sales and single names, within SalesHost; nil: no sales
}

// Provider reads cs2cap. Its methods may be called concurrently.
type Provider struct {
	base, key string
	currency  money.Currency
	client    *provider.Client
	sales     *provider.Client
	describe  provider.Description
	markets   map[string]int // index in describe.Markets by market key
}

// New returns a Provider. It sends no request.
func New(c Config) *Provider {
	s := &Provider{base: c.BaseURL, key: c.Key, currency: "USD", client: c.Client, sales: c.Sales, markets: map[string]int{}}
	if c.Shape != provider.Bulk && (c.Currency == "EUR" || c.Currency == "GBP") {
		s.currency = c.Currency // cs2cap converts to these currencies, which have two decimal places
	}
	s.describe = provider.Description{
		Name: Name, Title: "cs2cap", Shape: provider.Batch, BatchSize: batchSize, Hosts: []provider.Host{c.Host}, Terms: terms,
	}
	market := provider.Market{AppIDs: []int32{catalog.CS2}, Currencies: []money.Currency{s.currency}}
	switch c.Shape {
	case provider.Single:
		s.describe.Shape, s.describe.BatchSize = provider.Single, 1
		market.MaxAge = maxAge
	case provider.Bulk:
		s.describe.Shape, s.describe.BatchSize = provider.Bulk, 0
		s.describe.Interval = c.Host.Limit.Time(1) // the number of stream starts is limited
	}
	if c.Sales != nil {
		s.describe.Hosts = append(s.describe.Hosts, SalesHost())
		market.SalesWindow = month
	}
	keys := c.Markets
	if len(keys) == 0 {
		keys = Markets()
	}
	for i, key := range keys {
		s.markets[key] = i
		market.Key, market.Title = key, feed.Title(key)
		s.describe.Markets = append(s.describe.Markets, market)
	}
	if c.Shape == provider.Bulk {
		file := provider.File{Key: streamFile, AppID: catalog.CS2, Host: c.Host.Key, Requests: len(s.describe.Hosts)}
		for _, m := range s.describe.Markets {
			file.Markets = append(file.Markets, m.Key)
		}
		s.describe.Files = []provider.File{file}
	}
	return s
}

// Describe implements provider.Provider.
func (s *Provider) Describe() provider.Description { return s.describe }

// Probe returns a call for one name. It avoids a stream, because the plan allows few stream
// starts. Only a Provider of shape Bulk without a Sales client probes with the stream.
func (s *Provider) Probe() provider.Call {
	if s.describe.Shape == provider.Bulk && s.sales == nil {
		return provider.Call{AppID: catalog.CS2, File: streamFile}
	}
	return provider.Call{AppID: catalog.CS2, Names: []string{"AK-47 | Redline (Field-Tested)"}}
}

// Fetch implements provider.Provider.
func (s *Provider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	if s.describe.Shape == provider.Bulk && len(call.Names) == 0 {
		return s.fetchStream(ctx, call, sink)
	}
	switch n := len(call.Names); {
	case call.AppID != catalog.CS2:
		return provider.Result{}, provider.Protocol(Name, "cs2cap has no quotes for app %d", call.AppID)
	case n == 0 || n > max(s.describe.BatchSize, 1):
		return provider.Result{}, provider.Protocol(Name, "got %d names in a call, want 1 to %d", n, s.describe.BatchSize)
	case s.describe.Shape != provider.Batch:
		return s.fetchName(ctx, call, sink)
	}
	return provider.Read(ctx, s.client, s.batch(call), func(ctx context.Context, body io.Reader) (provider.Result, error) {
		return s.readBatch(ctx, body, call.Names, sink)
	})
}

// batch returns the request for up to a hundred names.
func (s *Provider) batch(call provider.Call) provider.Request {
	body := []byte(`{"market_hash_names":[`)
	for i, name := range call.Names {
		body = quote(comma(body, i), name)
	}
	body = append(body, `],"providers":[`...)
	for i, m := range s.describe.Markets {
		body = quote(comma(body, i), m.Key)
	}
	body = append(body, `],"currency":"`+string(s.currency)+`"}`...)
	header := s.header()
	header.Set("Content-Type", "application/json")
	return provider.Request{Method: http.MethodPost, URL: s.base + "/v1/prices/batch", Header: header, Body: body, Meter: call.Meter}
}

// header returns the headers of every request.
func (s *Provider) header() http.Header {
	return http.Header{"Authorization": {"Bearer " + s.key}, "Accept": {"application/json"}}
}

// quote appends a name to b as a JSON string. The name must be valid UTF-8.
func quote(b []byte, name string) []byte {
	b, _ = jsontext.AppendQuote(b, name)
	return b
}

func comma(b []byte, i int) []byte {
	if i == 0 {
		return b
	}
	return append(b, ',')
}

// page returns the request for the rows of one name, starting at offset.
func (s *Provider) page(call provider.Call, offset int) provider.Request {
	q := url.Values{
		"market_hash_name": {call.Names[0]}, "currency": {string(s.currency)},
		"limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(offset)},
	}
	for _, m := range s.describe.Markets {
		q.Add("providers", m.Key)
	}
	return provider.Request{
		URL: s.base + "/v1/prices?" + q.Encode(), Meter: call.Meter,
		Header: s.header(),
	}
}

// fetchName reads all pages of one name and then passes their quotes to the sink.
func (s *Provider) fetchName(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	var (
		result provider.Result
		rows   rowBuffer
	)
	client := s.client
	if s.sales != nil {
		client = s.sales // s.client is only for streams
	}
	next := 0
	for range maxPages {
		var (
			page  rowBuffer
			count int // 0 after the last page
		)
		err := client.Do(ctx, s.page(call, next), func(resp *provider.Response) (err error) {
			result, count, err = s.readPage(ctx, resp.Body, call.Names[0], &page)
			return err
		})
		if err != nil {
			return provider.Result{}, err
		}
		rows.add(&page)
		if count == 0 {
			return result, rows.flush(sink)
		}
		next += count
	}
	return provider.Result{}, provider.Protocol(Name, "more than %d pages for one name", maxPages)
}
