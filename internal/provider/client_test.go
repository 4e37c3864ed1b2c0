package provider

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// fakeNet serves requests from memory and records when they arrive. Tests can therefore use
// the clock of synctest.
type fakeNet struct {
	mu      sync.Mutex
	start   time.Time
	at      []time.Duration
	respond func(n int) (*http.Response, error) // n counts from 1
}

func (f *fakeNet) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.at = append(f.at, time.Since(f.start))
	n := len(f.at)
	f.mu.Unlock()
	resp, err := f.respond(n)
	if resp != nil {
		resp.Request = r
	}
	return resp, err
}

func (f *fakeNet) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.at)
}

func reply(status int, body string, fields ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(fields); i += 2 {
		h.Set(fields[i], fields[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// newFake returns a client that sends its requests to the returned fakeNet. The clock of the
// fake starts now.
func newFake(o Options, respond func(n int) (*http.Response, error)) (*Client, *fakeNet) {
	o.Provider = "fake"
	c := NewClient(o)
	f := &fakeNet{start: time.Now(), respond: respond}
	c.transport = f
	return c, f
}

var get = Request{URL: "http://fake.test/prices?key=1"}

// discard is a decode function that accepts any body.
func discard(r *Response) error {
	_, err := io.Copy(io.Discard, r.Body)
	return err
}

// kindOf returns the kind and the retry-after of an *Error.
func kindOf(t *testing.T, err error) (Kind, time.Duration) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want an *Error", err)
	}
	return e.Kind, e.RetryAfter
}

func TestDo_CallsAndRetriesShareTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(Options{Limit: Limit{Requests: 5, Per: time.Second}, Total: time.Hour, Attempts: 100}, func(n int) (*http.Response, error) {
			if n%3 == 0 {
				return reply(500, ""), nil
			}
			return reply(200, ""), nil
		})
		var wg sync.WaitGroup
		meter := new(Meter)
		for range 20 {
			wg.Go(func() {
				if err := c.Do(t.Context(), Request{URL: get.URL, Meter: meter}, discard); err != nil {
					t.Errorf("got error %v, want none", err)
				}
			})
		}
		wg.Wait()
		for i := 5; i < len(f.at); i++ {
			if gap := f.at[i] - f.at[i-5]; gap < time.Second {
				t.Errorf("got six requests within %v, want at least 1s", gap)
			}
		}
		if meter.Requests() != int64(f.count()) {
			t.Errorf("got %d requests counted, want %d", meter.Requests(), f.count())
		}
	})
}

func TestDo_ReportsExhaustedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(Options{Limit: Limit{Requests: 2, Per: time.Hour}}, func(int) (*http.Response, error) { return reply(200, ""), nil })
		for range 2 {
			if err := c.Do(t.Context(), get, discard); err != nil {
				t.Fatal(err)
			}
		}
		kind, wait := kindOf(t, c.Do(t.Context(), get, discard))
		if kind != KindBudget || wait < 59*time.Minute {
			t.Errorf("got kind %v, wait %v, want budget, at least 59m", kind, wait)
		}
		b := c.Snapshot().Budget
		if f.count() != 2 || b.Used != 2 || b.Left != 0 || time.Until(b.ResetsAt) != wait {
			t.Errorf("got %d requests and budget %+v, want 2 requests and an empty budget", f.count(), b)
		}
	})
}

func TestDo_RedirectCountsAsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(Options{Limit: Limit{Requests: 1, Per: 10 * time.Second}, Total: 15 * time.Second}, func(int) (*http.Response, error) {
			return reply(302, "", "Location", "/next"), nil
		})
		meter := new(Meter)
		kind, wait := kindOf(t, c.Do(t.Context(), Request{URL: get.URL, Meter: meter}, discard))
		if kind != KindBudget || wait == 0 || f.count() != 2 || meter.Requests() != 2 || f.at[1] < 10*time.Second {
			t.Errorf("got kind %v, wait %v, %d requests counted at %v; want %v, a wait, 2 requests at least 10s apart", kind, wait, meter.Requests(), f.at, KindBudget)
		}
		if got := len(c.Snapshot().Requests); got != 2 {
			t.Errorf("got %d requests recorded, want 2", got)
		}
	})
}

