package pricelist

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"assay/internal/provider"
)

func TestRead_DetectsAndChecksCompression(t *testing.T) {
	plain := []byte(`{"A":1,"B":2}`)
	gzipData, zstdData := gzipCompressed(t, plain), zstdCompressed(t, plain)
	for _, c := range []struct {
		name, compression string
		content           []byte
		want              string // text of the error; "": no error
	}{
		{"auto plain", "auto", plain, ""},
		{"auto gzip", "auto", gzipData, ""},
		{"auto zstd", "auto", zstdData, ""},
		{"gzip members", "gzip", append(gzipCompressed(t, plain[:5]), gzipCompressed(t, plain[5:])...), ""},
		{"zstd", "zstd", zstdData, ""},
		{"gzip for none", "none", gzipData, "compression is set to none, but the list uses gzip"},
		{"plain for gzip", "gzip", plain, "compression is set to gzip, but the list uses none"},
		{"zstd for gzip", "gzip", zstdData, "compression is set to gzip, but the list uses zstd"},
		{"truncated gzip", "auto", gzipData[:len(gzipData)-9], "is truncated"},
		{"truncated gzip header", "auto", gzipData[:5], "is truncated"},
		{"truncated zstd", "auto", zstdData[:len(zstdData)-4], "is truncated"},
		{"corrupt gzip", "auto", slices.Concat(gzipData[:len(gzipData)-6], []byte{1, 2, 3, 4, 5, 6}), "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := compileOne(t, strings.Replace(objectList, `"appId"`, `"compression":"`+c.compression+`","appId"`, 1))
			got, err := readText(t, l, string(c.content))
			if c.want != "" {
				wantError(t, err, provider.KindProtocol, c.want)
			} else if err != nil || len(got.quotes) != 2 {
				t.Errorf("got %d quotes, error %v, want 2 quotes", len(got.quotes), err)
			}
		})
	}
}

func gzipCompressed(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstdCompressed(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

// endless is a reader that returns head and then repeats pattern without end.
type endless struct {
	head, pattern string
	at            int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.head)
	e.head = e.head[n:]
	for n < len(p) {
		m := copy(p[n:], e.pattern[e.at:])
		e.at = (e.at + m) % len(e.pattern)
		n += m
	}
	return n, nil
}

// Endless, highly compressed and deeply nested lists must fail without using much memory.
func TestRead_RejectsBombsInBoundedMemory(t *testing.T) {
	blanks := func(n int) []byte { return append([]byte("["), bytes.Repeat([]byte(" "), n)...) }
	long := compileOne(t, csvList)
	for _, c := range []struct {
		name string
		list *list
		src  io.Reader
		kind provider.Kind
	}{
		{"gzip", compileOne(t, strings.Replace(arrayList, `"appId"`, `"maxBytes":16777216,"appId"`, 1)), bytes.NewReader(gzipCompressed(t, blanks(64<<20))), provider.KindTooLarge},
		{"zstd", compileOne(t, strings.Replace(arrayList, `"appId"`, `"maxBytes":16777216,"appId"`, 1)), bytes.NewReader(zstdCompressed(t, blanks(64<<20))), provider.KindTooLarge},
		{"huge text", compileOne(t, arrayList), &endless{head: `[{"name":"`, pattern: "x"}, provider.KindTooLarge},
		{"huge row", compileOne(t, arrayList), &endless{head: `[{"name":"A"`, pattern: `,"a":1`}, provider.KindTooLarge},
		{"huge number", compileOne(t, objectList), &endless{head: `{"A":`, pattern: "1"}, provider.KindTooLarge},
		{"huge key", compileOne(t, objectList), &endless{head: `{"`, pattern: "k"}, provider.KindTooLarge},
		{"deep", compileOne(t, arrayList), &endless{pattern: "["}, provider.KindProtocol},
		{"deep objects", compileOne(t, objectList), &endless{pattern: `{"a":`}, provider.KindProtocol},
		{"huge field", long, &endless{head: "name,steam,buff,count\n", pattern: "x"}, provider.KindTooLarge},
		{"open quote", long, &endless{head: "name,steam,buff,count\n\"", pattern: "x\n"}, provider.KindTooLarge},
		{"many fields", long, &endless{pattern: ","}, provider.KindProtocol},
		{
			"ndjson", compileOne(t, `{"key":"k","location":"x","format":"ndjson","appId":1,"currency":"USD","name":"n","markets":[{"key":"m","ask":"p"}]}`),
			&endless{pattern: `{"n":"`}, provider.KindProtocol,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := read(t.Context(), c.list, c.src, zeroTime, &discard{})
			runtime.ReadMemStats(&after)
			wantError(t, err, c.kind)
			if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 40 {
				t.Errorf("got %d MiB allocated, want at most 40", mib)
			}
		})
	}
}

