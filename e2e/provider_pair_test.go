package e2e

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/app"
	"assay/internal/provider"
	"assay/internal/provider/providertest"
	"assay/internal/provider/sim"
)

// attempts is the number of requests that the clients of these tests send before they give up.
const attempts = 2

// impatient sets a short timeout. An open breaker lasts longer than the run, so the remaining
// requests are deferred.
func impatient(timeout time.Duration) func(*provider.Options) {
	return func(o *provider.Options) {
		o.Timeout, o.Total, o.Attempts, o.Backoff, o.Pause = timeout, patience, attempts, time.Millisecond, time.Hour
		o.MaxBody = 8 << 20
	}
}

// pair is a system with a faulty and a healthy provider.
type pair struct {
	t      *testing.T
	on     engine
	s      *server
	faulty *providertest.Server
	name   string // faulty provider
	units  int    // maximum calls of the faulty provider in a run
	other  string // healthy provider
	tick   func() // changes the prices of the healthy provider
}

// newSimPair uses the simulator with the given shape as the faulty provider. A price list is
// the healthy one.
func newSimPair(t *testing.T, on engine, shape string) *pair {
	h, err := sim.NewHandler(sim.Options{Names: 60, Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{t: t, on: on, faulty: providertest.NewServer(t, h), name: "sim", other: "pricelist"}
	p.units = map[string]int{"bulk": sim.DefaultMarkets, "batch": 1, "single": 60}[shape]
	dir := t.TempDir()
	file := filepath.Join(dir, "list.csv")
	cents := 500
	p.tick = func() {
		cents++
		writeFile(t, file, string(csvList(h.Names(), cents)))
	}
	p.tick()
	config := filepath.Join(dir, "lists.json")
	writeFile(t, config, listConfig(file))
	p.begin(h.Names(), "SIM_BASE_URL="+p.faulty.URL(), "SIM_SHAPE="+shape, "PRICELIST_CONFIG="+config)
	return p
}

// newListPair uses a price list at a URL as the faulty provider. The simulator is the healthy
// one.
func newListPair(t *testing.T, on engine) *pair {
	markets, url := simulator(t, sim.Options{Names: 60, Frozen: true})
	list := csvList(markets.Names(), 500)
	p := &pair{t: t, on: on, name: "pricelist", units: 1, other: "sim"}
	p.faulty = providertest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/csv")
		_, _ = w.Write(list)
	}))
	p.tick = func() { markets.Advance(1_000) }
	config := filepath.Join(t.TempDir(), "lists.json")
	writeFile(t, config, listConfig(p.faulty.URL()+"/list.csv"))
	p.begin(markets.Names(), "SIM_BASE_URL="+url, "PRICELIST_CONFIG="+config)
	return p
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// csvList returns a price list with a price for every name. Prices start at the given number
// of cents.
func csvList(names []string, from int) []byte {
	var b bytes.Buffer
	b.WriteString("name,price\n")
	for i, n := range names {
		fmt.Fprintf(&b, "\"%s\",%d.%02d\n", strings.ReplaceAll(n, `"`, `""`), (from+i)/100, (from+i)%100)
	}
	return b.Bytes()
}

