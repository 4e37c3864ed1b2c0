package api

import (
	"context"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Limits of bodies in memory. A decoded body takes about three times its size.
const (
	// freeBytes of each body are not counted: postings and listings never wait.
	freeBytes = 16 << 10
	// intakeRoom is for all bodies of an intake together, except the first one.
	intakeRoom = 8 << 20
	// intakeWait is how long an upload waits for room, in all.
	intakeWait = 30 * time.Second
	// While more than largeBytes are in memory the garbage collector works towards
	// memoryGoal. Otherwise decoded bodies would be in memory twice, once as garbage. A
	// process stays below 192 MiB.
	largeBytes = 2 << 20
	memoryGoal = 100 << 20
)

// intake bounds how many bytes of bodies are in memory at once. They are counted as
// they arrive. When the room is used up, the upload that began first goes on alone,
// so that one of them always ends; the others wait.
type intake struct {
	mu      sync.Mutex
	uploads []*upload     // in the order in which they began; the first needs no room
	used    int64         // by all uploads but the first
	large   bool          // its bodies are large: the collector works harder
	goal    int64         // of the collector before; 0: it is as it was
	freed   chan struct{} // closed, and replaced, when room or the first place is free
}

// upload is a body of more than freeBytes. One goroutine uses it at a time.
type upload struct {
	in    *intake
	bytes int64
	left  time.Duration // that it may still wait
}

func newIntake(large bool) *intake { return &intake{large: large, freed: make(chan struct{})} }

// begin adds an upload. The caller calls end when nothing of the body is needed any
// more.
func (in *intake) begin() *upload {
	u := &upload{in: in, left: intakeWait}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.uploads = append(in.uploads, u)
	return u
}

// take waits until there is room for n more bytes, and reports whether it had to. It
// refuses when the upload has waited too long.
func (u *upload) take(ctx context.Context, n int64) (waited bool, err error) {
	for ; ; waited = true {
		freed, ok := u.try(n)
		if ok {
			return waited, nil
		}
		began, timeout := time.Now(), time.NewTimer(u.left)
		select {
		case <-freed:
		case <-ctx.Done():
			err = ctx.Err()
		case <-timeout.C:
			err = busy()
		}
		timeout.Stop()
		if err != nil {
			return true, err
		}
		u.left -= time.Since(began)
	}
}

func (u *upload) try(n int64) (freed chan struct{}, ok bool) {
	u.in.mu.Lock()
	defer u.in.mu.Unlock()
	if first := u.in.uploads[0] == u; !first {
		if u.in.used+n > intakeRoom {
			return u.in.freed, false
		}
		u.in.used += n
	}
	u.bytes += n
	u.in.collect()
	return nil, true
}

// release returns room for n bytes that did not arrive.
func (u *upload) release(n int64) {
	u.in.mu.Lock()
	defer u.in.mu.Unlock()
	u.bytes -= n
	if u.in.uploads[0] != u {
		u.in.used -= n
		u.in.notify()
	}
}

// end releases all room of the upload. The next upload is then the first one.
func (u *upload) end() {
	u.in.mu.Lock()
	defer u.in.mu.Unlock()
	i := slices.Index(u.in.uploads, u)
	u.in.uploads = slices.Delete(u.in.uploads, i, i+1)
	switch {
	case i > 0:
		u.in.used -= u.bytes
	case len(u.in.uploads) > 0:
		u.in.used -= u.in.uploads[0].bytes
	}
	u.in.collect()
	u.in.notify()
}

// collect needs the lock.
func (in *intake) collect() {
	total := in.used
	if len(in.uploads) > 0 {
		total += in.uploads[0].bytes
	}
	switch {
	case in.large && total > largeBytes && in.goal == 0:
		in.goal = debug.SetMemoryLimit(-1)
		debug.SetMemoryLimit(min(in.goal, memoryGoal))
	case total <= largeBytes && in.goal != 0:
		debug.SetMemoryLimit(in.goal)
		in.goal = 0
	}
}

// notify needs the lock.
func (in *intake) notify() {
	close(in.freed)
	in.freed = make(chan struct{})
}

func busy() error {
	return &refusal{
		status: http.StatusServiceUnavailable, code: "busy",
		detail: "Too many large bodies are being processed. Send this one again later.",
		header: http.Header{"Retry-After": {seconds(retryAfter)}},
	}
}
