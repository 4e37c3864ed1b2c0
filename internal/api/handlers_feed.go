package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"

	"assay/internal/admission"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/view"
)

// feedHandlers serve exports of all prices, price changes and events.
type feedHandlers struct {
	*Deps
	exports chan struct{} // one element for each running export
	streams chan struct{} // one element for each stream
	behind  chan struct{} // one element for each stream that reads older events
	pace    *pace
	// patience is how long a write of a stream may take. The stream of a slower client ends.
	patience time.Duration
	ended    *prometheus.CounterVec // streams that ended, by reason
}

// Headers of an export: the number of its last price change, its currency, and its exchange
// rates. NDJSON has no other place for them.
const (
	changeHeader   = "Assay-Change"
	currencyHeader = "Assay-Currency"
	ratesHeader    = "Assay-Rates"
)

const (
	// maxExports limits the exports in progress, because each holds a database connection.
	maxExports = 4
	// exportTimeout limits an export, so that a slow client does not hold a snapshot of the
	// database for long.
	exportTimeout = writeTimeout
	// exportBuffer is the size of the writes to the client.
	exportBuffer = 64 << 10
)

func newFeedHandlers(deps *Deps, ended *prometheus.CounterVec) feedHandlers {
	return feedHandlers{
		deps, make(chan struct{}, maxExports), make(chan struct{}, maxStreams), make(chan struct{}, maxBehind), &pace{turn: make(chan struct{}, 1)}, streamPatience, ended,
	}
}

func (h feedHandlers) manifest(c *call) (any, error) {
	return h.Readers.Feeds.Manifest(c.Context(), int32(c.values.number("appId")), c.currency())
}

// export returns a handler that sends all prices, as one JSON object or as NDJSON.
func (h feedHandlers) export(ndjson bool) handler {
	return func(c *call) (any, error) {
		ctx, cancel := context.WithTimeout(c.slow, exportTimeout)
		defer cancel()
		if err := h.enter(ctx); err != nil {
			return nil, err
		}
		defer func() { <-h.exports }()
		e := &exporter{call: c, ndjson: ndjson}
		err := h.Readers.Feeds.Export(ctx, int32(c.values.number("appId")), c.fields(), c.currency(), e.begin)
		return response{}, e.end(err)
	}
}

// enter waits until fewer than maxExports exports are running.
func (h feedHandlers) enter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, admission.MaxWait)
	defer cancel()
	select {
	case h.exports <- struct{}{}:
		return nil
	case <-ctx.Done():
		f := fault.New(fault.Busy, "busy", "Too many exports are running. Retry later.")
		f.RetryAfter = admission.MaxWait
		return f
	}
}

// exported is the body of an export as one JSON object.
type exported struct {
	Change   string                `json:"change"`
	Currency money.Currency        `json:"currency"`
	Rates    []view.ConversionRate `json:"rates,omitempty"`
	Items    []view.PublishedPrice `json:"items"`
}

// exporter writes an export as a response.
type exporter struct {
	*call
	ndjson  bool
	out     io.WriteCloser
	buffer  []byte
	rows    int
	started bool
}