func listConfig(location string) string {
	return `{"lists":[{"key":"corner","location":` + string(must(json.Marshal(location))) + `,"format":"csv","appId":730,"currency":"USD","name":"name",
		"markets":[{"key":"corner-shop","ask":"price"}]}]}`
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// begin prices everything once while both providers work.
func (p *pair) begin(names []string, env ...string) {
	p.t.Helper()
	p.s = p.on.newServer(p.t, append([]string{"MARKET_PRICE_PROVIDERS=sim,pricelist"}, env...)...)
	l := p.start()
	pushNames(p.s, names, 1)
	p.s.awaitPriced()
	p.s.refresh()
	if end := p.s.awaitEnd(); end.Status.State != "finished" || end.LastError != nil {
		p.t.Fatalf("first run: got %+v, want it finished without an error", end)
	}
	p.end(l)
}

func (p *pair) start() *local { return p.startWith(patience) }

func (p *pair) startWith(timeout time.Duration) *local {
	p.t.Helper()
	return p.s.within(app.Options{Client: impatient(timeout)})
}

func (p *pair) end(l *local) {
	p.t.Helper()
	if _, err := l.end(); err != nil {
		p.t.Error(err)
	}
}

// quotes returns the stored quotes of a provider's markets.
func (p *pair) quotes(db *sql.DB, provider string) []string {
	p.t.Helper()
	return rows(p.t, db, `
		SELECT m.key, i.name, i.phase, s.currency, s.ask, s.bid, s.sale FROM market_snapshot s
		JOIN market m ON m.id = s.market_id JOIN item i ON i.id = s.item_id WHERE m.provider = '`+provider+`' ORDER BY 1, 2, 3`)
}

// outside selects prices that are outside the range of their quotes.
const outside = `
	SELECT i.name, i.price FROM item i WHERE i.price <= 0 AND EXISTS (SELECT 1 FROM price_point p WHERE p.item_id = i.id)
	OR i.price > 0 AND i.price NOT BETWEEN
		(SELECT min(CASE WHEN s.ask > 0 THEN s.ask ELSE s.sale END) FROM market_snapshot s WHERE s.item_id = i.id AND (s.ask > 0 OR s.sale > 0)) AND
		(SELECT max(CASE WHEN s.ask > 0 THEN s.ask ELSE s.sale END) FROM market_snapshot s WHERE s.item_id = i.id)`

// fails runs a refresh while every request of the faulty provider fails with f. The errors of
// the run and the provider must have one of the kinds.
func (p *pair) fails(f providertest.Fault, kinds ...provider.Kind) {
	p.t.Helper()
	timeout := patience
	if slices.Contains(kinds, provider.KindTimeout) {
		timeout = time.Second // a short timeout, because the test waits for it
	}
	l := p.startWith(timeout)
	defer p.end(l)
	db := p.s.open()
	defer db.Close()
	before, healthyBefore := p.quotes(db, p.name), p.quotes(db, p.other)
	p.faulty.Reset()
	p.faulty.Always(f)
	p.tick()

	began := time.Now()
	id := p.s.refresh()
	end := p.s.awaitEnd()
	if end.Status.JobID != id || end.Status.State != "finished" || end.UpdatedItems == 0 || end.FailedItems > 0 {
		p.t.Errorf("run with a faulty response: got %+v, want it finished with the other provider's prices", end)
	}
	if got := p.quotes(db, p.name); !slices.Equal(got, before) {
		p.t.Errorf("the faulty response changed quotes of %s, want no change: %s", p.name, firstDifference(got, before))
	}
	if slices.Equal(p.quotes(db, p.other), healthyBefore) {
		p.t.Errorf("the run stored no new quotes of the healthy provider %s", p.other)
	}
	if found := rows(p.t, db, outside); len(found) > 0 {
		p.t.Errorf("got %d prices outside the range of their quotes, such as %s, want none", len(found), found[0])
	}
	checkInvariants(p.t, db)
	checkRows(p.t, p.s, 1)
	if got, most := len(p.faulty.Hits()), p.units*attempts*4; got > most {
		p.t.Errorf("got %d requests for %d calls, want at most %d", got, p.units, most)
	}
	p.reports(end, kinds)
	p.t.Logf("%d requests, %v", len(p.faulty.Hits()), time.Since(began).Round(time.Millisecond))
}

// reports checks that the run and provider-debug report the error.
func (p *pair) reports(end status, kinds []provider.Kind) {
	p.t.Helper()
	if len(kinds) == 0 {
		return
	}
	named := func(text *string) bool {
		return text != nil && slices.ContainsFunc(kinds, func(k provider.Kind) bool { return strings.Contains(*text, errorText(p.name, k)) })
	}
	if !named(end.LastError) {
		p.t.Errorf("lastError: got %s, want one of %v", quoted(end.LastError), kinds)
	}
	d := p.debug()
	if d.Health != "degraded" && d.Health != "down" {
		p.t.Errorf("health after a failed fetch: got %q, want degraded or down: %+v", d.Health, d.Files)
	}
	_, metrics, err := p.s.call(http.MethodGet, "/metrics", nil)
	if want := fmt.Sprintf("assay_provider_health{health=%q,provider=%q} 1", d.Health, p.name); err != nil || !strings.Contains(string(metrics), want) {
		p.t.Errorf("the metrics lack %s, error %v", want, err)
	}
	if kinds[0] == provider.KindQuarantine {
		if !slices.ContainsFunc(d.Markets, func(m marketDebug) bool { return m.Quarantine != nil }) {
			p.t.Errorf("got no market in quarantine, want one: %+v", d)
		}
		return
	}
	if !named(d.LastError) {
		p.t.Errorf("provider-debug: got %s, want one of %v", quoted(d.LastError), kinds)
	}
	if !slices.ContainsFunc(d.Requests, func(r requestDebug) bool {
		return r.Status != http.StatusOK || slices.Contains(kinds, provider.Kind(r.Error))
	}) {
		p.t.Errorf("got the recorded requests %+[2]v, want one with one of the errors %[1]v", kinds, d.Requests)
	}
}

func quoted(s *string) string {
	if s == nil {
		return "null"
	}
	return fmt.Sprintf("%.200q", *s)
}

type providerDebug struct {
	Provider string
	Health   string
	Files    []struct {
		File, Health string
		Failures     int64
		LastError    *string
	}
	LastError *string
	Breaker   string
	// BlockedUntil is null unless a retry-after applies.
	BlockedUntil *time.Time
	Markets      []marketDebug
	Requests     []requestDebug
}

type marketDebug struct {
	Market     string
	Quarantine *string
}

type requestDebug struct {
	Path, Error string
	Status      int
}

func (p *pair) debug() providerDebug { p.t.Helper(); return p.s.debugOf(p.name) }

// debugOf returns a provider from provider-debug.
func (s *server) debugOf(provider string) providerDebug {
	s.t.Helper()
	var d struct{ Providers []providerDebug }
	s.get("/api/market-prices/provider-debug", &d)
	for _, state := range d.Providers {
		if state.Provider == provider {
			return state
		}
	}
	s.t.Fatalf("provider-debug lacks %s", provider)
	return providerDebug{}
}

// recovers checks that refreshes succeed again after the provider recovers.
func (p *pair) recovers() {
	p.t.Helper()
	l := p.start()
	defer p.end(l)
	p.faulty.Reset()
	p.s.refresh()
	if end := p.s.awaitEnd(); end.Status.State != "finished" || end.LastError != nil {
		p.t.Errorf("run after all faults: got %+v, want it finished without an error", end)
	}
	for _, m := range p.debug().Markets {
		if m.Quarantine != nil {
			p.t.Errorf("market %s is still in quarantine: %s", m.Market, *m.Quarantine)
		}
	}
}

// errorText returns what the text of each error of a kind contains.
func errorText(name string, kind provider.Kind) string {
	if kind == provider.KindQuarantine {
		return "quarantine" // some texts name the market first
	}
	return (&provider.Error{Provider: name, Kind: kind}).Error()
}
