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

// Answer is a JSON response of any length, and what reads it.
type Answer struct {
	Head string
	Row  func(i int) string // the rows, with what stands between them
	Tail string
	Read func(body io.Reader, sink provider.Sink) error
	// Small is set where real responses are so small that the speed does not matter.
	Small bool
}

// What reading a response may cost.
const (
	weighed      = 64 << 20 // of this size
	allowance    = 40 << 20 // above an idle process
	growth       = 2        // times what is held, which the collector lets memory grow to
	weighEvery   = 4 << 20
	timedAgain   = 20 // times, until once it is fast enough
	timedSize    = 4 << 20
	slowerTenths = 20 // of the time of a bare scan of its tokens, at most
	looserTenths = 25 // where a busy machine is not to fail a short run
)

// Weigh checks that a response of 64 MiB costs at most 40 MiB above an idle
// process, of which half may be garbage, and that it is read at half of the speed of
// the least that any reader must do, a scan of its tokens, or more; short runs allow
// for a busy machine. It belongs in no parallel test.
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

// race compares the least that was spent, until it is good enough: what else runs
// on the machine makes either dearer.
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

// timed measures the processor's time, collecting garbage included: that of the
// clock measures how busy the machine is.
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

// Bench measures how a response of 16 MiB is read beside a scan of its tokens.
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
	// Not a buffer that the decoder would know: it would be spared its reading.
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

// rows writes a response while it is read.
type rows struct {
	answer  *Answer
	size    int64 // no row begins behind it
	left    string
	row     int
	ended   bool
	written int64
	weigh   bool   // whether to see, now and then, how much memory is held
	weighed int64  // how much was written when it last did
	most    uint64 // the most of it
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

// held returns how many bytes of memory are in use and no garbage.
func held() uint64 {
	runtime.GC()
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
