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

// How fast a body must arrive. Time in which it waits for room does not count.
const (
	paceWindow = 10 * time.Second
	// paceBytes must arrive in each paceWindow, or the rest of the body.
	paceBytes = 320 << 10
	// pushTimeout is how long a body over maxBody may take to arrive, 32 MiB at 1
	// Mbit/s; smaller ones have readTimeout.
	pushTimeout = 5 * time.Minute
)

// errClientLeft means that the connection broke while the body was read.
var errClientLeft = errors.New("the client closed the connection")

// arrival is a body as it arrives: counted, at a minimum rate, with errors that name
// the fault.
type arrival struct {
	io.ReadCloser
	ctx     context.Context //nolint:containedctx // an arrival lives as long as its request
	control *http.ResponseController
	intake  *intake
	upload  *upload // nil up to freeBytes

	read   int64
	end    time.Time // when the whole body must be there
	window time.Time // when this one ends
	due    int64     // bytes that must have been read then
}

// arrive counts and paces the body of a request. The caller calls done when nothing
// of the body is needed any more.
func (s *server) arrive(w http.ResponseWriter, r *http.Request, limit int64) *arrival {
	a := &arrival{ReadCloser: r.Body, ctx: r.Context(), control: http.NewResponseController(w), intake: s.bodies}
	// The connection's clock is the real one. Where there is no connection, as in a
	// handler's test, there is no deadline to set.
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

// Read is that of io.Reader.
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
		// From here on only the client's end matters, however long the work takes: a
		// deadline would end it.
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
		// Many clients read the response only after they have sent the whole body, so the
		// rest is read and dropped.
		_, _ = io.CopyN(io.Discard, a.ReadCloser, maxPush)
	}
	return err
}

// done gives back the room of the body.
func (a *arrival) done() {
	if a.upload != nil {
		a.upload.end()
	}
}

// bodyError classifies errors of reading a body: the client was too slow, is gone, or
// sent malformed HTTP. None is a failure of the server.
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
