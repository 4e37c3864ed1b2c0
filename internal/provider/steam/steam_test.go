package steam_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/providertest"
	"assay/internal/provider/steam"
	"assay/internal/provider/steam/steamtest"
)

const (
	redline = "AK-47 | Redline (Field-Tested)"
	rare    = "Souvenir AWP | 壱 & \"弐\" 100%"
	cents   = money.Micro(10_000)
	day     = 24 * time.Hour
)

func newProvider(t testing.TB, baseURL string, endpoint steam.Endpoint, tweak func(*provider.Options)) *steam.Provider {
	t.Helper()
	o := provider.Options{Provider: steam.Name}
	steam.Tune(&o)
	client := providertest.NewClient(t, baseURL, o, tweak)
	return steam.New(steam.Config{BaseURL: baseURL, Endpoint: endpoint, Client: client, Host: steam.Host()})
}

func callFor(name string) provider.Call {
	return provider.Call{AppID: catalog.CS2, Names: []string{name}}
}

func items() []steamtest.Item {
	return []steamtest.Item{
		{AppID: catalog.CS2, Name: redline, Lowest: 331000, Median: 3268, Volume: 1204, Highest: 3205, Sellers: 1204, Buyers: 5210},
		{AppID: catalog.CS2, Name: rare, Highest: 401000, Buyers: 7, Volume: 3, Median: 512000},
		{AppID: catalog.CS2, Name: "Karambit", Lowest: 512000, Sellers: 2},
		{AppID: catalog.Dota, Name: redline, Lowest: 5, Sellers: 9},
	}
}

func TestProvider_PassesTheProviderSuite(t *testing.T) {
	for endpoint, c := range map[steam.Endpoint]struct {
		want   provider.Quote
		render func([]providertest.Row) []byte
		means  []string
	}{
		steam.PriceOverview: {provider.Quote{
			Market: steam.Name, Name: redline, Currency: "USD", Ask: 331000 * cents, Sale: 3268 * cents, Listings: provider.Unknown, Sales: 1204, SalesWindow: day,
		}, renderOverview, []string{`"$12.34"`}},
		steam.OrderBook: {provider.Quote{
			Market: steam.Name, Name: redline, Currency: "USD", Ask: 331000 * cents, Bid: 3205 * cents, Listings: 1204, Sales: provider.Unknown,
		}, renderBook, nil},
	} {
		t.Run(string(endpoint), func(t *testing.T) {
			providertest.Run(t, providertest.Subject{
				New: func(t testing.TB, baseURL string, tweak func(*provider.Options)) provider.Provider {
					return newProvider(t, baseURL, endpoint, tweak)
				},
				Good:   &steamtest.Server{Items: items(), Calls: 1_000_000},
				Call:   callFor(redline),
				Want:   []provider.Quote{c.want},
				Render: c.render,
				Wait:   10 * time.Minute,
				Means:  c.means,
			})
		})
	}
}

// renderOverview formats the suite's plain price 5 like Steam. It copies other prices
// unchanged.
func renderOverview(rows []providertest.Row) []byte {
	body := `{"success":true`
	for _, row := range rows {
		price := row.Price
		if price == "5" {
			price = `"$5.00"`
		}
		body += `,"lowest_price":` + price
	}
	return []byte(body + "}")
}

func renderBook(rows []providertest.Row) []byte {
	body := `{"success":true,"data":{"eCurrency":1`
	for _, row := range rows {
		body += `,"amtMinSellOrder":` + row.Price
	}
	return []byte(body + "}}")
}

// fetch sends a call to the fake server.
func fetch(t *testing.T, endpoint steam.Endpoint, fake *steamtest.Server, call provider.Call) (providertest.Sink, error) {
	t.Helper()
	server := providertest.NewServer(t, fake)
	var sink providertest.Sink
	_, err := newProvider(t, server.URL(), endpoint, nil).Fetch(t.Context(), call, &sink)
	return sink, err
}

