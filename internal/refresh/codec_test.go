package refresh

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/randtest"
)

// encodedAt is a decoded record and its bucket.
type encodedAt struct {
	bucket int
	quoteRecord
}

// decodeAll decodes blobs into records that do not share the decoder's buffer.
func decodeAll(tb testing.TB, blobs []Blob) []encodedAt {
	tb.Helper()
	u := newDecoder()
	defer u.close()
	var out []encodedAt
	for _, b := range blobs {
		err := u.each(b.Data, func(q *quoteRecord) {
			r := *q
			r.Name = bytes.Clone(q.Name)
			out = append(out, encodedAt{b.Bucket, r})
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

// randomNumber returns a number that can be encoded, often the smallest or the largest one.
func randomNumber(r *rand.Rand) int64 {
	switch r.IntN(4) {
	case 0:
		return 0
	case 1:
		return maxNumber - r.Int64N(2)
	default:
		return r.Int64N(1 << uint(1+r.IntN(61)))
	}
}

func randomQuote(r *rand.Rand) provider.Quote {
	name := make([]rune, 1+r.IntN(40))
	for i := range name {
		name[i] = []rune{'a', 'A', ' ', '\n', '★', '™', '壱', '弐', '%', '<', '/', 0x10ffff, 1}[r.IntN(13)]
	}
	q := provider.Quote{
		Name: string(name), Currency: []money.Currency{"USD", "EUR", "AAA", "ZZZ"}[r.IntN(4)],
		Ask: money.Micro(randomNumber(r)), Bid: money.Micro(randomNumber(r)), Sale: money.Micro(randomNumber(r)),
		Listings: randomNumber(r) - 1, Sales: randomNumber(r) - 1,
		SalesWindow: time.Duration(r.Int64N(1<<32)) * time.Second,
	}
	if i := r.IntN(len(catalog.Phases) + 1); i > 0 {
		q.Phase = catalog.Phases[i-1]
	}
	if r.IntN(2) == 0 {
		q.MarketTime = time.Unix((1+r.Int64N(maxHours))*3600, 0).UTC()
	}
	if r.IntN(20) == 0 {
		q.Name = strings.Repeat("x", catalog.MaxName)
	}
	return q
}

func TestEncoder_RoundTripKeepsOrder(t *testing.T) {
	r := randtest.New(t)
	p := newEncoder()
	for range 50 {
		p.reset()
		var want []encodedAt
		for range r.IntN(300) {
			q := randomQuote(r)
			if reason := check(&q); reason != "" {
				t.Fatalf("check = %q, want the valid quote accepted: %+v", reason, q)
			}
			market := 1 + r.Int64N(1<<40)
			p.add(market, &q)
			want = append(want, encodedAt{catalog.Bucket(q.Name), quoteRecord{
				Name: []byte(q.Name), Phase: q.Phase, Market: market, Currency: q.Currency,
				Ask: q.Ask, Bid: q.Bid, Sale: q.Sale, Listings: q.Listings, Sales: q.Sales,
				SalesWindow: q.SalesWindow, MarketTime: q.MarketTime,
			}})
		}
		slices.SortStableFunc(want, func(a, b encodedAt) int { return a.bucket - b.bucket })
		if got := decodeAll(t, p.encode(nil)); !reflect.DeepEqual(got, want) {
			t.Fatalf("decoded quotes:\ngot  %+v\nwant %+v", got, want)
		}
	}
}

func TestEncoder_LargeBucketsConsistOfFrames(t *testing.T) {
	p := newEncoder()
	const quotes, name = 4_000, "A name long enough to fill some frames"
	for i := range quotes {
		p.add(int64(i+1), &provider.Quote{Name: name, Currency: "USD", Ask: money.Micro(i)})
	}
	p.reject(quotes+1, name)
	if at := catalog.Bucket(name); len(p.buckets[at]) >= frameSize || len(p.frames[at]) == 0 {
		t.Errorf("got %d bytes of records and %d of frames, want less than %d and some", len(p.buckets[at]), len(p.frames[at]), frameSize)
	}
	all := decodeAll(t, p.encode(nil))
	if len(all) != quotes+1 || !all[quotes].Rejected {
		t.Fatalf("got %d records, want %d, of which the last is a rejected row", len(all), quotes+1)
	}
	for i := range quotes {
		if q := &all[i]; q.Market != int64(i+1) || q.Ask != money.Micro(i) || string(q.Name) != name {
			t.Fatalf("record %d: got %+v, want the quote of market %d", i, q, i+1)
		}
	}
	even := decodeAll(t, p.encode(func(q *quoteRecord) bool { return q.Market%2 == 0 }))
	if len(even) != quotes/2+1 || even[0].Market != 2 || even[1].Market != 4 {
		t.Errorf("got %d records without the odd markets, want %d that begin with markets 2 and 4", len(even), quotes/2+1)
	}
	if p.reset(); len(p.encode(nil)) != 0 {
		t.Error("got blobs after a reset, want none")
	}
}

func TestEncoder_RoundsTimesAndDropsImpossibleTimes(t *testing.T) {
	for _, c := range []struct{ in, want time.Time }{
		{time.Time{}, time.Time{}},
		{time.Date(2026, 3, 1, 12, 59, 59, 999, time.UTC), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		{time.Date(2026, 3, 1, 12, 30, 0, 0, time.FixedZone("", 1800)), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		{time.Unix(3599, 0), time.Time{}},
		{time.Unix(-7200, 0), time.Time{}},
		{time.Unix(1<<62, 0), time.Time{}},
	} {
		p := newEncoder()
		p.add(1, &provider.Quote{Name: "A", Currency: "USD", MarketTime: c.in})
		if got := decodeAll(t, p.encode(nil))[0].MarketTime; !got.Equal(c.want) {
			t.Errorf("market time %v: got %v after decoding, want %v", c.in, got, c.want)
		}
	}
}

func TestDecoder_RejectsDamagedBlobs(t *testing.T) {
	p := newEncoder()
	q := provider.Quote{Name: "A name long enough to matter", Currency: "USD", Ask: 1_000_000, Listings: 3, Sales: provider.Unknown}
	p.add(7, &q)
	data := p.encode(nil)[0].Data
	u := newDecoder()
	defer u.close()
	for i := range data {
		for bit := range 8 {
			damaged := bytes.Clone(data)
			damaged[i] ^= 1 << bit
			n := 0
			err := u.each(damaged, func(r *quoteRecord) {
				n++
				if string(r.Name) != q.Name || r.Ask != q.Ask {
					t.Errorf("with bit %d of byte %d flipped: got %+v, want the quote or an error", bit, i, r)
				}
			})
			if err == nil && n != 1 {
				t.Errorf("with bit %d of byte %d flipped: got %d records, want 1 or an error", bit, i, n)
			}
		}
		if err := u.each(data[:i], func(*quoteRecord) {}); err == nil && i > 0 {
			t.Errorf("cut after %d of %d bytes: got no error, want one", i, len(data))
		}
	}
}

func TestDecoder_RejectsLargeBlobs(t *testing.T) {
	p := newEncoder()
	bomb := p.encoder.EncodeAll(make([]byte, maxBlob+1), nil)
	u := newDecoder()
	defer u.close()
	if err := u.each(bomb, func(*quoteRecord) {}); err == nil {
		t.Error("blob over the limit: got no error, want one")
	}
	if cap(u.buf) > maxBlob {
		t.Errorf("got a buffer of %d bytes, want at most the size limit of a blob", cap(u.buf))
	}
}

func FuzzDecode(f *testing.F) {
	p := newEncoder()
	for _, name := range []string{"A", "★ Karambit", strings.Repeat("n", catalog.MaxName)} {
		q := provider.Quote{Name: name, Phase: "Ruby", Currency: "USD", Ask: 1, Listings: -1, Sales: 1, MarketTime: time.Unix(7200, 0)}
		p.reset()
		p.add(1, &q)
		p.add(2, &q)
		f.Add(slices.Clone(p.buckets[catalog.Bucket(name)]))
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	u := newDecoder()
	f.Fuzz(func(t *testing.T, raw []byte) {
		// Test the raw bytes, and the bytes in a frame with a valid checksum.
		for _, data := range [][]byte{raw, p.encoder.EncodeAll(raw, nil)} {
			records := 0
			err := u.each(data, func(q *quoteRecord) {
				records++
				if q.Ask < 0 || q.Bid < 0 || q.Sale < 0 || q.Listings < -1 || q.Sales < -1 || q.SalesWindow < 0 || q.Market < 0 ||
					len(q.Name) > catalog.MaxName || catalog.CheckPhase(q.Phase) != nil || len(q.Currency) != 3 {
					t.Errorf("got the record %+v, want a valid one or an error", q)
				}
			})
			if records > len(raw) {
				t.Errorf("got %d records from %d bytes (error %v), want at most one per byte", records, len(raw), err)
			}
		}
		if len(u.currencies) > 1000 {
			clear(u.currencies)
		}
	})
}

// Validation must use the same quote of an item as an estimate does.
func TestAdd_KeepsFresherQuoteOfSeveralFiles(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	hour := noon.Add(time.Hour)
	for name, c := range map[string]struct {
		fetched, marketTime time.Time // of the second quote
		want                money.Micro
	}{
		"later fetch time":    {hour, noon, 2},
		"earlier fetch time":  {noon.Add(-time.Hour), hour, 1},
		"later market time":   {noon, hour, 2},
		"earlier market time": {noon, noon.Add(-time.Hour), 1},
		"equal times":         {noon, noon, 1},
		"no market time":      {noon, time.Time{}, 1},
	} {
		m := &marketResponse{next: &pricing.Response{}, last: &pricing.Response{}, nextSeen: map[uint64]pointPosition{}}
		next := target{next: true}
		m.add(next, pricing.Point{Key: 7, Amount: 9}, noon, noon)
		m.add(next, pricing.Point{Key: 5, Amount: 1}, noon, noon)
		m.add(next, pricing.Point{Key: 5, Amount: 2}, c.fetched, c.marketTime)
		if p := m.next.Points; len(p) != 2 || p[0].Amount != 9 || p[1].Amount != c.want || len(m.last.Points) > 0 {
			t.Errorf("%s: got the points %v, want the amounts 9 and %v, and no points of the last response", name, p, c.want)
		}
	}
}
