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
	// options last and registers its cleanup with t.
	New func(t testing.TB, baseURL string, tweak func(*provider.Options)) provider.Provider
	// Good serves the fixture. It compresses a response only if the request allows it.
	Good http.Handler
	// Call fetches the fixture. Want holds the expected quotes in any order.
	Call provider.Call
	Want []provider.Quote
	// Render returns the body of a response to Call in the provider's format. The body
	// contains the given rows for one market, even if they are hostile.
	Render func(rows []Row) []byte
	// Lines is set if each line of a response is a complete document. Such a response can look
	// complete when it is truncated.
	Lines bool
	// Secret is the key that the provider sends, if any. It must not appear in errors or logs.
	Secret string
	// Wait is the wait after a refusal without Retry-After; default provider.DefaultWait.
	Wait time.Duration
	// Means lists the hostile prices that are valid in this provider's format.
	Means []string
}

// Row is one item of a response. Render writes Name unchanged, except for the quoting that the
// format needs. It writes Price unchanged: a JSON token such as "12.34", "\"1,234.56\"" or
// "NaN". In CSV it writes the text between the quotation marks, if any.
type Row struct {
	Name, Price string
}

// Limits that the suite sets.
const (
	maxBody  = 4 << 20
	attempts = 3
	patience = 20 * time.Second // timeout of each step
)

// suite is one run of the tests for a subject.
type suite struct {
	Subject
	server *Server
	logs   *lockedBuffer
}

