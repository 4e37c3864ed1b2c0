package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"assay/internal/fault"
	"assay/internal/view"
)

const (
	// maxStreams is the maximum number of clients of the stream.
	maxStreams = 1_000
	// heartbeat is the maximum time between two writes, because proxies close a silent connection.
	heartbeat = 15 * time.Second
	// streamTick is the interval at which a stream checks the progress of a job.
	streamTick = time.Second
	// streamPatience is how long a write may take. A client that reads more slowly is disconnected.
	// It can reconnect with Last-Event-ID, so the server stores nothing for it.
	streamPatience = 10 * time.Second
	// streamFarewell is how much longer a write may block. If it succeeds in this time, the client gets
	// the reason, within the same time again.
	streamFarewell = 5 * time.Second
	// streamPiece is the maximum size of one write. A slow client has streamPatience for each write.
	streamPiece = 64 << 10
	// streamRate limits the bytes per second to all clients together while prices change. This leaves
	// nearly all processor time to a refresh. Clients receive the remaining events afterwards.
	streamRate = 32 << 20
	// maxBehind limits the streams that read events from the database instead of memory.
	maxBehind = 16
	// retryStream is the time after which a disconnected client should reconnect, in milliseconds.
	retryStream = "3000"
)

const streamType = "text/event-stream"

// stream sends events as they happen.
func (h feedHandlers) stream(c *call) (any, error) {
	after, err := h.streamStart(c)
	if err != nil {
		return nil, err
	}
	events, err := h.Readers.Feeds.OpenStream(c.slow, c.eventForm())
	if err != nil {
		return nil, err
	}
	defer events.Close()
	if c.Method == http.MethodHead {
		c.w.Header().Set("Content-Type", streamType)
		return response{status: http.StatusOK}, nil
	}
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		f := fault.New(fault.Busy, "busy", "Too many clients read the stream. Retry later, or use GET /api/prices/changes.")
		f.RetryAfter = time.Minute
		return nil, f
	}
	c.unlimitedRead()
	s := &streamer{call: c, h: h, events: events, control: http.NewResponseController(c.w), after: after}
	c.w.Header().Set("Content-Type", streamType)
	c.w.Header().Set("X-Accel-Buffering", "no") // nginx would delay the events
	c.w.WriteHeader(http.StatusOK)
	err = s.run(c.slow)
	h.ended.WithLabelValues(endOf(c.Request.Context(), err)).Inc()
	// A failed write also cancels the context. Of these failures, only a slow client is logged.
	if err != nil && (c.Request.Context().Err() == nil || errors.Is(err, errSlow)) {
		h.Logger.InfoContext(c.Request.Context(), "stream ended", "request_id", c.id, "error", err)
		panic(http.ErrAbortHandler)
	}
	return response{}, nil
}

// endOf returns why a stream ended, for the metric. The context is that of the connection.
func endOf(connection context.Context, err error) string {
	f := fault.Of(err)
	switch {
	case errors.Is(err, errSlow):
		return endedSlow
	case errors.Is(err, errStopping):
		return endedByStopping
	case f != nil && f.Kind == fault.Expired:
		return endedExpired
	case err == nil || connection.Err() != nil:
		return endedByClient
	default:
		return endedByError
	}
}

// streamStart returns the number after which a stream begins. It is the header Last-Event-ID, which
// reconnecting clients send, otherwise the parameter since, otherwise the last number.
func (h feedHandlers) streamStart(c *call) (int64, error) {
	last, err := h.Readers.Feeds.LastNumber(c.slow)
	if err != nil {
		return 0, err
	}
	text := c.Header.Get("Last-Event-ID")
	if text == "" {
		text = c.values["since"]
	}
	if text == "" {
		return last, nil
	}
	after, err := strconv.ParseInt(text, 10, 64)
	if err != nil || after < 0 {
		f := fault.New(fault.Invalid, "invalid_parameters", "The header Last-Event-ID must be the id of an event of this stream.")
		f.Fields = []fault.Field{{Pointer: "/header/Last-Event-ID", Detail: "must be the id of an event"}}
		return 0, f
	}
	return after, h.Readers.Feeds.CheckNumber(c.slow, after)
}

// streamer sends events to one client. It has no queue: it reads the next events after the client
// has received the previous ones.
type streamer struct {
	*call
	h        feedHandlers
	events   *view.Stream
	control  *http.ResponseController
	after    int64
	rest     []byte // rest of the event of which a part is sent
	progress string
	sentAt   time.Time
}

