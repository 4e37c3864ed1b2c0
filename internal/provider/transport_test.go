package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"assay/internal/provider"
	"assay/internal/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client returns a client that may send requests to the given servers.
func client(t *testing.T, o provider.Options, servers ...*providertest.Server) *provider.Client {
	t.Helper()
	o.Provider, o.Backoff = "test", time.Millisecond
	for _, s := range servers {
		o.AllowHosts = append(o.AllowHosts, s.Host())
	}
	c := provider.NewClient(o)
	t.Cleanup(c.Close)
	return c
}

// read returns a decode function that stores the body in into.
func read(into *[]byte) func(*provider.Response) error {
	return func(r *provider.Response) (err error) {
		*into, err = io.ReadAll(r.Body)
		return err
	}
}

func text(s string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) })
}

func TestDo_ServerSeesRetryAfterWait(t *testing.T) {
	s := providertest.NewServer(t, text("ok"))
	s.Next(providertest.Status(http.StatusTooManyRequests, "Retry-After", "1"))
	var got []byte
	if err := client(t, provider.Options{}, s).Do(t.Context(), provider.Request{URL: s.URL()}, read(&got)); err != nil {
		t.Fatal(err)
	}
	hits := s.Hits()
	if len(hits) != 2 || hits[1].Time.Sub(hits[0].Time) < time.Second {
		t.Errorf("got the second request after %v, want at least 1s", hits[len(hits)-1].Time.Sub(hits[0].Time))
	}
}

func TestDo_BlocksLoopbackUnlessAllowed(t *testing.T) {
	s := providertest.NewServer(t, text("ok"))
	err := client(t, provider.Options{}).Do(t.Context(), provider.Request{URL: s.URL()}, read(new([]byte)))
	if provider.KindOf(err) != provider.KindBlocked || len(s.Hits()) != 0 {
		t.Errorf("got error %v, %d requests; want kind %s, no request", err, len(s.Hits()), provider.KindBlocked)
	}
}

func TestDo_DecompressesRequestedEncoding(t *testing.T) {
	plain := strings.Repeat("AK-47 | Redline (Field-Tested)\n", 1000)
	for encoding, compress := range map[string]func(io.Writer) io.WriteCloser{
		"gzip": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"br":   func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
		"zstd": func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)); return z },
	} {
		var compressed bytes.Buffer
		w := compress(&compressed)
		_, _ = io.WriteString(w, plain)
		_ = w.Close()
		var requested string
		s := providertest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requested = r.Header.Get("Accept-Encoding")
			w.Header().Set("Content-Encoding", encoding)
			_, _ = w.Write(compressed.Bytes())
		}))
		meter, req := new(provider.Meter), provider.Request{URL: s.URL()}
		if encoding != "gzip" { // gzip is the default
			req.Header = http.Header{"Accept-Encoding": {encoding}}
		}
		req.Meter = meter
		var got []byte
		if err := client(t, provider.Options{}, s).Do(t.Context(), req, read(&got)); err != nil || string(got) != plain {
			t.Errorf("%s: got %d bytes, error %v; want %d bytes", encoding, len(got), err, len(plain))
		}
		if requested != encoding || meter.Bytes() != int64(compressed.Len()) || meter.Requests() != 1 {
			t.Errorf("%s: got Accept-Encoding %q, %d bytes counted; want %d bytes", encoding, requested, meter.Bytes(), compressed.Len())
		}
	}
}

func TestDo_LimitsDecompressedSize(t *testing.T) {
	const size, limit = 64 << 20, 1 << 20
	for encoding, compress := range map[string]func(io.Writer) io.WriteCloser{
		"br":   func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, 1) },
		"zstd": func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)); return z },
		"gzip": func(w io.Writer) io.WriteCloser { z, _ := gzip.NewWriterLevel(w, 1); return z },
	} {
		var bomb bytes.Buffer
		w := compress(&bomb)
		blank := bytes.Repeat([]byte(" "), 1<<20)
		for range size / len(blank) {
			_, _ = w.Write(blank)
		}
		_ = w.Close()
		s := providertest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			_, _ = w.Write(bomb.Bytes())
		}))
		c := client(t, provider.Options{MaxBody: limit}, s)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		read := int64(0)
		err := c.Do(t.Context(), provider.Request{URL: s.URL()}, func(r *provider.Response) (err error) {
			read, err = io.Copy(io.Discard, r.Body)
			return err
		})
		runtime.ReadMemStats(&after)
		if provider.KindOf(err) != provider.KindTooLarge || read > limit || len(s.Hits()) != 1 {
			t.Errorf("%s: got error %v after %d bytes and %d requests, want kind too large after at most the limit and 1", encoding, err, read, len(s.Hits()))
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
			t.Errorf("%s: got %d MiB allocated, want at most 32", encoding, used>>20)
		}
	}
}

