package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/internal/catalog"
	"assay/internal/provider"
	"assay/internal/provider/feed"
	"assay/internal/provider/providertest"
)

// serve starts a simulator. The returned function creates a provider that reads from it.
func serve(t testing.TB, o Options) (h *Handler, p func(provider.Shape) *Provider) {
	t.Helper()
	h, err := NewHandler(o)
	if err != nil {
		t.Fatal(err)
	}
	server, err := Start(t.Context(), "127.0.0.1:0", h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("got error %v, want none", err)
		}
	})
	return h, func(shape provider.Shape) *Provider {
		return testProvider(t, Config{BaseURL: server.URL(), Shape: shape, Markets: o.Markets}, nil)
	}
}

// fetch sends a call to a provider. It fails the test on errors and rejected rows.
func fetch(t testing.TB, s *Provider, call provider.Call) (*providertest.Sink, provider.Result) {
	t.Helper()
	sink := new(providertest.Sink)
	call.AppID = catalog.CS2
	result, err := s.Fetch(t.Context(), call, sink)
	if err != nil {
		t.Fatalf("fetch %s: got error %v, want none", call.File, err)
	}
	if sink.Rejects != 0 {
		t.Errorf("fetch %s: got %d rejected rows, want none, first: %+v", call.File, sink.Rejects, sink.Rejected[0])
	}
	return sink, result
}

func TestRoundTrip_BulkFilePreservesNames(t *testing.T) {
	h, p := serve(t, Options{Frozen: true})
	missing := map[string]bool{}
	for _, name := range h.Names() {
		missing[name] = true
	}
	s := p(provider.Bulk)
	for _, f := range s.Describe().Files {
		sink, result := fetch(t, s, provider.Call{File: f.Key})
		if result.ProviderTime.IsZero() {
			t.Errorf("%s: got no time of the response, want one", f.Key)
		}
		for _, q := range sink.Quotes {
			if q.Market != f.Key {
				t.Fatalf("file %s: got a quote of market %s, want only quotes of the file's market", f.Key, q.Market)
			}
			delete(missing, q.Name)
		}
		for _, f := range fixtures {
			if f.trait&pinned != 0 && !slices.ContainsFunc(sink.Quotes, func(q provider.Quote) bool { return q.Name == f.name && q.Ask > 0 }) {
				t.Errorf("got no ask of %q, want one", f.name)
			}
		}
	}
	if len(missing) != 0 {
		t.Errorf("got %d names without quotes, want none: %.200q", len(missing), slices.Sorted(maps.Keys(missing)))
	}
}

func TestRoundTrip_AllShapesReturnTheSameQuotes(t *testing.T) {
	const names = 600 // two batches
	h, p := serve(t, Options{Names: names, Frozen: true, Seed: 3})
	var bulk, batch, single providertest.Sink
	s := p(provider.Bulk)
	for _, f := range s.Describe().Files {
		got, _ := fetch(t, s, provider.Call{File: f.Key})
		bulk.Quotes = append(bulk.Quotes, got.Quotes...)
	}
	all := h.Names()
	for part := range slices.Chunk(all, BatchSize) {
		got, result := fetch(t, p(provider.Batch), provider.Call{Names: part})
		if len(result.Silent) != 0 {
			t.Errorf("silent markets: got %v, want none", result.Silent)
		}
		batch.Quotes = append(batch.Quotes, got.Quotes...)
	}
	one := p(provider.Single)
	for _, name := range all[:len(fixtures)+30] {
		got, _ := fetch(t, one, provider.Call{Names: []string{name}})
		single.Quotes = append(single.Quotes, got.Quotes...)
	}
	if len(bulk.Quotes) < names*7 {
		t.Errorf("got %d quotes of %d names on 10 markets, want at least %d", len(bulk.Quotes), names, names*7)
	}
	if diff := cmp.Diff(bulk.Sorted(), batch.Sorted()); diff != "" {
		t.Errorf("batch quotes differ from bulk quotes (-bulk +batch):\n%.2000s", diff)
	}
	few := slices.DeleteFunc(bulk.Sorted(), func(q provider.Quote) bool {
		return !slices.Contains(all[:len(fixtures)+30], q.Name)
	})
	if diff := cmp.Diff(few, single.Sorted()); diff != "" {
		t.Errorf("single quotes differ from bulk quotes (-bulk +single):\n%.2000s", diff)
	}
}

