package app

import (
	"slices"
	"strings"
	"testing"

	"assay/internal/config"
	"assay/internal/provider"
)

// open opens the providers of a configuration.
func open(t *testing.T, environ ...string) (*ProviderSet, error) {
	t.Helper()
	c, err := config.Load(config.Options{Environ: append(environ, "DATA_DIR="+t.TempDir()), Providers: Providers()})
	if err != nil {
		t.Fatal(err)
	}
	set, err := OpenProviders(t.Context(), ProviderOptions{Config: c})
	if checked := checkProviders(c); (checked == nil) != (err == nil) {
		t.Errorf("got %v from checkProviders and %v from OpenProviders, want both or none to fail", checked, err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return set, err
}

func TestOpenProviders_ReportsAMissingKey(t *testing.T) {
	for _, name := range keyed {
		prefix := strings.ToUpper(name)
		if _, err := open(t, "MARKET_PRICE_PROVIDERS="+name); err == nil || !strings.Contains(err.Error(), "set "+prefix+"_API_KEY") {
			t.Errorf("%s: got error %v, want one about %s_API_KEY", name, err, prefix)
		}
	}
}

func TestOpenProviders_AppliesPlanLimitsUnlessConfigured(t *testing.T) {
	set, err := open(t, "MARKET_PRICE_PROVIDERS=cs2cap", "CS2CAP_API_KEY=k")
	if err != nil {
		t.Fatal(err)
	}
	if q := set.List[0].Describe().Hosts[0].Quota; q != (provider.Quota{Month: 50_000}) {
		t.Errorf("got quota %+v, want 50,000 a month", q)
	}
	set, err = open(t, "MARKET_PRICE_PROVIDERS=cs2cap", "CS2CAP_API_KEY=k", "CS2CAP_QUOTA=500000/month", "CS2CAP_LIMIT=100/1m", "CS2CAP_MARKETS=skinport")
	if err != nil {
		t.Fatal(err)
	}
	d := set.List[0].Describe()
	if h := d.Hosts[0]; h.Quota.Month != 500_000 || h.Limit.Requests != 100 || len(d.Markets) != 1 {
		t.Errorf("got %+v and %d markets, want the configured limits and 1 market", h, len(d.Markets))
	}
}

// The configured limit of streams must not apply to other requests.
func TestOpenProviders_AStreamIsASeparateHost(t *testing.T) {
	set, err := open(t, "MARKET_PRICE_PROVIDERS=cs2cap", "CS2CAP_API_KEY=k", "CS2CAP_SHAPE=stream", "CS2CAP_LIMIT=300/24h")
	if err != nil {
		t.Fatal(err)
	}
	d, clients := set.List[0].Describe(), set.Clients["cs2cap"]
	if d.Shape != provider.Bulk || d.HostAt("stream").Limit.Requests != 300 || d.HostAt("").Limit.Requests != 100 || clients["stream"] == nil || clients[""] == nil {
		t.Errorf("got hosts %+v, clients %v; want limits of 300 for streams and 100 for the rest", d.Hosts, clients)
	}
}

func TestOpenProviders_BidsAreNotAMarket(t *testing.T) {
	_, err := open(t, "MARKET_PRICE_PROVIDERS=pricempire", "PRICEMPIRE_API_KEY=k", "PRICEMPIRE_MARKETS=buff163,buff163_buy")
	if err == nil || !strings.Contains(err.Error(), "PRICEMPIRE_MARKETS: market buff163_buy") {
		t.Errorf("got error %v, want one about buff163_buy", err)
	}
}

// All providers must use the same key for a market, so that the market counts once.
func TestOpenProviders_AMarketHasOneKeyAcrossProviders(t *testing.T) {
	single := []string{"csfloat", "marketcsgo", "skinport", "steam", "waxpeer"}
	environ := []string{"PRICEMPIRE_MARKETS=" + strings.Join(single, ",")}
	for _, name := range keyed {
		environ = append(environ, strings.ToUpper(name)+"_API_KEY=7f0c2d3e-1111-4222-8333-444455556666")
	}
	set, err := open(t, append(environ, "MARKET_PRICE_PROVIDERS="+strings.Join(slices.Concat(single, keyed), ","))...)
	if err != nil {
		t.Fatal(err)
	}
	titles, offers := map[string]string{}, map[string]int{}
	for _, src := range set.List {
		for _, m := range src.Describe().Markets {
			if title, ok := titles[m.Key]; ok && title != m.Title {
				t.Errorf("%s: got titles %q and %q, want one title", m.Key, title, m.Title)
			}
			titles[m.Key] = m.Title
			offers[m.Key]++
		}
	}
	for _, key := range single {
		if want := 1 + len(keyed); offers[key] != want {
			t.Errorf("%s: got %d providers, want %d", key, offers[key], want)
		}
	}
}
