package e2e

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"assay/internal/provider"
	"assay/internal/provider/providertest"
	"assay/internal/randtest"
)

// faulted is a fault with the possible kinds of its error.
type faulted struct {
	fault providertest.Fault
	kinds []provider.Kind // empty: the fault may cause no error
}

// everyFault returns all tested faults of a provider.
func everyFault(shape string) []faulted {
	one := func(f providertest.Fault, kinds ...provider.Kind) faulted { return faulted{f, kinds} }
	const asJSON = "application/json"
	status := providertest.Status
	out := []faulted{
		one(providertest.Reset(), provider.KindConnect), one(providertest.Garbage(), provider.KindProtocol),
		one(providertest.CutBody(), provider.KindCut), one(providertest.CutChunks(), provider.KindCut), one(providertest.CutGzip(), provider.KindCut),
		one(providertest.Drip(20*time.Millisecond), provider.KindTimeout), one(providertest.Silent(), provider.KindTimeout), one(providertest.SilentBody(), provider.KindTimeout),
		one(status(500), provider.KindServer), one(status(502), provider.KindServer), one(status(503), provider.KindServer),
		one(status(401), provider.KindAuth), one(status(403), provider.KindAuth), one(status(404), provider.KindStatus), one(status(204), provider.KindStatus),
		one(providertest.HTML(), provider.KindProtocol), one(providertest.HugeHeader(), provider.KindProtocol),
		one(providertest.Body("empty", asJSON, ""), provider.KindProtocol), one(providertest.Body("null", asJSON, "null"), provider.KindProtocol),
		one(providertest.Body("empty array", asJSON, "[]")), one(providertest.Body("empty object", asJSON, "{}")),
		one(providertest.Body("wrong types", asJSON, `{"items":[1,2,{"name":3,"ask":{}}],"market":[]}`)),
		one(providertest.GzipBomb(1<<30), provider.KindTooLarge, provider.KindProtocol), one(providertest.Endless(), provider.KindTooLarge, provider.KindProtocol),
		one(providertest.Deep(100_000), provider.KindTooLarge, provider.KindProtocol), one(providertest.Encoding("gzip"), provider.KindProtocol),
		one(providertest.Redirect("http://169.254.169.254/latest/meta-data/"), provider.KindBlocked), one(providertest.Redirect("http://10.0.0.1/"), provider.KindBlocked),
		one(providertest.RedirectLoop(), provider.KindProtocol),
	}
	for _, price := range []string{"NaN", "1e400", "-5", `"1,234.56"`, `"1.234,56"`, `"12abc"`, "Infinity", `"` + strings.Repeat("9", 4096) + `"`} {
		out = append(out, one(repriced(price)))
	}
	for _, name := range [][2]string{{"invalid UTF-8", "bad \xff\xfe name"}, {"NUL", "nul\\u0000within"}, {"64 KiB", strings.Repeat("long", 16<<10)}, {"empty", ""}} {
		out = append(out, one(renamed(name[0], name[1])))
	}
	if shape == "bulk" || shape == "list" {
		// Validation detects cents instead of dollars only in a response of at least 100 names.
		// Tests of internal/refresh cover this.
		out = append(out, one(providertest.Mutated("a third of the catalog", third), provider.KindQuarantine))
	}
	return out
}

var (
	asks  = regexp.MustCompile(`"ask":[^,}]*`)
	names = regexp.MustCompile(`"name":"([^"\\]|\\.)*"`)
	cells = regexp.MustCompile(`,(\d+\.\d\d)\n`)
)

// repriced replaces every price with the given text.
func repriced(price string) providertest.Fault {
	return providertest.Mutated("price "+price[:min(len(price), 20)], func(b []byte) []byte {
		if bytes.HasPrefix(b, []byte("name,")) {
			cell := strings.Trim(price, `"`)
			return cells.ReplaceAll(b, []byte(`,"`+cell+"\"\n"))
		}
		return asks.ReplaceAll(b, []byte(`"ask":`+price))
	})
}