func TestDo_AcceptsBodyOfExactlyMaxBody(t *testing.T) {
	s := providertest.NewServer(t, text(strings.Repeat("x", 1000)))
	for limit, want := range map[int64]provider.Kind{1000: "", 999: provider.KindTooLarge} {
		err := client(t, provider.Options{MaxBody: limit}, s).Do(t.Context(), provider.Request{URL: s.URL()}, read(new([]byte)))
		if provider.KindOf(err) != want {
			t.Errorf("limit %d: got error %v, want kind %q", limit, err, want)
		}
	}
}

// A decoder may stop at the end of the document without reading the end of the response.
func TestDo_RetriesBodyTruncatedAfterDocument(t *testing.T) {
	s := providertest.NewServer(t, text(`[]`+strings.Repeat(" ", 10_000)))
	s.Next(providertest.CutBody())
	calls := 0
	err := client(t, provider.Options{}, s).Do(t.Context(), provider.Request{URL: s.URL()}, func(r *provider.Response) error {
		calls++
		_, err := io.ReadFull(r.Body, make([]byte, 2))
		return err
	})
	if err != nil || calls != 2 {
		t.Errorf("got error %v after %d calls of decode, want none after 2", err, calls)
	}
}

func TestDo_RedirectToAnotherHostDropsSecrets(t *testing.T) {
	s := providertest.NewServer(t, text("ok"))
	other := providertest.NewServer(t, text("moved"))
	c := client(t, provider.Options{}, s, other)
	header := http.Header{
		"Authorization": {"Bearer k"}, "X-Api-Key": {"k"}, "Cookie": {"k=1"}, "Token": {"k"}, "Accept": {"text/csv"},
	}
	s.Next(providertest.Redirect("/elsewhere"), providertest.Redirect(other.URL()+"/list"))
	var got []byte
	meter := new(provider.Meter)
	if err := c.Do(t.Context(), provider.Request{URL: s.URL(), Header: header, Meter: meter}, read(&got)); err != nil || string(got) != "moved" {
		t.Fatalf("got body %q, error %v; want \"moved\"", got, err)
	}
	if second := s.Hits()[1]; second.Path != "/elsewhere" || second.Header.Get("X-Api-Key") != "k" {
		t.Errorf("same host: got path %s with header %v, want /elsewhere with the key", second.Path, second.Header)
	}
	there := other.Hits()[0].Header
	for _, key := range []string{"Authorization", "X-Api-Key", "Cookie", "Token"} {
		if there.Get(key) != "" {
			t.Errorf("another host: got the header %s, want none", key)
		}
	}
	if there.Get("Accept") != "text/csv" || meter.Requests() != 3 {
		t.Errorf("got Accept %q and %d requests counted; want text/csv and 3", there.Get("Accept"), meter.Requests())
	}

	other.Next(providertest.Redirect(s.URL()))
	s.Reset()
	s.Next(providertest.Redirect(other.URL()))
	if err := c.Do(t.Context(), provider.Request{URL: s.URL(), Header: header}, read(&got)); err != nil {
		t.Fatal(err)
	}
	if got := s.Hits()[1].Header.Get("Authorization"); got != "" {
		t.Errorf("redirect back to the first host: got Authorization %q, want none", got)
	}
}

func TestDo_NeverSendsBodyToAnotherHost(t *testing.T) {
	s, other := providertest.NewServer(t, text("ok")), providertest.NewServer(t, text("ok"))
	s.Always(providertest.Redirect(other.URL()))
	req := provider.Request{Method: http.MethodPost, URL: s.URL(), Body: []byte(`{"key":"k"}`)}
	err := client(t, provider.Options{}, s, other).Do(t.Context(), req, read(new([]byte)))
	if provider.KindOf(err) != provider.KindBlocked || len(other.Hits()) != 0 {
		t.Errorf("got error %v, %d requests to the other host; want kind %s, no request", err, len(other.Hits()), provider.KindBlocked)
	}
}

func TestDo_SendsBodyWithEveryAttempt(t *testing.T) {
	var bodies []string
	s := providertest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.Method+" "+string(b))
		if len(bodies) < 3 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	req := provider.Request{Method: http.MethodPost, URL: s.URL(), Body: []byte("names")}
	if err := client(t, provider.Options{}, s).Do(t.Context(), req, read(new([]byte))); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(bodies); got != "[POST names POST names POST names]" {
		t.Errorf("got the requests %s, want three POST requests with the names", got)
	}
}