func TestProvider_UnknownNameHasNoQuotes(t *testing.T) {
	_, p := serve(t, Options{Names: 100})
	const unknown = "No Such Item | At All (Factory New)"
	for _, shape := range []provider.Shape{provider.Batch, provider.Single} {
		sink, _ := fetch(t, p(shape), provider.Call{Names: []string{unknown}})
		if len(sink.Quotes) != 0 {
			t.Errorf("%s: got %d quotes of an unknown name, want 0", shape, len(sink.Quotes))
		}
	}
	sink, _ := fetch(t, p(provider.Batch), provider.Call{Names: []string{unknown, redline}})
	if len(sink.Quotes) < 5 {
		t.Errorf("got %d quotes of the known name, want at least 5", len(sink.Quotes))
	}
}

func TestProvider_ReturnsThePhasesOfEachMarket(t *testing.T) {
	_, p := serve(t, Options{Names: len(fixtures), Frozen: true})
	sink, _ := fetch(t, p(provider.Single), provider.Call{Names: []string{"★ Karambit | Nebula Drift (Factory New)"}})
	phases := map[string][]string{}
	for _, q := range sink.Quotes {
		phases[q.Market] = append(phases[q.Market], q.Phase)
	}
	all := []string{"Phase 1", "Phase 2", "Phase 3", "Phase 4", "Ruby", "Sapphire", "Black Pearl"}
	for market, got := range phases {
		if len(got) != 1 && !slices.Equal(got, all) || len(got) == 1 && got[0] != "" {
			t.Errorf("%s: got phases %q, want none or %q", market, got, all)
		}
	}
	if len(phases["sim-birch"]) != len(all) || len(phases["sim-amber"]) != 1 {
		t.Errorf("got phases %v, want all for sim-birch and none for sim-amber", phases)
	}
}

func TestProvider_MarketMissingFromTheResponseIsSilent(t *testing.T) {
	_, p := serve(t, Options{Names: 50, Markets: 3})
	url := p(provider.Single).base
	s := testProvider(t, Config{BaseURL: url, Shape: provider.Single, Markets: 5}, nil)
	_, result := fetch(t, s, provider.Call{Names: []string{redline}})
	if want := []string{"sim-delta", "sim-ember"}; !slices.Equal(result.Silent, want) {
		t.Errorf("silent markets: got %q, want %q", result.Silent, want)
	}
}

func TestProvider_RejectsFaultyRowsAndKeepsTheOthers(t *testing.T) {
	const head = `{"market":"sim-amber","currency":"USD","unit":1,"salesDays":30,"time":1790000000,"items":[`
	rows := map[string]string{
		`{"ask":1}`:                               feed.RejectNoName,
		`{"name":"","ask":1}`:                     feed.RejectName,
		`{"name":5,"ask":1}`:                      feed.RejectNameKind,
		`{"name":"a\u0000b","ask":1}`:             feed.RejectName,
		`{"name":"bad","phase":"Phase 5"}`:        feed.RejectPhase,
		`{"name":"bad","phase":1}`:                feed.RejectPhase,
		`{"name":"bad","ask":"1,234.56"}`:         feed.RejectSyntax,
		`{"name":"bad","ask":true}`:               feed.RejectSyntax,
		`{"name":"bad","ask":[1]}`:                feed.RejectSyntax,
		`{"name":"bad","ask":"NaN"}`:              feed.RejectSyntax,
		`{"name":"bad","ask":-3}`:                 feed.RejectNegative,
		`{"name":"bad","bid":1e400}`:              feed.RejectRange,
		`{"name":"bad","listings":1.5}`:           feed.RejectCount,
		`{"name":"bad","listings":-2}`:            feed.RejectCount,
		`{"name":"bad","sales":"many"}`:           feed.RejectCount,
		`{"name":"bad","seen":7}`:                 feed.RejectTime,
		`{"name":"bad","seen":"now"}`:             feed.RejectTime,
		`{"name":"bad","ask":"x","listings":"y"}`: feed.RejectSyntax,
		`{"name":"bad","ask":1,"ask":2}`:          feed.RejectTwice,
		`1`:                                       feed.RejectRow,
	}
	for row, reason := range rows {
		sink, err := readText(head + `{"name":"before","ask":1},` + row + `,{"name":"after","ask":2}]}`)
		if err != nil {
			t.Errorf("%s: got error %v, want none", row, err)
			continue
		}
		if len(sink.Quotes) != 2 || sink.Rejects != 1 || sink.Rejected[0].Reason != reason {
			t.Errorf("%s: got %d quotes and rejects %+v, want 2 quotes and 1 reject for %q", row, len(sink.Quotes), sink.Rejected, reason)
		}
	}
}