// renamed replaces every name.
func renamed(what, name string) providertest.Fault {
	return providertest.Mutated("name: "+what, func(b []byte) []byte {
		if bytes.HasPrefix(b, []byte("name,")) {
			return cells.ReplaceAll(append([]byte("name,price\n"), cells.Find(b)...), []byte(name+",$1\n"))
		}
		return names.ReplaceAll(b, []byte(`"name":"`+name+`"`))
	})
}

// third keeps the first third of the rows of a bulk response.
func third(b []byte) []byte {
	if bytes.HasPrefix(b, []byte("name,")) {
		lines := bytes.SplitAfter(b, []byte("\n"))
		return bytes.Join(lines[:len(lines)/3], nil)
	}
	rows := bytes.Split(b, []byte(`},{"`))
	return append(bytes.Join(rows[:len(rows)/3], []byte(`},{"`)), "}]}"...)
}

// TestProvider_FaultsChangeNoPrices tests every fault, or some of them in short mode.
func TestProvider_FaultsChangeNoPrices(t *testing.T) {
	t.Parallel()
	onBoth(t, testFaults)
}

func testFaults(t *testing.T, on engine) {
	r := randtest.New(t)
	count := map[string]int{"bulk": 20, "batch": 6, "single": 6, "list": 10}
	if on == onPostgres {
		count = map[string]int{"bulk": 4, "batch": 3, "single": 2, "list": 3}
	}
	for _, shape := range []string{"bulk", "batch", "single", "list"} {
		faults := everyFault(shape)
		if !randtest.Long() {
			r.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
			faults = faults[:count[shape]]
		}
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			var p *pair
			if shape == "list" {
				p = newListPair(t, on)
			} else {
				p = newSimPair(t, on, shape)
			}
			for _, f := range faults {
				t.Run(f.fault.Name, func(t *testing.T) {
					q := *p
					q.t, q.s.t = t, t
					q.fails(f.fault, f.kinds...)
				})
			}
			p.s.t = t
			p.recovers()
		})
	}
}

// aDate is replaced with a date soon after the response.
const aDate = "a date"

// TestProvider_RetryAfterIsRespected sends every form of a retry-after. It checks the time of
// the next request in the server's log.
func TestProvider_RetryAfterIsRespected(t *testing.T) {
	t.Parallel()
	onBoth(t, testWaits)
}

func testWaits(t *testing.T, on engine) {
	const short = 1100 * time.Millisecond // the longest wait that a test can wait for
	for _, c := range []struct {
		name, value string
		wait        time.Duration // minimum wait; if it is longer than short, no request may follow
	}{
		{"0", "0", 0},
		{"a second", "1", time.Second},
		{"a date", aDate, 0},
		{"a date in the past", "Mon, 02 Jan 2006 15:04:05 GMT", 0},
		{"missing", "", provider.DefaultWait},
		{"negative", "-1", provider.DefaultWait},
		{"rubbish", "soon", provider.DefaultWait},
		{"99999999", "99999999", provider.MaxWait},
		{"more digits", "99999999999999999999999", provider.MaxWait},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newSimPair(t, on, "batch")
			l := p.start()
			p.faulty.Reset()
			var notBefore time.Time
			if c.value == aDate {
				notBefore = time.Now().Add(2 * time.Second).Truncate(time.Second)
				c.value = notBefore.UTC().Format(http.TimeFormat)
			}
			p.faulty.Next(providertest.Status(http.StatusTooManyRequests, "Retry-After", c.value))
			p.tick()
			p.s.refresh()
			if err := p.faulty.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if c.wait > short {
				time.Sleep(short)
				p.end(l)
				l = p.start() // the new process must know the retry-after
				_, _ = p.s.tryRefresh()
				time.Sleep(short)
				if got := len(p.faulty.Hits()); got != 1 {
					t.Errorf("got %d requests within the Retry-After of %v, want 1", got, c.wait)
				}
			} else {
				p.s.awaitEnd()
				hits := p.faulty.Hits()
				if len(hits) < 2 {
					t.Fatalf("got %d requests, want another one after the wait", len(hits))
				}
				if got := hits[1].Time.Sub(hits[0].Time); got < c.wait || hits[1].Time.Before(notBefore) {
					t.Errorf("got the next request after %v, want at least %v, and not before %v", got, c.wait, notBefore)
				}
			}
			p.end(l)
		})
	}
}
