package marketcsgo_test

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/marketcsgo"
	"assay/internal/provider/marketcsgo/marketcsgotest"
	"assay/internal/provider/providertest"
)

const (
	redline = "AK-47 | Redline (Field-Tested)"
	mills   = money.Micro(1000)
	week    = 7 * 24 * time.Hour
)

var (
	fileTime = time.Unix(1763690400, 0).UTC()
	call     = provider.Call{AppID: catalog.CS2, File: "730"}
)

func newProvider(t testing.TB, baseURL string, in money.Currency, tweak func(*provider.Options)) *marketcsgo.Provider {
	t.Helper()
	o := provider.Options{Provider: marketcsgo.Name}
	client := providertest.NewClient(t, baseURL, o, tweak)
	return marketcsgo.New(marketcsgo.Config{BaseURL: baseURL, Currency: in, Client: client})
}

func rows() []marketcsgotest.Row {
	return []marketcsgotest.Row{
		{Name: redline, Price: "26.914", Volume: "512", Instances: []marketcsgotest.Instance{
			{Price: "27.5", BuyOrder: "25.100", Sold: "141"}, {Price: "26.914", BuyOrder: "26.5", Sold: ""}, {Price: "0", BuyOrder: "0", Sold: "9"},
		}},
		{Name: "Sticker | Example (Holo)", Price: "0.004", Volume: "3", Instances: []marketcsgotest.Instance{{Price: "0.004", BuyOrder: "0"}}},
		{Name: "★ Karambit | Doppler (Factory New)", Price: "1214.5", Volume: "2", Instances: []marketcsgotest.Instance{{Price: "1214.5", Sold: "0"}, {}}},
		{Name: "Souvenir M4A4 | 龍王, \"A\" & B's 100% <C>", Price: "9.99", Volume: "1"},
		{Name: "No offers", Unlisted: true, Instances: []marketcsgotest.Instance{{BuyOrder: "3.001", Sold: "1"}}},
		{Name: "Offers in the instance file only", Unlisted: true, Instances: []marketcsgotest.Instance{{}, {Price: "8.1"}, {Price: "7.1"}}},
		{Name: "Not offered", Price: "0", Volume: "0", Instances: []marketcsgotest.Instance{{Price: "5"}}},
	}
}

func quotes(in money.Currency) []provider.Quote {
	q := func(name string, ask, bid money.Micro, listings, sales int64) provider.Quote {
		q := provider.Quote{Market: marketcsgo.Name, Name: name, Currency: in, Ask: ask, Bid: bid, Listings: listings, Sales: sales}
		if sales >= 0 {
			q.SalesWindow = week
		}
		return q
	}
	return []provider.Quote{
		q(redline, 26914*mills, 26500*mills, 512, 150),
		q("Sticker | Example (Holo)", 4*mills, 0, 3, provider.Unknown),
		q("★ Karambit | Doppler (Factory New)", 1_214_500*mills, 0, 2, 0),
		q("Souvenir M4A4 | 龍王, \"A\" & B's 100% <C>", 9990*mills, 0, 1, provider.Unknown),
		q("No offers", 0, 3001*mills, provider.Unknown, 1),
		q("Offers in the instance file only", 7100*mills, 0, provider.Unknown, provider.Unknown),
		q("Not offered", 0, 0, 0, provider.Unknown),
	}
}

func TestSuite(t *testing.T) {
	providertest.Run(t, providertest.Subject{
		New: func(t testing.TB, baseURL string, tweak func(*provider.Options)) provider.Provider {
			return newProvider(t, baseURL, "USD", tweak)
		},
		Good: &marketcsgotest.Server{Rows: rows(), Time: fileTime, Calls: 1_000_000},
		Call: call, Want: quotes("USD"), Render: render,
	})
}

