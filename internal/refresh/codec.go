package refresh

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// A blob holds the quotes of one unit in one name bucket. It consists of zstd frames with
// checksums. They contain consecutive records:
//
//	name      length, bytes
//	phase     index into catalog.Phases + 1, or 0
//	market    its row id
//	currency  3 bytes
//	ask, bid, sale
//	listings + 1, sales + 1
//	sales window, in seconds
//	market time, in hours since 1970, or 0
//
// A rejected row has its name, the index after the last phase, the market's row id, and
// nothing else. All numbers are unsigned varints.

const (
	// maxBlob limits the decoded size of a blob.
	maxBlob = 64 << 20
	// maxNumber is the largest amount, id, or count + 1 in a record.
	maxNumber = 1 << 62
	// maxWindow is the longest sales window, in seconds: 136 years.
	maxWindow = 1<<32 - 1
	// maxHours is the latest market time, in hours since 1970.
	maxHours = 1<<31 - 1
)

var errBlob = errors.New("stored response is damaged")

// frameSize is how many bytes of records a bucket collects before they become a frame. A
// response of 30,000 names has one frame for each bucket. A response of 300,000 names takes a
// fifth of the memory that it would take uncompressed.
const frameSize = 32 << 10

// encoder encodes the quotes of a response into blobs.
type encoder struct {
	buckets [catalog.Buckets][]byte // records that are in no frame yet
	frames  [catalog.Buckets][]byte
	encoder *zstd.Encoder
}

func newEncoder() *encoder {
	// NewWriter and NewReader return errors only for invalid options.
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	return &encoder{encoder: e}
}

func (e *encoder) reset() {
	for i := range e.buckets {
		e.buckets[i], e.frames[i] = e.buckets[i][:0], nil // encode returned the frames
	}
}

// store sets the records of a bucket that are in no frame yet.
func (e *encoder) store(bucket int, records []byte) {
	if len(records) >= frameSize {
		e.frames[bucket] = e.encoder.EncodeAll(records, e.frames[bucket])
		records = records[:0]
	}
	e.buckets[bucket] = records
}

// add appends a quote to its bucket.
func (e *encoder) add(market int64, q *provider.Quote) {
	at := catalog.Bucket(q.Name)
	b := e.buckets[at]
	b = binary.AppendUvarint(b, uint64(len(q.Name)))
	b = append(b, q.Name...)
	b = binary.AppendUvarint(b, phaseIndex(q.Phase))
	b = binary.AppendUvarint(b, uint64(market))
	b = append(b, q.Currency[:3]...)
	b = binary.AppendUvarint(b, uint64(q.Ask))
	b = binary.AppendUvarint(b, uint64(q.Bid))
	b = binary.AppendUvarint(b, uint64(q.Sale))
	b = binary.AppendUvarint(b, uint64(q.Listings+1))
	b = binary.AppendUvarint(b, uint64(q.Sales+1))
	b = binary.AppendUvarint(b, uint64(q.SalesWindow/time.Second))
	e.store(at, binary.AppendUvarint(b, hours(q.MarketTime)))
}

// reject adds a rejected row. Such a row is no evidence that the market has delisted the
// item.
func (e *encoder) reject(market int64, name string) {
	at := catalog.Bucket(name)
	b := binary.AppendUvarint(e.buckets[at], uint64(len(name)))
	b = append(b, name...)
	b = binary.AppendUvarint(b, rejectedIndex())
	e.store(at, binary.AppendUvarint(b, uint64(market)))
}

// rejectedIndex is the phase index of a rejected row.
func rejectedIndex() uint64 { return uint64(len(catalog.Phases)) + 1 }

// encode returns the blobs of the quotes for which keep returns true, or of all quotes if keep
// is nil. Empty buckets have no blob.
func (e *encoder) encode(keep func(*quoteRecord) bool) []Blob {
	var out []Blob
	for i := range e.buckets {
		raw, frames := e.buckets[i], e.frames[i]
		if keep != nil {
			raw, frames = filter(e.unframed(i), keep), nil
		}
		if len(raw) > 0 {
			frames = e.encoder.EncodeAll(raw, frames)
		}
		if len(frames) > 0 {
			out = append(out, Blob{Bucket: i, Data: frames})
		}
	}
	return out
}

// unframed returns all records of a bucket, also those in frames.
func (e *encoder) unframed(bucket int) []byte {
	if len(e.frames[bucket]) == 0 {
		return e.buckets[bucket]
	}
	d := newDecoder()
	defer d.close()
	records, _ := d.decoder.DecodeAll(e.frames[bucket], nil) // written by this encoder
	return append(records, e.buckets[bucket]...)
}

// filter removes the quotes of a bucket for which keep returns false, in place.
func filter(bucket []byte, keep func(*quoteRecord) bool) []byte {
	kept := bucket[:0]
	r := reader{b: bucket}
	for len(r.b) > 0 {
		record := r.b
		var q quoteRecord
		r.record(&q, nil)
		if q.Rejected || keep(&q) {
			kept = append(kept, record[:len(record)-len(r.b)]...)
		}
	}
	return kept
}

