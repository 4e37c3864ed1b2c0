package provider_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"assay/internal/provider"
	"assay/internal/provider/feed"
	"assay/internal/provider/providertest"
)

// bazaar is a provider with one market. It serves all items in one file:
// [{"name":"…","price":12.34,"count":3}, …].
type bazaar struct {
	client *provider.Client
	url    string
}

var bazaarFields = []string{"name", "price", "count"}

func (b *bazaar) Describe() provider.Description {
	return provider.Description{
		Name: "bazaar", Title: "Bazaar", Shape: provider.Bulk,
		Markets: []provider.Market{{Key: "bazaar", Title: "Bazaar", AppIDs: []int32{730}}},
		Files:   []provider.File{{Key: "items", AppID: 730, Markets: []string{"bazaar"}}},
	}
}

func (b *bazaar) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	cells := make([]feed.Cell, len(bazaarFields))
	err := b.client.Do(ctx, provider.Request{URL: b.url, Meter: call.Meter}, func(resp *provider.Response) error {
		return feed.Read(ctx, "bazaar", resp.Body, sink, func(r *feed.Reader) error {
			return r.Rows(func() error {
				if ok, err := r.Row(bazaarFields, cells); !ok || err != nil {
					return err
				}
				return b.quote(r, cells)
			})
		})
	})
	return provider.Result{}, err
}

// quote passes a row to the sink, as a quote or as a rejected row.
func (b *bazaar) quote(r *feed.Reader, cells []feed.Cell) error {
	name, ok := r.Name("bazaar", cells[0])
	if !ok {
		return nil
	}
	ask, reason := cells[1].Amount(1) // in whole dollars
	listings, why := cells[2].Count()
	if reason != "" || why != "" {
		r.Reject("bazaar", cells[0].Text, reason+why)
		return nil
	}
	return r.Quote(&provider.Quote{
		Market: "bazaar", Name: name, Currency: "USD", Ask: ask, Listings: listings, Sales: provider.Unknown,
	})
}

// A provider describes itself and decodes a response into quotes.
func ExampleProvider() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `[{"name":"AK-47 | Redline (Field-Tested)","price":12.34,"count":3},{"name":"P250 | Sand Dune (Battle-Scarred)","price":"much","count":1},
			{"name":"Fracture Case","price":0.51,"count":1200}]`)
	}))
	defer server.Close()
	client := provider.NewClient(provider.Options{Provider: "bazaar", AllowHosts: []string{server.Listener.Addr().String()}})
	defer client.Close()

	var sink providertest.Sink
	b := &bazaar{client: client, url: server.URL}
	if _, err := b.Fetch(context.Background(), provider.Call{AppID: 730, File: "items"}, &sink); err != nil {
		fmt.Println(err)
	}
	for _, q := range sink.Quotes {
		fmt.Printf("%s: %s %s, %d listings\n", q.Name, q.Ask, q.Currency, q.Listings)
	}
	fmt.Println("rejected:", sink.Rejects)
	// Output:
	// AK-47 | Redline (Field-Tested): 12.34 USD, 3 listings
	// Fracture Case: 0.51 USD, 1200 listings
	// rejected: 1
}

// A client retries temporary failures. After a 429 it sends no requests to the host until the
// demanded wait is over.
func ExampleClient_Do() {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch requests++; requests {
		case 1:
			w.WriteHeader(http.StatusBadGateway)
		case 2:
			_, _ = fmt.Fprint(w, `{"price":"12.34"}`)
		default:
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	client := provider.NewClient(provider.Options{
		Provider: "bazaar", AllowHosts: []string{server.Listener.Addr().String()}, Backoff: time.Millisecond, Patience: time.Second,
	})
	defer client.Close()

	read := func(resp *provider.Response) error {
		body, err := io.ReadAll(resp.Body)
		fmt.Printf("%d %s\n", resp.Status, body)
		return err
	}
	request := provider.Request{URL: server.URL}
	fmt.Println(client.Do(context.Background(), request, read))
	for range 2 {
		fmt.Println(provider.KindOf(client.Do(context.Background(), request, read)))
	}
	fmt.Println("requests:", requests)
	// Output:
	// 200 {"price":"12.34"}
	// <nil>
	// rateLimited
	// rateLimited
	// requests: 3
}
