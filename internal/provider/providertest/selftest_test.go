package providertest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/feed"
	"assay/internal/provider/providertest"
)

// TestRun_AcceptsMinimalProvider runs the suite for a minimal provider. Its response is an array
// of names and prices in dollars.
func TestRun_AcceptsMinimalProvider(t *testing.T) {
	const key = "canary-5up3r-s3cr3t"
	providertest.Run(t, providertest.Subject{
		New: func(t testing.TB, baseURL string, tweak func(*provider.Options)) provider.Provider {
			o := provider.Options{Provider: "plain", Secrets: []string{key}}
			tweak(&o)
			c := provider.NewClient(o)
			t.Cleanup(c.Close)
			return &plain{client: c, url: baseURL + "/" + key + "/prices?key=" + key, key: key}
		},
		Good: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `[{"name":"AK-47 | Redline (Field-Tested)","price":12.34},`+
				`{"name":"★ Karambit","price":"610.005"},{"name":"P250 | Sand Dune (Battle-Scarred)","price":null}]`)
		}),
		Call: provider.Call{AppID: 730, File: "prices"},
		Want: []provider.Quote{
			quote("AK-47 | Redline (Field-Tested)", 12_340_000), quote("★ Karambit", 610_005_000),
			quote("P250 | Sand Dune (Battle-Scarred)", 0),
		},
		Render: func(rows []providertest.Row) []byte {
			var items []string
			for _, row := range rows {
				items = append(items, fmt.Sprintf(`{"name":%s,"price":%s}`, providertest.Quote(row.Name), row.Price))
			}
			return []byte("[" + strings.Join(items, ",") + "]")
		},
		Secret: key,
	})
}

func quote(name string, ask money.Micro) provider.Quote {
	return provider.Quote{
		Market: "plain", Name: name, Currency: "USD", Ask: ask, Listings: provider.Unknown, Sales: provider.Unknown,
	}
}

// plain is a minimal provider with one file.
type plain struct {
	client   *provider.Client
	url, key string
}

func (p *plain) Describe() provider.Description {
	return provider.Description{
		Name: "plain", Title: "Plain", Shape: provider.Bulk, Interval: 5 * time.Minute,
		Markets: []provider.Market{{Key: "plain", Title: "Plain", AppIDs: []int32{catalog.CS2}}},
		Files:   []provider.File{{Key: "prices", AppID: catalog.CS2, Markets: []string{"plain"}}},
	}
}

func (p *plain) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	d := p.Describe()
	if _, err := d.FileOf(call); err != nil {
		return provider.Result{}, err
	}
	req := provider.Request{URL: p.url, Header: http.Header{"X-Api-Key": {p.key}}, Meter: call.Meter}
	cells := make([]feed.Cell, 2)
	return provider.Result{}, p.client.Do(ctx, req, func(resp *provider.Response) error {
		return feed.Read(ctx, "plain", resp.Body, sink, func(r *feed.Reader) error {
			return r.Array(func() error {
				ok, err := r.Row([]string{"name", "price"}, cells)
				if !ok || err != nil {
					return err
				}
				name, ok := r.Name("plain", cells[0])
				if !ok {
					return nil
				}
				ask, reason := cells[1].Amount(1)
				if reason != "" {
					r.Reject("plain", cells[0].Text, reason)
					return nil
				}
				q := quote(name, ask)
				return r.Quote(&q)
			})
		})
	})
}