// Reading a list of 64 MiB with 400,000 rows must use at most 40 MiB.
func TestRead_StreamsLargeLists(t *testing.T) {
	const size, most = 64 << 20, 40
	for _, format := range []string{formatCSV, formatArray, formatObject, formatNDJSON} {
		t.Run(format, func(t *testing.T) {
			l := benchList(t, format)
			l.maxItems = 1 << 20
			head, row, tail := bulky(format)
			src := &generated{head: head, row: row, tail: tail, rows: size / len(row(0))}
			peak := &peakSink{}
			if _, err := read(t.Context(), l, src, zeroTime, peak); err != nil {
				t.Fatal(err)
			}
			if peak.quotes < src.rows/2 {
				t.Errorf("got %d quotes of %d rows, want at least half", peak.quotes, src.rows)
			}
			if mib := peak.heap() >> 20; mib > most {
				t.Errorf("got heap growth of %d MiB, want at most %d", mib, most)
			}
		})
	}
}

// bulky returns the parts of a list with rows that are mostly unused members.
func bulky(format string) (head string, row func(int) string, tail string) {
	filler := strings.Repeat("unused ", 14)
	switch format {
	case formatCSV:
		return "market_hash_name,steam,buff,listings,note\n", func(i int) string {
			return fmt.Sprintf("★ Item %08d | Case (Field-Tested),1.5,2,3,%s\n", i, filler)
		}, ""
	case formatObject:
		return `{"items":{"first":{"starting_at":{"price":1}}`, func(i int) string {
			return fmt.Sprintf(`,"★ Item %08d | Case (Field-Tested)":{"starting_at":{"price":1.5},"note":"%s"}`, i, filler)
		}, "}}"
	}
	sep, head, tail := "", "", ""
	if format == formatArray {
		sep, head, tail = ",", `[{"market_hash_name":"first","min_price":1}`, "]"
	}
	return head, func(i int) string {
		return fmt.Sprintf(`%s{"market_hash_name":"★ Item %08d | Case (Field-Tested)","min_price":1.5,"note":"%s"}`+"\n", sep, i, filler)
	}, tail
}

// generated is a reader that generates a list on the fly.
type generated struct {
	head, tail string
	row        func(int) string
	rows, at   int
	buf        string
}

func (g *generated) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if g.buf == "" {
			switch {
			case g.head != "":
				g.buf, g.head = g.head, ""
			case g.at < g.rows:
				g.buf = g.row(g.at)
				g.at++
			case g.tail != "":
				g.buf, g.tail = g.tail, ""
			case n == 0:
				return 0, io.EOF
			default:
				return n, nil
			}
		}
		m := copy(p[n:], g.buf)
		g.buf = g.buf[m:]
		n += m
	}
	return n, nil
}

// peakSink measures the live heap every 100,000 quotes.
type peakSink struct {
	discard
	first, most uint64
}

func (s *peakSink) Restart() {
	s.discard.Restart()
	s.first, s.most = liveHeap(), 0
}

func (s *peakSink) Quote(q *provider.Quote) error {
	if s.quotes%100_000 == 99_999 {
		s.most = max(s.most, liveHeap())
	}
	return s.discard.Quote(q)
}

func (s *peakSink) heap() uint64 { return s.most - min(s.first, s.most) }

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
