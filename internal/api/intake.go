package api

import (
	"context"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Memory limits of request bodies. A decoded body takes about three times its size.
const (
	// freeBytes is the part of each body that is not counted. Requests with small bodies,
	// such as postings and listings, therefore never wait.
	freeBytes = 16 << 10
	// intakeRoom is the limit for all uploads of an intake except the first one.
	intakeRoom = 8 << 20
	// intakeWait is the total time that one upload may wait for memory.
	intakeWait = 30 * time.Second
	// While uploads hold more than largeBytes, the memory limit of the Go runtime is
	// memoryGoal. Without this limit, garbage would double the memory of decoded bodies. The limit
	// keeps a process below 192 MiB.
	largeBytes = 2 << 20
	memoryGoal = 100 << 20
)

// intake limits the total size of request bodies in memory. It counts bytes as they
// arrive. When intakeRoom is used up, only the first upload continues and the others
// wait. At least one upload therefore always makes progress.
type intake struct {
	mu      sync.Mutex
	uploads []*upload     // in the order of their start; the first one is not limited
	used    int64         // bytes of all uploads except the first one
	large   bool          // true if the intake may lower the memory limit of the Go runtime
	goal    int64         // memory limit to restore; 0: the limit is unchanged
	freed   chan struct{} // closed and replaced when memory is freed or the first upload changes
}

// upload is a body of more than freeBytes. It is not safe for concurrent use.
type upload struct {
	in    *intake
	bytes int64
	left  time.Duration // remaining time that it may wait
}

func newIntake(large bool) *intake { return &intake{large: large, freed: make(chan struct{})} }

// begin adds an upload. The caller must call end when it no longer needs the body.
func (in *intake) begin() *upload {
	u := &upload{in: in, left: intakeWait}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.uploads = append(in.uploads, u)
	return u
}

// take reserves n more bytes and waits until they are available. It reports whether it had
// to wait. It returns an error when the upload has waited for intakeWait in total.
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

// release returns n reserved bytes that did not arrive.
func (u *upload) release(n int64) {
	u.in.mu.Lock()
	defer u.in.mu.Unlock()
	u.bytes -= n
	if u.in.uploads[0] != u {
		u.in.used -= n
		u.in.notify()
	}
}

// end releases all bytes of the upload and removes it from the intake.
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

// collect lowers or restores the memory limit of the Go runtime. The caller must hold mu.
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

// notify wakes the uploads that wait. The caller must hold mu.
func (in *intake) notify() {
	close(in.freed)
	in.freed = make(chan struct{})
}

func busy() error {
	return &refusal{
		status: http.StatusServiceUnavailable, code: "busy",
		detail: "Too many large bodies are being processed. Retry after the time in Retry-After.",
		header: http.Header{"Retry-After": {seconds(retryAfter)}},
	}
}
