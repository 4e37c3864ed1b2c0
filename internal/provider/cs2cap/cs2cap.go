// Package cs2cap reads from cs2cap what an item is offered for on many markets: by
// a hundred names, by one, or as a stream of all there are.
//
// Provider: https://docs.cs2cap.com, its OpenAPI included, read in November 2026.
// Not documented there: whether lowest_ask is rounded up or down, so the decimal
// beside it is preferred; which budget the rate headers of a response speak
// of, so that of the month is believed where its reset says so, and any other; and
// whether a row of market/items names its phase as other rows do, which it is taken
// to.
package cs2cap

import (
	"cmp"
	"context"
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

// Name is the key by which configuration and URLs know the provider.
const Name = "cs2cap"

// BaseURL is where the API is.
const BaseURL = "https://api.cs2c.app"

// The text of a 429 when the month's quota is used up, or that of streams; and a 409
// while the key has a stream open.
const (
	SpentCode       = "RATE_LIMIT_MONTHLY_QUOTA_EXCEEDED"
	StreamSpentCode = "RATE_LIMIT_STREAM_QUOTA_EXCEEDED"
	StreamingCode   = "STREAM_ALREADY_ACTIVE"
)

// Tune sets in the options of a client, where they leave it open, how cs2cap is to
// be treated in this shape: a stream takes longer than other responses, and holds more.
func Tune(o *provider.Options, shape provider.Shape) {
	o.Classify = classify
	if shape == provider.Bulk {
		o.Timeout, o.Total = cmp.Or(o.Timeout, 4*time.Minute), cmp.Or(o.Total, 6*time.Minute)
		o.MaxBody = cmp.Or(o.MaxBody, 512<<20)
	}
}

// classify distinguishes a used-up quota from a used-up minute, and a stream that is
// open, which ends soon, from a refusal.
func classify(e *provider.Error) {
	switch {
	case e.Kind == provider.KindRateLimited && (strings.Contains(e.Detail, SpentCode) || strings.Contains(e.Detail, StreamSpentCode)):
		e.Kind = provider.KindBudget
	case e.Status == http.StatusConflict && strings.Contains(e.Detail, StreamingCode):
		e.Kind = provider.KindRateLimited
	}
}

// Host returns what the least plan allows that can be queried in this shape:
// Starter for batches, Free for single names. For a stream it is Pro, and a host by
// itself: its starts in any 24 hours are what limits it, and what the headers of its
// responses speak of.
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

// SalesHost returns what the Pro plan allows of everything that is no stream.
func SalesHost() provider.Host {
	return provider.Host{Limit: provider.Limit{Requests: 100, Per: time.Minute}, Quota: provider.Quota{Month: 500_000}, Headers: provider.HeadersOfMonth}
}

// Markets returns the keys of all markets that cs2cap documents.
func Markets() []string {
	return []string{
		"avanmarket", "buff163", "buffmarket", "c5", "csdeals", "csfloat", "csgo500", "csgoempire", "csmoney_m", "csmoney_t", "cstrade",
		"dmarket", "dupefi", "ecosteam", "gameboost", "haloskins", "itradegg", "lisskins", "lootfarm", "mannco", "marketcsgo", "pirateswap",
		"rapidskins", "shadowpay", "skinbaron", "skinflow", "skinland", "skinout", "skinplace", "skinport", "skinscom", "skinsmonkey",
		"skinswap", "skinswap_t", "skinvault", "steam", "swapgg", "tradeit", "waxpeer", "whitemarket", "youpin",
	}
}

const (
	batchSize = 100 // names that a request takes
	pageSize  = 100 // rows of a response about one name, on the least plan
	maxPages  = 10  // of them: far more than a name has markets and phases

	// maxAge is how long a quote serves that was requested by itself: on the free plan
	// it is the turn of 33 names a day. A market's quote of a week ago is too old anyway.
	maxAge = 7 * 24 * time.Hour

	streamFile = "prices.ndjson"
	month      = 30 * 24 * time.Hour // for which sales are reported
)

const terms = "Needs a key of a cs2cap plan; its terms apply. What is quoted of a phased item by its name is its cheapest phase."

// Config configures a Provider.
type Config struct {
	BaseURL  string // without a slash at its end
	Key      string
	Shape    provider.Shape   // Batch, the default, Single, which the free plan is confined to, or Bulk, a stream of all
	Markets  []string         // keys of the requested markets, at most 64; default all that are documented
	Currency money.Currency   // in which prices are requested: USD, EUR or GBP; default USD, and for any other, and of a stream
	Host     provider.Host    // what may be queried of it
	Client   *provider.Client // carries the requests; see Tune
	Sales    *provider.Client // Bulk: carries what is queried about sales, and by name, within SalesHost; nil: no sales are requested
}

// Provider reads cs2cap. Its methods may be called concurrently.
type Provider struct {
	base, key string
	currency  money.Currency
	client    *provider.Client
	sales     *provider.Client
	describe  provider.Description
	markets   map[string]int // by key, where in describe they are
}

// New returns a Provider. It sends no request.
func New(c Config) *Provider {
	s := &Provider{base: c.BaseURL, key: c.Key, currency: "USD", client: c.Client, sales: c.Sales, markets: map[string]int{}}
	if c.Shape != provider.Bulk && (c.Currency == "EUR" || c.Currency == "GBP") {
		s.currency = c.Currency // cs2cap converts; its cents are hundredths in these
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
		s.describe.Interval = c.Host.Limit.Time(1) // each start is one of few
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

// Describe describes the provider.
func (s *Provider) Describe() provider.Description { return s.describe }

// Probe requests one name in each shape: it never starts a stream, of which the plan
// allows few.
func (s *Provider) Probe() provider.Call {
	if s.describe.Shape == provider.Bulk && s.sales == nil {
		return provider.Call{AppID: catalog.CS2, File: streamFile}
	}
	return provider.Call{AppID: catalog.CS2, Names: []string{"AK-47 | Redline (Field-Tested)"}}
}

// Fetch requests what the call names.
func (s *Provider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	if s.describe.Shape == provider.Bulk && len(call.Names) == 0 {
		return s.fetchStream(ctx, call, sink)
	}
	switch n := len(call.Names); {
	case call.AppID != catalog.CS2:
		return provider.Result{}, provider.Protocol(Name, "app %d is not quoted", call.AppID)
	case n == 0 || n > max(s.describe.BatchSize, 1):
		return provider.Result{}, provider.Protocol(Name, "%d names in a call: want 1 to %d", n, s.describe.BatchSize)
	case s.describe.Shape != provider.Batch:
		return s.fetchName(ctx, call, sink)
	}
	var answer provider.Result
	err := s.client.Do(ctx, s.batch(call), func(resp *provider.Response) (err error) {
		answer, err = s.readBatch(ctx, resp.Body, call.Names, sink)
		return err
	})
	if err != nil {
		return provider.Result{}, err
	}
	return answer, nil
}

// batch is the request for up to a hundred names.
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

// header is what every request has.
func (s *Provider) header() http.Header {
	return http.Header{"Authorization": {"Bearer " + s.key}, "Accept": {"application/json"}}
}

// quote appends a name, which is valid UTF-8, or else nothing can be queried of it.
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

// page is the request for the rows of one name from the offset on.
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

// fetchName reads all pages of one name, which count together or not at all.
func (s *Provider) fetchName(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	var (
		answer provider.Result
		rows   kept
	)
	client := s.client
	if s.sales != nil {
		client = s.sales // the other's requests are starts of streams
	}
	next := 0
	for range maxPages {
		var (
			page  kept
			count int // 0: it is the last
		)
		err := client.Do(ctx, s.page(call, next), func(resp *provider.Response) (err error) {
			answer, count, err = s.readPage(ctx, resp.Body, call.Names[0], &page)
			return err
		})
		if err != nil {
			return provider.Result{}, err
		}
		rows.add(&page)
		if count == 0 {
			return answer, rows.hand(sink)
		}
		next += count
	}
	return provider.Result{}, provider.Protocol(Name, "more than %d pages about one name", maxPages)
}
