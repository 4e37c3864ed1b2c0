package pricelist

import (
	"encoding/csv"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestCSV_MatchesTheStandardLibrary(t *testing.T) {
	for _, doc := range csvDocs {
		compareCSV(t, doc)
	}
}

var csvDocs = []string{
	"", "\n", "a", "a,b\n1,2\n", "a,b\r\n1,2\r\n", "a,b\n1,2", "\"a\",\"b\"\"c\"\n", "a,\"b\nc\"\n", "\n\na\n\nb\n", "a,b\n1\n", "a\"b\n", "\"a\"b\n",
	"\"a\n", "a,\n,b\n", ",\n", "\"\"\n", "\"\"\"\"\n", "a,b\n\"x,y\",\"\"\n", "a\rb\n", "a\r", "\"a\"\r", "\r", "★,龍\n", "a;b\n",
}

// compareCSV compares csvReader with encoding/csv, for several sizes of reads.
func compareCSV(t *testing.T, doc string) {
	t.Helper()
	std := csv.NewReader(strings.NewReader(doc))
	want, wantErr := std.ReadAll()
	for name, src := range map[string]io.Reader{
		"whole": strings.NewReader(doc), "bytes": iotest.OneByteReader(strings.NewReader(doc)),
		"with EOF": iotest.DataErrReader(strings.NewReader(doc)),
	} {
		in := newCSVReader(src, ',')
		var got [][]string
		var err error
		for {
			var record [][]byte
			if record, err = in.next(); err != nil {
				break
			}
			var fields []string
			for _, f := range record {
				fields = append(fields, string(f))
			}
			got = append(got, fields)
		}
		if (err != io.EOF) != (wantErr != nil) {
			t.Errorf("%s %q: got error %v, want %v from encoding/csv", name, doc, err, wantErr)
		}
		if wantErr == nil && !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s %q: got %q, want %q from encoding/csv", name, doc, got, want)
		}
	}
}

func TestCSV_SupportsDelimiterAndColumns(t *testing.T) {
	l := compileOne(t, `{"key":"k","location":"x","format":"csv","delimiter":"\t","columns":["name","price"],"appId":730,"currency":"USD",
		"name":"name","markets":[{"key":"m","ask":"price"}]}`)
	got := mustRead(t, l, "\uFEFFA, B\t1\nC\t2\n")
	if got.find(t, "m", "A, B", "").Ask != usd(t, "1") || len(got.quotes) != 2 {
		t.Errorf("got quotes %+v, want \"A, B\" and C", got.quotes)
	}
}
