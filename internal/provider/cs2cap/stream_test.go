package cs2cap_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/provider"
	"assay/internal/provider/cs2cap"
	"assay/internal/provider/cs2cap/cs2captest"
	"assay/internal/provider/providertest"
)

const month = 30 * 24 * time.Hour

// streamed returns the fake's items with their sales, and the expected quotes of a stream.
func streamed() ([]cs2captest.Item, []provider.Quote) {
	all := items()
	all[0].Sold = `"sales_1d":4,"sales_7d":31,"sales_30d":120,"steam_sales_7d":300,"steam_sales_30d":1510`
	all[1].Sold = `"sales_30d":0,"steam_sales_30d":null`
	all[4].Sold = `"sales_30d":null,"steam_sales_30d":0`
	all[5].Sold = `"sales_30d":2`
	want := quotes()
	for i := range 3 {
		want[i].SalesWindow = month
	}
	want[0].Sales, want[1].Sales, want[2].Sales = 1630, 1630, 0
	phase := want[3]
	phase.Phase, phase.Ask, phase.Listings, phase.Sales, phase.SalesWindow = "Sapphire", 5_311_430_000, 1, 2, month
	return all, append(want, phase)
}

func newStream(t testing.TB, baseURL string, tweak func(*provider.Options)) *cs2cap.Provider {
	t.Helper()
	return newProvider(t, baseURL, cs2cap.Config{Shape: provider.Bulk, Currency: "EUR", Sales: new(provider.Client)}, tweak)
}

func TestStreamSuite(t *testing.T) {
	all, want := streamed()
	for i := range want {
		want[i].Sales, want[i].SalesWindow = provider.Unknown, 0
	}
	fake := server()
	fake.Items, fake.Parallel = all, true // the suite sends its requests at once
	providertest.Run(t, providertest.Subject{
		New: func(t testing.TB, baseURL string, tweak func(*provider.Options)) provider.Provider {
			return newProvider(t, baseURL, cs2cap.Config{Shape: provider.Bulk}, tweak)
		},
		Good:   fake,
		Call:   provider.Call{AppID: catalog.CS2, File: "prices.ndjson"},
		Want:   want,
		Render: renderStream,
		Lines:  true,
		Secret: key,
	})
}

func renderStream(rows []providertest.Row) []byte {
	var b bytes.Buffer
	for _, row := range rows {
		fmt.Fprintf(&b, `{"market_hash_name":%s,"phase":null,"quotes":[{"provider":"steam","lowest_ask":%s,"quantity":1}]}`+"\n", providertest.Quote(row.Name), row.Price)
	}
	return b.Bytes()
}

func TestStream_UsesOneStart(t *testing.T) {
	fake := server()
	all, want := streamed()
	fake.Items = all
	srv := providertest.NewServer(t, fake)
	src := newStream(t, srv.URL(), nil)
	sink, result, meter, err := fetch(t, src)
	if err != nil {
		t.Fatal(err)
	}
	wantQuotes(t, sink, want)
	hits := srv.Hits()
	if meter.Requests() != 2 || hits[1].Path != "/v1/prices?providers=skinport&providers=csfloat&providers=steam" || result.Silent != nil {
		t.Errorf("got %d requests %+v, silent markets %q; want 2, none silent", meter.Requests(), hits, result.Silent)
	}
	if d := src.Describe(); d.Interval < 28*time.Minute || len(d.Hosts) != 2 || d.HostOf("prices.ndjson") != "stream" {
		t.Errorf("got description %+v, want two hosts and an interval of at least 28m", d)
	}
}

func TestProbe_StartsNoStream(t *testing.T) {
	for _, shape := range []provider.Shape{provider.Batch, provider.Single, provider.Bulk} {
		fake := server()
		srv := providertest.NewServer(t, fake)
		c := cs2cap.Config{Shape: shape}
		if shape == provider.Bulk {
			c.Sales = new(provider.Client)
		}
		src := newProvider(t, srv.URL(), c, nil)
		call := src.Probe()
		call.Meter = new(provider.Meter)
		var sink providertest.Sink
		_, err := src.Fetch(t.Context(), call, &sink)
		if err != nil || len(sink.Quotes) == 0 || call.Meter.Requests() != 1 || len(srv.Hits()) != 1 {
			t.Errorf("%s: got error %v, %d quotes, %d requests; want 1 request", shape, err, len(sink.Quotes), call.Meter.Requests())
		}
		if h := srv.Hits()[0]; h.Method == http.MethodPost && h.Path != "/v1/prices/batch" {
			t.Errorf("%s: got request %+v, want no stream", shape, h)
		}
	}
}

// A stream that is truncated between lines looks complete. It has fewer quotes, and a market
// without quotes is silent.
func TestStream_TruncatedBetweenLines(t *testing.T) {
	fake := server()
	fake.Stop = 1
	fake.Items[0].Sold = `"sales_30d":1`
	srv := providertest.NewServer(t, fake)
	sink, result, _, err := fetch(t, newStream(t, srv.URL(), nil))
	if err != nil || len(sink.Quotes) != 2 || !slices.Equal(result.Silent, []string{"csfloat"}) {
		t.Errorf("got %d quotes, silent markets %q, error %v; want 2, csfloat", len(sink.Quotes), result.Silent, err)
	}
}

