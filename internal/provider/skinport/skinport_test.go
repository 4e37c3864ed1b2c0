package skinport_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/providertest"
	"assay/internal/provider/skinport"
	"assay/internal/provider/skinport/skinporttest"
)

const (
	redline  = "AK-47 | Redline (Field-Tested)"
	karambit = "★ Karambit | Doppler (Factory New)"
	cents    = money.Micro(10_000)
	day      = 24 * time.Hour
)

var updated = time.Unix(1763690112, 0).UTC()

func newProvider(t testing.TB, baseURL string, c skinport.Config, tweak func(*provider.Options)) *skinport.Provider {
	t.Helper()
	o := provider.Options{Provider: skinport.Name}
	c.BaseURL, c.Client = baseURL, providertest.NewClient(t, baseURL, o, tweak)
	if c.SalesWindow == 0 {
		c.SalesWindow = 30 * day
	}
	return skinport.New(c)
}

// sales returns the medians and counts of 1, 7, 30 and 90 days.
func sales(m1 string, n1 int, m7 string, n7 int, m30 string, n30 int, m90 string, n90 int) [4]skinporttest.Sales {
	return [4]skinporttest.Sales{{Median: m1, Volume: n1}, {Median: m7, Volume: n7}, {Median: m30, Volume: n30}, {Median: m90, Volume: n90}}
}

func rows() []skinporttest.Row {
	return []skinporttest.Row{
		{Name: redline, Ask: "27.85", Quantity: 318, Sales: sales("29.4", 17, "29.75", 133, "30.0", 604, "30.3", 1866)},
		{Name: karambit, Version: "Ruby", Sales: sales("", 0, "", 0, "", 0, "5955.0", 2)},
		{Name: karambit, Version: "Phase 2", Ask: "1210.005", Quantity: 1, Sales: sales("1200", 1, "1200", 2, "1250.5", 9, "1260", 30)},
		{Name: "Sticker | A, B's & \"C\" <100%>", Ask: "0.03", Quantity: 2, Unsold: true},
		{Name: "Souvenir AWP | 壱", Unlisted: true, Sales: sales("", 0, "9", 3, "8", 4, "8", 4)},
	}
}

func quotes() []provider.Quote {
	q := func(name, phase string, ask, sale money.Micro, listings, sales int64) provider.Quote {
		q := provider.Quote{
			Market: skinport.Name, Name: name, Phase: phase, Currency: "USD", Ask: ask, Sale: sale,
			Listings: listings, Sales: sales, SalesWindow: 30 * day, MarketTime: updated,
		}
		if sales < 0 {
			q.SalesWindow = 0
		}
		return q
	}
	all := []provider.Quote{
		q(redline, "", 2785*cents, 2975*cents, 318, 604),
		q(karambit, "Ruby", 0, 595500*cents, 0, 0),
		q(karambit, "Phase 2", 1_210_005_000, 125050*cents, 1, 9),
		q("Sticker | A, B's & \"C\" <100%>", "", 3*cents, 0, 2, provider.Unknown),
		q("Souvenir AWP | 壱", "", 0, 900*cents, 0, 4),
	}
	all[4].MarketTime = time.Time{}
	return all
}

var call = provider.Call{AppID: catalog.CS2, File: "730"}

func TestSuite(t *testing.T) {
	providertest.Run(t, providertest.Subject{
		New: func(t testing.TB, baseURL string, tweak func(*provider.Options)) provider.Provider {
			return newProvider(t, baseURL, skinport.Config{}, tweak)
		},
		Good:   &skinporttest.Server{Rows: rows(), Updated: updated, Plain: true, Calls: 1_000_000},
		Call:   call,
		Want:   quotes(),
		Render: render,
	})
}

func render(rows []providertest.Row) []byte {
	var b bytes.Buffer
	for i, row := range rows {
		b.WriteString(map[bool]string{true: "[", false: ","}[i == 0])
		b.WriteString(`{"market_hash_name":` + providertest.Quote(row.Name) + `,"version":null,"currency":"USD","min_price":` + row.Price + `,"quantity":1}`)
	}
	b.WriteString("]")
	return b.Bytes()
}

func TestFetch_ReadsBothFeeds(t *testing.T) {
	server := providertest.NewServer(t, &skinporttest.Server{Rows: rows(), Updated: updated})
	result := providertest.CheckFetch(t, newProvider(t, server.URL(), skinport.Config{}, nil), call, quotes())
	if !result.ProviderTime.Equal(updated) {
		t.Errorf("got time %v, want %v", result.ProviderTime, updated)
	}
}

