package providertest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"assay/internal/catalog"
	"assay/internal/provider"
)

// Subject is a provider under test, with a small fixture.
type Subject struct {
	// New returns a provider for the server at baseURL. It applies tweak to the client's
	// options last and registers any cleanup with t.
	New func(t testing.TB, baseURL string, tweak func(*provider.Options)) provider.Provider
	// Good serves the fixture. It compresses only on request.
	Good http.Handler
	// Call requests the fixture; Want holds the expected quotes, in any order.
	Call provider.Call
	Want []provider.Quote
	// Render returns the body of a response to Call with these rows for one market, in the
	// provider's format, even for hostile rows.
	Render func(rows []Row) []byte
	// Lines is set if each line of a response is complete by itself, so that a truncated
	// response can look complete.
	Lines bool
	// Secret is the key that the provider sends, if any: it must not be shown.
	Secret string
	// Wait is the wait after a refusal without a Retry-After;
	// default provider.DefaultWait.
	Wait time.Duration
	// Means lists the hostile prices that are valid in this provider's format.
	Means []string
}

// Row is one item of a response. Render puts Name in unchanged, except for the quoting of
// the format. It puts Price in as it is: a JSON token ("12.34", "\"1,234.56\"", "NaN"), or
// in CSV the text between its quotation marks, if any.
type Row struct {
	Name, Price string
}

// Limits that the suite sets.
const (
	maxBody  = 4 << 20
	attempts = 3
	patience = 20 * time.Second // timeout of every step
)

// suite is one run over a subject.
type suite struct {
	Subject
	server *Server
	logs   *lockedBuffer
}

// Run checks the rules of every provider against all faults of a server.
func Run(t *testing.T, s Subject) {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	t.Run("suite", func(t *testing.T) {
		r := &suite{Subject: s, server: NewServer(t, s.Good), logs: &lockedBuffer{}}
		t.Run("Description", r.description)
		t.Run("Good", r.goodAnswer)
		t.Run("Concurrent", r.concurrent)
		t.Run("Passing", r.passing)
		t.Run("Lasting", r.lasting)
		t.Run("RetryAfter", r.retryAfter)
		t.Run("Redirects", r.redirects)
		t.Run("Bombs", r.bombs)
		t.Run("Refused", r.refused)
		t.Run("Cancelled", r.cancelled)
		t.Run("SinkRefuses", r.sinkRefuses)
		t.Run("Bodies", r.bodies)
		t.Run("HostilePrices", r.hostilePrices)
		t.Run("HostileNames", r.hostileNames)
		t.Run("Duplicates", r.duplicates)
		t.Run("Mutations", r.mutations)
		t.Run("Secret", r.secret)
	})
	goleak.VerifyNone(t, leaks)
}

// provider returns a new provider for the suite's server.
func (r *suite) provider(t testing.TB, baseURL string, tweaks ...func(*provider.Options)) provider.Provider {
	return r.New(t, baseURL, func(o *provider.Options) {
		o.AllowHosts = []string{strings.TrimPrefix(baseURL, "http://")}
		o.MaxBody = maxBody
		o.Attempts = attempts
		o.Timeout = 5 * time.Second
		o.Total = 10 * time.Second
		o.Backoff = time.Millisecond
		o.Limit = provider.Limit{}
		o.Logger = r.logs.logger()
		for _, tweak := range tweaks {
			tweak(o)
		}
	})
}

// requests returns how many requests the suite's call takes.
func (r *suite) requests(src provider.Provider) int {
	for _, f := range src.Describe().Files {
		if f.Key == r.Call.File {
			return max(f.Requests, 1)
		}
	}
	return 1
}

// result is the outcome of one fetch.
type result struct {
	sink   Sink
	answer provider.Result
	err    error
	kind   provider.Kind
	meter  *provider.Meter
}

// fetch calls src and checks the rules for every call, good or bad.
func (r *suite) fetch(t testing.TB, src provider.Provider, call provider.Call) result {
	t.Helper()
	before := len(r.server.Hits())
	res := result{meter: new(provider.Meter)}
	call.Meter = res.meter
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begun := time.Now()
	res.answer, res.err = src.Fetch(ctx, call, &res.sink)
	res.kind = provider.KindOf(res.err)
	if took := time.Since(begun); took >= patience {
		t.Errorf("the call hung: %v", took)
	}
	// An abandoned request may not have arrived yet.
	arrived, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	_ = r.server.Wait(arrived, before+int(res.meter.Requests())) // then the numbers differ
	hits := r.server.Hits()
	if got := res.meter.Requests(); got != int64(len(hits)-before) {
		t.Errorf("counted %d requests, the server got %d", got, len(hits)-before)
	}
	r.checkQuotes(t, src, res.sink.Quotes)
	r.checkError(t, res.err)
	return res
}

