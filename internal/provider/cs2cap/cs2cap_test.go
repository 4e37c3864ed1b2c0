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
		quote("csfloat", sandDune, 15_000, 77, polled), // half a cent more than its cents say
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

// fetch asks a provider, once: for names, or where there are none for the stream.
func fetch(t *testing.T, src *cs2cap.Provider, names ...string) (providertest.Sink, provider.Result, *provider.Meter, error) {
	t.Helper()
	var sink providertest.Sink
	meter := new(provider.Meter)
	call := provider.Call{AppID: catalog.CS2, Names: names, Meter: meter}
	if len(names) == 0 {
		call.File = src.Describe().Files[0].Key
	}
	answer, err := src.Fetch(t.Context(), call, &sink)
	return sink, answer, meter, err
}

func same(t *testing.T, sink providertest.Sink, want []provider.Quote) {
	t.Helper()
	if diff := cmp.Diff((&providertest.Sink{Quotes: want}).Sorted(), sink.Sorted()); diff != "" {
		t.Errorf("quotes (-want +got):\n%s", diff)
	}
}

// What is offered nowhere, unknown or known, is covered by the response: it is no failure of
// the provider, and no market's quote.
func TestFetch_ABatchIsOneRequestForWhateverItNames(t *testing.T) {
	srv := providertest.NewServer(t, server())
	sink, answer, meter, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{}, nil), names()...)
	if err != nil {
		t.Fatal(err)
	}
	same(t, sink, quotes())
	if sink.Rejects != 0 || meter.Requests() != 1 || !answer.ProviderTime.Equal(generated) || answer.Silent != nil {
		t.Errorf("%d rejects, %d requests, %+v", sink.Rejects, meter.Requests(), answer)
	}
}

func TestFetch_ReadsTheDocumentedAnswer(t *testing.T) {
	const sample = `{"meta":{"currency":"USD","requested_item_count":3,"found_item_count":2,"providers_queried":["skinport","csfloat","steam"],"generated_at":"2026-11-21T10:00:05Z"},
 "items":[
  {"item_id":156,"market_hash_name":"AK-47 | Redline (Field-Tested)","phase":null,"quotes":[
    {"provider":"skinport","lowest_ask":2785,"lowest_ask_decimal":"27.85","quantity":318,"timestamp":"2026-11-21T09:41:00Z","last_updated":"2026-11-21T09:57:10Z"},
    {"provider":"steam","lowest_ask":3310,"lowest_ask_decimal":"33.10","quantity":1204,"timestamp":"2026-11-21T08:02:00Z","last_updated":"2026-11-21T09:55:44Z"}]},
  {"item_id":9021,"market_hash_name":"P250 | Sand Dune (Battle-Scarred)","phase":null,"quotes":[
    {"provider":"csfloat","lowest_ask":2,"lowest_ask_decimal":"0.01500000","quantity":77,"timestamp":"2026-11-21T09:12:00Z","last_updated":"2026-11-21T09:56:02Z"}]}],
 "items_not_found":[],"names_not_found":["No Such Item"]}`
	srv := providertest.NewServer(t, text(sample))
	sink, answer, _, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{}, nil), redline, sandDune, "No Such Item")
	if err != nil {
		t.Fatal(err)
	}
	want := quotes()[:3]
	want[1].MarketTime, want[2].MarketTime = polled.Add(-86*time.Second), polled.Add(-68*time.Second)
	same(t, sink, want)
	if !answer.ProviderTime.Equal(generated) {
		t.Errorf("time %v", answer.ProviderTime)
	}
}

func text(body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, body)
	})
}

func TestFetch_ANameOfManyRowsIsReadPageByPage(t *testing.T) {
	fake := server()
	fake.PageSize = 2
	srv := providertest.NewServer(t, fake)
	sink, _, meter, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{Shape: provider.Single, Markets: cs2cap.Markets()}, nil), redline)
	if err != nil {
		t.Fatal(err)
	}
	same(t, sink, append(quotes()[:2], quote("buff163", redline, 26_010_000, 9, polled)))
	if meter.Requests() != 2 {
		t.Errorf("%d requests, want one for each of two pages", meter.Requests())
	}
}

