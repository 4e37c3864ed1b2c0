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

// collector is a Sink that stores quotes and rejects.
type collector struct {
	sink     providertest.Sink
	quotes   []provider.Quote
	rejects  []reject
	restarts int
	limit    int // number of quotes before it returns errFull; 0: no limit
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

// find returns the quote of an item on a market. It fails the test unless there is exactly
// one.
func (c *collector) find(t *testing.T, market, name, phase string) provider.Quote {
	t.Helper()
	var found []provider.Quote
	for _, q := range c.quotes {
		if q.Market == market && q.Name == name && q.Phase == phase {
			found = append(found, q)
		}
	}
	if len(found) != 1 {
		t.Fatalf("got %d quotes of %q %q on %s, want 1", len(found), name, phase, market)
	}
	return found[0]
}

// discard is a Sink that only counts.
type discard struct{ quotes, rejects int }

func (d *discard) Restart()                    { *d = discard{} }
func (d *discard) Quote(*provider.Quote) error { d.quotes++; return nil }
func (d *discard) Reject(_, _, _ string)       { d.rejects++ }

// compileOne parses a configuration with one list and returns the list.
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

// mustRead is like readText, but fails the test on an error.
func mustRead(t testing.TB, l *list, content string) *collector {
	t.Helper()
	c, err := readText(t, l, content)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantError checks the kind of an error and that its text contains the parts.
func wantError(t *testing.T, err error, kind provider.Kind, parts ...string) {
	t.Helper()
	var e *provider.Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want a *provider.Error", err)
	}
	if e.Kind != kind {
		t.Errorf("got error %v of kind %s, want kind %s", err, e.Kind, kind)
	}
	for _, part := range parts {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("got error %q, want it to contain %q", e, part)
		}
	}
}

// usd parses an amount in dollars.
func usd(t testing.TB, text string) money.Micro {
	t.Helper()
	m, err := money.Parse([]byte(text), 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// dataFile returns the path of a file with real data, in a directory next to the
// repository. If the file is missing, dataFile skips the test.
func dataFile(t testing.TB, name string) string {
	t.Helper()
	file := filepath.Join("..", "..", "..", "..", "shared", "data", name)
	if _, err := os.Stat(file); err != nil {
		t.Skipf("real data %s is not available", name)
	}
	return file
}

// fetchFile fetches one list from a file with a Provider. It replaces @ in the
// configuration with the file's path.
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
	result, err := s.Fetch(t.Context(), provider.Call{AppID: f.AppID, File: f.Key, Meter: meter}, sink)
	return result, meter, err
}

func microOf(v int64) money.Micro { return money.Micro(v) }

// only returns a Secret function with one secret.
func only(known, value string) func(string) (string, error) {
	return func(name string) (string, error) {
		if name != known {
			return "", errUnset
		}
		return value, nil
	}
}
