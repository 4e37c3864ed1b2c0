package csfloat

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/internal/provider"
	"assay/internal/provider/providertest"
)

// Samples in the documented format.
const (
	samplePrices = `[
  {"market_hash_name":"AK-47 | Redline (Field-Tested)","min_price":2710,"quantity":205},
  {"market_hash_name":"★ Karambit | Doppler (Factory New)","min_price":134900,"quantity":61}
]`
	sampleDopplers = `{"data":[
  {"market_hash_name":"★ Karambit | Doppler (Factory New)","paint_index":418,"phase_name":"Phase 1","min_price":134900},
  {"market_hash_name":"★ Karambit | Doppler (Factory New)","paint_index":415,"phase_name":"Ruby","min_price":612000}
]}`
	sampleRefusal = `{"code":1,"message":"You need to be logged in to search listings"}`
)

func TestRead_DecodesSamples(t *testing.T) {
	dopplers, err := readDopplers(t.Context(), strings.NewReader(sampleDopplers))
	if err != nil {
		t.Fatal(err)
	}
	var sink providertest.Sink
	if err := readPrices(t.Context(), strings.NewReader(samplePrices), dopplers, &sink); err != nil {
		t.Fatal(err)
	}
	const karambit = "★ Karambit | Doppler (Factory New)"
	want := []provider.Quote{
		{Market: Name, Name: "AK-47 | Redline (Field-Tested)", Currency: "USD", Ask: 27_100_000, Listings: 205, Sales: provider.Unknown},
		{Market: Name, Name: karambit, Currency: "USD", Ask: 1_349_000_000, Listings: 61, Sales: provider.Unknown},
		{Market: Name, Name: karambit, Phase: "Phase 1", Currency: "USD", Ask: 1_349_000_000, Listings: provider.Unknown, Sales: provider.Unknown},
		{Market: Name, Name: karambit, Phase: "Ruby", Currency: "USD", Ask: 6_120_000_000, Listings: provider.Unknown, Sales: provider.Unknown},
	}
	if diff := cmp.Diff(want, sink.Sorted()); diff != "" {
		t.Errorf("quotes (-want +got):\n%s", diff)
	}
	err = readPrices(t.Context(), strings.NewReader(sampleRefusal), nil, &sink)
	if provider.KindOf(err) != provider.KindProtocol || !strings.Contains(err.Error(), "the provider refused the request: You need to be logged in") {
		t.Errorf("refusal with status 200: got error %v, want kind %s", err, provider.KindProtocol)
	}
}

func FuzzPrices(f *testing.F) {
	f.Add([]byte(samplePrices))
	f.Add([]byte(sampleRefusal))
	f.Add([]byte(`{"data":[{"market_hash_name":"A","min_price":1.5,"quantity":"-1"}]}`))
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		known := []provider.Quote{{Market: Name, Name: "A", Phase: "Ruby", Currency: "USD"}}
		return readPrices(context.Background(), body, known, sink)
	})
}

func FuzzDopplers(f *testing.F) {
	f.Add([]byte(sampleDopplers))
	f.Add([]byte(`[{"market_hash_name":"A","paint_index":"1119"},{"market_hash_name":"A","paint_index":568,"min_price":0.4}]`))
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		dopplers, err := readDopplers(context.Background(), body)
		if err != nil {
			return err
		}
		return readPrices(context.Background(), strings.NewReader(samplePrices), dopplers, sink)
	})
}

// response returns an endless response in CSFloat's format. Long picture URLs make 39,000 rows
// large enough to measure.
func response() providertest.Response {
	long := strings.Repeat("picture/", 190)
	return providertest.Response{
		Head: "[", Tail: "]",
		Row: func(i int) string {
			return fmt.Sprintf(`%.*s{"market_hash_name":"★ StatTrak™ Karambit | Case %d (Field-Tested)","min_price":%d,"quantity":%d,"icon":"%s"}`,
				min(i, 1), ",", i, i%900_000+1, i%50, long)
		},
		Read: func(body io.Reader, sink provider.Sink) error {
			return readPrices(context.Background(), body, nil, sink)
		},
	}
}

func TestPrices_Cost(t *testing.T) { providertest.CheckCost(t, response()) }

func BenchmarkPrices(b *testing.B) { providertest.Bench(b, response()) }