func TestFetch_ReturnsOffersAndSales(t *testing.T) {
	unknown := provider.Quote{Market: steam.Name, Currency: "USD", Listings: provider.Unknown, Sales: provider.Unknown}
	quote := func(name string, change func(*provider.Quote)) []provider.Quote {
		q := unknown
		q.Name = name
		change(&q)
		return []provider.Quote{q}
	}
	for name, c := range map[string]struct {
		endpoint steam.Endpoint
		fake     *steamtest.Server
		call     provider.Call
		want     []provider.Quote
	}{
		"sold and not offered": {steam.PriceOverview, &steamtest.Server{}, callFor(rare), quote(rare, func(q *provider.Quote) {
			q.Sale, q.Sales, q.SalesWindow = 512000*cents, 3, day
		})},
		"offered with unknown sales": {steam.PriceOverview, &steamtest.Server{}, callFor("Karambit"), quote("Karambit", func(q *provider.Quote) { q.Ask = 512000 * cents })},
		"another game": {
			steam.PriceOverview,
			&steamtest.Server{},
			provider.Call{AppID: catalog.Dota, Names: []string{redline}},
			quote(redline, func(q *provider.Quote) { q.Ask = 5 * cents }),
		},
		"response in euros":   {steam.PriceOverview, &steamtest.Server{Currency: 3}, callFor("Karambit"), quote("Karambit", func(q *provider.Quote) { q.Ask, q.Currency = 512000*cents, "EUR" })},
		"bid and not offered": {steam.OrderBook, &steamtest.Server{}, callFor(rare), quote(rare, func(q *provider.Quote) { q.Bid, q.Listings = 401000*cents, 0 })},
		"wrapped response in euros": {steam.OrderBook, &steamtest.Server{Wrapped: true, Currency: 3}, callFor(rare), quote(rare, func(q *provider.Quote) {
			q.Bid, q.Listings, q.Currency = 401000*cents, 0, "EUR"
		})},
	} {
		c.fake.Items = items()
		sink, err := fetch(t, c.endpoint, c.fake, c.call)
		if diff := cmp.Diff(c.want, sink.Quotes); err != nil || diff != "" {
			t.Errorf("%s: got error %v, quotes (-want +got):\n%s", name, err, diff)
		}
	}
}

// A response without a price gives either no quote and no error, or an error that
// identifies the fault.
func TestFetch_DistinguishesResponsesWithoutAPrice(t *testing.T) {
	for _, c := range []struct {
		name     string
		endpoint steam.Endpoint
		fake     *steamtest.Server
		kind     provider.Kind // empty: no error
		detail   string
		hits     int
	}{
		{"unknown", steam.PriceOverview, &steamtest.Server{}, "", "", 1},
		{"failure", steam.PriceOverview, &steamtest.Server{Unknown: steamtest.Reply{Body: `{"success":false}`}}, "", "", 1},
		{"null", steam.PriceOverview, &steamtest.Server{Unknown: steamtest.Reply{Body: `null`}}, provider.KindProtocol, "null instead of", 1},
		{"500 failure", steam.PriceOverview, &steamtest.Server{Unknown: steamtest.Reply{Status: 500, Body: `{"success":false}`}}, provider.KindStatus, `{"success":false}`, 1},
		{"500 null", steam.PriceOverview, &steamtest.Server{Unknown: steamtest.Reply{Status: 500, Body: `null`}}, provider.KindStatus, "null", 1},
		{"500", steam.PriceOverview, &steamtest.Server{Always: steamtest.Reply{Status: 500, Body: steamtest.Page}}, provider.KindServer, "<!DOCTYPE", 2},
		{"502", steam.PriceOverview, &steamtest.Server{Always: steamtest.Reply{Status: 502, Body: steamtest.Page}}, provider.KindServer, "<!DOCTYPE", 2},
		{"503", steam.PriceOverview, &steamtest.Server{Always: steamtest.Reply{Status: 503, Body: steamtest.Page}}, provider.KindServer, "<!DOCTYPE", 2},
		{"403", steam.PriceOverview, &steamtest.Server{Always: steamtest.Reply{Status: 403, Body: steamtest.Page}}, provider.KindRateLimited, "<!DOCTYPE", 1},
		{"403 null", steam.PriceOverview, &steamtest.Server{Always: steamtest.Reply{Status: 403, Body: "null"}}, provider.KindAuth, "null", 1},
		{"page", steam.PriceOverview, &steamtest.Server{Always: steamtest.Reply{Body: steamtest.Page}}, provider.KindProtocol, "HTML instead of JSON", 1},
		{"endpoint gone", steam.PriceOverview, &steamtest.Server{Always: steamtest.Reply{Body: `{"success":104}`}}, provider.KindProtocol, "unexpected value of success: 104", 1},
		{"success is missing", steam.PriceOverview, &steamtest.Server{Always: steamtest.Reply{Body: `{"lowest_price":"$1.00"}`}}, provider.KindProtocol, "success is missing", 1},
		{"book: unknown", steam.OrderBook, &steamtest.Server{}, "", "", 1},
		{"book: failure", steam.OrderBook, &steamtest.Server{Unknown: steamtest.Reply{Body: `{"success":false}`}}, "", "", 1},
		{"book: no data", steam.OrderBook, &steamtest.Server{Always: steamtest.Reply{Body: `{"data":{"success":true}}`}}, provider.KindProtocol, "without data", 1},
		{"book: unknown currency", steam.OrderBook, &steamtest.Server{Items: []steamtest.Item{{AppID: catalog.CS2, Name: "none", Lowest: 1}}, Currency: 99}, provider.KindProtocol, "currency", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := providertest.NewServer(t, c.fake)
			var sink providertest.Sink
			_, err := newProvider(t, server.URL(), c.endpoint, nil).Fetch(t.Context(), callFor("none"), &sink)
			if provider.KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.detail) || len(sink.Quotes)+sink.Rejects > 0 && err == nil {
				t.Errorf("got error %v and %d quotes, want kind %q with %q", err, len(sink.Quotes), c.kind, c.detail)
			}
			if got := len(server.Hits()); got != c.hits {
				t.Errorf("got %d requests, want %d", got, c.hits)
			}
		})
	}
}

