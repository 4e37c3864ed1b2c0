package refresh

import (
	"cmp"
	"context"
	"slices"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

const (
	// maxResponse limits the encoded quotes of one unit, in bytes.
	maxResponse = 256 << 20
	// largeResponse is the size above which a response counts as large work; see garbage.
	largeResponse = 4 << 20
)

// quotesAtOnce is how many quotes of a market are read before the reader gives way to waiting
// HTTP requests.
const quotesAtOnce = 64

// quoteSink is the provider.Sink of one unit. It checks every quote, keeps one quote per item
// and market, and encodes the quotes by bucket.
type quoteSink struct {
	*sinkBuffers
	markets   map[string]int64
	counts    map[int64]*MarketFetch
	silent    []string
	remaining []FetchUnit // further units for the names without a response
	size      int
	provider  string
	large     bool     // size exceeded largeResponse
	ends      []func() // end the work of garbage
	stored    []Blob   // blobs that the last transaction stored
	// succeeded is called after each successful call for names, unless it is nil.
	succeeded func()
	pause     func() // gives way to waiting HTTP requests
	garbage   *garbage
}

// sinkBuffers are the large parts of a quoteSink, which later sinks reuse.
type sinkBuffers struct {
	encoder *encoder
	seen    provider.Duplicates
}

// Reasons why a quote is rejected.
const (
	rejectMarket   = "unknown market"
	rejectName     = "invalid name"
	rejectAmount   = "invalid amount"
	rejectCurrency = "invalid currency"
	rejectCount    = "invalid count"
)

func (f *fetcher) newQuoteSink(ctx context.Context, d provider.Description) *quoteSink {
	b, ok := f.sinkBuffers.Get().(*sinkBuffers)
	if !ok {
		b = &sinkBuffers{encoder: newEncoder()}
	}
	r := &quoteSink{
		sinkBuffers: b, markets: map[string]int64{}, counts: map[int64]*MarketFetch{},
		provider: d.Name, pause: func() { admission.Yield(ctx) }, garbage: &f.garbage,
	}
	for _, m := range d.Markets {
		r.markets[m.Key] = f.markets[MarketName{Provider: d.Name, Key: m.Key, Title: m.Title}]
	}
	r.Restart()
	return r
}

// recycle keeps the buffers of a sink for later sinks. The sink can no longer be used. Further
// calls have no effect.
func (f *fetcher) recycle(r *quoteSink) {
	if r.sinkBuffers == nil {
		return
	}
	r.encoder.reset()
	r.seen.Reset()
	f.sinkBuffers.Put(r.sinkBuffers)
	r.sinkBuffers = nil
	for _, end := range r.ends {
		end()
	}
}

// fetchFile fetches the file of a unit.
func (r *quoteSink) fetchFile(ctx context.Context, src provider.Provider, unit *FetchUnit, meter *provider.Meter) error {
	r.ends = append(r.ends, r.garbage.limit(fileGC))
	result, err := src.Fetch(ctx, provider.Call{AppID: unit.AppID, File: unit.File, Meter: meter}, r)
	r.silent, unit.StatedAt = result.Silent, result.ProviderTime
	r.expect(src.Describe(), unit.File)
	return err
}

// expect adds a count for each market that the file covers, even if the response has no quote
// of the market.
func (r *quoteSink) expect(d provider.Description, file string) {
	for _, key := range d.MarketsOf(file) {
		r.count(r.markets[key])
	}
}

func (r *quoteSink) count(market int64) *MarketFetch {
	c := r.counts[market]
	if c == nil {
		c = &MarketFetch{MarketID: market, Outcome: OutcomeOK}
		r.counts[market] = c
	}
	return c
}

// fetches returns the counts of each market, ordered by market id. Units of one provider
// update the same rows, and a common order prevents deadlocks.
func (r *quoteSink) fetches() []MarketFetch {
	out := make([]MarketFetch, 0, len(r.counts))
	for _, c := range r.counts {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b MarketFetch) int { return cmp.Compare(a.MarketID, b.MarketID) })
	for i := range out {
		for _, key := range r.silent {
			if r.markets[key] == out[i].MarketID {
				out[i].Outcome = OutcomeSilent
			}
		}
	}
	return out
}

// Restart implements provider.Sink.
func (r *quoteSink) Restart() {
	r.encoder.reset()
	clear(r.counts)
	r.seen.Reset()
	r.silent, r.remaining, r.size = nil, nil, 0
}

