package sim

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"assay/internal/provider"
)

// discard is a Sink that only counts quotes.
type discard struct{ quotes int }

func (d *discard) Restart()                    { d.quotes = 0 }
func (d *discard) Quote(*provider.Quote) error { d.quotes++; return nil }
func (*discard) Reject(_, _, _ string)         {}

func BenchmarkReadFile(b *testing.B) {
	h, err := NewHandler(Options{Frozen: true})
	if err != nil {
		b.Fatal(err)
	}
	text, _ := get(h, "/v1/markets/sim-garnet/prices.json")
	s, err := New(Config{BaseURL: "http://sim.test"})
	if err != nil {
		b.Fatal(err)
	}
	sink := new(discard)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.read(b.Context(), strings.NewReader(text), sink, func(r *reader) error { return r.file("sim-garnet") }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(sink.quotes), "rows")
}

func BenchmarkServeFile(b *testing.B) {
	for _, encoding := range []string{"identity", "gzip"} {
		b.Run(encoding, func(b *testing.B) {
			h, err := NewHandler(Options{Frozen: true})
			if err != nil {
				b.Fatal(err)
			}
			req := httptest.NewRequest(http.MethodGet, "/v1/markets/sim-garnet/prices.json", nil)
			req.Header.Set("Accept-Encoding", encoding)
			w := &discardWriter{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				w.n = 0
				h.ServeHTTP(w, req)
			}
			b.SetBytes(w.n)
		})
	}
}

func BenchmarkServeBatch(b *testing.B) {
	h, err := NewHandler(Options{Frozen: true})
	if err != nil {
		b.Fatal(err)
	}
	names := h.Names()[1000 : 1000+BatchSize]
	w := &discardWriter{header: http.Header{}}
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	for b.Loop() {
		h.respond(w, req, names)
	}
}

// discardWriter is a ResponseWriter that only counts bytes.
type discardWriter struct {
	header http.Header
	n      int64
}

func (w *discardWriter) Header() http.Header         { return w.header }
func (w *discardWriter) Write(p []byte) (int, error) { w.n += int64(len(p)); return len(p), nil }
func (w *discardWriter) WriteHeader(int)             {}
