package pricelist

import (
	"context"
	"io"
	"strings"
	"testing"

	"assay/internal/provider"
	"assay/internal/provider/providertest"
)

// fuzzList fuzzes the decoding of a list.
func fuzzList(f *testing.F, listJSON string, seeds ...string) {
	l := compileOne(f, listJSON)
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		_, err := read(context.Background(), l, body, zeroTime, sink)
		return err
	})
}

func FuzzCSVList(f *testing.F) {
	fuzzList(f, csvList, "name,steam,buff,count\nA,1,1.5,3\n\"B \"\"x\"\"\",,null,-1\r\n", "\uFEFFname,steam,buff,count\n\"a\nb\",1e2,0,\n", "\x1f\x8b\x08", "\x1f\x8b\b00000000")
}

func FuzzJSONArrayList(f *testing.F) {
	fuzzList(f, `{"key":"k","location":"x","format":"jsonArray","appId":730,"currency":{"field":"c"},"name":"n","root":"r",
		"time":{"field":"t"},"each":"q","market":"m","phase":{"name":"both"},
		"quote":{"ask":"p","bid":"b.x","listings":"^l","time":{"field":"t"}},"markets":[{"key":"a"},{"key":"b"}]}`,
		`{"t":1763690112,"r":[{"n":"A - Ruby","l":3,"q":[{"m":"a","c":"USD","p":1,"b":{"x":"2"},"t":"2026-01-02"},{"m":"b","c":"EUR","p":null}]}]}`,
		`{"r":[{"n":"\u2605 \"x\"","q":[]}],"t":"x"}`)
}

func FuzzJSONObjectList(f *testing.F) {
	fuzzList(f, `{"key":"k","location":"x","format":"jsonObject","appId":730,"currency":"USD",
		"markets":[{"key":"a","ask":["x.price","y"],"sales":"n","salesWindow":"720h","phases":{"ask":"x.doppler"}}]}`,
		`{"A":{"x":{"price":1.5,"doppler":{"Ruby":2,"Emerald":"null"}},"n":3},"A":{"y":"7"},"B":{"x":{},"x":{}}}`, `{"\u0000":{"y":1},"":{"y":-1}}`)
}

func FuzzNDJSONList(f *testing.F) {
	fuzzList(f, strings.Replace(arrayList, "jsonArray", "ndjson", 1), `{"name":"A","price":1,"bid":"2","count":3}`+"\n"+`{"name":"B","price":-1}`, "{}\n[]\n1")
}

func FuzzCSVAgainstLibrary(f *testing.F) {
	for _, doc := range csvDocs {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		// Unlike this package, encoding/csv changes carriage returns in quoted fields.
		if !strings.Contains(doc, "\r") && len(doc) < csvBuffer {
			compareCSV(t, doc)
		}
	})
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"interval":"5m","lists":[` + csvList + `,` + urlList + `]}`))
	f.Add([]byte(`{"lists":[{"key":"a","preset":"csgotrader-buff163"},{"preset":"skinstrack","quote":{"ask":[]}}]}`))
	f.Fuzz(func(_ *testing.T, doc []byte) {
		c, err := Parse(doc, Env{Dir: "/"})
		if err != nil {
			return
		}
		for _, l := range c.lists {
			_, _ = read(context.Background(), l, strings.NewReader(`[{"name":"A"}]`), zeroTime, providertest.Discard{})
		}
	})
}
