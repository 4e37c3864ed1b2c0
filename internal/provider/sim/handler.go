package sim

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"

	"assay/internal/provider"
	"assay/internal/strictjson"
)

// Options configures the simulation. The zero value serves the whole catalog on ten
// markets, with prices that change over time.
type Options struct {
	Seed    uint64 // seed of the prices
	Names   int    // number of names; default: the catalog's; names beyond the catalog have a suffix
	Markets int    // number of markets; default DefaultMarkets

	Frozen       bool          // prices change only with Advance; times are constant
	Tick         time.Duration // time between price changes unless Frozen; default Interval
	TicksPerWeek int           // ticks in which 55-60 % of prices change; default TicksPerWeek

	Latency time.Duration  // delay before each response
	Limit   provider.Limit // requests over the limit get status 429; zero: no limit

	Now func() time.Time // default time.Now
}

// Handler serves the simulated markets over HTTP. Its methods are safe for concurrent use.
// Market files are streamed, so memory use does not grow with their size.
type Handler struct {
	o        Options
	model    *model
	started  time.Time
	routes   *http.ServeMux
	advanced atomic.Int64
	log      *log
	buffers  sync.Pool // *[]byte
	zips     sync.Pool // *gzip.Writer
}

// NewHandler returns a Handler. It returns an error if the number of names or markets is
// out of range.
func NewHandler(o Options) (*Handler, error) {
	var err error
	if o.Markets, err = checkMarkets(o.Markets); err != nil {
		return nil, err
	}
	if o.Names < 0 || o.Names > MaxNames {
		return nil, fmt.Errorf("%d names: use 1 to %d", o.Names, MaxNames)
	}
	if o.Tick <= 0 {
		o.Tick = Interval
	}
	if o.TicksPerWeek <= 0 {
		o.TicksPerWeek = TicksPerWeek
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	cat := NewCatalog()
	if o.Names > 0 {
		cat = cat.resize(o.Names)
	}
	h := &Handler{
		o:       o,
		model:   &model{seed: o.Seed, cat: cat, markets: firstMarkets(o.Markets), week: int64(o.TicksPerWeek), exp: newExponential()},
		started: o.Now(),
		routes:  http.NewServeMux(),
		log:     newLog(o.Limit, o.Now),
	}
	h.routes.HandleFunc("GET /v1/markets/{market}/prices.json", h.file)
	h.routes.HandleFunc("POST /v1/prices/batch", h.batch)
	h.routes.HandleFunc("GET /v1/prices", h.single)
	return h, nil
}

// Names returns the quoted names in catalog order.
func (h *Handler) Names() []string { return h.model.cat.Names() }

// Advance moves prices by a number of ticks.
func (h *Handler) Advance(ticks int) { h.advanced.Add(int64(ticks)) }

// Requests returns the number of requests by method and path, such as "GET /v1/prices".
// The numbers include refused requests.
func (h *Handler) Requests() map[string]int { return h.log.counts() }

// Recent returns up to 10,000 of the latest requests, oldest first.
func (h *Handler) Recent() []Hit { return h.log.recent() }

// ServeHTTP enforces the limit, waits for the latency and serves the request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if wait := h.log.record(r); wait > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int64((wait+time.Second-1)/time.Second)))
		fail(w, http.StatusTooManyRequests, "too many requests")
		return
	}
	if h.o.Latency > 0 {
		timer := time.NewTimer(h.o.Latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	h.routes.ServeHTTP(w, r)
}

// encoder returns an encoder for the current tick. The same request returns the same
// response, including its times, throughout a tick.
func (h *Handler) encoder() *encoder {
	tick, at := h.advanced.Load(), h.started
	if !h.o.Frozen {
		now := h.o.Now()
		tick, at = tick+now.UnixNano()/int64(h.o.Tick), now.Truncate(h.o.Tick)
	}
	return &encoder{model: h.model, tick: max(tick, 0), time: at.Unix()}
}

// flushAt is the number of buffered bytes at which the buffer is written.
const flushAt = 32 << 10

// file streams all quotes of one market.
func (h *Handler) file(w http.ResponseWriter, r *http.Request) {
	v := h.market(r.PathValue("market"))
	if v == nil {
		fail(w, http.StatusNotFound, "no such market")
		return
	}
	out, done := h.begin(w, r)
	defer done()
	e, buf := h.encoder(), h.buffer()
	defer h.buffers.Put(buf)

	b := append(e.terms(append((*buf)[:0], '{'), v), ',')
	b = append(e.stamp(b), `,"items":[`...)
	for i := range h.model.cat.Len() {
		b = e.fileRows(b, v, i)
		if len(b) < flushAt {
			continue
		}
		// Keep the last comma in the buffer, because this may be the last row.
		if _, err := out.Write(b[:len(b)-1]); err != nil {
			return // the client closed the connection
		}
		b = append(b[:0], b[len(b)-1])
	}
	b = append(closeList(b, ']'), '}')
	_, _ = out.Write(b) // an error means that the client closed the connection
	*buf = b
}

// maxBatchBody is the maximum size of a batch request's body. It is large enough for 500
// of the longest names in escaped form.
const maxBatchBody = 4 << 20

// batch serves the quotes of the names in the request's body.
func (h *Handler) batch(w http.ResponseWriter, r *http.Request) {
	names, err := readNames(http.MaxBytesReader(w, r.Body, maxBatchBody))
	switch {
	case err != nil:
		fail(w, http.StatusBadRequest, err.Error())
	case len(names) == 0 || len(names) > BatchSize:
		fail(w, http.StatusBadRequest, fmt.Sprintf("%d names: use 1 to %d", len(names), BatchSize))
	default:
		h.respond(w, r, names)
	}
}

// single serves the quotes of the name in the query string.
func (h *Handler) single(w http.ResponseWriter, r *http.Request) {
	names := r.URL.Query()["name"]
	if len(names) != 1 || names[0] == "" {
		fail(w, http.StatusBadRequest, "use exactly one name")
		return
	}
	h.respond(w, r, names)
}

func (h *Handler) respond(w http.ResponseWriter, r *http.Request, names []string) {
	out, done := h.begin(w, r)
	defer done()
	buf := h.buffer()
	defer h.buffers.Put(buf)
	b := h.encoder().response((*buf)[:0], names)
	_, _ = out.Write(b) // an error means that the client closed the connection
	*buf = b
}

func (h *Handler) market(key string) *market {
	for i := range h.model.markets {
		if h.model.markets[i].key == key {
			return &h.model.markets[i]
		}
	}
	return nil
}

func (h *Handler) buffer() *[]byte {
	if b, ok := h.buffers.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, flushAt+4<<10)
	return &b
}

