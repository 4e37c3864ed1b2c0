package sim

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/provider"
	"assay/internal/provider/providertest"
)

const redline = "AK-47 | Redline (Field-Tested)"

// These responses are written by hand. They follow the documented format, so the
// tests do not depend on the Handler.
const (
	fileFixture = `{"market":"sim-garnet","currency":"USD","unit":1000,"salesDays":30,"time":1790000000,"extra":[1],"items":[
		{"name":"AK-47 | Redline (Field-Tested)","ask":31415,"bid":"28000","sale":30.5e3,"listings":120,"sales":41},
		{"phase":"Ruby","ask":4210000,"name":"\u2605 Karambit | Nebula Drift (Factory New)","listings":1,"sales":null,"more":{"a":null}},
		{"name":"Taunt: The Long\nGoodbye","ask":null,"sale":3900,"listings":0,"sales":0,"seen":1789990000},
		{"name":"Trailing Lantern Token ","phase":null}]}`

	namesFixture = `{"time":1790000000,"markets":[
		{"market":"sim-amber","currency":"USD","unit":1,"salesDays":30},{"market":"sim-birch","currency":"USD","unit":100}],
		"items":[{"name":"AK-47 | Redline (Field-Tested)","quotes":{
			"sim-amber":[{"ask":31.42,"sales":7,"listings":3}],
			"sim-birch":[{"ask":"3099","bid":2800,"sales":5},{"ask":9000,"phase":"Phase 2"}]}}],
		"unknown":["No Such Item | At All (Factory New)"]}`
)

func TestProvider_PassesTheProviderSuite(t *testing.T) {
	garnet := provider.Quote{Market: "sim-garnet", Currency: "USD", Listings: provider.Unknown, Sales: provider.Unknown}
	const month = 30 * 24 * time.Hour
	var file [4]provider.Quote
	for i := range file {
		file[i] = garnet
	}
	file[0].Name, file[0].Ask, file[0].Bid, file[0].Sale = redline, 31_415_000, 28_000_000, 30_500_000
	file[0].Listings, file[0].Sales, file[0].SalesWindow = 120, 41, month
	file[1].Name, file[1].Phase = "★ Karambit | Nebula Drift (Factory New)", "Ruby"
	file[1].Ask, file[1].Listings = 4_210_000_000, 1
	file[2].Name, file[2].Sale, file[2].MarketTime = "Taunt: The Long\nGoodbye", 3_900_000, time.Unix(1789990000, 0)
	file[2].Listings, file[2].Sales, file[2].SalesWindow = 0, 0, month
	file[3].Name = "Trailing Lantern Token "

	names := []provider.Quote{
		{Market: "sim-amber", Name: redline, Currency: "USD", Ask: 31_420_000, Listings: 3, Sales: 7, SalesWindow: month},
		{Market: "sim-birch", Name: redline, Currency: "USD", Ask: 30_990_000, Bid: 28_000_000, Listings: -1, Sales: -1},
		{Market: "sim-birch", Name: redline, Phase: "Phase 2", Currency: "USD", Ask: 90_000_000, Listings: -1, Sales: -1},
	}
	byName := provider.Call{AppID: catalog.CS2, Names: []string{redline}}
	for _, c := range []struct {
		shape  provider.Shape
		good   string
		call   provider.Call
		want   []provider.Quote
		render func([]providertest.Row) []byte
	}{
		{provider.Bulk, fileFixture, provider.Call{AppID: catalog.CS2, File: "sim-garnet"}, file[:], renderFile},
		{provider.Batch, namesFixture, byName, names, renderNames},
		{provider.Single, namesFixture, byName, names, renderNames},
	} {
		t.Run(string(c.shape), func(t *testing.T) {
			providertest.Run(t, providertest.Subject{
				New: func(t testing.TB, baseURL string, tweak func(*provider.Options)) provider.Provider {
					return testProvider(t, Config{BaseURL: baseURL, Shape: c.shape}, tweak)
				},
				Good: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body) // required to detect a closed connection
					_, _ = io.WriteString(w, c.good)
				}),
				Call: c.call, Want: c.want, Render: c.render,
			})
		})
	}
}

// testProvider returns a provider with a new client.
func testProvider(t testing.TB, c Config, tweak func(*provider.Options)) *Provider {
	t.Helper()
	o := provider.Options{Provider: Name, AllowHosts: []string{strings.TrimPrefix(c.BaseURL, "http://")}}
	if tweak != nil {
		tweak(&o)
	}
	c.Client = provider.NewClient(o)
	t.Cleanup(c.Client.Close)
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func renderFile(rows []providertest.Row) []byte {
	var items []string
	for _, row := range rows {
		items = append(items, `{"name":`+providertest.Quote(row.Name)+`,"ask":`+row.Price+`}`)
	}
	return []byte(`{"market":"sim-garnet","currency":"USD","unit":1,"time":1790000000,"items":[` + strings.Join(items, ",") + `]}`)
}

func renderNames(rows []providertest.Row) []byte {
	var items []string
	for _, row := range rows {
		items = append(items, `{"name":`+providertest.Quote(row.Name)+`,"quotes":{"sim-amber":[{"ask":`+row.Price+`}]}}`)
	}
	return []byte(`{"time":1790000000,"markets":[{"market":"sim-amber","currency":"USD","unit":1}],"items":[` + strings.Join(items, ",") + `]}`)
}
