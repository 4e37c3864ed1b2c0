package web

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// trapNames are names that change if code trims, cleans or decodes them twice.
var trapNames = []string{
	"★ Karambit | Doppler (Factory New)",
	"<script>alert(1)</script>",
	"..",
	".",
	"a/b//c",
	"100%2F%20Real",
	"Line one\nline two",
	"Trailing space ",
	" Leading space",
	"Double  spaces   here",
	"#1 Fan? & + = ; ~",
	`"Quotes" 'and' &lt;entities&gt;`,
	"carriage\rreturn\ttab",
	"right-to-left \u202egnol",
	"龍王 | 壱",
}

const (
	redline    = "AK-47 | Redline (Field-Tested)"
	dragonLore = "AWP | Dragon Lore (Factory New)"
	crown      = "Sticker | Crown (Foil)"
	graffiti   = "Sealed Graffiti | Rage Mode (Monarch Blue)"
	unquoted   = "No Such Item | At All (Factory New)"
	late       = "Souvenir MAG-7 | Bulldozer (Well-Worn)"
)

// euro is the exchange rate from EUR to USD in the sample.
const euro money.Rate = 1_083_400_000_000

// sampleItem is an item with its usual price.
type sampleItem struct {
	catalog.Key
	price   money.Micro
	markets []string // markets of sim that offer the item; nil means all
}

// sampleItems returns the items that have quotes.
func sampleItems() []sampleItem {
	var items []sampleItem
	add := func(name, phase string, price money.Micro, markets ...string) {
		items = append(items, sampleItem{catalog.Key{AppID: catalog.CS2, Name: name, Phase: phase}, price, markets})
	}
	add(redline, "", 32_040_000)
	add("AK-47 | Redline (Minimal Wear)", "", 118_900_000, "aurum", "cobalt", "ember", "flint")
	add("StatTrak™ AK-47 | Redline (Field-Tested)", "", 71_500_000, "aurum")
	add(dragonLore, "", 11_480_000_000, "aurum")
	add(graffiti, "", 34_500)
	add(crown, "", 1_204_110_000)
	add(late, "", 4_100_000)
	add(trapNames[0], "Sapphire", 7_204_000_000, "cobalt", "ember", "flint")
	for i, name := range trapNames {
		if i < rejectedNames {
			add(name, "", 1_234_567, "aurum")
		} else {
			add(name, "", money.Micro(1_234_567+i*1000))
		}
	}
	for i := range 90 {
		add(fmt.Sprintf("Sticker | Team %02d (Holo)", i), "", money.Micro(100_000+i*13_700))
	}
	for i := range 26 {
		add(hotRod(i), "", money.Micro(41_000_000+i*1000), "none")
	}
	return items
}

// hotRod returns the name of an item that only the market shop offers.
func hotRod(i int) string { return fmt.Sprintf("MP9 | Hot Rod %02d (Factory New)", i) }

// rejectedNames is the number of trap names whose rows are rejected in the last run.
const rejectedNames = 3

// These are the ids of runs in the sample.
const (
	firstRun     = 29
	failedRun    = 35
	cancelledRun = 38
	missingRun   = 40
	forcedRun    = 41
	lastRun      = 42
)

// sampleProviders are the providers of the sample. Their responses depend on the run.
type sampleProviders struct {
	clock   *clock
	run     atomic.Int64
	items   []sampleItem
	clients sampleClients
}

func newSampleProviders(c *clock) *sampleProviders {
	s := &sampleProviders{clock: c, items: sampleItems()}
	s.run.Store(lastRun + 1)
	return s
}

// sampleProvider is one provider. respond sends the rows of a response to the sink.
type sampleProvider struct {
	provider.Description
	respond func(ctx context.Context, call provider.Call, sink provider.Sink) error
}

// Describe implements provider.Provider.
func (p *sampleProvider) Describe() provider.Description { return p.Description }

// Fetch implements provider.Provider.
func (p *sampleProvider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	if err := call.Meter.Request(ctx); err != nil {
		return provider.Result{}, &provider.Error{Provider: p.Name, Kind: provider.KindCancelled, Err: err}
	}
	call.Meter.AddBytes(48_211)
	sink.Restart()
	return provider.Result{}, p.respond(ctx, call, sink)
}

