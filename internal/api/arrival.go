package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"syscall"
	"time"
)

// The minimum rate at which a body must arrive. Time spent waiting for memory does not
// count.
const (
	paceWindow = 10 * time.Second
	// paceBytes is the number of bytes that must arrive in each paceWindow, unless the
	// body ends earlier.
	paceBytes = 320 << 10
	// pushTimeout is the time limit for the body of a route that accepts more than
	// maxBody. It allows 32 MiB at 1 Mbit/s. Other routes use readTimeout.
	pushTimeout = 5 * time.Minute
)

// errClientLeft reports that the connection broke while the body was being read.
var errClientLeft = errors.New("the client closed the connection")

// arrival reads the body of a request. It counts the bytes, enforces the minimum rate and
// classifies read errors.
type arrival struct {
	io.ReadCloser
	ctx     context.Context //nolint:containedctx // an arrival is used by one request only
	control *http.ResponseController
	intake  *intake
	upload  *upload // nil until freeBytes are exceeded

	read   int64
	end    time.Time // deadline of the whole body
	window time.Time // end of the current paceWindow
	due    int64     // bytes that must be read by the end of the window
}

// arrive replaces the body of a request with an arrival. The caller must call done when it
// no longer needs any part of the body.
func (s *server) arrive(w http.ResponseWriter, r *http.Request, limit int64) *arrival {
	a := &arrival{ReadCloser: r.Body, ctx: r.Context(), control: http.NewResponseController(w), intake: s.bodies}
	// Connection deadlines use the real clock, not s.Now. Setting a deadline fails in
	// tests without a connection; the error is ignored.
	a.end = time.Now().Add(readTimeout)
	if limit > maxBody {
		a.intake, a.end = s.pushes, time.Now().Add(pushTimeout)
		_ = a.control.SetWriteDeadline(a.end.Add(writeTimeout))
	}
	a.nextWindow()
	r.Body = a
	return a
}

func (a *arrival) nextWindow() {
	a.window, a.due = time.Now().Add(paceWindow), a.read+paceBytes
	if a.window.After(a.end) {
		a.window = a.end
	}
	_ = a.control.SetReadDeadline(a.window)
}

// Read implements io.Reader.
func (a *arrival) Read(p []byte) (int, error) {
	const most = 32 << 10
	p = p[:min(len(p), most)]
	counted := a.read >= freeBytes
	if counted {
		if err := a.makeRoom(int64(len(p))); err != nil {
			return 0, err
		}
	} else {
		p = p[:min(int64(len(p)), freeBytes-a.read)]
	}
	n, err := a.ReadCloser.Read(p)
	a.read += int64(n)
	if counted && n < len(p) {
		a.upload.release(int64(len(p) - n))
	}
	switch {
	case errors.Is(err, io.EOF):
		// A read deadline after the end of the body would cancel the request's context
		// while the handler works.
		_ = a.control.SetReadDeadline(time.Time{})
	case err == nil && a.read >= a.due:
		a.nextWindow()
	case err != nil:
		err = bodyError(err)
	}
	return n, err
}

func (a *arrival) makeRoom(n int64) error {
	if a.upload == nil {
		a.upload = a.intake.begin()
	}
	waited, err := a.upload.take(a.ctx, n)
	if waited {
		a.nextWindow()
	}
	if err != nil {
		// Many clients read the response only after sending the whole body. The rest of
		// the body is therefore read and discarded.
		_, _ = io.CopyN(io.Discard, a.ReadCloser, maxPush)
	}
	return err
}

// done releases the memory that was reserved for the body.
func (a *arrival) done() {
	if a.upload != nil {
		a.upload.end()
	}
}

// bodyError classifies an error of reading a body. The client was too slow, closed the
// connection, or sent malformed HTTP. None of these is an error of the server.
func bodyError(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errClientLeft
	default:
		return &refusal{
			status: http.StatusBadRequest, code: "malformed_body",
			detail: "The body ends too early or its chunks are malformed. Send it again.",
		}
	}
}
