package fee

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/fault"
	"assay/internal/provider"
)

// server serves fee rules with an ETag.
type server struct {
	mu         sync.Mutex
	text, etag string
	status     int
	unchanged  int // number of 304 responses
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status != 0 {
		w.WriteHeader(s.status)
		return
	}
	w.Header().Set("ETag", s.etag)
	if r.Header.Get("If-None-Match") == s.etag {
		s.unchanged++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = io.WriteString(w, s.text)
}

func addressOf(t *testing.T, at string) *Address {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	o := ClientOptions(provider.Options{}, u)
	o.Backoff = time.Millisecond
	client := provider.NewClient(o)
	t.Cleanup(client.Close)
	return NewAddress(client, u)
}

func TestRefresh_SendsTheETagOfTheLastResponse(t *testing.T) {
	web := &server{text: flat("1000"), etag: `"a"`}
	at := httptest.NewServer(web)
	defer at.Close()
	s, m := newService(t, addressOf(t, at.URL+"/fees.json?key=secret"))
	ctx := t.Context()
	if err := s.Begin(ctx); err != nil || strings.Contains(m.versions()[0].Source, "secret") {
		t.Fatalf("Begin: got error %v, source %s, want none and a source without the secret", err, m.versions()[0].Source)
	}
	if got, err := s.Refresh(ctx, Request{}); err != nil || got.Changed || web.unchanged != 1 {
		t.Errorf("unchanged rules: got %+v, error %v, %d responses of 304, want no change and 1", got, err, web.unchanged)
	}
	web.text, web.etag = flat("1001"), `"b"`
	if got, err := s.Refresh(ctx, Request{}); err != nil || got.Version != 2 {
		t.Errorf("changed rules: got %+v, error %v, want version 2", got, err)
	}
	if got, err := s.Rollback(ctx, 1, Request{}); err != nil || got.Version != 3 {
		t.Errorf("Rollback: got %+v, error %v, want version 3", got, err)
	}
	if got, err := s.Refresh(ctx, Request{}); err != nil || got.Version != 4 {
		t.Errorf("refresh after the rollback: got %+v, error %v, want version 4", got, err)
	}
	for _, status := range []int{404, 500, 301} {
		web.status = status
		if _, err := s.Refresh(ctx, Request{}); kindOf(err) != fault.Upstream || strings.Contains(err.Error(), "secret") {
			t.Errorf("status %d: got error %v, want an upstream fault without the secret", status, err)
		}
	}
	web.status, web.etag, web.text = 0, `"c"`, strings.Repeat(" ", MaxBytes+9)
	if _, err := s.Refresh(ctx, Request{}); kindOf(err) != fault.Unprocessable {
		t.Errorf("response over the limit: got error %v, want an unprocessable fault", err)
	}
	web.text = "<html>"
	if _, err := s.Refresh(ctx, Request{}); kindOf(err) != fault.Unprocessable {
		t.Errorf("HTML page: got error %v, want an unprocessable fault", err)
	}
	at.Close()
	if _, err := s.Refresh(ctx, Request{}); kindOf(err) != fault.Upstream || len(m.versions()) != 4 {
		t.Errorf("closed server: got error %v, %d versions, want an upstream fault and 4", err, len(m.versions()))
	}
}

func TestRefresh_AcceptsA304OnlyForTheRequestedETag(t *testing.T) {
	text, reports := flat("1000"), ""
	requested := 0
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requested++
		if r.Header.Get("If-None-Match") != "" {
			w.Header().Set("ETag", reports)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"a"`)
		_, _ = io.WriteString(w, text)
	}))
	defer at.Close()
	s, _ := newService(t, addressOf(t, at.URL))
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	text = flat("1001")
	for _, reports = range []string{`"a"`, `W/"a"`} {
		if got, err := s.Refresh(t.Context(), Request{}); err != nil || got.Changed {
			t.Errorf("304 with the requested ETag %s: got %+v, error %v, want no change", reports, got, err)
		}
	}
	for i, other := range []string{`"b"`, ""} {
		requested, reports, text = 0, other, flat(fmt.Sprint(1002+i))
		if got, err := s.Refresh(t.Context(), Request{}); err != nil || !got.Changed || requested != 2 {
			t.Errorf("304 with the other ETag %q: got %+v, error %v after %d requests, want changed rules after 2", reports, got, err, requested)
		}
	}
}

func TestRefresh_HasShortTimeouts(t *testing.T) {
	ended := make(chan struct{})
	for name, begin := range map[string]func(w http.ResponseWriter){
		"no response": func(http.ResponseWriter) {},
		"half of a body": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"rules":[`)
			_ = http.NewResponseController(w).Flush()
		},
		"a body that ends": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "99")
			_, _ = io.WriteString(w, `{"rules":[`)
			panic(http.ErrAbortHandler)
		},
	} {
		at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begin(w)
			select {
			case <-r.Context().Done():
			case <-ended:
			}
		}))
		u, err := url.Parse(at.URL)
		if err != nil {
			t.Fatal(err)
		}
		o := ClientOptions(provider.Options{}, u)
		if o.Timeout > 10*time.Second || o.Total > 15*time.Second {
			t.Errorf("got timeouts of %v and %v in total, want at most 10s and 15s", o.Timeout, o.Total)
		}
		o.Timeout, o.Backoff = 50*time.Millisecond, time.Millisecond
		client := provider.NewClient(o)
		if _, err := NewAddress(client, u).Load(t.Context(), ""); kindOf(err) != fault.Upstream {
			t.Errorf("%s: got error %v, want an upstream fault", name, err)
		}
		client.Close()
		at.CloseClientConnections()
		at.Close()
	}
	close(ended)
}

func TestRefresh_RejectsRedirectsToPrivateAddresses(t *testing.T) {
	inner := httptest.NewServer(&server{text: flat("1"), etag: `"x"`})
	defer inner.Close()
	outer := httptest.NewServer(http.RedirectHandler(inner.URL, http.StatusFound))
	defer outer.Close()
	_, err := addressOf(t, outer.URL).Load(t.Context(), "")
	if kindOf(err) != fault.Upstream {
		t.Errorf("Load: got error %v, want an upstream fault", err)
	}
}

func TestRefresh_StopsWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	at := httptest.NewServer(&server{text: flat("1")})
	defer at.Close()
	if _, err := addressOf(t, at.URL).Load(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("Load: got error %v, want context.Canceled", err)
	}
}
