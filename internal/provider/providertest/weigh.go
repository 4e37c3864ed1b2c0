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

// Answer is a JSON response of any length, and its reader.
type Answer struct {
	Head string
	Row  func(i int) string // the rows, with separators
	Tail string
	Read func(body io.Reader, sink provider.Sink) error
	// Small is set if real responses are so small that speed does not matter.
	Small bool
}

// Limits for reading a response.
const (
	weighed      = 64 << 20 // size of the response
	allowance    = 40 << 20 // memory above an idle process
	growth       = 2        // growth of the heap before a collection, as a multiple of the live heap
	weighEvery   = 4 << 20
	timedAgain   = 20 // attempts to be fast enough
	timedSize    = 4 << 20
	slowerTenths = 20 // maximum time, in tenths of a bare scan of the tokens
	looserTenths = 25 // the same for a short run on a busy machine
)

// Weigh checks that reading a response of 64 MiB costs at most 40 MiB above an idle
// process, of which half may be garbage, and at most twice the time of a scan of its
// tokens, the minimum for any reader. Short runs allow for a busy machine. Do not call it
// in a parallel test.
func Weigh(t *testing.T, a Answer) {
	t.Helper()
	t.Run("memory", a.weigh)
	if !a.Small {
		t.Run("speed", a.race)
	}
}

func (a *Answer) weigh(t *testing.T) {
	idle := held()
	body := &rows{answer: a, size: weighed, weigh: true, most: idle}
	if err := a.Read(body, Discard{}); err != nil {
		t.Fatal(err)
	}
	cost := (body.most - idle) * growth
	t.Logf("%d rows, %d MiB: %d MiB above idle", body.row, body.written>>20, cost>>20)
	if cost > allowance {
		t.Errorf("reading takes %d MiB above idle, want at most %d", cost>>20, allowance>>20)
	}
}

// race compares the minimum times of several attempts, because other load on the machine
// slows down single ones.
func (a *Answer) race(t *testing.T) {
	most := int64(randtest.Count(looserTenths, slowerTenths))
	body := a.body(timedSize)
	var ours, floor time.Duration
	for i := range timedAgain {
		o, f := timed(t, body, a.read), timed(t, body, scan)
		if i == 0 {
			ours, floor = o, f
		}
		if ours, floor = min(ours, o), min(floor, f); 10*ours.Nanoseconds() <= most*floor.Nanoseconds() {
			t.Logf("%v, and a scan %v", ours, floor)
			return
		}
	}
	t.Errorf("reading takes %v, more than %d tenths of the %v of a scan of its tokens", ours, most, floor)
}

// timed measures CPU time with garbage collection, because wall-clock time depends on other
// load on the machine.
func timed(t *testing.T, body []byte, read func(io.Reader) error) time.Duration {
	t.Helper()
	begun := used(t)
	if err := read(bytes.NewReader(body)); err != nil {
		t.Fatal(err)
	}
	return used(t) - begun
}

func used(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Bench compares reading a response of 16 MiB with a scan of its tokens.
func Bench(b *testing.B, a Answer) {
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

func (a *Answer) body(size int64) []byte {
	var b bytes.Buffer
	_, _ = b.ReadFrom(&rows{answer: a, size: size}) // it never fails
	return b.Bytes()
}

func (a *Answer) read(body io.Reader) error { return a.Read(body, Discard{}) }

func scan(body io.Reader) error {
	// Hide the buffer's type: the decoder would skip reading from a bytes.Buffer.
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

// rows generates a response while it is read.
type rows struct {
	answer  *Answer
	size    int64 // no row begins after it
	left    string
	row     int
	ended   bool
	written int64
	weigh   bool   // whether to measure memory from time to time
	weighed int64  // bytes written at the last measurement
	most    uint64 // maximum measured memory
}

func (r *rows) Read(p []byte) (n int, err error) {
	if r.weigh && r.written/weighEvery != r.weighed/weighEvery {
		r.most, r.weighed = max(r.most, held()), r.written
	}
	for n < len(p) {
		if r.left == "" && !r.next() {
			break
		}
		c := copy(p[n:], r.left)
		r.left = r.left[c:]
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
		r.left = r.answer.Head + r.answer.Row(0)
		r.row++
	case r.written < r.size:
		r.left = r.answer.Row(r.row)
		r.row++
	case !r.ended:
		r.left, r.ended = r.answer.Tail, true
	default:
		return false
	}
	return true
}

// held returns the live heap, in bytes.
func held() uint64 {
	runtime.GC()
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
