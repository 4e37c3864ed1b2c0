package cs2cap_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/cs2cap"
	"assay/internal/provider/cs2cap/cs2captest"
	"assay/internal/provider/providertest"
)

const (
	redline  = "AK-47 | Redline (Field-Tested)"
	sandDune = "P250 | Sand Dune (Battle-Scarred)"
	doppler  = "★ Karambit | Doppler (Factory New)"
	unsold   = "Souvenir AWP | 壱 \"A, B\""
	key      = "sk_test_5up3r-s3cr3t"
)

var (
	markets   = []string{"skinport", "csfloat", "steam"}
	polled    = time.Date(2026, 11, 21, 9, 57, 10, 0, time.UTC)
	generated = time.Date(2026, 11, 21, 10, 0, 5, 0, time.UTC)
)

func newProvider(t testing.TB, baseURL string, c cs2cap.Config, tweak func(*provider.Options)) *cs2cap.Provider {
	t.Helper()
	o := provider.Options{Provider: cs2cap.Name, Secrets: []string{key}}
	cs2cap.Tune(&o, c.Shape)
	c.Host = cs2cap.Host(c.Shape)
	o.Headers = c.Host.Headers
	c.BaseURL, c.Key, c.Client = baseURL, key, providertest.NewClient(t, baseURL, o, tweak)
	if c.Sales != nil {
		o.Headers = cs2cap.SalesHost().Headers
		c.Sales = providertest.NewClient(t, baseURL, o, tweak)
	}
	if c.Markets == nil {
		c.Markets = markets
	}
	return cs2cap.New(c)
}

func items() []cs2captest.Item {
	return []cs2captest.Item{
		{ID: 156, Name: redline, Quotes: []cs2captest.Quote{
			{Provider: "skinport", Ask: 2785, Decimal: "27.85", Quantity: 318, Updated: polled},
			{Provider: "steam", Ask: 3310, Quantity: 1204, Updated: polled.Add(-time.Minute)},
			{Provider: "buff163", Ask: 2601, Quantity: 9, Updated: polled},
		}},
		{ID: 9021, Name: sandDune, Quotes: []cs2captest.Quote{{Provider: "csfloat", Ask: 2, Decimal: "0.01500000", Quantity: 77, Updated: polled}}},
		{ID: 1, Name: unsold},
		{ID: 2, Name: "Known, and listed with no quotes"},
		{ID: 3, Name: doppler, Quotes: []cs2captest.Quote{{Provider: "skinport", Ask: 121000, Quantity: 12, Updated: polled}}},
		{ID: 4, Name: doppler, Phase: "Sapphire", Quotes: []cs2captest.Quote{{Provider: "skinport", Ask: 531143, Decimal: "5311.43", Quantity: 1, Updated: polled}}},
	}
}

func quote(market, name string, ask money.Micro, listings int64, at time.Time) provider.Quote {
	return provider.Quote{
		Market: market, Name: name, Currency: "USD", Ask: ask, Listings: listings, Sales: provider.Unknown, MarketTime: at,
	}
}

func quotes() []provider.Quote {
	return []provider.Quote{
		quote("skinport", redline, 27_850_000, 318, polled),
		quote("steam", redline, 33_100_000, 1204, polled.Add(-time.Minute)),
		quote("csfloat", sandDune, 15_000, 77, polled), // the decimal has half a cent more than lowest_ask
		quote("skinport", doppler, 1_210_000_000, 12, polled),
	}
}

func names() []string {
	return []string{redline, sandDune, unsold, "Known, and listed with no quotes", doppler, "No Such Item"}
}

func server() *cs2captest.Server {
	return &cs2captest.Server{Items: items(), Generated: generated, Key: key}
}