// Quote implements provider.Sink.
func (r *quoteSink) Quote(q *provider.Quote) error {
	market, ok := r.markets[q.Market]
	if !ok {
		return &provider.Error{Provider: r.provider, Kind: provider.KindProtocol, Detail: rejectMarket}
	}
	c := r.count(market)
	if reason := check(q); reason != "" {
		r.Reject(q.Market, q.Name, reason)
		return nil
	}
	switch r.seen.Add(q) {
	case provider.First:
	case provider.Conflicting:
		c.Quotes--
		c.Rejected++
		r.Reject(q.Market, q.Name, provider.RejectConflict)
		return nil
	default:
		c.Rejected++
		return nil
	}
	if r.size += len(q.Name) + 48; r.size > maxResponse {
		return &provider.Error{Provider: r.provider, Kind: provider.KindTooLarge, Detail: "the encoded quotes of a response exceed 256 MiB"}
	}
	if r.size > largeResponse && !r.large {
		r.large, r.ends = true, append(r.ends, r.garbage.limit(quotesGC))
	}
	c.Quotes++
	r.encoder.add(market, q)
	if c.Quotes%quotesAtOnce == 0 {
		r.pause()
	}
	return nil
}

// Reject implements provider.Sink.
func (r *quoteSink) Reject(market, name, reason string) {
	id, ok := r.markets[market]
	if ok {
		r.count(id).Rejected++
	}
	if reason == provider.RejectRepeat || catalog.CheckName(name) != nil {
		return
	}
	switch {
	case ok:
		r.reject(id, name)
	case market == "": // all markets
		for _, id := range r.markets {
			r.reject(id, name)
		}
	}
}

// reject adds the name of a rejected row, unless the response has reached maxResponse.
func (r *quoteSink) reject(market int64, name string) {
	if r.size <= maxResponse {
		r.size += len(name) + 16
		r.encoder.reject(market, name)
	}
}

// encode returns the encoded quotes. It omits the quotes of an item on a market if they conflict.
func (r *quoteSink) encode() []Blob {
	if r.seen.Conflicts() == 0 {
		return r.encoder.encode(nil)
	}
	keys := make(map[int64]string, len(r.markets))
	for key, id := range r.markets {
		keys[id] = key
	}
	return r.encoder.encode(func(q *quoteRecord) bool { return !r.seen.Conflicting(keys[q.Market], string(q.Name), q.Phase) })
}

// check returns why a quote is rejected, or "" if it is valid.
func check(q *provider.Quote) string {
	switch {
	case catalog.CheckName(q.Name) != nil || catalog.CheckPhase(q.Phase) != nil:
		return rejectName
	case !within(q.Ask) || !within(q.Bid) || !within(q.Sale):
		return rejectAmount
	case !within(q.Listings-provider.Unknown) || !within(q.Sales-provider.Unknown),
		q.SalesWindow < 0 || q.SalesWindow/time.Second > maxWindow:
		return rejectCount
	}
	if _, err := money.ParseCurrency(string(q.Currency)); err != nil {
		return rejectCurrency
	}
	return ""
}

// within reports whether a number is in the range that can be encoded.
func within[T ~int64](n T) bool { return n >= 0 && n <= maxNumber }

// joined combines several calls into one response. When a call is retried, only the quotes of
// that call are discarded.
type joined struct {
	*quoteSink
	quotes []provider.Quote
	reject []rejected
}

// rejected is a row of a response without a usable quote.
type rejected struct{ market, name, reason string }

// flush moves the quotes of a finished call to the response. A quote without a market time
// gets the time that the call's response states.
func (j *joined) flush(stated time.Time) {
	for i := range j.quotes {
		if j.quotes[i].MarketTime.IsZero() {
			j.quotes[i].MarketTime = stated
		}
		_ = j.quoteSink.Quote(&j.quotes[i]) // Quote has checked the market already
	}
	for _, r := range j.reject {
		j.quoteSink.Reject(r.market, r.name, r.reason)
	}
	j.quotes, j.reject = j.quotes[:0], j.reject[:0]
}

// Restart implements provider.Sink for the current call.
func (j *joined) Restart() { j.quotes, j.reject = j.quotes[:0], j.reject[:0] }

// Quote implements provider.Sink.
func (j *joined) Quote(q *provider.Quote) error {
	if _, ok := j.markets[q.Market]; !ok {
		return &provider.Error{Provider: j.provider, Kind: provider.KindProtocol, Detail: rejectMarket}
	}
	if len(j.quotes) >= maxCallQuotes {
		return &provider.Error{Provider: j.provider, Kind: provider.KindTooLarge, Detail: "a call for names returned more than 100,000 quotes"}
	}
	j.quotes = append(j.quotes, *q)
	return nil
}

// Reject implements provider.Sink.
func (j *joined) Reject(market, name, reason string) {
	if len(j.reject) < maxCallQuotes {
		j.reject = append(j.reject, rejected{market, name, reason})
	}
}

// maxCallQuotes limits the quotes of one call for names. It allows a thousand names on a
// hundred markets.
const maxCallQuotes = 100_000
