package waxpeer_test

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/providertest"
	"assay/internal/provider/waxpeer"
	"assay/internal/provider/waxpeer/waxpeertest"
)

const (
	redline  = "AK-47 | Redline (Field-Tested)"
	karambit = "★ Karambit | Doppler (Factory New)"
	mills    = money.Micro(1000)
)

var call = provider.Call{AppID: catalog.CS2, File: "730"}

func newProvider(t testing.TB, baseURL string, tweak func(*provider.Options)) *waxpeer.Provider {
	t.Helper()
	o := provider.Options{Provider: waxpeer.Name}
	client := providertest.NewClient(t, baseURL, o, tweak)
	return waxpeer.New(waxpeer.Config{BaseURL: baseURL, Client: client})
}

func good() *waxpeertest.Server {
	return &waxpeertest.Server{
		Rows: []waxpeertest.Row{
			{Name: redline, Min: "26350", Count: "44"},
			{Name: "P250 | Sand Dune (Battle-Scarred)", Min: "21", Count: "910"},
			{Name: karambit, Min: "1214500", Count: "3"},
			{Name: "Sticker | A, B's & \"C\" <100%> 龍", Min: `"5"`},
			{Name: "Not offered", Min: "0", Count: "0"},
		},
		Dopplers: []waxpeertest.Doppler{
			{Name: karambit, Phase: "Phase 3", Price: "1219000"},
			{Name: karambit, Phase: "Phase 3", Price: "1214500"},
			{Name: karambit, Phase: "Phase 3", Price: "1300000"},
			{Name: karambit, Phase: "Ruby", Price: "5990000"},
			{Name: karambit, Phase: "Sapphire", Price: "0"},
		},
	}
}

func quotes() []provider.Quote {
	q := func(name, phase string, ask money.Micro, listings int64) provider.Quote {
		return provider.Quote{Market: waxpeer.Name, Name: name, Phase: phase, Currency: "USD", Ask: ask, Listings: listings, Sales: provider.Unknown}
	}
	return []provider.Quote{
		q(redline, "", 26350*mills, 44), q("P250 | Sand Dune (Battle-Scarred)", "", 21*mills, 910), q(karambit, "", 1_214_500*mills, 3),
		q("Sticker | A, B's & \"C\" <100%> 龍", "", 5*mills, provider.Unknown), q("Not offered", "", 0, 0),
		q(karambit, "Phase 3", 1_214_500*mills, 3), q(karambit, "Ruby", 5_990_000*mills, 1),
	}
}

func TestSuite(t *testing.T) {
	fake := good()
	fake.Calls = 1_000_000
	providertest.Run(t, providertest.Subject{
		New: func(t testing.TB, baseURL string, tweak func(*provider.Options)) provider.Provider {
			return newProvider(t, baseURL, tweak)
		},
		Good: fake, Call: call, Want: quotes(), Render: render,
	})
}

// render returns rows in a format that is valid for both lists.
func render(rows []providertest.Row) []byte {
	var b bytes.Buffer
	b.WriteString(`{"success":true,"items":`)
	for i, row := range rows {
		b.WriteString(map[bool]string{true: "[", false: ","}[i == 0])
		b.WriteString(`{"name":` + providertest.Quote(row.Name) + `,"phase":"Ruby","count":1,"min":` + row.Price + `,"price":` + row.Price + `}`)
	}
	b.WriteString("]}")
	return b.Bytes()
}

func TestFetch_SeparatesPhases(t *testing.T) {
	server := providertest.NewServer(t, good())
	providertest.CheckFetch(t, newProvider(t, server.URL(), nil), call, quotes())
}

func TestFetch_RejectsNameWithTwoPrices(t *testing.T) {
	fake := good()
	fake.Rows = append(fake.Rows, waxpeertest.Row{Name: redline, Min: "1", Count: "1"})
	server := providertest.NewServer(t, fake)
	var sink providertest.Sink
	if _, err := newProvider(t, server.URL(), nil).Fetch(t.Context(), call, &sink); err != nil {
		t.Fatal(err)
	}
	want := providertest.Sink{Quotes: slices.DeleteFunc(quotes(), func(q provider.Quote) bool { return q.Name == redline && q.Phase == "" })}
	if diff := cmp.Diff(want.Sorted(), sink.Sorted()); diff != "" || sink.Rejects != 2 {
		t.Errorf("got %d rejects, want 2; quotes (-want +got):\n%s", sink.Rejects, diff)
	}
}