func TestDo_RejectsRedirectWithoutLocation(t *testing.T) {
	c, f := newFake(Options{}, func(int) (*http.Response, error) { return reply(301, ""), nil })
	if kind, _ := kindOf(t, c.Do(t.Context(), get, discard)); kind != KindProtocol || f.count() != 1 {
		t.Errorf("got kind %v after %d requests, want %v after 1", kind, f.count(), KindProtocol)
	}
}

func TestDo_BreakerStopsRequestsAndProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		healthy := false
		c, f := newFake(Options{}, func(int) (*http.Response, error) {
			if healthy {
				return reply(200, ""), nil
			}
			return nil, syscall.ECONNRESET
		})
		for range 2 {
			if kind, _ := kindOf(t, c.Do(t.Context(), get, discard)); kind != KindConnect {
				t.Errorf("got kind %v, want %v of the last attempt", kind, KindConnect)
			}
		}
		if f.count() != breakAfter {
			t.Errorf("got %d requests, want %d", f.count(), breakAfter)
		}
		if kind, wait := kindOf(t, c.Do(t.Context(), get, discard)); kind != KindBreaker || wait <= 0 || wait > DefaultPause {
			t.Errorf("got kind %v, wait %v, want breaker, at most its pause", kind, wait)
		}
		if s := c.Snapshot(); s.Breaker != BreakerOpen || s.BreakerUntil.IsZero() {
			t.Errorf("got breaker %v until %v, want %v", s.Breaker, s.BreakerUntil, BreakerOpen)
		}
		time.Sleep(DefaultPause)
		if kind, _ := kindOf(t, c.Do(t.Context(), get, discard)); kind != KindConnect || f.count() != breakAfter+1 {
			t.Errorf("probe: got kind %v after %d requests, want %v after %d", kind, f.count(), KindConnect, breakAfter+1)
		}
		healthy = true
		time.Sleep(2 * DefaultPause)
		if err := c.Do(t.Context(), get, discard); err != nil {
			t.Errorf("got error %v, want none", err)
		}
		if s := c.Snapshot(); s.Breaker != BreakerClosed {
			t.Errorf("got breaker %v, want %v", s.Breaker, BreakerClosed)
		}
	})
}

func TestDo_PanicInDecodeReleasesTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newFake(Options{}, func(int) (*http.Response, error) { return reply(200, ""), nil })
		for range breakAfter {
			c.breaker.report(c.clock(), false, failed)
		}
		time.Sleep(DefaultPause)
		func() {
			defer func() { _ = recover() }()
			_ = c.Do(t.Context(), get, func(*Response) error { panic("decoder bug") })
		}()
		if err := c.Do(t.Context(), get, discard); err != nil {
			t.Errorf("got error %v, want none", err)
		}
	})
}

func TestDo_CompleteResponsesKeepBreakerClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newFake(Options{}, func(n int) (*http.Response, error) {
			return reply([]int{401, 403, 404, 200}[n%4], "<html>"), nil
		})
		for range 40 {
			_ = c.Do(t.Context(), get, func(*Response) error { return Protocol("", "HTML instead of JSON") })
		}
		if s := c.Snapshot(); s.Breaker != BreakerClosed {
			t.Errorf("got breaker %v, want %v", s.Breaker, BreakerClosed)
		}
	})
}

func TestDo_HandlesDecodeErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errSink := errors.New("sink is full")
		for _, c := range []struct {
			name string
			err  error
			kind Kind
			sent int
		}{
			{"protocol error is final", Protocol("", "invalid"), KindProtocol, 1},
			{"server error is retried", &Error{Kind: KindServer}, KindServer, 4},
			{"rate limit blocks the host", &Error{Kind: KindRateLimited, RetryAfter: time.Hour}, KindRateLimited, 1},
			{"other error is final", errSink, "", 1},
		} {
			client, f := newFake(Options{}, func(int) (*http.Response, error) { return reply(200, ""), nil })
			err := client.Do(t.Context(), get, func(*Response) error { return c.err })
			if KindOf(err) != c.kind || f.count() != c.sent {
				t.Errorf("%s: got error %v after %d requests, want kind %q after %d", c.name, err, f.count(), c.kind, c.sent)
			}
			if c.kind == "" && !errors.Is(err, errSink) {
				t.Errorf("%s: got error %v, want %v", c.name, err, errSink)
			}
			if c.kind == KindRateLimited && client.BlockedUntil().IsZero() {
				t.Errorf("%s: got a host without a block, want a block", c.name)
			}
		}
	})
}

