package pricempire_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/pricempire"
	"assay/internal/provider/pricempire/pricempiretest"
	"assay/internal/provider/providertest"
)

const (
	redline = "AK-47 | Redline (Field-Tested)"
	doppler = "★ Karambit | Doppler (Factory New)"
	key     = "7f0c2d3e-1111-4222-8333-444455556666"
	month   = 30 * 24 * time.Hour
)

var (
	call    = provider.Call{AppID: catalog.CS2, File: "730"}
	markets = []string{"buff163", "skinport", "csfloat", "swap.gg"}
	polled  = time.Date(2026, 11, 21, 9, 58, 1, 0, time.UTC)
)

func newProvider(t testing.TB, baseURL string, c pricempire.Config, tweak func(*provider.Options)) *pricempire.Provider {
	t.Helper()
	o := provider.Options{
		Provider: pricempire.Name,
		Secrets:  []string{key},
	}
	c.BaseURL, c.Client = baseURL, providertest.NewClient(t, baseURL, o, tweak)
	if c.Key == "" {
		c.Key = key
	}
	if c.Markets == nil {
		c.Markets = markets
	}
	return pricempire.New(c)
}

const checked = `"last_checked_at":"2026-11-21T09:58:01.000Z"`

func rows() []pricempiretest.Row {
	return []pricempiretest.Row{
		{Name: redline, Members: `"liquidity":"93.4","steam_last_30d":"1510","trades_30d":"8402","count":"15230","rank":88`, Prices: []pricempiretest.Price{
			{Key: "buff163", Members: `"price":2601,"count":1450,"updated_at":"2026-11-20T09:58:01.000Z",` + checked + `,"meta":{"original_price":18900,"original_currency":"CNY","rate":0.1376},"avg_7":2633`},
			{Key: "skinport", Members: `"price":"2785","count":"318","updated_at":"2025-01-01T00:00:00.000Z",` + checked},
			{Key: "steam", Members: `"price":3310`},
		}},
		{Name: doppler + " - Ruby", Members: `"liquidity":0,"count":"2","rank":null,"trades_30d":0,"steam_last_30d":"0"`, Prices: []pricempiretest.Price{
			{Key: "buff163", Members: `"price":null,"count":0,"updated_at":null`},
			{Key: "csfloat", Members: `"price":0,"count":0,"updated_at":"2026-11-21T09:58:01.000Z"`},
		}},
		{Name: doppler, Members: `"trades_30d":0,"steam_last_30d":null`, Prices: []pricempiretest.Price{
			{Key: "swap.gg", Members: `"price":121000,"updated_at":"2025-01-01T00:00:00.000Z"`},
		}},
		{Name: "龍 \"A, B\" - Gold", Members: `"trades_30d":3`, Prices: []pricempiretest.Price{{Key: "csfloat", Members: `"price":7`}}},
		{Name: "Offered nowhere", Members: `"rank":1`},
	}
}

func quotes() []provider.Quote {
	q := func(market, name, phase string, ask money.Micro, listings, sales int64, at time.Time) provider.Quote {
		q := provider.Quote{Market: market, Name: name, Phase: phase, Currency: "USD", Ask: ask * 10_000, Listings: listings, Sales: sales, MarketTime: at}
		if sales >= 0 {
			q.SalesWindow = month
		}
		return q
	}
	return []provider.Quote{
		q("buff163", redline, "", 2601, 1450, 9912, polled),
		q("skinport", redline, "", 2785, 318, 9912, polled),
		q("buff163", doppler, "Ruby", 0, 0, 0, time.Time{}),
		q("csfloat", doppler, "Ruby", 0, 0, 0, polled),
		q("swapgg", doppler, "", 121000, provider.Unknown, provider.Unknown, time.Time{}),
		q("csfloat", "龍 \"A, B\" - Gold", "", 7, provider.Unknown, 3, time.Time{}),
	}
}

func TestSuite(t *testing.T) {
	providertest.Run(t, providertest.Subject{
		New: func(t testing.TB, baseURL string, tweak func(*provider.Options)) provider.Provider {
			return newProvider(t, baseURL, pricempire.Config{}, tweak)
		},
		Good:   &pricempiretest.Server{Rows: rows()},
		Call:   call,
		Want:   quotes(),
		Render: render,
		Secret: key,
	})
}

func render(rows []providertest.Row) []byte {
	b := bytes.NewBufferString("[")
	for i, row := range rows {
		fmt.Fprintf(b, `%.*s{"market_hash_name":%s,"prices":[{"provider_key":"csfloat","price":%s,"count":1}]}`, min(i, 1), ",", providertest.Quote(row.Name), row.Price)
	}
	b.WriteString("]")
	return b.Bytes()
}

