package web

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// maxStreams limits the open streams of an instance. Further pages poll.
	maxStreams = 64
	// streamEvery is the interval at which a stream looks for changes.
	streamEvery = time.Second
	// heartbeatEvery is the longest time between two messages of a stream. Each heartbeat checks
	// the session.
	heartbeatEvery = 15 * time.Second
	// streamWrite limits one write to a browser that does not read.
	streamWrite = 10 * time.Second
)

// streams counts the open streams.
type streams struct{ open atomic.Int64 }

// streamState identifies the state of the parts that a stream follows. A field changes when its part
// changes.
type streamState struct{ run, events string }

// stream sends the name of each part that has changed ("run" or "events"), so that the page
// requests this part again. It ends with the session and with the server.
func (s *auth) stream(w http.ResponseWriter, r *http.Request) {
	sess, ok, err := s.session(r)
	if err != nil || !ok {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	defer s.streams.open.Add(-1)
	if s.streams.open.Add(1) > maxStreams {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // fails only in tests without a connection
	send := func(text string) error {
		_ = control.SetWriteDeadline(time.Now().Add(streamWrite))
		if _, err := fmt.Fprint(w, text); err != nil {
			return err
		}
		return control.Flush()
	}
	s.follow(r, sess, send)
}

// follow sends changes until the request, the session or the server ends.
func (s *auth) follow(r *http.Request, sess session, send func(string) error) {
	last, err := s.streamState(r.Context())
	if err != nil || send("retry: 2000\nevent: hello\ndata: "+sess.role.String()+"\n\n") != nil {
		return
	}
	lastSent := time.Now()
	tick := time.NewTicker(streamEvery)
	defer tick.Stop()
	for !s.Feed.Ended() {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		now, err := s.streamState(r.Context())
		if err != nil {
			return
		}
		text := ""
		if now.run != last.run {
			text += "event: changed\ndata: run\n\n"
		}
		if now.events != last.events {
			text += "event: changed\ndata: events\n\n"
		}
		if last = now; text == "" && time.Since(lastSent) >= heartbeatEvery {
			text = "event: heartbeat\ndata: \n\n"
			if _, ok, err := s.session(r); err != nil || !ok {
				return
			}
		}
		if text != "" {
			if lastSent = time.Now(); send(text) != nil {
				return
			}
		}
	}
}

// streamState returns the current state of all parts.
func (s *pages) streamState(ctx context.Context) (streamState, error) {
	status, err := s.Jobs.Status(ctx)
	if err != nil {
		return streamState{}, err
	}
	chosen, err := s.Jobs.ChosenProgress(ctx)
	if err != nil {
		return streamState{}, err
	}
	id, stage := "", ""
	if status.Status.JobID != nil {
		id = *status.Status.JobID
	}
	if status.Status.Stage != nil {
		stage = *status.Status.Stage
	}
	return streamState{
		run: fmt.Sprint(id, stage, status.PendingItems, status.UpdatedItems, status.SkippedItems, status.NoQuoteItems, status.FailedItems,
			status.TotalItems, status.Usage.RequestCount, chosen, status.Missing.PendingItems, status.Missing.Running),
		events: fmt.Sprint(s.Feed.Last()),
	}, nil
}