func TestStream_RejectsInvalidStreams(t *testing.T) {
	const line = `{"market_hash_name":"A","quotes":[{"provider":"steam","lowest_ask":5}]}` + "\n"
	for name, body := range map[string]string{
		"truncated line":     line + `{"market_hash_name":"B","quotes":[{"provider"`,
		"error after a line": line + `{"code":"PRICES_INDEX_UNAVAILABLE","detail":"gone"}`,
		"error only":         `{"code":"FORBIDDEN","detail":"no"}`,
		"data after a line":  line + "}",
		"no lines":           "",
		"lines of arrays":    "[1]\n[2]\n",
	} {
		fake := server()
		fake.Items[0].Sold = `"sales_30d":1`
		srv := providertest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				fake.ServeHTTP(w, r)
				return
			}
			_, _ = w.Write([]byte(body))
		}))
		if _, _, _, err := fetch(t, newStream(t, srv.URL(), nil)); provider.KindOf(err) != provider.KindProtocol {
			t.Errorf("%s: got error %v, want kind %s", name, err, provider.KindProtocol)
		}
	}
}

// The key may have only one open stream. The client waits and then retries.
func TestStream_WaitsForOpenStream(t *testing.T) {
	fake := server()
	fake.Items[0].Sold = `"sales_30d":1`
	fake.Opened = make(chan struct{})
	srv := providertest.NewServer(t, fake)
	first, second := newStream(t, srv.URL(), nil), newStream(t, srv.URL(), func(o *provider.Options) { o.Total = time.Second })
	ended := make(chan error)
	go func() {
		_, err := first.Fetch(t.Context(), provider.Call{AppID: catalog.CS2, File: "prices.ndjson"}, &providertest.Sink{})
		ended <- err
	}()
	<-fake.Opened
	_, _, _, err := fetch(t, second)
	e := asError(err)
	if e == nil || e.Kind != provider.KindRateLimited || !strings.Contains(e.Detail, cs2cap.StreamActiveCode) || e.RetryAfter != time.Minute {
		t.Errorf("got error %+v, want kind %s with a wait of 1m", err, provider.KindRateLimited)
	}
	<-fake.Opened
	if err := <-ended; err != nil {
		t.Errorf("got error %v, want none", err)
	}
}

// The stream quota does not limit other requests.
func TestStream_ExhaustedQuotaLimitsStreamsOnly(t *testing.T) {
	for name, bare := range map[string]bool{"with headers": false, "code only": true} {
		fake := server()
		fake.Items[0].Sold = `"sales_30d":1`
		fake.Streams, fake.Bare = 1, bare
		srv := providertest.NewServer(t, fake)
		src := newStream(t, srv.URL(), func(o *provider.Options) { o.Total = time.Second })
		for i := range 3 {
			_, _, meter, err := fetch(t, src)
			if e := asError(err); (err != nil) != (i > 0) || i > 0 && (e == nil || e.Kind != provider.KindBudget || !e.Deferred()) {
				t.Errorf("%s, call %d: got error %+v, want kind %s from the second call on", name, i, err, provider.KindBudget)
			}
			if meter.Requests() == 0 {
				t.Errorf("%s, call %d: got no request for sales, want one", name, i)
			}
		}
		starts := 0
		for _, h := range srv.Hits() {
			if h.Method == http.MethodPost {
				starts++
			}
		}
		if want := map[bool]int{false: 1, true: 2}[bare]; starts != want {
			t.Errorf("%s: got %d starts, want %d", name, starts, want)
		}
	}
}

func TestStream_RejectsInvalidSales(t *testing.T) {
	for name, body := range map[string]string{
		"refusal":         `{"code":"FORBIDDEN","detail":"no"}`,
		"no items":        `{"data":{}}`,
		"null":            "null",
		"HTML page":       "<!DOCTYPE html><html></html>",
		"truncated":       `{"data":{"items":[{"market_hash_name":"A","summary":{"sales_30d":1}}`,
		"empty list":      `{"data":{"items":[]}}`,
		"invalid number":  `{"data":{"items":[{"market_hash_name":"A","summary":{"sales_30d":"many"}}]}}`,
		"invalid phase":   `{"data":{"items":[{"market_hash_name":"A","phase":"Phase 9","summary":{"sales_30d":1}}]}}`,
		"invalid summary": `{"data":{"items":[{"market_hash_name":"A","summary":7}]}}`,
	} {
		srv := providertest.NewServer(t, text(body))
		if _, _, meter, err := fetch(t, newStream(t, srv.URL(), nil)); provider.KindOf(err) != provider.KindProtocol || meter.Requests() != 1 {
			t.Errorf("%s: got error %v after %d requests, want kind protocol after 1", name, err, meter.Requests())
		}
	}
}