// quoteRecord is one record of a blob. Name aliases the blob's buffer.
type quoteRecord struct {
	Name        []byte
	Phase       string
	Market      int64
	Currency    money.Currency
	Ask         money.Micro
	Bid         money.Micro
	Sale        money.Micro
	Listings    int64
	Sales       int64
	SalesWindow time.Duration
	MarketTime  time.Time
	Rejected    bool // only Name and Market are set
}

// snapshot converts the record to a stored quote.
func (q *quoteRecord) snapshot() MarketSnapshot {
	return MarketSnapshot{
		MarketID: q.Market, Currency: q.Currency, Ask: q.Ask, Bid: q.Bid, Sale: q.Sale,
		Listings: q.Listings, Sales: q.Sales, SalesWindow: q.SalesWindow, MarketTime: q.MarketTime,
	}
}

// decoder decodes blobs with a reusable buffer.
type decoder struct {
	decoder *zstd.Decoder
	buf     []byte
	// currencies interns currency codes, because nearly all quotes have the same currency.
	currencies map[[3]byte]money.Currency
}

func newDecoder() *decoder {
	d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlob), zstd.WithDecoderLowmem(true))
	return &decoder{decoder: d, currencies: map[[3]byte]money.Currency{}}
}

func (d *decoder) close() { d.decoder.Close() }

// each calls fn for every record of a blob, in the order of the response.
func (d *decoder) each(data []byte, fn func(*quoteRecord)) error {
	raw, err := d.decoder.DecodeAll(data, d.buf[:0])
	if err != nil {
		return fmt.Errorf("%w: %w", errBlob, err)
	}
	d.buf = raw
	r := reader{b: raw}
	for len(r.b) > 0 {
		var q quoteRecord
		if r.record(&q, d.currency); r.bad {
			return errBlob
		}
		fn(&q)
	}
	return nil
}

// decode calls fn for the quotes of a stored response.
func (p *process) decode(u *decoder, b Blob, fn func(*quoteRecord)) error {
	return p.decodeRows(u, b, func(q *quoteRecord) {
		if !q.Rejected {
			fn(q)
		}
	})
}

// decodeRows calls fn for the quotes and the rejected rows of a stored response. It logs a
// damaged response and treats it as empty, so the markets keep their last quotes.
func (p *process) decodeRows(u *decoder, b Blob, fn func(*quoteRecord)) error {
	err := u.each(b.Data, fn)
	if errors.Is(err, errBlob) {
		p.log.Error("stored response skipped", "unit", b.Unit, "bucket", b.Bucket, "error", err)
		return nil
	}
	return err
}

func (d *decoder) currency(code [3]byte) money.Currency {
	c, ok := d.currencies[code]
	if !ok {
		c = money.Currency(code[:])
		d.currencies[code] = c
	}
	return c
}

// reader reads numbers and bytes. After an error it sets bad, so that callers need not check
// every step.
type reader struct {
	b   []byte
	bad bool
}

// record reads the next record. If currency is nil, it skips the currency.
func (r *reader) record(q *quoteRecord, currency func([3]byte) money.Currency) {
	q.Name = r.bytes(r.number(catalog.MaxName))
	phase := r.number(rejectedIndex())
	q.Market = int64(r.number(maxNumber))
	if phase == rejectedIndex() {
		q.Rejected = true
		return
	}
	q.Phase = phaseAt(phase)
	var code [3]byte
	copy(code[:], r.bytes(3))
	q.Ask = money.Micro(r.number(maxNumber))
	q.Bid = money.Micro(r.number(maxNumber))
	q.Sale = money.Micro(r.number(maxNumber))
	q.Listings = int64(r.number(maxNumber)) - 1
	q.Sales = int64(r.number(maxNumber)) - 1
	q.SalesWindow = time.Duration(r.number(maxWindow)) * time.Second
	if h := r.number(maxHours); h > 0 {
		q.MarketTime = time.Unix(int64(h)*3600, 0).UTC()
	}
	if currency != nil && !r.bad {
		q.Currency = currency(code)
	}
}

func (r *reader) number(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes(n uint64) []byte {
	if uint64(len(r.b)) < n {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func phaseIndex(phase string) uint64 {
	for i, p := range catalog.Phases {
		if p == phase {
			return uint64(i) + 1
		}
	}
	return 0
}

func phaseAt(i uint64) string {
	if i == 0 || i > uint64(len(catalog.Phases)) {
		return ""
	}
	return catalog.Phases[i-1]
}

// hours rounds a market time down to the hour. Some market times change with every response,
// and an exact time would rewrite the row of an unchanged quote. An impossible time is
// encoded as 0.
func hours(t time.Time) uint64 {
	if h := t.Unix() / 3600; !t.IsZero() && h > 0 && h <= maxHours {
		return uint64(h)
	}
	return 0
}