func (s *streamer) run(ctx context.Context) error {
	err := s.sendAll(ctx)
	if errors.Is(err, errSlow) && !errors.Is(err, os.ErrDeadlineExceeded) {
		err = s.fail(err)
	}
	return err
}

func (s *streamer) sendAll(ctx context.Context) error {
	if err := s.send([]byte("retry: " + retryStream + "\n\n")); err != nil {
		return err
	}
	feed := s.h.Readers.Feeds
	for ctx.Err() == nil {
		var err error
		switch last := feed.KnownNumber(); {
		case s.after >= last:
			err = s.idle(ctx, last)
		case s.events.Behind(s.after):
			err = s.catchUp(ctx)
		default:
			err = s.next(ctx, s.events.Read)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// next reads the next events and sends them.
func (s *streamer) next(ctx context.Context, read func(context.Context, int64) (view.Frames, error)) error {
	found, err := read(ctx, s.after)
	if err != nil {
		return s.fail(err)
	}
	sent := 0
	for piece := range slices.Chunk(found.Text, streamPiece) {
		if err := s.h.pace.wait(ctx, len(piece), s.h.Readers.Feeds.Quiet); err != nil {
			return err
		}
		sent += len(piece)
		s.rest = found.Text[sent:eventEnd(found.Text, sent)]
		if err := s.send(piece); err != nil {
			return err
		}
	}
	s.after = found.Next
	return nil
}

// eventEnd returns the end of the event that has the last of the first n bytes of a text.
func eventEnd(text []byte, n int) int {
	from := n - 2 // these bytes can be the end
	return from + bytes.Index(text[from:], []byte("\n\n")) + 2
}

// catchUp sends older events when fewer than maxBehind streams do so. While it waits, it sends
// heartbeats.
func (s *streamer) catchUp(ctx context.Context) error {
	select {
	case s.h.behind <- struct{}{}:
		defer func() { <-s.h.behind }()
		return s.next(ctx, s.events.Older)
	case <-ctx.Done():
		return nil
	case <-time.After(heartbeat):
		return s.send([]byte(heartbeatFrame))
	}
}

// pace limits the rate of all streams together to streamRate while prices change.
type pace struct {
	turn    chan struct{}
	written int // bytes since the last pause; only the holder of the turn may access it
}

// wait waits until a stream may write n bytes.
func (p *pace) wait(ctx context.Context, n int, quiet func() bool) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.written += n; p.written < streamPiece {
		return nil
	}
	pause := time.Duration(p.written) * time.Second / streamRate
	p.written = 0
	if quiet() {
		return nil
	}
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// heartbeatFrame is a comment, which clients ignore.
const heartbeatFrame = ": heartbeat\n\n"

// errSlow ends the stream of a client that does not read.
var errSlow = fault.New(fault.Busy, "slow_client", "The client did not read for %s. Connect again with the last id as Last-Event-ID.", streamPatience)

// errStopping ends the streams when the server stops. Clients connect to another instance.
var errStopping = errors.New("the server is stopping")

// idle waits up to streamTick for an event after last. Then it sends the progress of a job if it has
// changed, or a heartbeat if one is due.
func (s *streamer) idle(ctx context.Context, last int64) error {
	waiting, cancel := context.WithTimeout(ctx, streamTick)
	defer cancel()
	if !s.h.Readers.Feeds.AwaitEvent(waiting, last) {
		return errStopping
	}
	frame, err := s.h.Readers.Jobs.Progress(ctx)
	switch {
	case err != nil:
		return err
	case string(frame) != s.progress:
		if s.progress = string(frame); s.progress != "" {
			return s.send(frame)
		}
	case time.Since(s.sentAt) >= heartbeat:
		return s.send([]byte(heartbeatFrame))
	}
	return nil
}

// send writes text to the client. It returns errSlow if the client does not receive it in time. The
// connection can then still be used, unless the error is also os.ErrDeadlineExceeded.
func (s *streamer) send(text []byte) error {
	s.sentAt = time.Now()
	err := s.write(text, s.h.patience+streamFarewell)
	if errors.Is(err, os.ErrDeadlineExceeded) || err == nil && time.Since(s.sentAt) > s.h.patience {
		err = errors.Join(errSlow, err)
	}
	return err
}

func (s *streamer) write(text []byte, within time.Duration) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(within)) // fails only in tests without a connection
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.control.Flush()
}

// fail completes the event that is sent in part, sends a problem as the last event and ends the
// stream.
func (s *streamer) fail(err error) error {
	p, _, _ := explain(err)
	last := slices.Concat(s.rest, []byte("event: error\ndata: "), s.call.problem(p), []byte("\n\n"))
	return errors.Join(err, s.write(last, streamFarewell))
}
