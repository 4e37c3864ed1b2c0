package pricelist

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/providertest"
)

// collector is a sink that keeps everything.
type collector struct {
	sink     providertest.Sink
	quotes   []provider.Quote
	rejects  []reject
	restarts int
	limit    int // quotes that it takes; 0: all
}

type reject struct{ market, name, reason string }

var zeroTime time.Time

var errFull = errors.New("sink is full")

func (c *collector) Restart() {
	c.sink.Restart()
	c.quotes, c.rejects, c.restarts = nil, nil, c.restarts+1
}

func (c *collector) Quote(q *provider.Quote) error {
	if c.limit > 0 && len(c.quotes) == c.limit {
		return errFull
	}
	known := len(c.sink.Rejected)
	_ = c.sink.Quote(q)
	c.quotes = c.sink.Quotes
	for _, r := range c.sink.Rejected[known:] {
		c.Reject(r.Market, r.Name, r.Reason)
	}
	return nil
}

func (c *collector) Reject(market, name, reason string) {
	c.rejects = append(c.rejects, reject{market, name, reason})
}

// find returns the one quote of an item on a market.
func (c *collector) find(t *testing.T, market, name, phase string) provider.Quote {
	t.Helper()
	var found []provider.Quote
	for _, q := range c.quotes {
		if q.Market == market && q.Name == name && q.Phase == phase {
			found = append(found, q)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d quotes of %q %q on %s, want 1", len(found), name, phase, market)
	}
	return found[0]
}

// discard is a sink that counts.
type discard struct{ quotes, rejects int }

func (d *discard) Restart()                    { *d = discard{} }
func (d *discard) Quote(*provider.Quote) error { d.quotes++; return nil }
func (d *discard) Reject(_, _, _ string)       { d.rejects++ }

// compileOne returns the one list of a configuration.
func compileOne(t testing.TB, listJSON string) *list {
	t.Helper()
	c, err := Parse([]byte(`{"lists":[`+listJSON+`]}`), Env{Dir: "/lists"})
	if err != nil {
		t.Fatal(err)
	}
	return c.lists[0]
}

// readText reads a list's content into a collector.
func readText(t testing.TB, l *list, content string) (*collector, error) {
	t.Helper()
	c := &collector{}
	_, err := read(context.Background(), l, strings.NewReader(content), zeroTime, c)
	return c, err
}

// mustRead is readText for content that must be taken.
func mustRead(t testing.TB, l *list, content string) *collector {
	t.Helper()
	c, err := readText(t, l, content)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantError checks the kind of an error and what its text says.
func wantError(t *testing.T, err error, kind provider.Kind, parts ...string) {
	t.Helper()
	var e *provider.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no *provider.Error", err)
	}
	if e.Kind != kind {
		t.Errorf("kind %s, want %s (%v)", e.Kind, kind, err)
	}
	for _, part := range parts {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("error %q does not say %q", e, part)
		}
	}
}

// usd is an amount in dollars.
func usd(t testing.TB, text string) money.Micro {
	t.Helper()
	m, err := money.Parse([]byte(text), 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// dataFile returns the path of a file of real data beside the project, and
// skips the test where there is none.
func dataFile(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	file := filepath.Join(dir, "..", "shared", "data", name)
	if _, err := os.Stat(file); err != nil {
		t.Skipf("real data %s is not beside the project", name)
	}
	return file
}

// fetchFile reads one configured list through a Provider.
func fetchFile(t testing.TB, listJSON, file string, sink provider.Sink) (provider.Result, *provider.Meter, error) {
	t.Helper()
	listJSON = strings.Replace(listJSON, "@", file, 1)
	c, err := Parse([]byte(`{"lists":[`+listJSON+`]}`), Env{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	f := s.Describe().Files[0]
	meter := &provider.Meter{}
	answer, err := s.Fetch(t.Context(), provider.Call{AppID: f.AppID, File: f.Key, Meter: meter}, sink)
	return answer, meter, err
}

func microOf(v int64) money.Micro { return money.Micro(v) }

// only knows one secret.
func only(known, value string) func(string) (string, error) {
	return func(name string) (string, error) {
		if name != known {
			return "", errUnset
		}
		return value, nil
	}
}