func TestFetch_OfARowThatMovedToTheNextPageTheFirstCounts(t *testing.T) {
	row := `{"provider":"steam","market_hash_name":"` + redline + `","lowest_ask":5}`
	n := 0
	srv := providertest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		fmt.Fprintf(w, `%s%s],"pagination":{"has_next":%t}}`, meta, row, n == 1)
	}))
	sink, _, _, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{Shape: provider.Single}, nil), redline)
	if err != nil || len(sink.Quotes) != 1 {
		t.Errorf("%d quotes, %v", len(sink.Quotes), err)
	}
}

func TestFetch_PagesHaveAnEnd(t *testing.T) {
	srv := providertest.NewServer(t, text(meta+`{"provider":"steam","market_hash_name":"`+redline+`","lowest_ask":5}],"pagination":{"has_next":true}}`))
	_, _, meter, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{Shape: provider.Single}, nil), redline)
	if provider.KindOf(err) != provider.KindProtocol || meter.Requests() != 10 {
		t.Errorf("%v after %d requests", err, meter.Requests())
	}
}

func TestFetch_AMarketThatWasNotAskedIsSilent(t *testing.T) {
	srv := providertest.NewServer(t, text(`{"meta":{"currency":"USD","providers_queried":["steam","skinport"]},"items":[],"names_not_found":["`+redline+`"]}`))
	_, answer, _, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{}, nil), redline)
	if err != nil || !slices.Equal(answer.Silent, []string{"csfloat"}) {
		t.Errorf("silent %q, %v", answer.Silent, err)
	}
	fake := server()
	fake.Quiet = true // then nobody knows
	srv = providertest.NewServer(t, fake)
	if _, answer, _, err = fetch(t, newProvider(t, srv.URL(), cs2cap.Config{}, nil), redline); err != nil || answer.Silent != nil {
		t.Errorf("silent %q, %v", answer.Silent, err)
	}
}

func TestFetch_RefusesWhatIsNoAnswer(t *testing.T) {
	for name, body := range map[string]string{
		"another currency":      `{"meta":{"currency":"EUR"},"items":[],"names_not_found":["x"]}`,
		"no currency":           `{"meta":{},"items":[],"names_not_found":["x"]}`,
		"no meta":               `{"items":[],"names_not_found":["x"]}`,
		"no items":              `{"meta":{"currency":"USD"},"names_not_found":["x"]}`,
		"nothing about the ask": `{"meta":{"currency":"USD"},"items":[],"items_not_found":[],"names_not_found":[]}`,
		"a refusal":             `{"code":"FORBIDDEN","detail":"no"}`,
		"names of others":       `{"meta":{"currency":"USD"},"items":[{"market_hash_name":"x","quotes":[]}]}`,
	} {
		srv := providertest.NewServer(t, text(body))
		if _, _, _, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{}, nil), redline); provider.KindOf(err) != provider.KindProtocol {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFetch_RejectsARowAndNotTheAnswer(t *testing.T) {
	row := func(more string) string {
		return `{"provider":"steam","lowest_ask":5,` + more + `},{"provider":"skinport","lowest_ask":5}`
	}
	for name, quotes := range map[string]string{
		"a market of nobody":   row(`"provider2":0},{"provider":"nobody","lowest_ask":7`),
		"no count":             row(`"quantity":"many"`),
		"no time":              row(`"last_updated":"yesterday"`),
		"an amount in letters": row(`"lowest_ask_decimal":"five"`),
		"a text for a quote":   row(`"x":0},"steam",{"provider":"csfloat","lowest_ask":5`),
	} {
		srv := providertest.NewServer(t, text(meta+`{"market_hash_name":"`+redline+`","phase":null,"quotes":[`+quotes+`]}],"names_not_found":[]}`))
		sink, _, _, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{}, nil), redline)
		if err != nil || sink.Rejects != 1 || len(sink.Quotes) == 0 {
			t.Errorf("%s: %d quotes, %v, %v", name, len(sink.Quotes), sink.Rejected, err)
		}
	}
}