func TestDo_RejectsInvalidURLs(t *testing.T) {
	c, f := newFake(Options{}, func(int) (*http.Response, error) { return reply(200, ""), nil })
	for _, url := range []string{"", "prices", "/prices", "ftp://h/x", "file:///etc/passwd", "http://", "http://h:port/?key=s3cr3t", "http://h/%zz?key=s3cr3t", "\x7f://"} {
		err := c.Do(t.Context(), Request{URL: url}, discard)
		if err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: got error %v, want one without the key", url, err)
		}
	}
	if f.count() != 0 {
		t.Errorf("got %d requests, want 0", f.count())
	}
}

func TestSnapshot_ListsLast50RequestsNewestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newFake(Options{}, func(n int) (*http.Response, error) {
			time.Sleep(time.Duration(n) * time.Millisecond)
			if n%10 == 0 {
				return reply(404, "no such item"), nil
			}
			return reply(200, "12345"), nil
		})
		for range 100 {
			_ = c.Do(t.Context(), get, discard)
		}
		s := c.Snapshot()
		if len(s.Requests) != 50 || s.Requests[0].Status != 404 || s.Requests[0].Duration != 100*time.Millisecond || s.Requests[49].Duration != 51*time.Millisecond {
			t.Errorf("got %d recorded requests, first %+v, last %+v, want the newest 50, newest first", len(s.Requests), s.Requests[0], s.Requests[len(s.Requests)-1])
		}
		if got := s.Requests[1]; got.Path != "/prices?key" || got.Host != "fake.test" || got.Method != "GET" || got.Bytes != 5 || got.Attempt != 1 || got.Kind != "" {
			t.Errorf("got record %+v, want a masked path, 5 bytes and attempt 1", got)
		}
		if s.Statuses[200] != 90 || s.Statuses[404] != 10 {
			t.Errorf("got statuses %v, want 90 of 200 and 10 of 404", s.Statuses)
		}
		if want := (Latency{50 * time.Millisecond, 95 * time.Millisecond, 99 * time.Millisecond}); s.Latency != want {
			t.Errorf("got latency %+v, want %+v", s.Latency, want)
		}
		if !strings.Contains(s.LastError, "no such item") || !s.LastErrorAt.After(s.LastSuccess) {
			t.Errorf("got last error %q at %v, last success at %v; want a later error", s.LastError, s.LastErrorAt, s.LastSuccess)
		}
	})
}

func TestDo_CancelledRequestIsNotAFailure(t *testing.T) {
	for name, failure := range map[string]error{
		"context error":     context.Canceled,
		"broken connection": syscall.ECONNRESET,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cancelCall := func() {}
				c, _ := newFake(Options{Attempts: 1}, func(int) (*http.Response, error) {
					cancelCall()
					return nil, failure
				})
				for range breakAfter + 1 {
					ctx, cancel := context.WithCancel(t.Context())
					cancelCall = cancel
					kind, _ := kindOf(t, c.Do(ctx, get, discard))
					cancel()
					if kind != KindCancelled {
						t.Errorf("got kind %s, want %s", kind, KindCancelled)
					}
				}
				s := c.Snapshot()
				if s.Breaker != BreakerClosed || s.LastError != "" || !s.LastErrorAt.IsZero() {
					t.Errorf("got breaker %s, last error %q at %v; want closed, no error", s.Breaker, s.LastError, s.LastErrorAt)
				}
				if len(s.Requests) != breakAfter+1 || s.Requests[0].Kind != KindCancelled {
					t.Errorf("got requests %+v, want %d cancelled ones", s.Requests, breakAfter+1)
				}
			})
		})
	}
}
