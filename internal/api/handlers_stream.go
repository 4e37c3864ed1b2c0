package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"assay/internal/fault"
)

const (
	// maxStreams limits the clients of the stream.
	maxStreams = 1_000
	// heartbeat is the longest time without a byte. Proxies close a silent connection.
	heartbeat = 15 * time.Second
	// streamTick is how often a stream looks for the progress of a job.
	streamTick = time.Second
	// streamPatience is how long a write may block. A client that reads more slowly is disconnected.
	// It continues with Last-Event-ID, so the server stores nothing for it.
	streamPatience = 10 * time.Second
	// retryStream is when a disconnected client should connect again, in milliseconds.
	retryStream = "3000"
)

const streamType = "text/event-stream"

// stream sends events as they happen.
func (h feedHandlers) stream(c *call) (any, error) {
	after, err := h.streamStart(c)
	if err != nil {
		return nil, err
	}
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
	s := &streamer{call: c, h: h, control: http.NewResponseController(c.w), after: after}
	c.w.Header().Set("Content-Type", streamType)
	c.w.Header().Set("X-Accel-Buffering", "no") // nginx would delay the events
	c.w.WriteHeader(http.StatusOK)
	if err := s.run(c.slow); err != nil && c.Request.Context().Err() == nil {
		h.Logger.InfoContext(c.Request.Context(), "stream ended", "request_id", c.id, "error", err)
		panic(http.ErrAbortHandler)
	}
	return response{}, nil
}

// streamStart returns the number after which a stream begins: Last-Event-ID of a client that
// connects again, or else the parameter since, or else the last number.
func (h feedHandlers) streamStart(c *call) (int64, error) {
	text := c.Header.Get("Last-Event-ID")
	if text == "" {
		text = c.values["since"]
	}
	if text == "" {
		return h.Readers.Items.LastNumber(c.slow)
	}
	after, err := strconv.ParseInt(text, 10, 64)
	if err != nil || after < 0 {
		return 0, fault.New(fault.Invalid, "invalid_parameters", "Last-Event-ID must be the id of an event of this stream.")
	}
	_, err = h.Readers.Items.Stream(c.slow, after)
	return after, err
}

// streamer sends events to one client. It keeps no queue: it reads the next events when the
// client has taken the last ones.
type streamer struct {
	*call
	h        feedHandlers
	control  *http.ResponseController
	after    int64
	progress string
	sentAt   time.Time
}

func (s *streamer) run(ctx context.Context) error {
	if err := s.send([]byte("retry: " + retryStream + "\n\n")); err != nil {
		return err
	}
	for ctx.Err() == nil {
		last := s.h.Readers.Items.KnownNumber()
		found, err := s.h.Readers.Items.Stream(ctx, s.after)
		if err != nil {
			return s.fail(err)
		}
		if len(found.Text) > 0 {
			if err := s.send(found.Text); err != nil {
				return err
			}
			s.after = found.Next
			continue
		}
		if err := s.idle(ctx, last); err != nil {
			return err
		}
	}
	return nil
}

// errStopping ends the streams when the server stops. Clients connect to another instance.
var errStopping = errors.New("the server is stopping")

// idle waits for an event after last. Meanwhile it sends the progress of a job, or a comment
// that keeps the connection open.
func (s *streamer) idle(ctx context.Context, last int64) error {
	waiting, cancel := context.WithTimeout(ctx, streamTick)
	defer cancel()
	if !s.h.Readers.Items.AwaitEvent(waiting, last) {
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
		return s.send([]byte(": heartbeat\n\n"))
	}
	return nil
}

// send writes text to the client. It returns an error if the client does not take it in time.
func (s *streamer) send(text []byte) error {
	s.sentAt = time.Now()
	_ = s.control.SetWriteDeadline(s.sentAt.Add(streamPatience)) // fails only in tests without a connection
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.control.Flush()
}

// fail sends a problem as the last event and ends the stream.
func (s *streamer) fail(err error) error {
	p, _, _ := explain(err)
	if sendErr := s.send(append(append([]byte("event: error\ndata: "), s.call.problem(p)...), "\n\n"...)); sendErr != nil {
		return sendErr
	}
	return err
}