func fetch(t *testing.T, src *pricempire.Provider) (providertest.Sink, provider.Result, error) {
	t.Helper()
	var sink providertest.Sink
	result, err := src.Fetch(t.Context(), call, &sink)
	return sink, result, err
}

func serve(t *testing.T, body string) *pricempire.Provider {
	t.Helper()
	srv := providertest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
	return newProvider(t, srv.URL(), pricempire.Config{}, nil)
}

func TestFetch_ReadsDocumentedResponse(t *testing.T) {
	sink, result, err := fetch(t, serve(t, `[
  {"market_hash_name":"AK-47 | Redline (Field-Tested)","image":"https://example.invalid/i.png","liquidity":"93.4","steam_last_30d":"1510","trades_30d":"8402","count":"15230","rank":88,
   "prices":[
     {"provider_key":"buff163","price":2601,"count":1450,"updated_at":"2026-11-21T09:58:01.000Z","last_checked_at":"2026-11-21T09:58:01.000Z","meta":{"original_price":18900,"original_currency":"CNY","rate":0.1376},"avg_7":2633,"median_7":2620},
     {"provider_key":"skinport","price":2785,"count":318,"updated_at":"2025-01-01T00:00:00.000Z","last_checked_at":"2026-11-21T09:57:10.000Z"}]},
  {"market_hash_name":"★ Karambit | Doppler (Factory New) - Ruby","image":"https://example.invalid/k.png","liquidity":0,"count":"2","rank":null,
   "prices":[{"provider_key":"buff163","price":null,"count":0,"updated_at":null},{"provider_key":"csfloat","price":0,"count":0,"updated_at":"2026-11-20T01:00:00.000Z"}]}
]`))
	if err != nil {
		t.Fatal(err)
	}
	want := quotes()[:4]
	want[1].MarketTime = time.Date(2026, 11, 21, 9, 57, 10, 0, time.UTC)
	want[3].MarketTime = time.Date(2026, 11, 20, 1, 0, 0, 0, time.UTC)
	for i := range want[2:] {
		want[2+i].Sales, want[2+i].SalesWindow = provider.Unknown, 0
	}
	if diff := cmp.Diff((&providertest.Sink{Quotes: want}).Sorted(), sink.Sorted()); diff != "" {
		t.Errorf("quotes (-want +got):\n%s", diff)
	}
	if !slices.Equal(result.Silent, []string{"swapgg"}) {
		t.Errorf("got silent markets %q, want swapgg", result.Silent)
	}
}

// A single missing count makes the sales unknown, unless the other count is above 0.
func TestFetch_ZeroSalesNeedBothCounts(t *testing.T) {
	for members, want := range map[string]int64{
		`"trades_30d":0,"steam_last_30d":0`:         0,
		`"trades_30d":"0","steam_last_30d":"0"`:     0,
		`"trades_30d":0`:                            provider.Unknown,
		`"steam_last_30d":0`:                        provider.Unknown,
		`"trades_30d":0,"steam_last_30d":null`:      provider.Unknown,
		`"trades_30d":null,"steam_last_30d":"4"`:    4,
		`"trades_30d":5,"steam_last_30d":4`:         9,
		`"trades_30d":"5","steam_last_30d":0`:       5,
		`"rank":null`:                               provider.Unknown,
		`"trades_30d":"","steam_last_30d":"null"`:   provider.Unknown,
		`"trades_90d":0,"steam_last_24h":0,"a":"b"`: provider.Unknown,
	} {
		sink, _, err := fetch(t, serve(t, `[{"market_hash_name":"A",`+members+`,"prices":[{"provider_key":"csfloat","price":5},{"provider_key":"buff163","price":6}]}]`))
		if err != nil || len(sink.Quotes) != 2 || sink.Quotes[0].Sales != want || sink.Quotes[1].Sales != want {
			t.Errorf("%s: got quotes %+v, error %v; want %d sales", members, sink.Quotes, err, want)
		}
	}
}

