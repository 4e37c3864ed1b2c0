package providertest

import (
	"bytes"
	"io"
	"runtime"
	"runtime/metrics"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/provider"
	"assay/internal/randtest"
)

// Response is a JSON response of arbitrary length and a function that reads it.
type Response struct {
	Head string
	Row  func(i int) string // returns a row and its separator
	Tail string
	Read func(body io.Reader, sink provider.Sink) error
	// Small is set if real responses are so small that speed does not matter.
	Small bool
}

// Limits for reading a response.
const (
	responseSize   = 64 << 20 // size of the response
	maxMemory      = 40 << 20 // maximum memory above an idle process
	heapGrowth     = 2        // heap size before a collection, as a multiple of the live heap
	measureEvery   = 4 << 20
	maxAttempts    = 20 // maximum number of attempts to reach the speed
	speedSize      = 4 << 20
	maxTenths      = 20 // maximum time, in tenths of the time of a token scan
	maxTenthsShort = 25 // the same for short test runs, which allow for a busy machine
)

// CheckCost checks the memory and time to read a response of 64 MiB. Reading may take 40 MiB
// above an idle process; half of that may be garbage. It may take twice the time of a token
// scan, which is the minimum for any reader. Short test runs allow more time. Do not call
// CheckCost in a parallel test.
func CheckCost(t *testing.T, a Response) {
	t.Helper()
	t.Run("memory", a.checkMemory)
	if !a.Small {
		t.Run("speed", a.checkSpeed)
	}
}

func (a *Response) checkMemory(t *testing.T) {
	idle := liveHeap()
	body := &rows{response: a, size: responseSize, measure: true, maxHeap: idle}
	if err := a.Read(body, Discard{}); err != nil {
		t.Fatal(err)
	}
	cost := (body.maxHeap - idle) * heapGrowth
	t.Logf("%d rows, response of %d MiB: %d MiB of memory above idle", body.row, body.written>>20, cost>>20)
	if cost > maxMemory {
		t.Errorf("got %d MiB of memory above idle, want at most %d", cost>>20, maxMemory>>20)
	}
}

// checkSpeed compares the minimum times of several attempts, because other load on the machine
// slows down some of them.
func (a *Response) checkSpeed(t *testing.T) {
	limit := int64(randtest.Count(maxTenthsShort, maxTenths))
	body := a.body(speedSize)
	var ours, floor time.Duration
	for i := range maxAttempts {
		o, f := cpuTimeOf(t, body, a.read), cpuTimeOf(t, body, scan)
		if i == 0 {
			ours, floor = o, f
		}
		if ours, floor = min(ours, o), min(floor, f); 10*ours.Nanoseconds() <= limit*floor.Nanoseconds() {
			t.Logf("response read in %v, token scan in %v", ours, floor)
			return
		}
	}
	t.Errorf("got %v, want at most %d tenths of a token scan (%v)", ours, limit, floor)
}

// cpuTimeOf returns the CPU time of read, including garbage collection. Wall-clock time would
// depend on other load on the machine.
func cpuTimeOf(t *testing.T, body []byte, read func(io.Reader) error) time.Duration {
	t.Helper()
	begun := cpuTime(t)
	if err := read(bytes.NewReader(body)); err != nil {
		t.Fatal(err)
	}
	return cpuTime(t) - begun
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Bench compares the time to read a response of 16 MiB with a scan of its tokens.
func Bench(b *testing.B, a Response) {
	b.Helper()
	body := a.body(16 << 20)
	for name, read := range map[string]func(io.Reader) error{"read": a.read, "tokens": scan} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := read(bytes.NewReader(body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func (a *Response) body(size int64) []byte {
	var b bytes.Buffer
	_, _ = b.ReadFrom(&rows{response: a, size: size}) // never fails
	return b.Bytes()
}

func (a *Response) read(body io.Reader) error { return a.Read(body, Discard{}) }

func scan(body io.Reader) error {
	// Hide the type of the buffer, because the decoder would not copy from a bytes.Buffer.
	for dec := jsontext.NewDecoder(struct{ io.Reader }{body}); ; {
		switch _, err := dec.ReadToken(); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

// rows is a reader that generates a response.
type rows struct {
	response *Response
	size     int64 // no row starts after this many bytes
	buffered string
	row      int
	ended    bool
	written  int64
	measure  bool   // whether to measure memory
	measured int64  // value of written at the last measurement
	maxHeap  uint64 // maximum measured memory
}

func (r *rows) Read(p []byte) (n int, err error) {
	if r.measure && r.written/measureEvery != r.measured/measureEvery {
		r.maxHeap, r.measured = max(r.maxHeap, liveHeap()), r.written
	}
	for n < len(p) {
		if r.buffered == "" && !r.next() {
			break
		}
		c := copy(p[n:], r.buffered)
		r.buffered = r.buffered[c:]
		n += c
	}
	r.written += int64(n)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *rows) next() bool {
	switch {
	case r.row == 0:
		r.buffered = r.response.Head + r.response.Row(0)
		r.row++
	case r.written < r.size:
		r.buffered = r.response.Row(r.row)
		r.row++
	case !r.ended:
		r.buffered, r.ended = r.response.Tail, true
	default:
		return false
	}
	return true
}

// liveHeap returns the size of the live heap in bytes.
func liveHeap() uint64 {
	runtime.GC()
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