func TestDo_NeverExposesSecrets(t *testing.T) {
	const path, query, header, user = "canary-path/1", "canary+query", "canary-header", "canary-user"
	var logs bytes.Buffer
	s := providertest.NewServer(t, text("ok"))
	c := client(t, provider.Options{
		Secrets: []string{path, query, header, user}, Attempts: 2,
		Logger: slog.New(slog.NewJSONHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}, s)
	url := strings.Replace(s.URL(), "http://", "http://u:"+user+"@", 1) + "/v2/canary-path%2F1/items?api_key=canary%2Bquery&other=canary-unnamed"
	var shown bytes.Buffer
	for _, f := range []providertest.Fault{
		providertest.Echo(200), providertest.Echo(401), providertest.Echo(500), providertest.Echo(404), providertest.Reset(), providertest.CutBody(),
		providertest.Garbage(), providertest.Redirect("http://10.0.0.1/?key=canary-path/1"), providertest.Redirect("/canary-path/1"),
		providertest.Redirect("http://%zz/canary-path/1"),
	} {
		s.Next(f, f)
		err := c.Do(t.Context(), provider.Request{URL: url, Header: http.Header{"X-Api-Key": {header}}}, func(r *provider.Response) error {
			body, _ := io.ReadAll(r.Body)
			return provider.Protocol("test", "invalid: %s", body)
		})
		for ; err != nil; err = errors.Unwrap(err) {
			fmt.Fprintln(&shown, err)
		}
		s.Reset()
	}
	if err := json.NewEncoder(&shown).Encode(c.Snapshot()); err != nil {
		t.Fatal(err)
	}
	shown.Write(logs.Bytes())
	for _, canary := range []string{"canary-path", "canary%", "canary+", header, user} {
		if i := strings.Index(shown.String(), canary); i >= 0 {
			t.Errorf("got the secret %s in an error, a snapshot or the log, want it masked: %.300s", canary, shown.String()[max(0, i-100):])
		}
	}
	// Query values are never logged, even if they are not listed as secrets.
	if strings.Contains(logs.String(), "canary-unnamed") {
		t.Error("got a query value in the log, want none")
	}
}

func TestDo_SendsCredentialsFromURL(t *testing.T) {
	s := providertest.NewServer(t, text("ok"))
	url := strings.Replace(s.URL(), "http://", "http://me:pass@", 1)
	if err := client(t, provider.Options{}, s).Do(t.Context(), provider.Request{URL: url}, read(new([]byte))); err != nil {
		t.Fatal(err)
	}
	if got := s.Hits()[0].Header.Get("Authorization"); got != "Basic bWU6cGFzcw==" {
		t.Errorf("got Authorization %q, want the user and password of the URL", got)
	}
}

func TestDo_ReportsUntrustedCertificate(t *testing.T) {
	s := httptest.NewUnstartedServer(text("ok"))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	c := provider.NewClient(provider.Options{Provider: "test", AllowHosts: []string{strings.TrimPrefix(s.URL, "https://")}, Attempts: 1})
	err := c.Do(t.Context(), provider.Request{URL: s.URL}, read(new([]byte)))
	if provider.KindOf(err) != provider.KindConnect || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got error %v, want kind connect about the certificate", err)
	}
}

func TestDo_DeadlineIsATimeout(t *testing.T) {
	s := providertest.NewServer(t, text("ok"))
	s.Always(providertest.Silent())
	c := client(t, provider.Options{}, s)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	err := c.Do(ctx, provider.Request{URL: s.URL()}, read(new([]byte)))
	if provider.KindOf(err) != provider.KindTimeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want kind timeout", err)
	}
	if got := c.Snapshot().Breaker; got != provider.BreakerClosed {
		t.Errorf("got breaker %v, want %v", got, provider.BreakerClosed)
	}
}

func TestSniffJSON_RejectsNonJSON(t *testing.T) {
	for in, want := range map[string]string{
		"": "empty", " \r\n\t": "empty", "null": "null instead", " null\n": "null instead", "<!doctype html>": "HTML", "\n\n<html>": "HTML",
		"\ufeff<html>": "HTML", `"text"`: "expected a JSON object", "42": "expected a JSON object", "\x00\x1b[2J": "expected a JSON object",
	} {
		_, err := provider.SniffJSON("src", strings.NewReader(in))
		var e *provider.Error
		if !errors.As(err, &e) || e.Kind != provider.KindProtocol || e.Provider != "src" || !strings.Contains(e.Detail, want) {
			t.Errorf("%q: got error %v, want one with %q", in, err, want)
		}
	}
	for in, want := range map[string]string{"[1]": "[1]", " \n{}": "{}", "\ufeff[]": "[]"} {
		body, err := provider.SniffJSON("src", strings.NewReader(in))
		if err != nil {
			t.Errorf("%q: got error %v, want none", in, err)
			continue
		}
		if got, _ := io.ReadAll(body); string(got) != want {
			t.Errorf("%q: got body %q, want %q", in, got, want)
		}
	}
	_, err := provider.SniffJSON("src", strings.NewReader("<"+strings.Repeat("x", 5000)))
	if len(err.Error()) > 300 {
		t.Errorf("got an error of %d bytes, want at most 300", len(err.Error()))
	}
}
