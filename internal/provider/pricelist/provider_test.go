package pricelist

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/internal/provider"
	"assay/internal/provider/providertest"
)

// clientsOf returns one client for all hosts of a configuration.
func clientsOf(t testing.TB, c *Config, o provider.Options) provider.Clients {
	client := provider.NewClient(o)
	t.Cleanup(client.Close)
	clients := provider.Clients{}
	for _, h := range c.Hosts() {
		clients[h.Key] = client
	}
	return clients
}

// serveList returns a Provider of urlList and the server of the list. The server returns the
// same response to every request.
func serveList(t *testing.T, body, modified string, secret func(string) (string, error)) (*Provider, *providertest.Server) {
	t.Helper()
	server := providertest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Last-Modified", modified)
		_, _ = w.Write([]byte(body))
	}))
	c, err := Parse([]byte(`{"lists":[`+strings.Replace(urlList, "https://h.example", server.URL(), 1)+`]}`), Env{})
	if err != nil {
		t.Fatal(err)
	}
	clients := clientsOf(t, c, provider.Options{Provider: Name, AllowHosts: []string{server.Host()}, Backoff: time.Millisecond})
	s, err := New(Options{Config: c, Clients: clients, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return s, server
}

const urlList = `{"key":"u","location":"https://h.example/p?key=${KEY}","headers":{"x-api-key":"Bearer ${KEY}"},"format":"jsonObject",
	"appId":730,"currency":"USD","time":{"modified":true},"markets":[{"key":"m","ask":"."}]}`

func TestFetch_SendsSecretsAndUsesLastModified(t *testing.T) {
	s, server := serveList(t, `{"A":1}`, "Sat, 08 Aug 2026 10:00:00 GMT", only("KEY", "s3cret"))
	c := &collector{}
	result, err := s.Fetch(t.Context(), provider.Call{AppID: 730, File: "u"}, c)
	if err != nil {
		t.Fatal(err)
	}
	if hit := server.Hits()[0]; hit.Path != "/p?key=s3cret" || hit.Header.Get("X-API-KEY") != "Bearer s3cret" {
		t.Errorf("got request %+v, want the secret in its URL and header", hit)
	}
	want := time.Date(2026, 8, 8, 10, 0, 0, 0, time.UTC)
	if !result.ProviderTime.Equal(want) || !c.quotes[0].MarketTime.Equal(want) {
		t.Errorf("got provider time %v and market time %v, want %v", result.ProviderTime, c.quotes[0].MarketTime, want)
	}
}

func TestFetch_InvalidLastModifiedGivesNoTime(t *testing.T) {
	secret := func(string) (string, error) { return "x", nil }
	s, _ := serveList(t, `{"A":1}`, "yesterday", secret)
	c := &collector{}
	result, err := s.Fetch(t.Context(), provider.Call{AppID: 730, File: "u"}, c)
	if err != nil || !result.ProviderTime.IsZero() || !c.quotes[0].MarketTime.IsZero() {
		t.Errorf("got time %v, quotes %+v and error %v, want no times and no error", result.ProviderTime, c.quotes, err)
	}
}

func TestFetch_MissingSecretSendsNoRequest(t *testing.T) {
	s, server := serveList(t, "", "", nil)
	_, err := s.Fetch(t.Context(), provider.Call{AppID: 730, File: "u"}, &collector{})
	wantError(t, err, provider.KindAuth, `list "u"`, "secret KEY is not set")
	if n := len(server.Hits()); n != 0 {
		t.Errorf("got %d requests, want 0", n)
	}
}

func TestFetch_RetriedResponseCountsOnce(t *testing.T) {
	secret := func(string) (string, error) { return "x", nil }
	s, server := serveList(t, `{"A":1,"B":2}`, "", secret)
	server.Next(providertest.CutBody(), providertest.CutBody())
	c := &collector{}
	if _, err := s.Fetch(t.Context(), provider.Call{AppID: 730, File: "u"}, c); err != nil {
		t.Fatal(err)
	}
	if len(c.quotes) != 2 || len(c.rejects) != 0 || c.restarts != 3 {
		t.Errorf("got %d quotes, %d rejects, %d restarts, want 2, 0, 3", len(c.quotes), len(c.rejects), c.restarts)
	}
}

func TestFetch_UnknownListIsAnError(t *testing.T) {
	s, _ := serveList(t, "", "", nil)
	_, err := s.Fetch(t.Context(), provider.Call{AppID: 730, File: "v"}, &collector{})
	wantError(t, err, provider.KindProtocol, `unknown list "v"`)
	_, err = s.Fetch(t.Context(), provider.Call{AppID: 570, File: "u"}, &collector{})
	wantError(t, err, provider.KindProtocol, "app 570")
}

func TestFetch_ReportsUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("named pipes are not supported: %v", err)
	}
	for name, c := range map[string]struct{ file, want string }{
		"missing":   {filepath.Join(dir, "none.json"), "the file does not exist"},
		"directory": {dir, "not a regular file"},
		"pipe":      {pipe, "not a regular file"},
		"device":    {os.DevNull, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := fetchFile(t, strings.Replace(objectList, `"x"`, `"@"`, 1), c.file, &collector{})
			wantError(t, err, provider.KindConnect, `list "six"`, c.want)
			if strings.Contains(err.Error(), dir) {
				t.Errorf("got error %q, want it without a path", err)
			}
		})
	}
}

func TestNew_RequiresAClientForURLs(t *testing.T) {
	c, err := Parse([]byte(`{"lists":[`+urlList+`]}`), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Config: c}); err == nil || !strings.Contains(err.Error(), `"u"`) {
		t.Errorf(`New without a client: got error %v, want one for list "u"`, err)
	}
}