func TestProvider_RejectsMalformedResponses(t *testing.T) {
	const terms = `"market":"sim-amber","currency":"USD","unit":1,"time":1790000000`
	for text, want := range map[string]string{
		``:                                  "empty body",
		`<html>`:                            "HTML",
		`null`:                              "null",
		`[]`:                                "expected an ",
		`[{}]`:                              "expected an ",
		`{}`:                                "without quotes",
		`{"a":1}`:                           "without quotes",
		`{"items":[],"market":"sim-amber"}`: "order",
		`{"market":"sim-birch","currency":"USD","unit":1,"items":[]}`:           "another market",
		`{"market":"skinport","currency":"USD","unit":1,"items":[]}`:            "unknown market",
		`{"market":"sim-amber","currency":"usd","unit":1,"items":[]}`:           "currency",
		`{"market":"sim-amber","currency":"USD","unit":7,"items":[]}`:           "unit",
		`{"market":"sim-amber","currency":"USD","unit":1,"items":[]}`:           "time",
		`{"time":0,"market":"sim-amber"}`:                                       "time",
		`{` + terms + `,"items":{}}`:                                            "expected an ",
		`{` + terms + `,"items":null}`:                                          "expected an ",
		`{` + terms + `,"items":[1]}`:                                           "not an object",
		`{` + terms + `,"items":[{"name":"a","ask":1}`:                          "is truncated",
		`{` + terms + `,"items":[{"name":"a","ask":1,"ask":2}]}`:                "given twice",
		`{` + terms + `,"items":[{"name":"a","ask":NaN}]}`:                      "invalid character",
		`{` + terms + `,"items":[{"name":"bad ` + "\xff" + `","ask":1}]}`:       "UTF-8",
		`{` + terms + `,"items":[]}{}`:                                          "after the document",
		`{` + terms + `,"items":[]}]`:                                           "invalid character",
		`{` + terms + `,"items":[{"name":"a","x":` + strings.Repeat("[", 20000): "depth",
	} {
		_, err := readText(text)
		if provider.KindOf(err) != provider.KindProtocol || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%.80s: got error %v, want kind %q and text %q", text, err, provider.KindProtocol, want)
		}
		if len(fmt.Sprint(err)) > 400 {
			t.Errorf("%.80s: got an error of %d bytes, want at most 400", text, len(fmt.Sprint(err)))
		}
	}
}

// readText decodes the text as the file of sim-amber, like Fetch.
func readText(text string) (*providertest.Sink, error) {
	s, err := New(Config{BaseURL: "http://sim.test"})
	if err != nil {
		return nil, err
	}
	sink := new(providertest.Sink)
	_, err = s.read(context.Background(), strings.NewReader(text), sink, func(r *reader) error { return r.file("sim-amber") })
	return sink, err
}