func TestFetch_SendsNoRequestsDuringABlock(t *testing.T) {
	fake := &steamtest.Server{Items: items(), Calls: 3}
	server := providertest.NewServer(t, fake)
	src := newProvider(t, server.URL(), steam.PriceOverview, nil)
	for i := range 8 {
		_, err := src.Fetch(t.Context(), callFor(redline), &providertest.Sink{})
		if refused := provider.KindOf(err) == provider.KindRateLimited; refused != (i >= 3) || !refused && err != nil {
			t.Errorf("call %d: got error %v, want a rate limit from call 4 on", i+1, err)
		}
	}
	if got := len(server.Hits()); got != 4 {
		t.Errorf("got %d requests, want 4: further requests would prolong the block", got)
	}
	if wait := fake.Blocked(time.Now()); wait > 10*time.Minute {
		t.Errorf("got block of %v, want at most 10 minutes", wait)
	}
}

func TestDescribe_MaxAgeCoversTheTimeToFetchAllNames(t *testing.T) {
	d := newProvider(t, "http://127.0.0.1:1", steam.PriceOverview, nil).Describe()
	if all := d.Hosts[0].Limit.Time(20_000); d.Markets[0].MaxAge < all {
		t.Errorf("got maximum age %v, want at least %v for 20,000 names", d.Markets[0].MaxAge, all)
	}
}

func TestFetch_EscapesNamesLikeSteamsPages(t *testing.T) {
	const name = "A+B & C's \"D\" | ★ 100%"
	for endpoint, want := range map[steam.Endpoint]string{
		steam.PriceOverview: "/market/priceoverview/?appid=440&currency=1&country=US&market_hash_name=A%2BB%20%26%20C%27s%20%22D%22%20%7C%20%E2%98%85%20100%25",
		steam.OrderBook:     "/market/orderbook?q=Load&qp=%5B440%2C%22A%2BB%20%26%20C%27s%20%5C%22D%5C%22%20%7C%20%E2%98%85%20100%25%22%5D",
	} {
		fake := &steamtest.Server{Items: []steamtest.Item{{AppID: catalog.TF2, Name: name, Lowest: 3}}}
		server := providertest.NewServer(t, fake)
		var sink providertest.Sink
		_, err := newProvider(t, server.URL(), endpoint, nil).Fetch(t.Context(), provider.Call{AppID: catalog.TF2, Names: []string{name}}, &sink)
		if err != nil || len(sink.Quotes) != 1 || sink.Quotes[0].Name != name {
			t.Errorf("%s: got error %v, quotes %+v, want one quote", endpoint, err, sink.Quotes)
		}
		if got := server.Hits()[0].Path; got != want {
			t.Errorf("got request %s\nwant %s", got, want)
		}
	}
}

func TestFetch_RejectsInvalidCallsWithoutARequest(t *testing.T) {
	server := providertest.NewServer(t, http.NotFoundHandler())
	src := newProvider(t, server.URL(), steam.PriceOverview, nil)
	for _, call := range []provider.Call{
		{AppID: 10, Names: []string{redline}}, {AppID: catalog.CS2}, {AppID: catalog.CS2, Names: []string{redline, rare}}, callFor(""),
	} {
		if _, err := src.Fetch(t.Context(), call, &providertest.Sink{}); provider.KindOf(err) != provider.KindProtocol {
			t.Errorf("%+v: got error %v, want kind %q", call, err, provider.KindProtocol)
		}
	}
	if n := len(server.Hits()); n > 0 {
		t.Errorf("got %d requests, want 0", n)
	}
}
