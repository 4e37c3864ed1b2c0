package providertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/provider"
)

// temporaryFaults checks that a call succeeds despite a single fault. The client retries the
// request, and every row counts once.
func (r *suite) temporaryFaults(t *testing.T) {
	for _, f := range []Fault{
		Reset(), CutBody(), CutChunks(), CutGzip(),
		Status(http.StatusInternalServerError), Status(http.StatusBadGateway), Status(http.StatusServiceUnavailable),
		Status(http.StatusTooManyRequests, "Retry-After", "0"), RedirectLoop(),
	} {
		t.Run(f.Name, func(t *testing.T) {
			src := r.provider(t, r.server.URL())
			r.server.Reset()
			r.wantGood(t, r.fetch(t, src, r.Call))
			usual := len(r.server.Hits())

			r.server.Reset()
			r.server.Next(f)
			r.wantGood(t, r.fetch(t, src, r.Call))
			if got := len(r.server.Hits()); got != usual+1 {
				t.Errorf("got %d requests, want %d", got, usual+1)
			}
		})
	}
}

// permanentFaults checks that a permanent fault causes the right error after a limited number
// of requests.
func (r *suite) permanentFaults(t *testing.T) {
	quick := func(o *provider.Options) { o.Timeout = 200 * time.Millisecond }
	defer func(usual *Server) { r.server = usual }(r.server)
	for _, c := range []struct {
		fault Fault
		kind  provider.Kind
		hits  int
		tweak func(*provider.Options)
	}{
		{Reset(), provider.KindConnect, attempts, nil},
		{Garbage(), provider.KindProtocol, 1, nil},
		{CutBody(), provider.KindCut, attempts, nil},
		{CutChunks(), provider.KindCut, attempts, nil},
		{CutGzip(), provider.KindCut, attempts, nil},
		{Silent(), provider.KindTimeout, attempts, quick},
		{SilentBody(), provider.KindTimeout, attempts, quick},
		{Drip(20 * time.Millisecond), provider.KindTimeout, attempts, quick},
		{Status(http.StatusInternalServerError), provider.KindServer, attempts, nil},
		{Status(http.StatusServiceUnavailable), provider.KindServer, attempts, nil},
		{Status(http.StatusUnauthorized), provider.KindAuth, 1, nil},
		{Status(http.StatusForbidden), provider.KindAuth, 1, nil},
		{Status(http.StatusBadRequest), provider.KindStatus, 1, nil},
		{Status(http.StatusNoContent), provider.KindStatus, 1, nil},
		{HugeHeader(), provider.KindProtocol, 1, nil},
		{Encoding("gzip"), provider.KindProtocol, 1, nil},
		{Encoding("compress"), provider.KindProtocol, 1, nil},
	} {
		t.Run(c.fault.Name, func(t *testing.T) {
			// Use a new server, because an abandoned request may still arrive at the old one.
			r.server = NewServer(t, r.Good)
			r.server.Always(c.fault)
			tweak := c.tweak
			if tweak == nil {
				tweak = func(*provider.Options) {}
			}
			wantError(t, r.fetch(t, r.provider(t, r.server.URL(), tweak), r.Call), c.kind)
			if got := len(r.server.Hits()); got != c.hits {
				t.Errorf("got %d requests, want %d", got, c.hits)
			}
		})
	}
}

// retryAfter checks every form of a long Retry-After. The call fails immediately and returns
// the wait, and the next call sends no request.
func (r *suite) retryAfter(t *testing.T) {
	defaultWait := cmp.Or(r.Wait, provider.DefaultWait)
	date := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for _, c := range []struct {
		name, value string
		from, to    time.Duration
	}{
		{"seconds", "120", 2 * time.Minute, 2 * time.Minute},
		{"date", date(5 * time.Minute), 4 * time.Minute, 5*time.Minute + time.Second},
		{"missing", "", defaultWait, defaultWait},
		{"negative", "-1", defaultWait, defaultWait},
		{"text", "soon", defaultWait, defaultWait},
		{"too long", "99999999", provider.MaxWait, provider.MaxWait},
		{"overflow", "99999999999999999999999", provider.MaxWait, provider.MaxWait},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.server.Reset()
			r.server.Always(Status(http.StatusTooManyRequests, "Retry-After", c.value))
			src := r.provider(t, r.server.URL())
			res := r.fetch(t, src, r.Call)
			wantError(t, res, provider.KindRateLimited)
			var e *provider.Error
			if errors.As(res.err, &e) && (e.RetryAfter < c.from || e.RetryAfter > c.to || !e.Deferred()) {
				t.Errorf("got retry-after %v (deferred %v), want %v to %v", e.RetryAfter, e.Deferred(), c.from, c.to)
			}
			wantError(t, r.fetch(t, src, r.Call), provider.KindRateLimited)
			if got := len(r.server.Hits()); got != 1 {
				t.Errorf("got %d requests, want 1", got)
			}
		})
	}
}

