// Package cs2cap reads from cs2cap what an item is offered for on many markets.
//
// Source: https://docs.cs2cap.com, its OpenAPI included, read in November 2026.
// Not documented there: whether lowest_ask is rounded up or down, so the decimal
// beside it is preferred; and which budget the rate headers of an answer speak
// of, so that of the month is believed where its reset says so, and any other.
package cs2cap

import (
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

// Name is the key by which configuration and URLs know the source.
const Name = "cs2cap"

// BaseURL is where the API is.
const BaseURL = "https://api.cs2c.app"

// SpentCode is what a 429 says when the month's quota is used up.
const SpentCode = "RATE_LIMIT_MONTHLY_QUOTA_EXCEEDED"

// Judge tells a month that is used up from a minute that is. It belongs in the
// options of the Client.
func Judge(e *provider.Error) {
	if e.Kind == provider.KindRateLimited && strings.Contains(e.Detail, SpentCode) {
		e.Kind = provider.KindBudget
	}
}

// Host returns what the least plan allows that can be asked in this shape:
// Starter for batches, Free for single names.
func Host(shape provider.Shape) provider.Host {
	h := provider.Host{Limit: provider.Limit{Requests: 40, Per: time.Minute}, Quota: provider.Quota{Month: 50_000}}
	if shape == provider.Single {
		h = provider.Host{Limit: provider.Limit{Requests: 20, Per: time.Minute}, Quota: provider.Quota{Month: 1000}}
	}
	h.Headers = provider.HeadersOfMonth
	return h
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
	pageSize  = 100 // rows of an answer about one name, on the least plan
	maxPages  = 10  // of them: far more than a name has markets and phases
)

const terms = "Needs a key of a cs2cap plan; its terms apply. What is quoted of a phased item by its name is its cheapest phase."

// Config says how a Source asks.
type Config struct {
	BaseURL  string // without a slash at its end
	Key      string
	Shape    provider.Shape   // Batch, the default, or Single, which the free plan is confined to
	Markets  []string         // keys of those to ask for, at most 64; default all that are documented
	Currency money.Currency   // in which prices are asked for: USD, EUR or GBP; default USD, and for any other
	Host     provider.Host    // what may be asked of it
	Client   *provider.Client // carries the requests
}

// Source reads cs2cap. Its methods may be called concurrently.
type Source struct {
	base, key string
	currency  money.Currency
	client    *provider.Client
	describe  provider.Description
	markets   map[string]string // keys of the markets, to share their text
}

// New returns a Source. It asks nothing yet.
func New(c Config) *Source {
	s := &Source{base: c.BaseURL, key: c.Key, currency: "USD", client: c.Client, markets: map[string]string{}}
	switch c.Currency {
	case "EUR", "GBP":
		s.currency = c.Currency // cs2cap converts; its cents are hundredths in these
	}
	s.describe = provider.Description{
		Name: Name, Title: "cs2cap", Shape: provider.Batch, BatchSize: batchSize, Hosts: []provider.Host{c.Host}, Terms: terms,
	}
	if c.Shape == provider.Single {
		s.describe.Shape, s.describe.BatchSize = provider.Single, 1
	}
	keys := c.Markets
	if len(keys) == 0 {
		keys = Markets()
	}
	for _, key := range keys {
		s.markets[key] = key
		s.describe.Markets = append(s.describe.Markets, provider.Market{Key: key, Title: feed.Title(key), AppIDs: []int32{catalog.CS2}})
	}
	return s
}

// Describe returns what the source says of itself.
func (s *Source) Describe() provider.Description { return s.describe }

// Fetch asks for what the call names.
func (s *Source) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Answer, error) {
	switch n := len(call.Names); {
	case call.AppID != catalog.CS2:
		return provider.Answer{}, provider.Protocol(Name, "app %d is not quoted", call.AppID)
	case n == 0 || n > s.describe.BatchSize:
		return provider.Answer{}, provider.Protocol(Name, "%d names in a call: want 1 to %d", n, s.describe.BatchSize)
	case s.describe.Shape == provider.Single:
		return s.fetchName(ctx, call, sink)
	}
	var answer provider.Answer
	err := s.client.Do(ctx, s.batch(call), func(resp *provider.Response) (err error) {
		answer, err = s.readBatch(ctx, resp.Body, call.Names, sink)
		return err
	})
	if err != nil {
		return provider.Answer{}, err
	}
	return answer, nil
}

// batch is the request for up to a hundred names.
func (s *Source) batch(call provider.Call) provider.Request {
	body := []byte(`{"market_hash_names":[`)
	for i, name := range call.Names {
		body = quote(comma(body, i), name)
	}
	body = append(body, `],"providers":[`...)
	for i, m := range s.describe.Markets {
		body = quote(comma(body, i), m.Key)
	}
	body = append(body, `],"currency":"`+string(s.currency)+`"}`...)
	return provider.Request{
		Method: http.MethodPost, URL: s.base + "/v1/prices/batch", Body: body, Meter: call.Meter,
		Header: http.Header{"Authorization": {"Bearer " + s.key}, "Content-Type": {"application/json"}, "Accept": {"application/json"}},
	}
}

// quote appends a name, which is valid UTF-8, or else nothing can be asked of it.
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
func (s *Source) page(call provider.Call, offset int) provider.Request {
	q := url.Values{
		"market_hash_name": {call.Names[0]}, "currency": {string(s.currency)},
		"limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(offset)},
	}
	for _, m := range s.describe.Markets {
		q.Add("providers", m.Key)
	}
	return provider.Request{
		URL: s.base + "/v1/prices?" + q.Encode(), Meter: call.Meter,
		Header: http.Header{"Authorization": {"Bearer " + s.key}, "Accept": {"application/json"}},
	}
}

// fetchName reads all pages of one name, which count together or not at all.
func (s *Source) fetchName(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Answer, error) {
	var (
		answer provider.Answer
		rows   kept
	)
	next := 0
	for range maxPages {
		var (
			page  kept
			count int // 0: it is the last
		)
		err := s.client.Do(ctx, s.page(call, next), func(resp *provider.Response) (err error) {
			answer, count, err = s.readPage(ctx, resp.Body, call.Names[0], &page)
			return err
		})
		if err != nil {
			return provider.Answer{}, err
		}
		rows.add(&page)
		if count == 0 {
			return answer, rows.hand(sink)
		}
		next += count
	}
	return provider.Answer{}, provider.Protocol(Name, "more than %d pages about one name", maxPages)
}
