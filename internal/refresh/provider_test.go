package refresh_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// fakeProvider is a provider for tests. It quotes the result of price for each name on each
// of its markets.
type fakeProvider struct {
	d provider.Description
	// items are the names in its files, or the known names, by game.
	items map[int32][]string
	// price returns the ask of a name on a market in dollars. 0 means that the name is not listed.
	price func(market, name string) money.Micro
	// edit changes a quote, or omits it by returning false.
	edit func(q *provider.Quote) bool
	// extra is added after all other quotes.
	extra []provider.Quote
	// refused are the names of invalid rows.
	refused []string
	// stated, if not nil, returns the provider's own time of a response.
	stated func(call provider.Call) time.Time
	// split, if not nil, maps each file to the first letter of its names.
	split map[string]byte
	// silent are the markets that each response reports as missing. If lacks is not nil, it replaces them for a call.
	silent []string
	lacks  func(call provider.Call) []string
	// fail returns the error of the n-th call, from 1, or nil.
	fail func(n int, call provider.Call) error
	// admit, if not nil, may reject a call before a request is sent.
	admit func(ctx context.Context, call provider.Call) error
	// before is called at the start of every call.
	before func(ctx context.Context, call provider.Call)

	mu    sync.Mutex
	calls []provider.Call
}

// bulk returns a provider with one file of CS2 for each market.
func bulk(name string, items []string, markets ...string) *fakeProvider {
	s := newProvider(name, provider.Bulk, items, markets)
	for _, m := range markets {
		s.d.Files = append(s.d.Files, provider.File{Key: m + ".json", AppID: catalog.CS2, Markets: []string{m}})
	}
	return s
}

// batch returns a provider that takes up to size names of CS2 per request.
func batch(name string, size int, items []string, markets ...string) *fakeProvider {
	s := newProvider(name, provider.Batch, items, markets)
	s.d.BatchSize = size
	return s
}

// single returns a provider that takes one name of CS2 per request.
func single(name string, items []string, markets ...string) *fakeProvider {
	s := newProvider(name, provider.Single, items, markets)
	s.d.BatchSize = 1
	return s
}

func newProvider(name string, shape provider.Shape, items []string, markets []string) *fakeProvider {
	s := &fakeProvider{
		d:     provider.Description{Name: name, Title: name, Shape: shape, Interval: 5 * time.Minute},
		items: map[int32][]string{catalog.CS2: items},
		price: func(string, string) money.Micro { return units(10) },
	}
	for _, m := range markets {
		s.d.Markets = append(s.d.Markets, provider.Market{Key: m, Title: m, AppIDs: []int32{catalog.CS2}})
	}
	return s
}

// Describe implements provider.Provider.
func (s *fakeProvider) Describe() provider.Description { return s.d }

// Fetch implements provider.Provider.
func (s *fakeProvider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	if s.admit != nil {
		if err := s.admit(ctx, call); err != nil {
			return provider.Result{}, err
		}
	}
	if err := call.Meter.Request(ctx); err != nil {
		return provider.Result{}, &provider.Error{Provider: s.d.Name, Kind: provider.KindCancelled, Err: err}
	}
	s.mu.Lock()
	s.calls = append(s.calls, call)
	n := len(s.calls)
	s.mu.Unlock()
	call.Meter.AddBytes(100)
	if s.before != nil {
		s.before(ctx, call)
	}
	if ctx.Err() != nil {
		return provider.Result{}, &provider.Error{Provider: s.d.Name, Kind: provider.KindCancelled, Err: ctx.Err()}
	}
	sink.Restart()
	if s.fail != nil {
		if err := s.fail(n, call); err != nil {
			return provider.Result{}, err
		}
	}
	response := provider.Result{Silent: s.silent}
	if s.lacks != nil {
		response.Silent = s.lacks(call)
	}
	if s.stated != nil {
		response.ProviderTime = s.stated(call)
	}
	return response, s.response(call, sink)
}

func (s *fakeProvider) response(call provider.Call, sink provider.Sink) error {
	requested := call.Names
	if call.File != "" {
		requested = s.items[call.AppID]
	}
	known := map[string]bool{}
	for _, n := range s.items[call.AppID] {
		known[n] = true
	}
	for _, m := range s.marketsOf(call.File) {
		for _, n := range requested {
			if first, ok := s.split[call.File]; !known[n] || ok && n[0] != first {
				continue
			}
			q := provider.Quote{
				Market: m, Name: n, Currency: "USD", Ask: s.price(m, n),
				Listings: provider.Unknown, Sales: provider.Unknown,
			}
			if len(known) >= 100 {
				q.Ask = varied(q.Ask, n)
			}
			if s.edit != nil && !s.edit(&q) {
				continue
			}
			if err := sink.Quote(&q); err != nil {
				return err
			}
		}
	}
	for i := range s.extra {
		if err := sink.Quote(&s.extra[i]); err != nil {
			return err
		}
	}
	for _, name := range s.refused {
		sink.Reject("", name, "a test")
	}
	return nil
}

// varied changes the prices of numbered names by up to 0.05 %, because a market with one
// price for a hundred names would be refused. The first name keeps its price.
func varied(price money.Micro, name string) money.Micro {
	var n int
	for word := range strings.FieldsSeq(name) {
		if i, err := strconv.Atoi(word); err == nil {
			n = i
		}
	}
	return price * money.Micro(100_000+n%50) / 100_000
}

// marketsOf returns the markets of a file, or all markets for "".
func (s *fakeProvider) marketsOf(file string) []string {
	for _, f := range s.d.Files {
		if f.Key == file {
			return f.Markets
		}
	}
	var out []string
	for _, m := range s.d.Markets {
		out = append(out, m.Key)
	}
	return out
}

// requested returns the calls of the provider since requested was last called.
func (s *fakeProvider) requested() []provider.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.calls
	s.calls = nil
	return out
}

// broken returns an error of the given kind.
func (s *fakeProvider) broken(kind provider.Kind) error {
	return &provider.Error{Provider: s.d.Name, Kind: kind, Detail: "scripted failure"}
}

// wait returns a rate-limit error with a retry-after.
func (s *fakeProvider) wait(d time.Duration) error {
	return &provider.Error{Provider: s.d.Name, Kind: provider.KindRateLimited, Status: 429, RetryAfter: d}
}