func TestFetch_RejectsSinglePrices(t *testing.T) {
	const good = `{"market_hash_name":"B","prices":[{"provider_key":"csfloat","price":5},{"provider_key":"buff163","price":5}]}`
	for name, row := range map[string]string{
		"count":             `{"market_hash_name":"A","prices":[{"provider_key":"csfloat","price":5,"count":"many"}]}`,
		"price":             `{"market_hash_name":"A","prices":[{"provider_key":"csfloat","price":"five"}]}`,
		"time":              `{"market_hash_name":"A","prices":[{"provider_key":"csfloat","price":5,"updated_at":"never"}]}`,
		"sales":             `{"market_hash_name":"A","trades_30d":"many","prices":[{"provider_key":"csfloat","price":5}]}`,
		"duplicate":         `{"market_hash_name":"A","prices":[{"provider_key":"csfloat","price":5},{"provider_key":"csfloat","price":5}]}`,
		"no name":           `{"prices":[{"provider_key":"csfloat","price":5}]}`,
		"not an object":     `{"market_hash_name":"A","prices":[5]}`,
		"name not a string": `{"market_hash_name":5,"prices":[]}`,
	} {
		sink, _, err := fetch(t, serve(t, "["+good+","+row+"]"))
		if err != nil || sink.Rejects != 1 {
			t.Errorf("%s: got rejects %v, error %v; want one reject", name, sink.Rejected, err)
		}
	}
}

func TestFetch_ReportsErrors(t *testing.T) {
	for name, c := range map[string]struct {
		config pricempire.Config
		fake   *pricempiretest.Server
		kind   provider.Kind
		detail string
	}{
		"key is not a UUID":   {pricempire.Config{Key: "secret"}, &pricempiretest.Server{Rows: rows()}, provider.KindAuth, "Invalid API key"},
		"no rows":             {pricempire.Config{}, &pricempiretest.Server{}, provider.KindProtocol, "without any of the requested markets"},
		"no requested market": {pricempire.Config{Markets: []string{"unknown"}}, &pricempiretest.Server{Rows: rows()}, provider.KindProtocol, "without any of the requested markets"},
	} {
		srv := providertest.NewServer(t, c.fake)
		t.Run(name, func(t *testing.T) {
			providertest.CheckError(t, newProvider(t, srv.URL(), c.config, nil), call, 1, c.kind, c.detail)
		})
	}
	for _, body := range []string{`{"message":"Too many requests","statusCode":429}`, `{"success":false}`, `[]`, `[[]]`} {
		providertest.CheckError(t, serve(t, body), call, 1, provider.KindProtocol, "")
	}
}

func TestFetch_WaitsWhenQuotaIsExhausted(t *testing.T) {
	srv := providertest.NewServer(t, &pricempiretest.Server{Rows: rows(), Calls: 1})
	src := newProvider(t, srv.URL(), pricempire.Config{}, func(o *provider.Options) { o.Wait, o.MostWait = pricempire.Wait, pricempire.MostWait })
	for i := range 4 {
		if _, _, err := fetch(t, src); i > 0 && provider.KindOf(err) != provider.KindRateLimited {
			t.Errorf("call %d: got error %v, want kind %s", i, err, provider.KindRateLimited)
		}
	}
	if n := len(srv.Hits()); n != 2 {
		t.Errorf("got %d requests, want 2: one successful and one refused", n)
	}
}

func TestFetch_ReadsEveryGameAndCurrency(t *testing.T) {
	srv := providertest.NewServer(t, &pricempiretest.Server{Rows: rows()})
	src := newProvider(t, srv.URL(), pricempire.Config{}, nil)
	for _, f := range src.Describe().Files {
		if _, err := src.Fetch(t.Context(), provider.Call{AppID: f.AppID, File: f.Key}, &providertest.Sink{}); err != nil {
			t.Errorf("file %s: got error %v, want none", f.Key, err)
		}
	}
	for base, want := range map[money.Currency]money.Currency{"USD": "USD", "EUR": "EUR", "GBP": "GBP", "JPY": "USD", "": "USD"} {
		sink, _, err := fetch(t, newProvider(t, srv.URL(), pricempire.Config{Currency: base}, nil))
		if err != nil || sink.Quotes[0].Currency != want {
			t.Errorf("base currency %q: got error %v, quotes %+v; want %s", base, err, sink.Quotes, want)
		}
	}
}

func TestCheckMarkets_RejectsBidsAndDuplicates(t *testing.T) {
	if err := pricempire.CheckMarkets(append(pricempire.Markets(), "swap.gg")); err != nil {
		t.Errorf("got error %v, want none", err)
	}
	for _, keys := range [][]string{{"buff163", "buff163_buy"}, {"swap.gg", "swapgg"}} {
		if pricempire.CheckMarkets(keys) == nil {
			t.Errorf("CheckMarkets(%q): got no error, want one", keys)
		}
	}
}