func TestSuite(t *testing.T) {
	phase := quotes()[3]
	phase.Phase, phase.Ask, phase.Listings = "Sapphire", 5_311_430_000, 1
	for _, c := range []struct {
		shape  provider.Shape
		names  []string
		want   []provider.Quote
		render func([]providertest.Row) []byte
	}{
		{provider.Batch, names(), quotes(), renderBatch},
		{provider.Single, []string{doppler}, []provider.Quote{quotes()[3], phase}, renderPage},
	} {
		t.Run(string(c.shape), func(t *testing.T) {
			providertest.Run(t, providertest.Subject{
				New: func(t testing.TB, baseURL string, tweak func(*provider.Options)) provider.Provider {
					return newProvider(t, baseURL, cs2cap.Config{Shape: c.shape}, tweak)
				},
				Good:   server(),
				Call:   provider.Call{AppID: catalog.CS2, Names: c.names},
				Want:   c.want,
				Render: c.render,
				Secret: key,
			})
		})
	}
}

const meta = `{"meta":{"currency":"USD","providers_queried":["skinport","csfloat","steam"]},"items":[`

func renderBatch(rows []providertest.Row) []byte {
	b := bytes.NewBufferString(meta)
	for i, row := range rows {
		fmt.Fprintf(b, `%.*s{"item_id":%d,"market_hash_name":%s,"phase":null,"quotes":[{"provider":"steam","lowest_ask":0,"lowest_ask_decimal":%s,"quantity":1}]}`,
			min(i, 1), ",", i, providertest.Quote(row.Name), row.Price)
	}
	b.WriteString(`],"items_not_found":[],"names_not_found":[]}`)
	return b.Bytes()
}

func renderPage(rows []providertest.Row) []byte {
	b := bytes.NewBufferString(meta)
	for i, row := range rows {
		fmt.Fprintf(b, `%.*s{"provider":"steam","item_id":%d,"market_hash_name":%s,"phase":null,"lowest_ask":%s,"quantity":1}`,
			min(i, 1), ",", i, providertest.Quote(row.Name), row.Price)
	}
	b.WriteString(`],"pagination":{"has_next":false}}`)
	return b.Bytes()
}

// fetch requests the given names, or the stream if there are none.
func fetch(t *testing.T, src *cs2cap.Provider, names ...string) (providertest.Sink, provider.Result, *provider.Meter, error) {
	t.Helper()
	var sink providertest.Sink
	meter := new(provider.Meter)
	call := provider.Call{AppID: catalog.CS2, Names: names, Meter: meter}
	if len(names) == 0 {
		call.File = src.Describe().Files[0].Key
	}
	result, err := src.Fetch(t.Context(), call, &sink)
	return sink, result, meter, err
}

func wantQuotes(t *testing.T, sink providertest.Sink, want []provider.Quote) {
	t.Helper()
	if diff := cmp.Diff((&providertest.Sink{Quotes: want}).Sorted(), sink.Sorted()); diff != "" {
		t.Errorf("quotes (-want +got):\n%s", diff)
	}
}

// A name without offers, known or unknown, is not an error and has no quotes.
func TestFetch_BatchIsOneRequest(t *testing.T) {
	srv := providertest.NewServer(t, server())
	sink, result, meter, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{}, nil), names()...)
	if err != nil {
		t.Fatal(err)
	}
	wantQuotes(t, sink, quotes())
	if sink.Rejects != 0 || meter.Requests() != 1 || !result.ProviderTime.Equal(generated) || result.Silent != nil {
		t.Errorf("got %d rejects, %d requests, result %+v; want 0, 1", sink.Rejects, meter.Requests(), result)
	}
}