func TestFetch_IsRefusedAsCs2capRefuses(t *testing.T) {
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
		"a wrong key":      {func(s *cs2captest.Server) { s.Key = "another" }, cs2cap.Config{}, provider.KindAuth, "AUTH_INVALID_API_KEY", 0},
		"an unknown one":   {nil, cs2cap.Config{Markets: []string{"skinport", "nobody"}}, provider.KindStatus, "VALIDATION_ERROR", 0},
		"the minute's":     {func(s *cs2captest.Server) { s.Minute = 1 }, cs2cap.Config{}, provider.KindRateLimited, "RATE_LIMIT_EXCEEDED", time.Minute},
		"the minute's, of": {func(s *cs2captest.Server) { s.Minute, s.FromNow = 1, true }, cs2cap.Config{Shape: provider.Single}, provider.KindRateLimited, "RATE_LIMIT_EXCEEDED", time.Minute},
		"of it unsaid":     {func(s *cs2captest.Server) { s.Minute, s.Bare = 1, true }, cs2cap.Config{}, provider.KindRateLimited, "RATE_LIMIT_EXCEEDED", time.Minute},
		"an index unready": {func(s *cs2captest.Server) { s.Unavailable = 99 }, cs2cap.Config{}, provider.KindServer, "PRICES_INDEX_UNAVAILABLE", 0},
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
				t.Errorf("%+v", err)
			}
		})
	}
	src := newProvider(t, "http://127.0.0.1:1", cs2cap.Config{}, nil)
	if _, _, meter, err := fetch(t, src, many...); provider.KindOf(err) != provider.KindProtocol || meter.Requests() != 0 {
		t.Errorf("more names than a batch takes: %v", err)
	}
}

func asError(err error) *provider.Error {
	e, _ := err.(*provider.Error) //nolint:errorlint // the client returns it bare
	return e
}

// A quota that is used up is requested once, and then no more until it is full
// again, however the provider says so.
func TestFetch_ASpentQuotaIsNoReasonToAskAgain(t *testing.T) {
	for name, set := range map[string]func(*cs2captest.Server){
		"unix time": func(*cs2captest.Server) {}, "seconds from now": func(s *cs2captest.Server) { s.FromNow = true }, "the code alone": func(s *cs2captest.Server) { s.Bare = true },
	} {
		fake := server()
		fake.Month = 1
		set(fake)
		srv := providertest.NewServer(t, fake)
		src := newProvider(t, srv.URL(), cs2cap.Config{}, func(o *provider.Options) { o.Total = time.Second })
		for i := range 4 {
			_, _, _, err := fetch(t, src, redline)
			if e := asError(err); i > 0 && (e == nil || !e.Deferred() || e.RetryAfter < time.Minute) {
				t.Errorf("%s, call %d: %+v", name, i, err)
			}
		}
		if n := len(srv.Hits()); n != 2 {
			t.Errorf("%s: %d requests, want the good one and the refused one", name, n)
		}
	}
}

func TestFetch_AnIndexThatIsBuiltAgainIsWaitedFor(t *testing.T) {
	fake := server()
	fake.Unavailable = 2
	srv := providertest.NewServer(t, fake)
	sink, _, meter, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{}, nil), names()...)
	if err != nil || meter.Requests() != 3 {
		t.Fatalf("%v after %d requests", err, meter.Requests())
	}
	same(t, sink, quotes())
}

func TestFetch_AsksInTheCurrencyWhereItsCentsAreKnown(t *testing.T) {
	for base, want := range map[money.Currency]money.Currency{"USD": "USD", "EUR": "EUR", "GBP": "GBP", "JPY": "USD", "": "USD"} {
		srv := providertest.NewServer(t, server())
		sink, _, _, err := fetch(t, newProvider(t, srv.URL(), cs2cap.Config{Currency: base}, nil), redline)
		if err != nil || sink.Quotes[0].Currency != want {
			t.Errorf("%s: %v, %v", base, sink.Quotes, err)
		}
	}
}

func TestDescribe_OffersTheMarketsThatWereNamedOrAll(t *testing.T) {
	all := newProvider(t, "http://127.0.0.1:1", cs2cap.Config{Markets: []string{}}, nil).Describe()
	if len(all.Markets) != 41 || all.BatchSize != 100 || all.Markets[0].MaxAge != 0 || all.Shape != provider.Batch {
		t.Errorf("%+v", all)
	}
	for _, m := range all.Markets {
		if m.Title == m.Key {
			t.Errorf("no title for %s", m.Key)
		}
	}
	if d := newProvider(t, "http://127.0.0.1:1", cs2cap.Config{Shape: provider.Single}, nil).Describe(); len(d.Markets) != 3 || d.BatchSize != 1 || d.Markets[0].MaxAge != 7*24*time.Hour {
		t.Errorf("%+v", d)
	}
}