func TestFetch_UsesShortestSufficientSalesWindow(t *testing.T) {
	for minimum, want := range map[time.Duration]struct {
		window time.Duration
		sales  int64
	}{time.Hour: {day, 17}, 7 * day: {7 * day, 133}, 8 * day: {30 * day, 604}, 400 * day: {90 * day, 1866}} {
		server := providertest.NewServer(t, &skinporttest.Server{Rows: rows()})
		src := newProvider(t, server.URL(), skinport.Config{SalesWindow: minimum}, nil)
		var sink providertest.Sink
		if _, err := src.Fetch(t.Context(), call, &sink); err != nil {
			t.Fatal(err)
		}
		got := sink.Sorted()[slices.IndexFunc(sink.Sorted(), func(q provider.Quote) bool { return q.Name == redline })]
		if got.Sales != want.sales || got.SalesWindow != want.window || src.Describe().Markets[0].SalesWindow != want.window {
			t.Errorf("minimum %v: got %d sales in %v, want %d in %v", minimum, got.Sales, got.SalesWindow, want.sales, want.window)
		}
	}
}

func TestFetch_ReportsErrors(t *testing.T) {
	for name, c := range map[string]struct {
		fake  *skinporttest.Server
		calls int
		kind  provider.Kind
	}{
		"ninth call with Retry-After":    {&skinporttest.Server{Rows: rows()}, 9, provider.KindRateLimited},
		"ninth call without Retry-After": {&skinporttest.Server{Rows: rows(), NoRetry: true}, 9, provider.KindRateLimited},
		"no rows":                        {&skinporttest.Server{}, 1, provider.KindProtocol},
		"no sales":                       {&skinporttest.Server{Rows: []skinporttest.Row{{Name: redline, Ask: "1", Unsold: true}}}, 1, provider.KindProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			server := providertest.NewServer(t, c.fake)
			src := newProvider(t, server.URL(), skinport.Config{}, func(o *provider.Options) { o.Total = time.Second })
			providertest.CheckError(t, src, call, c.calls, c.kind, "")
		})
	}
}

func TestFetch_ReadsEveryGame(t *testing.T) {
	server := providertest.NewServer(t, &skinporttest.Server{Rows: rows()})
	src := newProvider(t, server.URL(), skinport.Config{}, nil)
	for _, f := range src.Describe().Files {
		if _, err := src.Fetch(t.Context(), provider.Call{AppID: f.AppID, File: f.Key}, &providertest.Sink{}); err != nil {
			t.Errorf("file %s: got error %v, want none", f.Key, err)
		}
	}
}

func TestFetch_UsesSupportedCurrency(t *testing.T) {
	for base, want := range map[money.Currency]string{"USD": "USD", "EUR": "EUR", "CNY": "USD", "": "USD"} {
		server := providertest.NewServer(t, &skinporttest.Server{Rows: rows()})
		src := newProvider(t, server.URL(), skinport.Config{Currency: base}, nil)
		var sink providertest.Sink
		if _, err := src.Fetch(t.Context(), call, &sink); err != nil {
			t.Fatal(err)
		}
		if got := sink.Quotes[0].Currency; string(got) != want {
			t.Errorf("base currency %q: got quotes in %s, want %s", base, got, want)
		}
	}
}

// TestReal_DecodesRecordedFeeds reads recorded responses of Skinport. The two recordings are
// from different days and in different currencies.
func TestReal_DecodesRecordedFeeds(t *testing.T) {
	items, history := recorded(t, "skinport_items_2026-10-05.json"), recorded(t, "skinport_sales_history_2026-08-13.json")
	server := providertest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/items") {
			_, _ = w.Write(items)
		} else {
			_, _ = w.Write(history)
		}
	}))
	src := newProvider(t, server.URL(), skinport.Config{Currency: "EUR"}, nil)
	var sink providertest.Sink
	if _, err := src.Fetch(t.Context(), call, &sink); err != nil {
		t.Fatal(err)
	}
	if sink.Rejects != 0 || len(sink.Quotes) != 25+9-1 { // the Redline is in both feeds
		t.Errorf("got %d quotes and %d rejects, want 33 and 0", len(sink.Quotes), sink.Rejects)
	}
	recordedAt := time.Date(2026, 10, 5, 11, 50, 14, 0, time.UTC)
	for _, want := range []provider.Quote{
		// The sales are in USD and the offers in EUR, so the median is dropped.
		{Name: redline, Currency: "EUR", Ask: 2147 * cents, Listings: 69, Sales: 302, SalesWindow: 30 * day, MarketTime: recordedAt},
		{Name: "Souvenir AWP | Redline (Field-Tested)", Currency: "EUR", Sales: provider.Unknown, MarketTime: recordedAt},
		{Name: "Charm | Chicken Lil'", Currency: "EUR", Ask: 43 * cents, Listings: 2, Sales: provider.Unknown, MarketTime: recordedAt},
		{Name: "★ M9 Bayonet | Doppler (Minimal Wear)", Phase: "Black Pearl", Currency: "USD", SalesWindow: 30 * day},
	} {
		want.Market = skinport.Name
		if !slices.Contains(sink.Quotes, want) {
			t.Errorf("got no quote %+v, want it", want)
		}
	}
	for _, q := range sink.Quotes {
		if strings.Contains(q.Name, "Doppler") && q.Phase == "" {
			t.Errorf("got Doppler quote %+v, want a phase", q)
		}
	}
}

func recorded(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "data", "fixtures", name))
	if err != nil {
		t.Skip("recorded response missing: " + name)
	}
	return body
}