func TestFetch_ReadsDocumentedResponse(t *testing.T) {
	const sample = `{"meta":{"currency":"USD","requested_item_count":3,"found_item_count":2,"providers_queried":["skinport","csfloat","steam"],"generated_at":"2026-11-21T10:00:05Z"},
 "items":[
  {"item_id":156,"market_hash_name":"AK-47 | Redline (Field-Tested)","phase":null,"quotes":[
    {"provider":"skinport","lowest_ask":2785,"lowest_ask_decimal":"27.85","quantity":318,"timestamp":"2026-11-21T09:41:00Z","last_updated":"2026-11-21T09:57:10Z"},
    {"provider":"steam","lowest_ask":3310,"lowest_ask_decimal":"33.10","quantity":1204,"timestamp":"2026-11-21T08:02:00Z","last_updated":"2026-11-21T09:55:44Z"}]},
  {"item_id":9021,"market_hash_name":"P250 | Sand Dune (Battle-Scarred)","phase":null,"quotes":[
    {"provider":"csfloat","lowest_ask":2,"lowest_ask_decimal":"0.01500000","quantity":77,"timestamp":"2026-11-21T09:12:00Z","last_updated":"2026-11-21T09:56:02Z"}]}],
 "items_not_found":[],"names_not_found":["No Such Item"]}`
	srv := providertest.NewServer(t, text(sample))
	sink, result, _, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{}, nil), redline, sandDune, "No Such Item")
	if err != nil {
		t.Fatal(err)
	}
	want := quotes()[:3]
	want[1].MarketTime, want[2].MarketTime = polled.Add(-86*time.Second), polled.Add(-68*time.Second)
	wantQuotes(t, sink, want)
	if !result.ProviderTime.Equal(generated) {
		t.Errorf("got time %v, want %v", result.ProviderTime, generated)
	}
}

func text(body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, body)
	})
}

func TestFetch_ReadsAllPagesOfName(t *testing.T) {
	fake := server()
	fake.PageSize = 2
	srv := providertest.NewServer(t, fake)
	sink, _, meter, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{Shape: provider.Single, Markets: cs2cap.Markets()}, nil), redline)
	if err != nil {
		t.Fatal(err)
	}
	wantQuotes(t, sink, append(quotes()[:2], quote("buff163", redline, 26_010_000, 9, polled)))
	if meter.Requests() != 2 {
		t.Errorf("got %d requests, want 2", meter.Requests())
	}
}

func TestFetch_IgnoresRowRepeatedOnNextPage(t *testing.T) {
	row := `{"provider":"steam","market_hash_name":"` + redline + `","lowest_ask":5}`
	n := 0
	srv := providertest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		fmt.Fprintf(w, `%s%s],"pagination":{"has_next":%t}}`, meta, row, n == 1)
	}))
	sink, _, _, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{Shape: provider.Single}, nil), redline)
	if err != nil || len(sink.Quotes) != 1 {
		t.Errorf("got %d quotes, error %v; want 1", len(sink.Quotes), err)
	}
}

func TestFetch_LimitsNumberOfPages(t *testing.T) {
	srv := providertest.NewServer(t, text(meta+`{"provider":"steam","market_hash_name":"`+redline+`","lowest_ask":5}],"pagination":{"has_next":true}}`))
	_, _, meter, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{Shape: provider.Single}, nil), redline)
	if provider.KindOf(err) != provider.KindProtocol || meter.Requests() != 10 {
		t.Errorf("got error %v after %d requests, want kind %s after 10", err, meter.Requests(), provider.KindProtocol)
	}
}

func TestFetch_MarketNotQueriedIsSilent(t *testing.T) {
	srv := providertest.NewServer(t, text(`{"meta":{"currency":"USD","providers_queried":["steam","skinport"]},"items":[],"names_not_found":["`+redline+`"]}`))
	_, result, _, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{}, nil), redline)
	if err != nil || !slices.Equal(result.Silent, []string{"csfloat"}) {
		t.Errorf("got silent markets %q, error %v, want csfloat", result.Silent, err)
	}
	fake := server()
	fake.Quiet = true // without the member, no market is silent
	srv = providertest.NewServer(t, fake)
	if _, result, _, err = fetch(t, newProvider(t, srv.URL(), cs2cap.Config{}, nil), redline); err != nil || result.Silent != nil {
		t.Errorf("got silent markets %q, error %v, want none", result.Silent, err)
	}
}