// redirects checks that redirects cannot reach the operator's network and that redirect loops
// end.
func (r *suite) redirects(t *testing.T) {
	var reached atomic.Int64
	inner := listenOn(t, "127.0.0.2:0", &reached)
	for _, target := range []string{
		inner, "http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "http://[::1]:1/", "http://[::ffff:127.0.0.1]:1/",
		"http://100.64.0.1/", "http://0.0.0.0:1/", "file:///etc/passwd", "gopher://127.0.0.1:1/",
	} {
		t.Run(target, func(t *testing.T) {
			r.server.Reset()
			r.server.Always(Redirect(target))
			res := fetched{meter: new(provider.Meter)}
			call := r.Call
			call.Meter = res.meter
			_, res.err = r.provider(t, r.server.URL()).Fetch(t.Context(), call, &res.sink)
			res.kind = provider.KindOf(res.err)
			wantError(t, res, provider.KindBlocked)
		})
	}
	if reached.Load() != 0 {
		t.Errorf("got %d requests to the guarded address, want 0", reached.Load())
	}
	t.Run("loop", func(t *testing.T) {
		r.server.Reset()
		r.server.Always(RedirectLoop())
		wantError(t, r.fetch(t, r.provider(t, r.server.URL()), r.Call), provider.KindProtocol)
		if got := len(r.server.Hits()); got != 4 {
			t.Errorf("got %d requests, want 4", got)
		}
	})
}

// listenOn starts a server on a loopback address that is not allowed, if the system has one.
// The server counts its requests.
func listenOn(t *testing.T, address string, count *atomic.Int64) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Logf("listen on a second loopback address: %v", err)
		return "http://127.0.0.2:1/"
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { count.Add(1) }))
	_ = server.Listener.Close() // the default listener is not needed
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	return server.URL + "/"
}

// bombs checks that no response takes too much memory.
func (r *suite) bombs(t *testing.T) {
	const maxAllocated = 48 << 20
	for _, f := range []Fault{GzipBomb(1 << 30), Endless(), Deep(100_000), Deep(1_000_000)} {
		t.Run(f.Name, func(t *testing.T) {
			r.server.Reset()
			r.server.Always(f)
			src := r.provider(t, r.server.URL())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			res := r.fetch(t, src, r.Call)
			runtime.ReadMemStats(&after)
			wantError(t, res, provider.KindTooLarge, provider.KindProtocol)
			if got := after.TotalAlloc - before.TotalAlloc; got > maxAllocated {
				t.Errorf("got %d MiB allocated, want at most %d", got>>20, maxAllocated>>20)
			}
		})
	}
}

// refused checks a port without a listener.
func (r *suite) refused(t *testing.T) {
	res := fetched{meter: new(provider.Meter)}
	call := r.Call
	call.Meter = res.meter
	_, res.err = r.provider(t, Refused(t)).Fetch(t.Context(), call, &res.sink)
	res.kind = provider.KindOf(res.err)
	wantError(t, res, provider.KindConnect)
	if got := res.meter.Requests(); got != attempts {
		t.Errorf("got %d requests counted, want %d", got, attempts)
	}
}

// cancelled checks at several steps that a call ends soon after its context.
func (r *suite) cancelled(t *testing.T) {
	for _, f := range []Fault{Silent(), SilentBody(), Drip(20 * time.Millisecond), Status(http.StatusInternalServerError)} {
		t.Run(f.Name, func(t *testing.T) {
			r.server.Reset()
			r.server.Always(f)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			slow := func(o *provider.Options) {
				o.Timeout, o.Total, o.Backoff, o.Attempts = time.Minute, time.Minute, 20*time.Second, 100
			}
			src := r.provider(t, r.server.URL(), slow)
			done := make(chan error, 1)
			go func() {
				_, err := src.Fetch(ctx, r.Call, new(Sink))
				done <- err
			}()
			if err := r.server.Wait(t.Context(), 1); err != nil {
				t.Fatalf("wait for the request: %v", err)
			}
			cancel()
			select {
			case err := <-done:
				if provider.KindOf(err) != provider.KindCancelled || !errors.Is(err, context.Canceled) {
					t.Errorf("got error %v, want context.Canceled of kind %q", err, provider.KindCancelled)
				}
			case <-time.After(patience):
				t.Fatalf("got no return of the fetch within %v after its context ended, want one", patience)
			}
		})
	}
}

// sinkRefuses checks an error of the sink. The request is not retried, and the error does not
// count as a failure of the provider.
func (r *suite) sinkRefuses(t *testing.T) {
	r.server.Reset()
	errSink := errors.New("too many items")
	sink := Sink{Err: errSink}
	src := r.provider(t, r.server.URL())
	_, err := src.Fetch(t.Context(), r.Call, &sink)
	if !errors.Is(err, errSink) {
		t.Errorf("got error %v, want %v", err, errSink)
	}
	if got, want := len(r.server.Hits()), requests(src, r.Call); got != want {
		t.Errorf("got %d requests, want %d", got, want)
	}
}

// secret checks that the provider's key never appears, even if the server quotes it.
func (r *suite) secret(t *testing.T) {
	if r.Subject.Secret == "" {
		t.Skip("the provider sends no key")
	}
	for _, f := range []Fault{Echo(http.StatusUnauthorized), Echo(http.StatusInternalServerError), Echo(http.StatusOK)} {
		r.server.Reset()
		r.server.Always(f)
		if res := r.fetch(t, r.provider(t, r.server.URL()), r.Call); res.err == nil {
			t.Errorf("%s: got no error, want one", f.Name)
		}
	}
	var arrived bytes.Buffer
	for _, hit := range r.server.Hits() {
		_ = hit.Header.Write(&arrived)
		arrived.WriteString(hit.Path)
	}
	if !bytes.Contains(arrived.Bytes(), []byte(r.Subject.Secret)) {
		t.Error("got no request with the key of the provider, want one")
	}
	r.checkSecret(t, r.logs.String())
}
