package waxpeer

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
	samplePrices = `{"success":true,"items":[
  {"name":"AK-47 | Redline (Field-Tested)","count":44,"min":26350,"img":"https://example.invalid/a.png","steam_price":"33100","rarity_color":"#D32CE6","type":"Rifle"},
  {"name":"P250 | Sand Dune (Battle-Scarred)","count":910,"min":21}
]}`
	sampleDopplers = `{"success":true,"items":[
  {"name":"★ Karambit | Doppler (Factory New)","item_id":"40000000101","price":1214500,"phase":"Phase 3","steam_price":1401000,"img":"","weapon":"Karambit","paint_index":420,"float":0.031},
  {"name":"★ Karambit | Doppler (Factory New)","item_id":"40000000102","price":5990000,"phase":"Ruby","steam_price":1401000,"img":"","weapon":"Karambit","paint_index":415,"float":0.012}
]}`
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
		{Market: Name, Name: "AK-47 | Redline (Field-Tested)", Currency: "USD", Ask: 26_350_000, Listings: 44, Sales: provider.Unknown},
		{Market: Name, Name: "P250 | Sand Dune (Battle-Scarred)", Currency: "USD", Ask: 21_000, Listings: 910, Sales: provider.Unknown},
		{Market: Name, Name: karambit, Phase: "Phase 3", Currency: "USD", Ask: 1_214_500_000, Listings: 1, Sales: provider.Unknown},
		{Market: Name, Name: karambit, Phase: "Ruby", Currency: "USD", Ask: 5_990_000_000, Listings: 1, Sales: provider.Unknown},
	}
	if diff := cmp.Diff(want, sink.Sorted()); diff != "" {
		t.Errorf("quotes (-want +got):\n%s", diff)
	}
}

func FuzzPrices(f *testing.F) {
	f.Add([]byte(samplePrices))
	f.Add([]byte(`{"success":false,"msg":"Wrong input","items":{"a":{"name":"★","min":"0.4","count":-1}}}`))
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		return readPrices(context.Background(), body, phases{{"A", "Ruby"}: {5, 1}}, sink)
	})
}

func FuzzDopplers(f *testing.F) {
	f.Add([]byte(sampleDopplers))
	f.Add([]byte(`{"items":[{"name":"A","phase":null,"price":1},{"name":"A","phase":"Emerald","price":"1e3"}]}`))
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		all, err := readDopplers(context.Background(), body)
		for key, o := range all {
			if err := sink.Quote(quote(key, o)); err != nil {
				return err
			}
		}
		return err
	})
}

// responses returns endless responses in Waxpeer's format. Long picture URLs make 39,000 items
// large enough to measure.
func responses() map[string]providertest.Response {
	long := strings.Repeat("picture/", 190)
	const name = `"name":"★ StatTrak™ Karambit | Case %d (Field-Tested)"`
	return map[string]providertest.Response{
		"prices": {
			Head: `{"success":true,"items":[`, Tail: "]}",
			Row: func(i int) string {
				return fmt.Sprintf(`%.*s{`+name+`,"count":%d,"min":%d,"img":"%s"}`, min(i, 1), ",", i, i%50, i%900_000+1, long)
			},
			Read: func(body io.Reader, sink provider.Sink) error {
				return readPrices(context.Background(), body, nil, sink)
			},
		},
		"dopplers": {
			Head: `{"success":true,"items":[`, Tail: "]}",
			Row: func(i int) string {
				return fmt.Sprintf(`%.*s{`+name+`,"item_id":"%d","price":%d,"phase":"Phase %d","steam_price":1401000,"img":"%s","paint_index":420}`,
					min(i, 1), ",", i%500, i, i%900_000+1, i%4+1, long[:200])
			},
			Read: func(body io.Reader, _ provider.Sink) error {
				_, err := readDopplers(context.Background(), body)
				return err
			},
		},
	}
}

func TestRead_Cost(t *testing.T) {
	for name, a := range responses() {
		t.Run(name, func(t *testing.T) { providertest.CheckCost(t, a) })
	}
}

func BenchmarkRead(b *testing.B) {
	for name, a := range responses() {
		b.Run(name, func(b *testing.B) { providertest.Bench(b, a) })
	}
}
