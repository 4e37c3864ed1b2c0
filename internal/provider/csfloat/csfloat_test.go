package csfloat_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/csfloat"
	"assay/internal/provider/csfloat/csfloattest"
	"assay/internal/provider/providertest"
)

const (
	redline  = "AK-47 | Redline (Field-Tested)"
	karambit = "★ Karambit | Doppler (Factory New)"
	cents    = money.Micro(10_000)
	key      = "canary-0f-a-k3y"
)

var call = provider.Call{AppID: catalog.CS2, File: "730"}

func newProvider(t testing.TB, baseURL, key string, tweak func(*provider.Options)) *csfloat.Provider {
	t.Helper()
	o := provider.Options{Provider: csfloat.Name}
	if key != "" {
		o.Secrets = []string{key}
	}
	client := providertest.NewClient(t, baseURL, o, tweak)
	return csfloat.New(csfloat.Config{BaseURL: baseURL, Key: key, Client: client})
}

func good() *csfloattest.Server {
	return &csfloattest.Server{
		Rows: []csfloattest.Row{
			{Name: redline, MinPrice: "2710", Quantity: "205"},
			{Name: karambit, MinPrice: "134900", Quantity: "61"},
			{Name: "Sticker | A, B's & \"C\" <100%> 龍", MinPrice: "3"},
			{Name: "Not offered", MinPrice: "0", Quantity: "0"},
		},
		Dopplers: []csfloattest.Doppler{
			{Name: karambit, PaintIndex: "418", Phase: "Phase 1", MinPrice: "134900"},
			{Name: karambit, PaintIndex: "415", Phase: "Ruby", MinPrice: "612000"},
			{Name: karambit, PaintIndex: "420", MinPrice: "140000"},
			{Name: karambit, PaintIndex: "416", Phase: "P-Sapphire", MinPrice: "null"},
		},
	}
}

func quotes() []provider.Quote {
	q := func(name, phase string, ask money.Micro, listings int64) provider.Quote {
		return provider.Quote{Market: csfloat.Name, Name: name, Phase: phase, Currency: "USD", Ask: ask, Listings: listings, Sales: provider.Unknown}
	}
	return []provider.Quote{
		q(redline, "", 2710*cents, 205), q(karambit, "", 134900*cents, 61), q("Sticker | A, B's & \"C\" <100%> 龍", "", 3*cents, provider.Unknown), q("Not offered", "", 0, 0),
		q(karambit, "Phase 1", 134900*cents, provider.Unknown), q(karambit, "Ruby", 612000*cents, provider.Unknown),
		q(karambit, "Phase 3", 140000*cents, provider.Unknown), q(karambit, "Sapphire", 0, provider.Unknown),
	}
}

func TestSuite(t *testing.T) {
	fake := good()
	fake.Calls, fake.Key = 1_000_000, key
	providertest.Run(t, providertest.Subject{
		New: func(t testing.TB, baseURL string, tweak func(*provider.Options)) provider.Provider {
			return newProvider(t, baseURL, key, tweak)
		},
		Good: fake, Call: call, Want: quotes(), Render: render, Secret: key,
	})
}

// render returns rows in a format that is valid for both lists.
func render(rows []providertest.Row) []byte {
	var b bytes.Buffer
	for i, row := range rows {
		b.WriteString(map[bool]string{true: "[", false: ","}[i == 0])
		b.WriteString(`{"market_hash_name":` + providertest.Quote(row.Name) + `,"phase_name":"Ruby","quantity":1,"min_price":` + row.Price + `}`)
	}
	b.WriteString("]")
	return b.Bytes()
}

func TestFetch_SeparatesPhasesInEveryFormat(t *testing.T) {
	for _, exchanged := range []bool{false, true} {
		t.Run(fmt.Sprint("exchanged ", exchanged), func(t *testing.T) {
			fake := good()
			fake.Exchanged = exchanged
			server := providertest.NewServer(t, fake)
			providertest.CheckFetch(t, newProvider(t, server.URL(), "", nil), call, quotes())
		})
	}
}

func TestFetch_ReportsErrors(t *testing.T) {
	with := func(change func(*csfloattest.Server)) *csfloattest.Server {
		s := good()
		change(s)
		return s
	}
	for name, c := range map[string]struct {
		fake   *csfloattest.Server
		key    string
		kind   provider.Kind
		detail string
	}{
		"missing key": {with(func(s *csfloattest.Server) { s.Key = key }), "", provider.KindAuth, "You need to be logged in"},
		"wrong key":   {with(func(s *csfloattest.Server) { s.Key = key }), "another", provider.KindAuth, "You need to be logged in"},
		"no rows":     {with(func(s *csfloattest.Server) { s.Rows = nil }), "", provider.KindProtocol, "the list is empty"},
		"no Dopplers": {with(func(s *csfloattest.Server) { s.Dopplers = nil }), "", provider.KindProtocol, "the list is empty"},
		"unknown phase": {
			with(func(s *csfloattest.Server) {
				s.Dopplers = []csfloattest.Doppler{{Name: karambit, PaintIndex: "7", Phase: "Phase 9", MinPrice: "1"}}
			}), "",
			provider.KindProtocol, "phase is unknown",
		},
		"only Dopplers valid": {
			with(func(s *csfloattest.Server) {
				s.Rows = []csfloattest.Row{{Name: redline, MinPrice: `"1,5"`, Quantity: "1"}}
			}), "",
			provider.KindProtocol, "more rows rejected than accepted (1 and 0)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := providertest.NewServer(t, c.fake)
			providertest.CheckError(t, newProvider(t, server.URL(), c.key, nil), call, 1, c.kind, c.detail)
		})
	}
}

func TestFetch_WaitsUntilResetInHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		reset, from, to time.Duration
	}{
		"real reset":        {0, 4 * time.Minute, 5 * time.Minute},
		"later reset":       {time.Hour, 59 * time.Minute, time.Hour},
		"reset in the past": {-time.Hour, provider.DefaultWait, provider.DefaultWait},
	} {
		t.Run(name, func(t *testing.T) {
			fake := good()
			fake.Reset, fake.Calls = c.reset, 1
			server := providertest.NewServer(t, fake)
			src := newProvider(t, server.URL(), "", func(o *provider.Options) { o.Total = 10 * time.Second })
			_, err := src.Fetch(t.Context(), call, &providertest.Sink{})
			var e *provider.Error
			if !errors.As(err, &e) || !e.Deferred() || e.RetryAfter < c.from || e.RetryAfter > c.to {
				t.Errorf("got error %v, want a wait of %v to %v", err, c.from, c.to)
			}
		})
	}
}