// Run checks the rules for all providers against all faults of a server.
func Run(t *testing.T, s Subject) {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	t.Run("suite", func(t *testing.T) {
		r := &suite{Subject: s, server: NewServer(t, s.Good), logs: &lockedBuffer{}}
		t.Run("Description", r.description)
		t.Run("UnknownFile", r.unknownFile)
		t.Run("Good", r.goodResponse)
		t.Run("Concurrent", r.concurrent)
		t.Run("TemporaryFaults", r.temporaryFaults)
		t.Run("PermanentFaults", r.permanentFaults)
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

// fetched is the outcome of one fetch.
type fetched struct {
	sink   Sink
	result provider.Result
	err    error
	kind   provider.Kind
	meter  *provider.Meter
}

// fetch calls src and checks the rules for every call, good or bad.
func (r *suite) fetch(t testing.TB, src provider.Provider, call provider.Call) fetched {
	t.Helper()
	before := len(r.server.Hits())
	res := fetched{meter: new(provider.Meter)}
	call.Meter = res.meter
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begun := time.Now()
	res.result, res.err = src.Fetch(ctx, call, &res.sink)
	res.kind = provider.KindOf(res.err)
	if took := time.Since(begun); took >= patience {
		t.Errorf("got a fetch of %v, want less than %v", took, patience)
	}
	// A request that the client abandoned may arrive late.
	arrived, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	_ = r.server.Wait(arrived, before+int(res.meter.Requests())) // the counts below differ if this fails
	hits := r.server.Hits()
	if got := res.meter.Requests(); got != int64(len(hits)-before) {
		t.Errorf("got %d requests counted, want %d as the server received", got, len(hits)-before)
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
			t.Errorf("got a quote of market %q, want only markets of the description", q.Market)
		case catalog.CheckName(q.Name) != nil:
			t.Errorf("got a quote of name %.40q, want a valid name", q.Name)
		case catalog.CheckPhase(q.Phase) != nil:
			t.Errorf("got a quote of phase %.40q, want a valid phase", q.Phase)
		case q.Ask < 0 || q.Bid < 0 || q.Sale < 0:
			t.Errorf("got quote %+v, want no negative amount", q)
		case q.Listings < provider.Unknown || q.Sales < provider.Unknown:
			t.Errorf("got quote %+v, want no negative count", q)
		case q.Currency == "":
			t.Errorf("got quote %+v, want a currency", q)
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
		t.Errorf("got error %v, want one with the name of the provider", err)
	}
	if strings.Contains(err.Error(), "http://") && strings.Contains(err.Error(), "?") {
		t.Errorf("got error %v, want one without a URL", err)
	}
	r.checkSecret(t, err.Error())
}

func (r *suite) checkSecret(t testing.TB, text string) {
	t.Helper()
	if r.Subject.Secret != "" && strings.Contains(text, r.Subject.Secret) {
		t.Errorf("got the text %s, want it without the secret", text)
	}
}

// wantGood checks that a fetch returned the fixture exactly once.
func (r *suite) wantGood(t testing.TB, res fetched) {
	t.Helper()
	if res.err != nil {
		t.Fatalf("fetch: got error %v, want none", res.err)
	}
	sameTime := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
	if diff := cmp.Diff(sorted(r.Want), res.sink.Sorted(), sameTime); diff != "" {
		t.Errorf("quotes (-want +got):\n%s", diff)
	}
}

// wantError checks that a fetch failed with one of the kinds.
func wantError(t testing.TB, res fetched, kinds ...provider.Kind) {
	t.Helper()
	if res.err == nil {
		t.Errorf("got no error and %d quotes, want an error of kind %v", len(res.sink.Quotes), kinds)
		return
	}
	if !slices.Contains(kinds, res.kind) {
		t.Errorf("got error %q of kind %q, want one of %v", res.err, res.kind, kinds)
	}
}

// description checks the provider's description.
func (r *suite) description(t *testing.T) {
	d := r.provider(t, r.server.URL()).Describe()
	if d.Name == "" || d.Title == "" || len(d.Markets) == 0 {
		t.Errorf("got description %+v, want a name, a title and markets", d)
	}
	wantBatch := map[provider.Shape]bool{
		provider.Bulk: d.BatchSize == 0, provider.Batch: d.BatchSize > 0, provider.Single: d.BatchSize == 1,
	}
	if !wantBatch[d.Shape] {
		t.Errorf("shape %q: got batch size %d, want 0 for bulk, 1 for single, more for batch", d.Shape, d.BatchSize)
	}
	if (d.Shape == provider.Bulk) != (len(d.Files) > 0) {
		t.Errorf("shape %q: got %d files, want files only for shape %q", d.Shape, len(d.Files), provider.Bulk)
	}
	seen := make(map[string]bool)
	for _, m := range d.Markets {
		if m.Key == "" || m.Key != strings.ToLower(m.Key) || seen[m.Key] || len(m.AppIDs) == 0 {
			t.Errorf("got market %+v, want a unique lower-case key and a game", m)
		}
		seen[m.Key] = true
	}
	for _, f := range d.Files {
		for _, key := range f.Markets {
			if !seen[key] {
				t.Errorf("file %q: got market %q, want only markets of the description", f.Key, key)
			}
		}
	}
}

// unknownFile checks that a call for an unknown file fails without a request.
func (r *suite) unknownFile(t *testing.T) {
	if r.Call.File == "" {
		t.Skip("the provider has no files")
	}
	r.server.Reset()
	call := provider.Call{AppID: 10, File: "unknown"}
	wantError(t, r.fetch(t, r.provider(t, r.server.URL()), call), provider.KindProtocol)
	if got := len(r.server.Hits()); got != 0 {
		t.Errorf("got %d requests, want 0", got)
	}
}

func (r *suite) goodResponse(t *testing.T) {
	r.server.Reset()
	src := r.provider(t, r.server.URL())
	res := r.fetch(t, src, r.Call)
	r.wantGood(t, res)
	if got, want := len(r.server.Hits()), requests(src, r.Call); got != want {
		t.Errorf("got %d requests, want %d as described", got, want)
	}
	if res.sink.Restarts == 0 {
		t.Error("got no restart of the sink before the response was read, want one")
	}
	if res.meter.Bytes() == 0 {
		t.Error("got 0 counted bytes, want more")
	}
}

func (r *suite) concurrent(t *testing.T) {
	r.server.Reset()
	src := r.provider(t, r.server.URL())
	results := make([]fetched, 4)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			results[i].meter = new(provider.Meter)
			call := r.Call
			call.Meter = results[i].meter
			results[i].result, results[i].err = src.Fetch(t.Context(), call, &results[i].sink)
		})
	}
	wg.Wait()
	for _, res := range results {
		r.wantGood(t, res)
	}
}