// begin sends the headers. It returns nil if no body follows, because the client has this version or
// sent a HEAD request.
func (e *exporter) begin(of view.Export) func(*view.PublishedPrice) error {
	e.started = true
	encoding := acceptedEncoding(e.Header.Get("Accept-Encoding"))
	h := e.w.Header()
	var rates []byte
	if len(of.Rates) > 0 {
		rates, _ = json.Marshal(of.Rates) // encoding a rate never fails
		h.Set(ratesHeader, string(rates))
	}
	h.Set("ETag", e.etag(of, rates, encoding))
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Vary", "Accept-Encoding")
	h.Set(changeHeader, strconv.FormatInt(of.Change, 10))
	h.Set(currencyHeader, string(of.Currency))
	if matches(e.Header.Get("If-None-Match"), h.Get("ETag")) {
		e.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", jsonType)
	if e.ndjson {
		h.Set("Content-Type", ndjsonType)
	}
	if encoding != "" {
		h.Set("Content-Encoding", encoding)
	}
	e.w.WriteHeader(http.StatusOK)
	if e.Method == http.MethodHead {
		return nil
	}
	e.out = compressed(e.w, encoding)
	e.buffer = make([]byte, 0, exportBuffer+exportBuffer/4)
	if !e.ndjson {
		e.buffer = fmt.Appendf(e.buffer, `{"change":"%d","currency":%q,`, of.Change, of.Currency)
		if rates != nil {
			e.buffer = fmt.Appendf(e.buffer, `"rates":%s,`, rates)
		}
		e.buffer = append(e.buffer, `"items":[`...)
	}
	return e.row
}

const ndjsonType = "application/x-ndjson"

// etag returns a strong validator: a hash of the version of the prices and of everything else that
// determines the bytes.
func (e *exporter) etag(of view.Export, rates []byte, encoding string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s %s %t %q %q %s", of.Change, of.Version, of.Currency, rates, e.ndjson, e.values["appId"], e.values["fields"], encoding))
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

func (e *exporter) row(p *view.PublishedPrice) error {
	if e.rows > 0 && !e.ndjson {
		e.buffer = append(e.buffer, ',')
	}
	e.rows++
	e.buffer = p.AppendJSON(e.buffer)
	if e.ndjson {
		e.buffer = append(e.buffer, '\n')
	}
	if len(e.buffer) >= exportBuffer {
		return e.flush()
	}
	return nil
}

func (e *exporter) flush() error {
	_, err := e.out.Write(e.buffer)
	e.buffer = e.buffer[:0]
	return err
}

// end completes the body. After an error in the middle of the body it closes the connection,
// so that the client does not treat a partial body as complete.
func (e *exporter) end(err error) error {
	if !e.started {
		return err
	}
	if err == nil && e.out != nil {
		if !e.ndjson {
			e.buffer = append(e.buffer, `]}`...)
		}
		if err = e.flush(); err == nil {
			err = e.out.Close()
		}
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// acceptedEncoding returns the best encoding that an Accept-Encoding header allows: zstd, gzip
// or none.
func acceptedEncoding(header string) string {
	best := ""
	for part := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(strings.ToLower(strings.TrimSpace(part)), ";")
		if q := strings.ReplaceAll(params, " ", ""); strings.HasPrefix(q, "q=0") && strings.Trim(q, "q=0.") == "" {
			continue
		}
		switch name = strings.TrimSpace(name); name {
		case "zstd":
			return name
		case "gzip":
			best = name
		}
	}
	return best
}

// compressed returns a writer that compresses data and writes it to w. Close completes the
// compression.
func compressed(w io.Writer, encoding string) io.WriteCloser {
	switch encoding {
	case "zstd":
		z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
		if err != nil {
			panic("zstd: " + err.Error()) // the options are constants
		}
		return z
	case "gzip":
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			panic("gzip: " + err.Error()) // the level is a constant
		}
		return z
	default:
		return plain{w}
	}
}

// plain is a writer without compression.
type plain struct{ io.Writer }

// Close implements io.Closer.
func (plain) Close() error { return nil }

// maxWaitSeconds is the longest wait of a request for changes.
const maxWaitSeconds = 60

func (h feedHandlers) changes(c *call) (any, error) {
	c.unlimitedRead()
	ctx := c.slow
	page, err := h.Readers.Feeds.Changes(ctx, c.values.number("since"), c.limit(), c.values.seconds("wait"), c.fields(), c.currency())
	if err != nil {
		return nil, err
	}
	return response{status: http.StatusOK, contentType: jsonType, body: page.JSON()}, nil
}

func (h feedHandlers) events(c *call) (any, error) {
	c.unlimitedRead()
	return h.Readers.Feeds.Events(c.slow, c.values.number("after"), c.limit(), c.values.seconds("wait"), c.eventForm())
}

// unlimitedRead removes the time limit for reading the request. Otherwise the limit would end a
// request that waits.
func (c *call) unlimitedRead() {
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{}) // fails only in tests without a connection
}