func TestFetch_RejectsInvalidResponses(t *testing.T) {
	for name, body := range map[string]string{
		"other currency": `{"meta":{"currency":"EUR"},"items":[],"names_not_found":["x"]}`,
		"no currency":    `{"meta":{},"items":[],"names_not_found":["x"]}`,
		"no meta":        `{"items":[],"names_not_found":["x"]}`,
		"no items":       `{"meta":{"currency":"USD"},"names_not_found":["x"]}`,
		"empty":          `{"meta":{"currency":"USD"},"items":[],"items_not_found":[],"names_not_found":[]}`,
		"refusal":        `{"code":"FORBIDDEN","detail":"no"}`,
		"other names":    `{"meta":{"currency":"USD"},"items":[{"market_hash_name":"x","quotes":[]}]}`,
	} {
		srv := providertest.NewServer(t, text(body))
		if _, _, _, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{}, nil), redline); provider.KindOf(err) != provider.KindProtocol {
			t.Errorf("%s: got error %v, want kind %s", name, err, provider.KindProtocol)
		}
	}
}

func TestFetch_RejectsSingleRows(t *testing.T) {
	row := func(more string) string {
		return `{"provider":"steam","lowest_ask":5,` + more + `},{"provider":"skinport","lowest_ask":5}`
	}
	for name, quotes := range map[string]string{
		"unknown market":      row(`"provider2":0},{"provider":"unknown","lowest_ask":7`),
		"invalid count":       row(`"quantity":"many"`),
		"invalid time":        row(`"last_updated":"yesterday"`),
		"invalid amount":      row(`"lowest_ask_decimal":"five"`),
		"quote not an object": row(`"x":0},"steam",{"provider":"csfloat","lowest_ask":5`),
	} {
		srv := providertest.NewServer(t, text(meta+`{"market_hash_name":"`+redline+`","phase":null,"quotes":[`+quotes+`]}],"names_not_found":[]}`))
		sink, _, _, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{}, nil), redline)
		if err != nil || sink.Rejects != 1 || len(sink.Quotes) == 0 {
			t.Errorf("%s: got %d quotes, rejects %v, error %v; want 1 reject", name, len(sink.Quotes), sink.Rejected, err)
		}
	}
}

func TestFetch_ReportsErrors(t *testing.T) {
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for name, c := range map[string]struct {
		fake   func(*cs2captest.Server)
		config cs2cap.Config
		kind   provider.Kind
		detail string
		wait   time.Duration
	}{
		"wrong key":                    {func(s *cs2captest.Server) { s.Key = "other" }, cs2cap.Config{}, provider.KindAuth, "AUTH_INVALID_API_KEY", 0},
		"unknown market":               {nil, cs2cap.Config{Markets: []string{"skinport", "unknown"}}, provider.KindStatus, "VALIDATION_ERROR", 0},
		"minute limit":                 {func(s *cs2captest.Server) { s.Minute = 1 }, cs2cap.Config{}, provider.KindRateLimited, "RATE_LIMIT_EXCEEDED", time.Minute},
		"minute limit of single names": {func(s *cs2captest.Server) { s.Minute, s.FromNow = 1, true }, cs2cap.Config{Shape: provider.Single}, provider.KindRateLimited, "RATE_LIMIT_EXCEEDED", time.Minute},
		"minute limit without headers": {func(s *cs2captest.Server) { s.Minute, s.Bare = 1, true }, cs2cap.Config{}, provider.KindRateLimited, "RATE_LIMIT_EXCEEDED", time.Minute},
		"index unavailable":            {func(s *cs2captest.Server) { s.Unavailable = 99 }, cs2cap.Config{}, provider.KindServer, "PRICES_INDEX_UNAVAILABLE", 0},
	} {
		t.Run(name, func(t *testing.T) {
			fake := server()
			if c.fake != nil {
				c.fake(fake)
			}
			srv := providertest.NewServer(t, fake)
			src := newProvider(t, srv.URL(), c.config, func(o *provider.Options) { o.Total = time.Second })
			_, _, _, err := fetch(t, src, redline)
			if err == nil {
				_, _, _, err = fetch(t, src, redline)
			}
			var e *provider.Error
			if e = asError(err); e == nil || e.Kind != c.kind || !strings.Contains(e.Detail, c.detail) || e.RetryAfter > c.wait || e.RetryAfter < c.wait-2*time.Second {
				t.Errorf("got error %+v, want kind %s with %q, wait %v", err, c.kind, c.detail, c.wait)
			}
		})
	}
	src := newProvider(t, "http://127.0.0.1:1", cs2cap.Config{}, nil)
	if _, _, meter, err := fetch(t, src, many...); provider.KindOf(err) != provider.KindProtocol || meter.Requests() != 0 {
		t.Errorf("101 names: got error %v, %d requests; want kind %s, no request", err, meter.Requests(), provider.KindProtocol)
	}
}

