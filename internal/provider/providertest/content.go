package providertest

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"assay/internal/catalog"
	"assay/internal/provider"
	"assay/internal/randtest"
)

// bodies checks invalid responses of status 200.
func (r *suite) bodies(t *testing.T) {
	const asJSON = "application/json"
	for _, c := range []struct {
		fault Fault
		must  bool // an error is required; otherwise the absence of quotes is enough
	}{
		{HTML(), true},
		{Body("empty", asJSON, ""), true},
		{Body("blank", asJSON, " \n\n "), true},
		{Body("null", asJSON, "null"), !r.Lines},
		{Body("empty array", asJSON, "[]"), false},
		{Body("empty object", asJSON, "{}"), false},
		{Body("text", asJSON, `"ok"`), !r.Lines},
		{Body("number", asJSON, "42"), !r.Lines},
		{Body("failure as success", asJSON, `{"success":false,"error":"try later"}`), false},
		{Body("array of numbers", asJSON, "[1,2,3]"), false},
		{Body("array of arrays", asJSON, "[[[]],[{}]]"), false},
		{Body("array of nulls", asJSON, "[null,null]"), false},
		{Body("binary", "application/octet-stream", "\x00\x01\xff\xfe\x89PNG"), true},
		{Body("two documents", asJSON, "[][]"), !r.Lines},
		{Mutated("data after the document", func(b []byte) []byte { return append(bytes.Clone(b), "}<html>"...) }), !r.Lines},
	} {
		t.Run(c.fault.Name, func(t *testing.T) {
			r.server.Reset()
			r.server.Always(c.fault)
			src := r.provider(t, r.server.URL())
			res := r.fetch(t, src, r.Call)
			if c.must || res.err != nil {
				wantError(t, res, provider.KindProtocol)
			} else if len(res.sink.Quotes) > len(r.Want) {
				t.Errorf("got %d quotes, want at most %d", len(res.sink.Quotes), len(r.Want))
			}
			if got := len(r.server.Hits()); res.err != nil && got > requests(src, r.Call) {
				t.Errorf("got %d requests, want at most %d without retries", got, requests(src, r.Call))
			}
		})
	}
	t.Run("half of the document", r.halfDocument)
}

// halfDocument checks a complete response that contains half of a document.
func (r *suite) halfDocument(t *testing.T) {
	r.server.Reset()
	r.server.Always(Mutated("half", func(b []byte) []byte {
		half := b[:len(b)/2]
		if r.Lines {
			half = half[:bytes.LastIndexByte(half, '\n')+1]
		}
		return half
	}))
	res := r.fetch(t, r.provider(t, r.server.URL()), r.Call)
	if res.err != nil || !r.Lines {
		wantError(t, res, provider.KindProtocol)
		return
	}
	for _, q := range res.sink.Quotes {
		same := func(w provider.Quote) bool { return w.Market == q.Market && w.Name == q.Name && w.Ask == q.Ask }
		if !slices.ContainsFunc(r.Want, same) {
			t.Errorf("got quote %+v, want only quotes of the fixture", q)
		}
	}
}

// hostilePrices checks that an invalid amount never becomes a price.
func (r *suite) hostilePrices(t *testing.T) {
	const name = "AK-47 | Redline (Field-Tested)"
	for _, price := range []string{
		"NaN", "Infinity", "-Infinity", "1e400", "-1e400", "-5", "-0.01", `"-5"`, "0x10", "1_000", "+5", ".", "1.2.3", "--1",
		`"1,234.56"`, `"1.234,56"`, `"$12.34"`, `"12abc"`, `"NaN"`, `"1e999999999"`, `" "`, `"` + strings.Repeat("9", 4096) + `"`,
		"true", "{}", "[]", `{"value":5}`, "[5]", "null", `""`, "92233720368547758070000000000", "1e-400", "0", "0.0", "-0", `"١٢"`, `"５"`,
	} {
		t.Run(shorten(price), func(t *testing.T) {
			res := r.serveRows(t, name, Row{Name: name, Price: price})
			for _, q := range res.sink.Quotes {
				if res.err == nil && q.Name == name && !slices.Contains(r.Means, price) && (q.Ask > 0 || q.Sale > 0 || q.Bid > 0) {
					t.Errorf("price %q: got quote %+v, want none", shorten(price), q)
				}
			}
		})
	}
}