// checkQuotes checks the rules for every quote.
func (r *suite) checkQuotes(t testing.TB, src provider.Provider, quotes []provider.Quote) {
	t.Helper()
	d := src.Describe()
	for _, q := range quotes {
		known := slices.ContainsFunc(d.Markets, func(m provider.Market) bool { return m.Key == q.Market })
		switch {
		case !known:
			t.Errorf("quote of market %q, which the provider does not offer", q.Market)
		case catalog.CheckName(q.Name) != nil:
			t.Errorf("quote of an invalid name: %.40q", q.Name)
		case catalog.CheckPhase(q.Phase) != nil:
			t.Errorf("quote of an invalid phase: %.40q", q.Phase)
		case q.Ask < 0 || q.Bid < 0 || q.Sale < 0:
			t.Errorf("negative amount: %+v", q)
		case q.Listings < provider.Unknown || q.Sales < provider.Unknown:
			t.Errorf("negative count: %+v", q)
		case q.Currency == "":
			t.Errorf("quote without a currency: %+v", q)
		}
	}
}

// checkError checks the rules for every error.
func (r *suite) checkError(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var e *provider.Error
	if errors.As(err, &e) && e.Provider == "" {
		t.Errorf("the error does not name its provider: %v", err)
	}
	if strings.Contains(err.Error(), "http://") && strings.Contains(err.Error(), "?") {
		t.Errorf("the error quotes a URL: %v", err)
	}
	r.checkSecret(t, err.Error())
}

func (r *suite) checkSecret(t testing.TB, text string) {
	t.Helper()
	if r.Subject.Secret != "" && strings.Contains(text, r.Subject.Secret) {
		t.Errorf("the secret is shown: %s", text)
	}
}

// mustBeGood checks that a call returned the whole fixture once.
func (r *suite) mustBeGood(t testing.TB, res result) {
	t.Helper()
	if res.err != nil {
		t.Fatalf("fetch: %v", res.err)
	}
	sameTime := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
	if diff := cmp.Diff(sorted(r.Want), res.sink.Sorted(), sameTime); diff != "" {
		t.Errorf("quotes (-want +got):\n%s", diff)
	}
}

// mustFail checks that a call failed with one of the kinds.
func mustFail(t testing.TB, res result, kinds ...provider.Kind) {
	t.Helper()
	if res.err == nil {
		t.Errorf("no error and %d quotes, want a failure of kind %v", len(res.sink.Quotes), kinds)
		return
	}
	if !slices.Contains(kinds, res.kind) {
		t.Errorf("error %q of kind %q, want one of %v", res.err, res.kind, kinds)
	}
}

// description checks the provider's description.
func (r *suite) description(t *testing.T) {
	d := r.provider(t, r.server.URL()).Describe()
	if d.Name == "" || d.Title == "" || len(d.Markets) == 0 {
		t.Errorf("name, title and markets are required: %+v", d)
	}
	wantBatch := map[provider.Shape]bool{
		provider.Bulk: d.BatchSize == 0, provider.Batch: d.BatchSize > 0, provider.Single: d.BatchSize == 1,
	}
	if !wantBatch[d.Shape] {
		t.Errorf("shape %q with a batch size of %d", d.Shape, d.BatchSize)
	}
	if (d.Shape == provider.Bulk) != (len(d.Files) > 0) {
		t.Errorf("shape %q with %d files", d.Shape, len(d.Files))
	}
	seen := make(map[string]bool)
	for _, m := range d.Markets {
		if m.Key == "" || m.Key != strings.ToLower(m.Key) || seen[m.Key] || len(m.AppIDs) == 0 {
			t.Errorf("market keys are distinct, lower case and have a game: %+v", m)
		}
		seen[m.Key] = true
	}
	for _, f := range d.Files {
		for _, key := range f.Markets {
			if !seen[key] {
				t.Errorf("file %q holds market %q, which is not described", f.Key, key)
			}
		}
	}
}

func (r *suite) goodAnswer(t *testing.T) {
	r.server.Reset()
	src := r.provider(t, r.server.URL())
	res := r.fetch(t, src, r.Call)
	r.mustBeGood(t, res)
	if got, want := len(r.server.Hits()), r.requests(src); got != want {
		t.Errorf("%d requests, want %d as described", got, want)
	}
	if res.sink.Restarts == 0 {
		t.Error("the sink was not restarted at the beginning of an attempt")
	}
	if res.meter.Bytes() == 0 {
		t.Error("no bytes were counted")
	}
}

func (r *suite) concurrent(t *testing.T) {
	r.server.Reset()
	src := r.provider(t, r.server.URL())
	results := make([]result, 4)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			results[i].meter = new(provider.Meter)
			call := r.Call
			call.Meter = results[i].meter
			results[i].answer, results[i].err = src.Fetch(t.Context(), call, &results[i].sink)
		})
	}
	wg.Wait()
	for _, res := range results {
		r.mustBeGood(t, res)
	}
}