// readNames decodes {"names":[...]}.
func readNames(body io.Reader) ([]string, error) {
	in := strictjson.NewReader(body)
	var names []string
	in.Object(nil, func(member string) bool {
		if member != "names" {
			return false
		}
		in.Array(func(int) {
			name, _ := in.Text(0, maxBatchBody)
			names = append(names, name)
		})
		return true
	})
	if err := in.Finish(); err != nil {
		return nil, fmt.Errorf("malformed request: %w", err)
	}
	return names, nil
}

// begin starts a successful response. It compresses the response if the client accepts
// gzip. The caller must call done after the last write.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request) (out io.Writer, done func()) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Vary", "Accept-Encoding")
	if !acceptsGzip(r.Header) {
		return w, func() {}
	}
	w.Header().Set("Content-Encoding", "gzip")
	z, ok := h.zips.Get().(*gzip.Writer)
	if !ok {
		z, _ = gzip.NewWriterLevel(w, gzip.BestSpeed) // fails only for an invalid level
	} else {
		z.Reset(w)
	}
	return z, func() {
		_ = z.Close() // an error means that the client closed the connection
		h.zips.Put(z)
	}
}

// acceptsGzip reports whether a request's header accepts a response in gzip.
func acceptsGzip(h http.Header) bool {
	for part := range strings.SplitSeq(h.Get("Accept-Encoding"), ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if coding == "gzip" {
			return strings.TrimSpace(weight) != "q=0"
		}
	}
	return false
}

// fail writes an error response with a status and a reason.
func fail(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(appendString([]byte(`{"error":`), reason), '}'))
}