// duplicates checks repeated rows of an item. Rows with different prices are all rejected, in
// any order. Rows with the same price count once.
func (r *suite) duplicates(t *testing.T) {
	const contested, repeated = "AK-47 | Redline (Field-Tested)", "AWP | Asiimov (Field-Tested)"
	for name, c := range map[string]struct {
		price string // price of the last contested row
		rows  int    // number of contested rows, all rejected
	}{"two prices": {"", 2}, "three prices": {"9", 3}, "first price again": {"5", 3}} {
		t.Run(name, func(t *testing.T) {
			rows := []Row{{contested, "5"}, {repeated, "3"}, {"P250 | Sand Dune (Field-Tested)", "1"}, {contested, "7"}, {repeated, "3"}}
			if c.rows > 2 {
				rows = append(rows, Row{"Glock-18 | Fade (Factory New)", "2"}, Row{contested, c.price})
			}
			res := r.serveRows(t, contested, rows...)
			var counted int
			for _, q := range res.sink.Quotes {
				switch priced := q.Phase == "" && q.Ask+q.Sale > 0; {
				case priced && q.Name == contested:
					t.Errorf("got quote %+v of an item with different prices, want none", q)
				case priced && q.Name == repeated:
					counted++
				}
			}
			if r.Call.File == "" {
				return // a response by name may also reject names that were not requested
			}
			if res.err != nil {
				t.Fatal(res.err)
			}
			var conflicts int
			for _, j := range res.sink.Rejected {
				if j.Name == contested && j.Reason == provider.RejectConflict {
					conflicts++
				}
			}
			if counted != 1 || conflicts < c.rows {
				t.Errorf("got %d quotes of the repeated item, want 1; got %d rejects of the contested item, want %d: %+v", counted, conflicts, c.rows, res.sink.Rejected)
			}
		})
	}
}

// hostileNames checks that names are kept byte for byte or rejected.
func (r *suite) hostileNames(t *testing.T) {
	for _, name := range []string{
		"★ Karambit | Doppler (Factory New)", "StatTrak™ AK-47 | Redline", "M4A4 | 龍王 (Dragon King)", "a/b\\c", "50% off; 'DROP TABLE item'--",
		"trailing space ", " leading", "two\nlines", "tab\there", `"quoted", and a comma`, "e\u0301 and é", "<script>alert(1)</script>", "../../etc/passwd",
		"\u202eevil", "null", "NaN", "=1+1", strings.Repeat("n", 512),
		"", "\x00", "nul\x00within", "bad \xff\xfe UTF-8", "\xed\xa0\x80", strings.Repeat("n", 513), strings.Repeat("long", 16<<10),
	} {
		t.Run(shorten(name), func(t *testing.T) {
			res := r.serveRows(t, name, Row{Name: name, Price: "5"})
			if valid := catalog.CheckName(name) == nil; valid && (res.err != nil || len(res.sink.Quotes) == 0) {
				t.Errorf("valid name: got error %v, rejects %v, want a quote", res.err, res.sink.Rejected)
			}
			for _, q := range res.sink.Quotes {
				if res.err == nil && q.Name != name {
					t.Errorf("got name %.60q, want %.60q", q.Name, name)
				}
			}
		})
	}
}

// serveRows requests a name from a server that responds with rows.
func (r *suite) serveRows(t *testing.T, name string, rows ...Row) fetched {
	t.Helper()
	r.server.Reset()
	r.server.Always(Body("rows", "text/plain; charset=utf-8", string(r.Render(rows))))
	call := r.Call
	if call.File == "" {
		call.Names = []string{name}
	}
	res := r.fetch(t, r.provider(t, r.server.URL()), call)
	if res.err != nil {
		wantError(t, res, provider.KindProtocol)
	}
	return res
}

// mutations serves random mutations of the good body.
func (r *suite) mutations(t *testing.T) {
	count := randtest.Count(100, 5000)
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	src := r.provider(t, r.server.URL())
	for range count {
		r.server.Reset()
		part := rng.Uint64()
		r.server.Always(Mutated("mutated", func(b []byte) []byte {
			return mutate(rand.New(rand.NewPCG(seed, part)), bytes.Clone(b))
		}))
		if res := r.fetch(t, src, r.Call); res.err != nil {
			wantError(t, res, provider.KindProtocol)
		}
		if t.Failed() {
			return
		}
	}
}

// mutate changes b in a few random places.
func mutate(rng *rand.Rand, b []byte) []byte {
	const tokens = "\x00\"\"{}[],:;\n\r\t\\-.0123456789eE\xff"
	for range 1 + rng.IntN(4) {
		if len(b) == 0 {
			return b
		}
		from := rng.IntN(len(b))
		to := min(len(b), from+1+rng.IntN(20))
		switch rng.IntN(5) {
		case 0:
			b[from] = byte(rng.Uint32())
		case 1:
			b[from] = tokens[rng.IntN(len(tokens))]
		case 2:
			b = slices.Delete(b, from, to)
		case 3:
			b = slices.Insert(b, from, bytes.Clone(b[from:to])...)
		case 4:
			b = b[:from]
		}
	}
	return b
}

// shorten returns s as the name of a subtest.
func shorten(s string) string {
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	return strconv.QuoteToASCII(s)
}
