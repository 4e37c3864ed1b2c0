package pricelist

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// BenchmarkDecode compares each decoder with a scan that reads only the tokens of JSON or
// the records of CSV. The benchmarks of the scan are named floor. Each decoder must reach
// at least half of the speed of the scan.

func benchRows(format string, n int) []byte {
	var b bytes.Buffer
	switch format {
	case formatCSV:
		b.WriteString("market_hash_name,steam,buff,listings,note\n")
		for i := range n {
			fmt.Fprintf(&b, "\"★ StatTrak™ Karambit | Case %d, Hardened (Field-Tested)\",%d.%02d,%d.5,%d,unused text\n", i, i%900+1, i%100, i%700+1, i%50)
		}
	case formatObject:
		b.WriteString(`{"version":2,"items":{`)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"★ StatTrak™ Karambit | Case %d (Field-Tested)": {"starting_at": {"price": %d.%02d}, "highest_order": {"price": %d.5}, "unused": [1, {"a": "b"}], "listings": %d}`,
				i, i%900+1, i%100, i%700+1, i%50)
		}
		b.WriteString("}}")
	default:
		if format == formatArray {
			b.WriteByte('[')
		}
		for i := range n {
			if i > 0 && format == formatArray {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"market_hash_name":"★ StatTrak™ Karambit | Case %d (Field-Tested)","item_page":"https://example.invalid/item/%d","min_price":%d.%02d,"quantity":%d,"created_at":1535988253}`+"\n",
				i, i, i%900+1, i%100, i%50)
		}
		if format == formatArray {
			b.WriteByte(']')
		}
	}
	return b.Bytes()
}

func benchList(b testing.TB, format string) *list {
	switch format {
	case formatCSV:
		return compileOne(b, `{"key":"l","location":"x","format":"csv","appId":730,"currency":"USD","name":"market_hash_name",
			"markets":[{"key":"steam","ask":"steam","listings":"listings"},{"key":"buff","ask":"buff"}]}`)
	case formatObject:
		return compileOne(b, `{"key":"l","location":"x","format":"jsonObject","appId":730,"currency":"USD","root":"items",
			"markets":[{"key":"buff","ask":"starting_at.price","bid":"highest_order.price","listings":"listings"}]}`)
	default:
		return compileOne(b, `{"key":"l","location":"x","format":"`+format+`","appId":730,"currency":"USD","name":"market_hash_name",
			"markets":[{"key":"m","ask":"min_price","listings":"quantity"}]}`)
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, format := range []string{formatCSV, formatArray, formatObject, formatNDJSON} {
		doc := benchRows(format, 36_000)
		l := benchList(b, format)
		b.Run(format, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := read(context.Background(), l, bytes.NewReader(doc), zeroTime, &discard{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("floor-"+format, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				scan(b, format, doc)
			}
		})
	}
}

func scan(b *testing.B, format string, doc []byte) {
	if format == formatCSV {
		r := csv.NewReader(bytes.NewReader(doc))
		r.ReuseRecord = true
		for {
			if _, err := r.Read(); err == io.EOF {
				return
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
	// The struct hides the bytes.Reader, so that the decoder has to copy the data.
	dec := jsontext.NewDecoder(struct{ io.Reader }{bytes.NewReader(doc)})
	for {
		if _, err := dec.ReadToken(); err == io.EOF {
			return
		} else if err != nil {
			b.Fatal(err)
		}
	}
}