// list returns the providers. Only sim and pricelist have items of CS2, so no run requests
// the others.
func (s *sampleProviders) list() []provider.Provider {
	market := func(key, title string) provider.Market {
		return provider.Market{Key: key, Title: title, AppIDs: []int32{catalog.CS2, catalog.Dota}, SalesWindow: 30 * 24 * time.Hour}
	}
	sim := provider.Description{
		Name: "sim", Title: "Market simulator", Shape: provider.Bulk, Interval: 5 * time.Minute, Terms: "generated prices for tests",
		Hosts: []provider.Host{{Limit: provider.Limit{Requests: 1000, Per: time.Hour}}},
		Markets: []provider.Market{
			market("aurum", "Aurum"), market("basalt", "Basalt"), market("cobalt", "Cobalt Exchange"), market("dune", "Dune"), market("ember", "Ember"),
			market("mirror", "Ember Mirror"), market("flint", "Flint"), market("gilt", "Gilt"), market("hoard", "Hoard"), market("ingot", "Ingot"),
		},
	}
	sim.Markets[4].Pool, sim.Markets[5].Pool = "ember", "ember"
	sim.Markets[4].SalesWindow = 0
	for _, m := range sim.Markets {
		sim.Files = append(sim.Files, provider.File{Key: m.Key, AppID: catalog.CS2, Markets: []string{m.Key}})
	}
	lists := provider.Description{
		Name: "pricelist", Title: "Price lists", Shape: provider.Bulk, Terms: "yours",
		Markets: []provider.Market{market("skinport", "Skinport list"), market("shop", "Shop"), market("spare", "Spare list")},
		Files: []provider.File{
			{Key: "skinport.csv", AppID: catalog.CS2, Markets: []string{"skinport"}},
			{Key: "prices.csv", AppID: catalog.CS2, Markets: []string{"shop"}},
			{Key: "spare.csv", AppID: catalog.CS2, Markets: []string{"spare"}},
		},
	}
	dota := func(key, title string) []provider.Market {
		return []provider.Market{{Key: key, Title: title, AppIDs: []int32{catalog.Dota}}}
	}
	return []provider.Provider{
		&sampleProvider{sim, s.simulate}, &sampleProvider{lists, s.readList},
		&sampleProvider{provider.Description{Name: "waxpeer", Title: "Waxpeer", Shape: provider.Single, BatchSize: 1, Markets: dota("waxpeer", "Waxpeer")}, nil},
		&sampleProvider{provider.Description{
			Name: "cs2cap", Title: "CS2Cap", Shape: provider.Batch, BatchSize: 100, Markets: dota("cs2cap", "CS2Cap"),
			Hosts: []provider.Host{{Quota: provider.Quota{Month: 1000}, Headers: provider.HeadersOfMonth}},
		}, nil},
	}
}

// simulate responds with the file of one market of sim.
func (s *sampleProviders) simulate(_ context.Context, call provider.Call, sink provider.Sink) error {
	run := s.run.Load()
	if run <= lastRun {
		s.clock.add(4 * time.Second) // the duration of a request
	}
	for i, item := range s.items {
		switch {
		case item.markets != nil && !slices.Contains(item.markets, call.File), item.Name == graffiti && run > firstRun, item.Name == late && run < missingRun:
			continue
		case run == lastRun && slices.Contains(trapNames[:rejectedNames], item.Name) && call.File == "aurum" && item.Phase == "":
			sink.Reject(call.File, item.Name, "malformed amount")
			continue
		}
		q := provider.Quote{Market: call.File, Name: item.Name, Phase: item.Phase, Currency: "USD", Ask: s.ask(call.File, &item, run), Listings: 412, Sales: 1288, SalesWindow: 30 * 24 * time.Hour}
		q.Ask += q.Ask * money.Micro(i%7) / 1000 // prices differ slightly between the items
		q.Bid, q.Sale = q.Ask*94/100, q.Ask*98/100
		if item.Name == crown {
			q.Sales = 0
		}
		s.vary(&q)
		if err := sink.Quote(&q); err != nil {
			return err
		}
	}
	return nil
}

// ask returns the price of an item on a market of sim.
func (s *sampleProviders) ask(market string, item *sampleItem, run int64) money.Micro {
	percent := map[string]money.Micro{"basalt": 98, "cobalt": 101, "dune": 99, "ember": 103, "mirror": 103, "flint": 104, "gilt": 97, "hoard": 102}[market]
	if percent == 0 {
		percent = 100
	}
	price := item.price * percent / 100
	switch {
	case item.Name == dragonLore && run >= lastRun:
		return price * 5 / 2 // an increase that one market does not justify
	case strings.HasSuffix(item.Name, "(Minimal Wear)") && (market == "ember" || market == "flint"):
		return price * 3
	}
	return price
}

// vary gives the quotes of some markets special values, such as a currency, no sales or old data.
func (s *sampleProviders) vary(q *provider.Quote) {
	switch q.Market {
	case "basalt":
		q.Currency = "EUR"
		for _, m := range []*money.Micro{&q.Ask, &q.Bid, &q.Sale} {
			*m = *m * 10_000 / 10_834
		}
	case "dune":
		q.Ask, q.Bid, q.Listings = 0, 0, 0
	case "ember":
		q.Sales, q.SalesWindow = provider.Unknown, 0
	}
	if q.Name != redline {
		return
	}
	switch q.Market {
	case "gilt":
		q.MarketTime = newClock().now.Add(-9 * 24 * time.Hour)
	case "hoard":
		q.Ask, q.Bid, q.Sale, q.Listings, q.Sales, q.SalesWindow = 0, 0, 0, provider.Unknown, provider.Unknown, 0
	case "ingot":
		q.Ask = 1_438_000_000
	}
}

// readList responds with a price list. In the last run, one list has only some of the names, one
// list fails, and one exceeds its budget.
func (s *sampleProviders) readList(_ context.Context, call provider.Call, sink provider.Sink) error {
	run := s.run.Load()
	switch {
	case run == lastRun && call.File == "prices.csv":
		return &provider.Error{Provider: "pricelist", Kind: provider.KindServer, Status: 503, Detail: "Service Unavailable"}
	case run == lastRun && call.File == "spare.csv":
		return &provider.Error{Provider: "pricelist", Kind: provider.KindBudget, Detail: "the limit is used up"}
	}
	for i, item := range s.items {
		hot := strings.HasPrefix(item.Name, "MP9")
		sticker := strings.HasPrefix(item.Name, "Sticker | Team")
		if hot != (call.File == "prices.csv") || !hot && !sticker || run == lastRun && i%3 > 0 {
			continue
		}
		q := provider.Quote{Market: map[string]string{"skinport.csv": "skinport", "prices.csv": "shop", "spare.csv": "spare"}[call.File], Name: item.Name, Currency: "USD", Ask: item.price * 95 / 100, Listings: 5, Sales: provider.Unknown}
		if err := sink.Quote(&q); err != nil {
			return err
		}
	}
	return nil
}