func asError(err error) *provider.Error {
	e, _ := err.(*provider.Error) //nolint:errorlint // the client returns it unwrapped
	return e
}

// An exhausted quota causes one refused request. Further requests wait for the reset, for each
// form of the response.
func TestFetch_ExhaustedQuotaStopsRequests(t *testing.T) {
	for name, set := range map[string]func(*cs2captest.Server){
		"Unix time": func(*cs2captest.Server) {}, "seconds from now": func(s *cs2captest.Server) { s.FromNow = true }, "code only": func(s *cs2captest.Server) { s.Bare = true },
	} {
		fake := server()
		fake.Month = 1
		set(fake)
		srv := providertest.NewServer(t, fake)
		src := newProvider(t, srv.URL(), cs2cap.Config{}, func(o *provider.Options) { o.Total = time.Second })
		for i := range 4 {
			_, _, _, err := fetch(t, src, redline)
			if e := asError(err); i > 0 && (e == nil || !e.Deferred() || e.RetryAfter < time.Minute) {
				t.Errorf("%s, call %d: got error %+v, want a deferred error", name, i, err)
			}
		}
		if n := len(srv.Hits()); n != 2 {
			t.Errorf("%s: got %d requests, want 2: one successful and one refused", name, n)
		}
	}
}

func TestFetch_RetriesWhileIndexIsUnavailable(t *testing.T) {
	fake := server()
	fake.Unavailable = 2
	srv := providertest.NewServer(t, fake)
	sink, _, meter, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{}, nil), names()...)
	if err != nil || meter.Requests() != 3 {
		t.Fatalf("got error %v after %d requests, want success after 3", err, meter.Requests())
	}
	wantQuotes(t, sink, quotes())
}

func TestFetch_UsesSupportedCurrency(t *testing.T) {
	for base, want := range map[money.Currency]money.Currency{"USD": "USD", "EUR": "EUR", "GBP": "GBP", "JPY": "USD", "": "USD"} {
		srv := providertest.NewServer(t, server())
		sink, _, _, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{Currency: base}, nil), redline)
		if err != nil || sink.Quotes[0].Currency != want {
			t.Errorf("base currency %q: got quotes %v, error %v; want %s", base, sink.Quotes, err, want)
		}
	}
}

func TestDescribe_ListsMarkets(t *testing.T) {
	all := newProvider(t, "http://127.0.0.1:1", cs2cap.Config{Markets: []string{}}, nil).Describe()
	if len(all.Markets) != 41 || all.BatchSize != 100 || all.Markets[0].MaxAge != 0 || all.Shape != provider.Batch {
		t.Errorf("batch shape: got description %+v, want 41 markets and 100 names per call", all)
	}
	for _, m := range all.Markets {
		if m.Title == m.Key {
			t.Errorf("market %s: got its key as the title, want a title", m.Key)
		}
	}
	if d := newProvider(t, "http://127.0.0.1:1", cs2cap.Config{Shape: provider.Single}, nil).Describe(); len(d.Markets) != 3 || d.BatchSize != 1 || d.Markets[0].MaxAge != 7*24*time.Hour {
		t.Errorf("single shape: got description %+v, want 3 markets and a maximum age of 7 days", d)
	}
}
