package cli

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/provider/providertest"
)

// testProvider runs `assay provider test sim` against a simulator at base. It returns the exit
// code, the result and the complete output.
func testProvider(t *testing.T, base, dir string, settings ...string) (int, providerTested, string) {
	t.Helper()
	var out, errs strings.Builder
	p := Program{
		Args:    []string{"provider", "test", "sim", "--json"},
		Environ: append([]string{"SIM_BASE_URL=" + base, "SIM_SHAPE=single", "DATA_DIR=" + dir}, settings...),
		Stdin:   strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: time.Now,
	}
	code := p.Run(context.Background())
	var found providerTested
	if err := json.Unmarshal([]byte(out.String()), &found); err != nil {
		t.Fatalf("decode the report: got error %v, want none; output %q, errors %q", err, out.String(), errs.String())
	}
	return code, found, out.String() + errs.String()
}

// states returns the states of the checks by name.
func (t *providerTested) states() map[string]string {
	states := map[string]string{}
	for _, c := range t.Checks {
		states[c.Check] = c.State
	}
	return states
}

func (t *providerTested) detail(check string) string {
	for _, c := range t.Checks {
		if c.Check == check {
			return c.Detail
		}
	}
	return ""
}

func respond(status int, body string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(fields); i += 2 {
			w.Header().Set(fields[i], fields[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestProviderTest_ExplainsResponse(t *testing.T) {
	hour := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for name, c := range map[string]struct {
		response     http.HandlerFunc
		check, state string
		detail       string
	}{
		"no key":         {respond(401, `{"error":"who are you"}`), "key", checkFailed, "missing, wrong, revoked"},
		"a wrong key":    {respond(403, `{"error":"forbidden"}`), "key", checkFailed, "missing, wrong, revoked"},
		"a bot check":    {respond(403, "\n<!DOCTYPE html><title>Just a moment...</title>"), "status", checkFailed, "a bot check"},
		"not acceptable": {respond(406, ""), "status", checkFailed, "compression"},
		"rate limited":   {respond(429, "null", "Retry-After", "90"), "status", checkFailed, "retry after 1m30s"},
		"reset header":   {respond(429, "null", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "120"), "status", checkFailed, "2m0s"},
		"internal error": {respond(503, ""), "status", checkFailed, "an internal error"},
		"quota left":     {respond(200, "{}", "X-RateLimit-Limit", "1000", "X-RateLimit-Remaining", "12", "X-RateLimit-Reset", "600"), "quota", checkOK, "12 of 1,000 requests are left until 20"},
		"no quota left":  {respond(200, "{}", "RateLimit-Remaining", "0", "RateLimit-Reset", "600"), "quota", checkWarning, "0 requests are left"},
		"a wrong clock":  {respond(200, "{}", "Date", hour), "clock", checkWarning, "behind the provider's"},
		"a page":         {respond(200, "<html>"), "body", checkFailed, "HTML instead of JSON"},
		"null":           {respond(200, "null"), "body", checkFailed, "null instead of"},
		"empty body":     {respond(200, ""), "body", checkFailed, "empty body"},
		"text":           {respond(200, "hello"), "body", checkFailed, "expected a JSON object or array"},
	} {
		t.Run(name, func(t *testing.T) {
			s := providertest.NewServer(t, c.response)
			code, found, all := testProvider(t, s.URL(), t.TempDir(), "SIM_API_KEY=top-secret-key")
			if got := found.states()[c.check]; got != c.state || !strings.Contains(found.detail(c.check), c.detail) {
				t.Errorf("check %s: got %s with %q, want %s with %q", c.check, got, found.detail(c.check), c.state, c.detail)
			}
			if len(s.Hits()) != 1 || found.Requests != 1 {
				t.Errorf("got %d requests, %d of them reported, want 1", len(s.Hits()), found.Requests)
			}
			if (code == exitOK) != found.OK || code != exitOK && code != exitUnreachable {
				t.Errorf("got exit code %d, ok %v, want 0 only for an ok report", code, found.OK)
			}
			for _, check := range []string{"name", "address", "connection", "tls"} {
				if found.states()[check] != checkOK {
					t.Errorf("check %s: got %s, want %s", check, found.states()[check], checkOK)
				}
			}
			if strings.Contains(all, "top-secret-key") {
				t.Errorf("got the output %s, want it without the key", all)
			}
		})
	}
}

func TestProviderTest_ReportsConnectionSteps(t *testing.T) {
	plain := providertest.NewServer(t, respond(200, "{}"))
	safe := httptest.NewUnstartedServer(respond(200, "{}")) // with a self-signed certificate
	safe.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	safe.StartTLS()
	t.Cleanup(safe.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct {
		base, check, detail string
	}{
		"an unknown name":           {"http://no-such-host.invalid", "name", "DNS lookup"},
		"a closed port":             {gone.URL, "connection", "refused"},
		"a wrong certificate":       {safe.URL, "tls", "certificate"},
		"https where there is none": {"https://" + plain.Host(), "tls", "tls"},
	} {
		t.Run(name, func(t *testing.T) {
			code, found, _ := testProvider(t, c.base, t.TempDir())
			if code != exitUnreachable || found.OK {
				t.Errorf("got exit code %d, ok %v, want a failed report", code, found.OK)
			}
			if found.states()[c.check] != checkFailed || !strings.Contains(found.detail(c.check), c.detail) {
				t.Errorf("check %s: got %+v, want it failed with %q", c.check, found.Checks, c.detail)
			}
			want := checkOK
			for _, check := range []string{"name", "address", "connection", "tls"} {
				if check == c.check {
					want = checkUnknown
				} else if got := found.states()[check]; got != want {
					t.Errorf("check %s: got %s, want %s", check, got, want)
				}
			}
			for _, check := range []string{"status", "key", "quota", "clock", "body"} {
				if got := found.states()[check]; got != checkUnknown {
					t.Errorf("check %s without a response: got %s, want unknown", check, got)
				}
			}
		})
	}
}

func TestProviderTest_CountsInBudget(t *testing.T) {
	dir := t.TempDir()
	server := providertest.NewServer(t, respond(200, "{}"))
	_, found, _ := testProvider(t, server.URL(), dir, "SIM_QUOTA=2/day")
	if found.Counted || !strings.Contains(found.detail("cost"), "does not exist yet") {
		t.Errorf("without a database: got %+v, want the cost unknown and no counted request", found.Checks)
	}
	open := func() *db.DB {
		t.Helper()
		s, err := db.Open(t.Context(), db.Options{Path: filepath.Join(dir, "assay.db")})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	if _, found, _ = testProvider(t, server.URL(), dir, "SIM_QUOTA=2/day"); found.Counted || found.states()["cost"] != checkWarning {
		t.Errorf("with a running server: got %+v, want a warning about the cost and no counted request", found.Checks)
	}
	_ = s.Close()
	for range 2 {
		if _, found, _ = testProvider(t, server.URL(), dir, "SIM_QUOTA=2/day"); !found.Counted || found.states()["cost"] != checkOK {
			t.Errorf("with a stopped server: got %+v, want a counted request", found.Checks)
		}
	}
	code, found, _ := testProvider(t, server.URL(), dir, "SIM_QUOTA=2/day")
	if code != exitUnreachable || found.Requests != 0 || found.states()["quota"] != checkFailed || !strings.Contains(found.detail("quota"), "used up until") {
		t.Errorf("with a used-up budget: got exit code %d, %+v, want a failed quota and no request", code, found)
	}
	if n := len(server.Hits()); n != 4 {
		t.Errorf("got %d requests, want 4", n)
	}
	s = open()
	defer s.Close()
	b, _, err := allowance.Of(t.Context(), s, "sim", provider.Host{Quota: provider.Quota{Day: 2}})
	if err != nil || b.Quotas[0].Used != 2 {
		t.Errorf("got budget %+v, error %v, want 2 used requests", b, err)
	}
}

// prober is a provider that implements provider.Prober.
type prober struct{ provider.Provider }

func (prober) Describe() provider.Description { return provider.Description{Shape: provider.Bulk} }
func (prober) Probe() provider.Call           { return provider.Call{AppID: 570, File: "small"} }

func TestProbe_UsesProviderProbeOrFirstFile(t *testing.T) {
	if call, ok := provider.ProbeCall(prober{}, catalog.CS2, ""); !ok || call.File != "small" || call.AppID != 570 {
		t.Errorf("provider with a probe: got call %+v, %v, want its file of game 570", call, ok)
	}
	if call, ok := provider.ProbeCall(described{Shape: provider.Single}, catalog.CS2, "x"); !ok || len(call.Names) != 1 || call.AppID != catalog.CS2 {
		t.Errorf("single provider: got call %+v, %v, want one name of Counter-Strike 2", call, ok)
	}
	if _, ok := provider.ProbeCall(described{Shape: provider.Bulk}, catalog.CS2, "x"); ok {
		t.Error("provider without files: got a probe, want none")
	}
}

// namedProber is a provider whose cheapest call needs an item name.
type namedProber struct{ described }

func (namedProber) Probe() provider.Call {
	return provider.Call{AppID: 570, Names: []string{"surely there"}}
}

func TestProbe_RequestsGivenName(t *testing.T) {
	if call, ok := provider.ProbeCall(namedProber{}, catalog.CS2, "x"); !ok || call.AppID != 570 || len(call.Names) != 1 || call.Names[0] != "x" {
		t.Errorf("provider with a probe name: got call %+v, %v, want the name x of game 570", call, ok)
	}
}

// TestProviderTest_ReportsFailedHost uses a provider that requests a second host after the
// first one responded.
func TestProviderTest_ReportsFailedHost(t *testing.T) {
	server := providertest.NewServer(t, respond(401, "{}"))
	clients := provider.Clients{}
	for _, host := range []string{"sales", "stream"} {
		c := provider.NewClient(provider.Options{Provider: "two", AllowHosts: []string{server.Host()}})
		t.Cleanup(c.Close)
		clients[host] = c
	}
	if _, ok := stateOf(clients, "elsewhere"); ok {
		t.Error("unknown host: got a state, want none")
	}
	err := clients["sales"].Do(t.Context(), provider.Request{URL: server.URL()}, func(*provider.Response) error { return nil })
	found := providerTested{err: err}
	found.state, found.remote = stateOf(clients, "stream")
	found.check(budgetOf{})
	if got := found.states(); !found.remote || got["connection"] != checkOK || got["status"] != checkFailed || got["key"] != checkFailed {
		t.Errorf("got checks %+v, want a remote check with a connection, and a failed status and key", found.Checks)
	}
}

func TestProviderTest_PrintsPhaseOfSample(t *testing.T) {
	var samples []providerSample
	for _, phase := range []string{"", "Ruby"} {
		samples = append(samples, providerSample{Market: "m", MarketHashName: "★ K", Phase: phase, Currency: "USD", Ask: 5_000_000})
	}
	var text strings.Builder
	writeTested(&text, providerTested{OK: true, Quotes: map[string]int64{"m": 2}, Samples: samples})
	if !strings.Contains(text.String(), "for example ★ K: 5 USD on m\n") || !strings.Contains(text.String(), "for example ★ K, Ruby: 5 USD on m\n") {
		t.Errorf("got the output %s, want a sample with and one without the phase", text.String())
	}
}

// described is a provider whose Fetch is never called.
type described provider.Description

func (d described) Describe() provider.Description { return provider.Description(d) }

func (described) Fetch(context.Context, provider.Call, provider.Sink) (provider.Result, error) {
	return provider.Result{}, nil
}

func TestProviderTest_RequestsGivenFile(t *testing.T) {
	src := described{Name: "lists", Shape: provider.Bulk, Files: []provider.File{{Key: "a", AppID: 730}, {Key: "b", AppID: 570}}}
	for file, want := range map[string]provider.Call{"": {AppID: 730, File: "a"}, "b": {AppID: 570, File: "b"}} {
		call, err := (&providerTestCmd{File: file}).call(src)
		if err != nil || call.File != want.File || call.AppID != want.AppID {
			t.Errorf("file %q: got call %+v, error %v, want %+v", file, call, err, want)
		}
		found := tested(t.Context(), src, nil, call, time.Now)
		if len(found.Others) != 1 || found.File != want.File || found.Others[0] == want.File {
			t.Errorf("file %q: got %q tested and %q not tested, want %q tested and the other file not tested", file, found.File, found.Others, want.File)
		}
		var text strings.Builder
		writeTested(&text, found)
		if !strings.Contains(text.String(), "  tested "+want.File+"; not tested, see --file: "+found.Others[0]+"\n") {
			t.Errorf("file %q: got the output %s, want both files in it", file, text.String())
		}
	}
	for _, d := range []described{src, {Name: "named", Shape: provider.Single}, {Name: "empty", Shape: provider.Bulk}} {
		if _, err := (&providerTestCmd{File: "c"}).call(d); err == nil {
			t.Errorf("%s: got a call for the unknown file c, want an error", d.Name)
		}
	}
}