func FuzzRead(f *testing.F) {
	f.Add(strings.ReplaceAll(fileFixture, "sim-garnet", "sim-amber"))
	f.Add(namesFixture)
	f.Fuzz(func(t *testing.T, text string) {
		sink, err := readText(text)
		if err != nil && provider.KindOf(err) != provider.KindProtocol {
			t.Fatalf("got error %v, want kind %q", err, provider.KindProtocol)
		}
		if err != nil {
			return
		}
		for _, q := range sink.Quotes {
			if q.Ask < 0 || q.Bid < 0 || q.Sale < 0 || q.Listings < -1 || q.Sales < -1 ||
				catalog.CheckName(q.Name) != nil || catalog.CheckPhase(q.Phase) != nil || q.Market != "sim-amber" {
				t.Fatalf("got quote %+v, want a valid one", q)
			}
		}
	})
}

func TestNew_RejectsInvalidConfigurations(t *testing.T) {
	for _, c := range []Config{
		{},
		{BaseURL: "127.0.0.1:80"},
		{BaseURL: "ftp://sim.test"},
		{BaseURL: "http://sim.test?x=1"},
		{BaseURL: "http://sim.test", Shape: "heap"},
		{BaseURL: "http://sim.test", Markets: -1},
		{BaseURL: "http://sim.test", Markets: 101},
		{BaseURL: "http://sim.test", Shape: provider.Batch, BatchSize: 501},
		{BaseURL: "http://sim.test", Shape: provider.Batch, BatchSize: -1},
	} {
		if s, err := New(c); err == nil {
			t.Errorf("New(%+v) = %+v, want an error", c, s.Describe())
		}
	}
	if _, err := NewHandler(Options{Names: -1}); err == nil {
		t.Error("NewHandler with -1 names: got no error, want one")
	}
	if _, err := NewHandler(Options{Markets: 1_000}); err == nil {
		t.Error("NewHandler with 1,000 markets: got no error, want one")
	}
}

func TestFetch_RejectsInvalidCallsWithoutARequest(t *testing.T) {
	_, p := serve(t, Options{Names: 10})
	for _, c := range []struct {
		shape provider.Shape
		call  provider.Call
	}{
		{provider.Bulk, provider.Call{AppID: catalog.CS2, File: "nope"}},
		{provider.Bulk, provider.Call{AppID: catalog.Dota, File: "sim-amber"}},
		{provider.Batch, provider.Call{AppID: catalog.CS2}},
		{provider.Batch, provider.Call{AppID: catalog.CS2, Names: make([]string, BatchSize+1)}},
		{provider.Single, provider.Call{AppID: catalog.CS2, Names: []string{"a", "b"}}},
	} {
		c.call.Meter = new(provider.Meter)
		if _, err := p(c.shape).Fetch(t.Context(), c.call, new(providertest.Sink)); err == nil {
			t.Errorf("%s: %d names and file %q: got no error, want one", c.shape, len(c.call.Names), c.call.File)
		}
		if n := c.call.Meter.Requests(); n != 0 {
			t.Errorf("%s: got %d requests, want 0", c.shape, n)
		}
	}
}

func TestFetch_ErrorNamesTheProviderOnce(t *testing.T) {
	_, p := serve(t, Options{Names: 10, Frozen: true})
	for _, c := range []struct {
		shape provider.Shape
		call  provider.Call
	}{
		{provider.Bulk, provider.Call{AppID: 440, File: "a"}},
		{provider.Bulk, provider.Call{AppID: catalog.CS2, File: "unknown"}},
		{provider.Single, provider.Call{AppID: catalog.CS2, Names: []string{"a", "b"}}},
	} {
		_, err := p(c.shape).Fetch(t.Context(), c.call, new(providertest.Sink))
		if kind := provider.KindOf(err); kind != provider.KindProtocol {
			t.Errorf("%+v: got error %v of kind %q, want %q", c.call, err, kind, provider.KindProtocol)
		}
		if n := strings.Count(err.Error(), Name+":"); n != 1 {
			t.Errorf("%+v: got error %q with the name of the provider %d times, want once", c.call, err, n)
		}
	}
}