// render returns rows in a format that is valid for both files.
func render(rows []providertest.Row) []byte {
	var b bytes.Buffer
	b.WriteString(`{"success":true,"time":1763690400,"currency":"USD","items":`)
	for i, row := range rows {
		b.WriteString(map[bool]string{true: "[", false: ","}[i == 0])
		b.WriteString(`{"market_hash_name":` + providertest.Quote(row.Name) + `,"volume":"1","price":` + row.Price + `}`)
	}
	b.WriteString("]}")
	return b.Bytes()
}

func TestFetch_ReadsEveryFileFormat(t *testing.T) {
	for name, fake := range map[string]*marketcsgotest.Server{
		"as documented":       {Rows: rows(), Time: fileTime},
		"numbers":             {Rows: rows(), Time: fileTime, Numbers: true},
		"time after the rows": {Rows: rows(), Time: fileTime, Last: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := providertest.NewServer(t, fake)
			result := providertest.CheckFetch(t, newProvider(t, server.URL(), "USD", nil), call, quotes("USD"))
			if !result.ProviderTime.Equal(fileTime) {
				t.Errorf("got time %v, want %v", result.ProviderTime, fileTime)
			}
		})
	}
}

func TestFetch_UsesSupportedCurrency(t *testing.T) {
	for base, want := range map[money.Currency]money.Currency{"USD": "USD", "EUR": "EUR", "RUB": "RUB", "CNY": "USD", "": "USD"} {
		server := providertest.NewServer(t, &marketcsgotest.Server{Rows: rows(), Time: fileTime})
		providertest.CheckFetch(t, newProvider(t, server.URL(), base, nil), call, quotes(want))
	}
}

func TestFetch_ReportsErrors(t *testing.T) {
	for name, c := range map[string]struct {
		fake   *marketcsgotest.Server
		kind   provider.Kind
		detail string
	}{
		"sixth request in a second":  {&marketcsgotest.Server{Rows: rows(), Calls: 1}, provider.KindRateLimited, "too_many_requests"},
		"refusal with status 200":    {&marketcsgotest.Server{Refuse: "bad_request"}, provider.KindProtocol, "the provider refused the request: bad_request"},
		"rate limit with status 200": {&marketcsgotest.Server{Refuse: "Too many requests"}, provider.KindRateLimited, "the provider refused the request: Too many"},
		"refusal with status 400":    {&marketcsgotest.Server{Refuse: "bad_request", Status: http.StatusBadRequest}, provider.KindStatus, "bad_request"},
		"wrong key":                  {&marketcsgotest.Server{Refuse: "bad key", Status: http.StatusUnauthorized}, provider.KindAuth, "bad key"},
		"no rows":                    {&marketcsgotest.Server{}, provider.KindProtocol, "the list is empty"},
		"no instances":               {&marketcsgotest.Server{Rows: []marketcsgotest.Row{{Name: redline, Price: "1"}}}, provider.KindProtocol, "the list is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			server := providertest.NewServer(t, c.fake)
			src := newProvider(t, server.URL(), "USD", func(o *provider.Options) { o.Total = time.Second })
			providertest.CheckError(t, src, call, 1, c.kind, c.detail)
		})
	}
}

func TestLimit_IsLowerThanTheLimitOfTheSite(t *testing.T) {
	if l := marketcsgo.Limit(); l.Requests >= 5 || l.Per != time.Second {
		t.Errorf("got limit %+v, want less than 5 requests per second", l)
	}
}

func TestFetch_ReadsIncompleteAndOldFiles(t *testing.T) {
	server := providertest.NewServer(t, &marketcsgotest.Server{Rows: rows(), Time: fileTime, Half: true})
	var sink providertest.Sink
	result, err := newProvider(t, server.URL(), "USD", nil).Fetch(t.Context(), call, &sink)
	if err != nil || len(sink.Quotes) != 3 {
		t.Errorf("got %d quotes, error %v; want 3", len(sink.Quotes), err)
	}
	if !result.ProviderTime.Equal(fileTime) {
		t.Errorf("got time %v, want %v", result.ProviderTime, fileTime)
	}
}