func TestFetch_RequestsDopplersForCS2Only(t *testing.T) {
	server := providertest.NewServer(t, good())
	src := newProvider(t, server.URL(), nil)
	for _, f := range src.Describe().Files {
		var meter provider.Meter
		var sink providertest.Sink
		if _, err := src.Fetch(t.Context(), provider.Call{AppID: f.AppID, File: f.Key, Meter: &meter}, &sink); err != nil {
			t.Errorf("file %s: got error %v, want none", f.Key, err)
		}
		if phased := len(sink.Quotes) > 5; meter.Requests() != int64(f.Requests) || phased != (f.AppID == catalog.CS2) {
			t.Errorf("file %s: got %d quotes, %d requests; want %d requests", f.Key, len(sink.Quotes), meter.Requests(), f.Requests)
		}
	}
}

func TestProbe_SendsOneRequest(t *testing.T) {
	server := providertest.NewServer(t, good())
	src := newProvider(t, server.URL(), nil)
	if _, err := src.Fetch(t.Context(), src.Probe(), &providertest.Sink{}); err != nil || len(server.Hits()) != 1 {
		t.Errorf("got %d requests, error %v; want 1", len(server.Hits()), err)
	}
}

func TestFetch_ReportsErrors(t *testing.T) {
	with := func(change func(*waxpeertest.Server)) *waxpeertest.Server {
		s := good()
		change(s)
		return s
	}
	for name, c := range map[string]struct {
		fake   *waxpeertest.Server
		calls  int
		kind   provider.Kind
		detail string
	}{
		"61st call in a minute":      {good(), 61, provider.KindRateLimited, "Too many requests"},
		"refusal with status 200":    {with(func(s *waxpeertest.Server) { s.Refuse = "Wrong input" }), 1, provider.KindProtocol, "the provider refused the request: Wrong input"},
		"rate limit with status 200": {with(func(s *waxpeertest.Server) { s.Refuse = "Too many requests" }), 1, provider.KindRateLimited, "the provider refused the request: Too many"},
		"refusal with status 400":    {with(func(s *waxpeertest.Server) { s.Refuse, s.Status = "Wrong input", http.StatusBadRequest }), 1, provider.KindStatus, "Wrong input"},
		"address blocked":            {with(func(s *waxpeertest.Server) { s.Refuse, s.Status = "banned", http.StatusForbidden }), 1, provider.KindAuth, "banned"},
		"no rows":                    {with(func(s *waxpeertest.Server) { s.Rows = nil }), 1, provider.KindProtocol, "the list is empty"},
		"no Dopplers":                {with(func(s *waxpeertest.Server) { s.Dopplers = nil }), 1, provider.KindProtocol, "the list is empty"},
		"only Dopplers valid": {
			with(func(s *waxpeertest.Server) { s.Rows = []waxpeertest.Row{{Name: redline, Min: `"about 5"`}} }), 1,
			provider.KindProtocol, "more rows rejected than accepted (1 and 0)",
		},
		"unknown phase": {
			with(func(s *waxpeertest.Server) {
				s.Dopplers = []waxpeertest.Doppler{{Name: karambit, Phase: "Phase 5", Price: "1"}}
			}), 1,
			provider.KindProtocol, "phase is unknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := providertest.NewServer(t, c.fake)
			src := newProvider(t, server.URL(), func(o *provider.Options) { o.Total = time.Second })
			providertest.CheckError(t, src, call, c.calls, c.kind, c.detail)
		})
	}
}

// TestFake_RefusesInvalidRequests checks that the fake behaves like Waxpeer.
func TestFake_RefusesInvalidRequests(t *testing.T) {
	server := providertest.NewServer(t, good())
	for path, want := range map[string]string{
		"/v1/prices?game=csgo&minified=0": `"steam_price"`, "/v1/prices?game=dota3": "Wrong input", "/v1/prices/dopplers": "Wrong input",
	} {
		resp, err := http.Get(server.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(resp.Body)
		_ = resp.Body.Close()
		if !strings.Contains(body.String(), want) {
			t.Errorf("%s: got body %s, want %s in it", path, strconv.Quote(body.String()), want)
		}
	}
}
