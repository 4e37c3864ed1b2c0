package pricelist

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/internal/provider"
)

// doer returns the same response to every request.
type doer struct {
	body     string
	modified string
	requests *[]provider.Request
	times    int // number of calls of decode; 0 means 1
}

func (d doer) Do(_ context.Context, req provider.Request, decode func(*provider.Response) error) error {
	if d.requests != nil {
		*d.requests = append(*d.requests, req)
	}
	var err error
	for range max(d.times, 1) {
		resp := &provider.Response{Status: 200, Header: http.Header{}, Body: strings.NewReader(d.body)}
		resp.Header.Set("Last-Modified", d.modified)
		err = decode(resp)
	}
	return err
}

func newProvider(t *testing.T, listJSON string, d doer, secret func(string) (string, error)) *Provider {
	t.Helper()
	c, err := Parse([]byte(`{"lists":[`+listJSON+`]}`), Env{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Config: c, Client: func(string) Doer { return d }, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const urlList = `{"key":"u","location":"https://h.example/p?key=${KEY}","headers":{"x-api-key":"Bearer ${KEY}"},"format":"jsonObject",
	"appId":730,"currency":"USD","time":{"modified":true},"markets":[{"key":"m","ask":"."}]}`

func TestFetch_SendsSecretsAndUsesLastModified(t *testing.T) {
	var requests []provider.Request
	secret := only("KEY", "s3cret")
	s := newProvider(t, urlList, doer{body: `{"A":1}`, modified: "Sat, 08 Aug 2026 10:00:00 GMT", requests: &requests}, secret)
	c := &collector{}
	result, err := s.Fetch(t.Context(), provider.Call{AppID: 730, File: "u"}, c)
	if err != nil {
		t.Fatal(err)
	}
	if requests[0].URL != "https://h.example/p?key=s3cret" || requests[0].Header.Get("X-API-KEY") != "Bearer s3cret" {
		t.Errorf("got request %+v, want the secret in its URL and header", requests[0])
	}
	want := time.Date(2026, 8, 8, 10, 0, 0, 0, time.UTC)
	if !result.ProviderTime.Equal(want) || !c.quotes[0].MarketTime.Equal(want) {
		t.Errorf("got provider time %v and market time %v, want %v", result.ProviderTime, c.quotes[0].MarketTime, want)
	}
}

func TestFetch_InvalidLastModifiedGivesNoTime(t *testing.T) {
	secret := func(string) (string, error) { return "x", nil }
	s := newProvider(t, urlList, doer{body: `{"A":1}`, modified: "yesterday"}, secret)
	c := &collector{}
	result, err := s.Fetch(t.Context(), provider.Call{AppID: 730, File: "u"}, c)
	if err != nil || !result.ProviderTime.IsZero() || !c.quotes[0].MarketTime.IsZero() {
		t.Errorf("got time %v, quotes %+v and error %v, want no times and no error", result.ProviderTime, c.quotes, err)
	}
}

func TestFetch_MissingSecretSendsNoRequest(t *testing.T) {
	var requests []provider.Request
	s := newProvider(t, urlList, doer{requests: &requests}, nil)
	_, err := s.Fetch(t.Context(), provider.Call{AppID: 730, File: "u"}, &collector{})
	wantError(t, err, provider.KindAuth, `list "u"`, "secret KEY is not set")
	if len(requests) != 0 {
		t.Errorf("got %d requests, want 0", len(requests))
	}
}

func TestFetch_RetriedResponseCountsOnce(t *testing.T) {
	secret := func(string) (string, error) { return "x", nil }
	s := newProvider(t, urlList, doer{body: `{"A":1,"B":2}`, times: 3}, secret)
	c := &collector{}
	if _, err := s.Fetch(t.Context(), provider.Call{AppID: 730, File: "u"}, c); err != nil {
		t.Fatal(err)
	}
	if len(c.quotes) != 2 || len(c.rejects) != 0 || c.restarts != 3 {
		t.Errorf("got %d quotes, %d rejects, %d restarts, want 2, 0, 3", len(c.quotes), len(c.rejects), c.restarts)
	}
}

func TestFetch_UnknownListIsAnError(t *testing.T) {
	s := newProvider(t, urlList, doer{}, nil)
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
