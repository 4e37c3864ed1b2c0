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

// Options is what is simulated. The zero value is the whole catalogue on ten
// markets, with prices that drift by the clock.
type Options struct {
	Seed    uint64 // of the prices
	Names   int    // how many names; 0: the whole catalogue; more are made by suffix
	Markets int    // how many markets; 0: ten

	Frozen       bool          // prices change by Advance only, times not at all
	Tick         time.Duration // how long prices stay the same unless Frozen; default Interval
	TicksPerWeek int           // pace: 55-60 % of prices change within so many ticks; default TicksPerWeek

	Latency time.Duration  // wait before each response
	Limit   provider.Limit // beyond it the response is 429; zero: none

	Now func() time.Time // default time.Now
}

// Handler serves the simulated markets over HTTP. Its methods may be used
// concurrently; responses take memory for one chunk each, whatever their size.
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

// NewHandler returns a Handler. It fails for sizes that cannot be simulated.
func NewHandler(o Options) (*Handler, error) {
	var err error
	if o.Markets, err = checkMarkets(o.Markets); err != nil {
		return nil, err
	}
	if o.Names < 0 || o.Names > MaxNames {
		return nil, fmt.Errorf("%d names: want 1 to %d", o.Names, MaxNames)
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
	cat := NewCatalogue()
	if o.Names > 0 {
		cat = cat.resize(o.Names)
	}
	h := &Handler{
		o:       o,
		model:   &model{seed: o.Seed, cat: cat, venues: venues(o.Markets), week: int64(o.TicksPerWeek), exp: newExponential()},
		started: o.Now(),
		routes:  http.NewServeMux(),
		log:     newLog(o.Limit, o.Now),
	}
	h.routes.HandleFunc("GET /v1/markets/{market}/prices.json", h.file)
	h.routes.HandleFunc("POST /v1/prices/batch", h.batch)
	h.routes.HandleFunc("GET /v1/prices", h.single)
	return h, nil
}

// Names returns the names that are quoted, in the catalogue's order.
func (h *Handler) Names() []string { return h.model.cat.Names() }

// Advance moves prices on by so many ticks.
func (h *Handler) Advance(ticks int) { h.advanced.Add(int64(ticks)) }

// Requests returns how many requests arrived, by method and path
// ("GET /v1/prices"), refused ones included.
func (h *Handler) Requests() map[string]int { return h.log.counts() }

// Recent returns the latest requests, oldest first; how many are kept is
// bounded.
func (h *Handler) Recent() []Hit { return h.log.recent() }

// ServeHTTP serves one request, after the latency and within the limit.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if wait := h.log.note(r); wait > 0 {
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

// encoder returns an encoder as of now. Whatever is queried within a tick gets the
// same response, times included.
func (h *Handler) encoder() *encoder {
	tick, at := h.advanced.Load(), h.started
	if !h.o.Frozen {
		now := h.o.Now()
		tick, at = tick+now.UnixNano()/int64(h.o.Tick), now.Truncate(h.o.Tick)
	}
	return &encoder{model: h.model, tick: max(tick, 0), time: at.Unix()}
}

// flushAt is from which size on what was encoded is sent.
const flushAt = 32 << 10

// file streams all quotes of one market.
func (h *Handler) file(w http.ResponseWriter, r *http.Request) {
	v := h.venue(r.PathValue("market"))
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
		// What is kept back is the last row's comma, in case that no row follows.
		if _, err := out.Write(b[:len(b)-1]); err != nil {
			return // the client went away
		}
		b = append(b[:0], b[len(b)-1])
	}
	b = append(closeList(b, ']'), '}')
	_, _ = out.Write(b) // a client that went away needs no response
	*buf = b
}

// maxBatchBody is enough for 500 of the longest names, escaped.
const maxBatchBody = 4 << 20

// batch responds about the names in the body.
func (h *Handler) batch(w http.ResponseWriter, r *http.Request) {
	names, err := readNames(http.MaxBytesReader(w, r.Body, maxBatchBody))
	switch {
	case err != nil:
		fail(w, http.StatusBadRequest, err.Error())
	case len(names) == 0 || len(names) > BatchSize:
		fail(w, http.StatusBadRequest, fmt.Sprintf("%d names: want 1 to %d", len(names), BatchSize))
	default:
		h.answer(w, r, names)
	}
}

// single responds about the name in the query.
func (h *Handler) single(w http.ResponseWriter, r *http.Request) {
	names := r.URL.Query()["name"]
	if len(names) != 1 || names[0] == "" {
		fail(w, http.StatusBadRequest, "want one name")
		return
	}
	h.answer(w, r, names)
}

func (h *Handler) answer(w http.ResponseWriter, r *http.Request, names []string) {
	out, done := h.begin(w, r)
	defer done()
	buf := h.buffer()
	defer h.buffers.Put(buf)
	b := h.encoder().answer((*buf)[:0], names)
	_, _ = out.Write(b) // a client that went away needs no response
	*buf = b
}

func (h *Handler) venue(key string) *venue {
	for i := range h.model.venues {
		if h.model.venues[i].key == key {
			return &h.model.venues[i]
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

// readNames reads {"names":[...]}.
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

// begin starts a good response, compressed when the client requests that. done
// ends it.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request) (out io.Writer, done func()) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Vary", "Accept-Encoding")
	if !acceptsGzip(r.Header) {
		return w, func() {}
	}
	w.Header().Set("Content-Encoding", "gzip")
	z, ok := h.zips.Get().(*gzip.Writer)
	if !ok {
		z, _ = gzip.NewWriterLevel(w, gzip.BestSpeed) // fails for levels that there are not
	} else {
		z.Reset(w)
	}
	return z, func() {
		_ = z.Close() // a client that went away needs no response
		h.zips.Put(z)
	}
}

// acceptsGzip reports whether a client takes compressed responses.
func acceptsGzip(h http.Header) bool {
	for part := range strings.SplitSeq(h.Get("Accept-Encoding"), ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if coding == "gzip" {
			return strings.TrimSpace(weight) != "q=0"
		}
	}
	return false
}

// fail responds with a status and a reason.
func fail(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(appendString([]byte(`{"error":`), reason), '}'))
}
