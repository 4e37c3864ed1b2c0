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

// doer serves every request with the same body.
type doer struct {
	body     string
	modified string
	requests *[]provider.Request
	times    int // how often decode is called; 0: once
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

func TestFetch_SendsSecretsAndTakesTheDate(t *testing.T) {
	var requests []provider.Request
	secret := only("KEY", "s3cret")
	s := newProvider(t, urlList, doer{body: `{"A":1}`, modified: "Sat, 08 Aug 2026 10:00:00 GMT", requests: &requests}, secret)
	c := &collector{}
	answer, err := s.Fetch(t.Context(), provider.Call{AppID: 730, File: "u"}, c)
	if err != nil {
		t.Fatal(err)
	}
	if requests[0].URL != "https://h.example/p?key=s3cret" || requests[0].Header.Get("X-API-KEY") != "Bearer s3cret" {
		t.Errorf("request %+v", requests[0])
	}
	want := time.Date(2026, 8, 8, 10, 0, 0, 0, time.UTC)
	if !answer.ProviderTime.Equal(want) || !c.quotes[0].MarketTime.Equal(want) {
		t.Errorf("times %v and %v", answer.ProviderTime, c.quotes[0].MarketTime)
	}
}

func TestFetch_WithoutADateTheTimeIsNotStated(t *testing.T) {
	secret := func(string) (string, error) { return "x", nil }
	s := newProvider(t, urlList, doer{body: `{"A":1}`, modified: "yesterday"}, secret)
	c := &collector{}
	answer, err := s.Fetch(t.Context(), provider.Call{AppID: 730, File: "u"}, c)
	if err != nil || !answer.ProviderTime.IsZero() || !c.quotes[0].MarketTime.IsZero() {
		t.Errorf("time %v, quotes %+v, error %v", answer.ProviderTime, c.quotes, err)
	}
}

func TestFetch_MissingSecretSendsNothing(t *testing.T) {
	var requests []provider.Request
	s := newProvider(t, urlList, doer{requests: &requests}, nil)
	_, err := s.Fetch(t.Context(), provider.Call{AppID: 730, File: "u"}, &collector{})
	wantError(t, err, provider.KindAuth, `list "u"`, "secret KEY is not set")
	if len(requests) != 0 {
		t.Errorf("%d requests were sent", len(requests))
	}
}

func TestFetch_RetriedAnswerCountsOnce(t *testing.T) {
	secret := func(string) (string, error) { return "x", nil }
	s := newProvider(t, urlList, doer{body: `{"A":1,"B":2}`, times: 3}, secret)
	c := &collector{}
	if _, err := s.Fetch(t.Context(), provider.Call{AppID: 730, File: "u"}, c); err != nil {
		t.Fatal(err)
	}
	if len(c.quotes) != 2 || len(c.rejects) != 0 || c.restarts != 3 {
		t.Errorf("%d quotes, %d rejects, %d restarts", len(c.quotes), len(c.rejects), c.restarts)
	}
}

func TestFetch_UnknownListIsAnError(t *testing.T) {
	s := newProvider(t, urlList, doer{}, nil)
	_, err := s.Fetch(t.Context(), provider.Call{AppID: 730, File: "v"}, &collector{})
	wantError(t, err, provider.KindProtocol, `unknown list "v"`)
	_, err = s.Fetch(t.Context(), provider.Call{AppID: 570, File: "u"}, &collector{})
	wantError(t, err, provider.KindProtocol, "app 570")
}

func TestFetch_FilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no pipes on this system: %v", err)
	}
	for name, c := range map[string]struct{ file, says string }{
		"missing":   {filepath.Join(dir, "none.json"), "the file does not exist"},
		"directory": {dir, "not a regular file"},
		"pipe":      {pipe, "not a regular file"},
		"device":    {os.DevNull, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := fetchFile(t, strings.Replace(objectList, `"x"`, `"@"`, 1), c.file, &collector{})
			wantError(t, err, provider.KindConnect, `list "six"`, c.says)
			if strings.Contains(err.Error(), dir) {
				t.Errorf("error %q holds a path", err)
			}
		})
	}
}

func TestNew_RefusesURLsWithoutAClient(t *testing.T) {
	c, err := Parse([]byte(`{"lists":[`+urlList+`]}`), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Config: c}); err == nil || !strings.Contains(err.Error(), `"u"`) {
		t.Errorf("error %v", err)
	}
}
