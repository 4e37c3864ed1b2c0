package webhook

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"assay/internal/db"
	"assay/internal/event"
)

const (
	// maxSessions limits the concurrent sessions of a process. A session sends the events
	// of one webhook.
	maxSessions = 8
	// sessionMessages and sessionTime limit a session, so that a webhook with many events does
	// not keep others waiting.
	sessionMessages = 200
	sessionTime     = time.Minute
	// eventsAtOnce limits the events of one read.
	eventsAtOnce = 1_000
	// poll is how often Run looks for retries that are due, and for changed webhooks.
	poll = 2 * time.Second
	// errorPause is the pause of a webhook after a failure of the database.
	errorPause = 10 * time.Second

	// An event is abandoned when it is older than abandonAfter and its receiver has failed for
	// as long. A webhook is disabled when its receiver has failed for disableAfter. Both also
	// require a number of attempts, because the server may have been stopped, or its clock may
	// be wrong.
	abandonAfter    = 24 * time.Hour
	abandonAttempts = 20
	disableAfter    = 5 * 24 * time.Hour
	disableAttempts = 100
)

// backoff returns the wait after the nth failed attempt: 5 s, 30 s, 2 min, then 5 min while the
// receiver has failed for less than six hours, then 30 min.
func backoff(n int, failing time.Duration) time.Duration {
	switch {
	case n <= 1:
		return 5 * time.Second
	case n == 2:
		return 30 * time.Second
	case n == 3:
		return 2 * time.Minute
	case failing < 6*time.Hour:
		return 5 * time.Minute
	default:
		return 30 * time.Minute
	}
}

// Run sends events until ctx ends.
func (s *Service) Run(ctx context.Context) {
	var sessions sync.WaitGroup
	defer sessions.Wait()
	failing := false
	for ctx.Err() == nil {
		last := s.o.Feed.Last()
		_, exist, err := s.begin(ctx, &sessions, func(id int64, err error) {
			if ctx.Err() != nil {
				return
			}
			s.o.Logger.Warn("sending events to a webhook failed; retrying", "webhook", id, "error", err)
			wait(ctx, errorPause)
		})
		if err != nil && ctx.Err() == nil && !failing {
			s.o.Logger.Warn("reading webhooks failed; retrying", "error", err)
		}
		failing = err != nil
		s.pause(ctx, exist, last)
	}
}

// wait waits for a time, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// pause waits until there may be work. A new event is work only if a webhook is enabled.
func (s *Service) pause(ctx context.Context, exist bool, last int64) {
	ctx, cancel := context.WithTimeout(ctx, poll)
	defer cancel()
	if exist {
		var waiting sync.WaitGroup
		defer waiting.Wait()
		waiting.Go(func() {
			s.o.Feed.Wait(ctx, last)
			cancel()
		})
	}
	select {
	case <-s.wake:
		cancel()
	case <-ctx.Done():
	}
}

// Deliver sends all events that are due, and then returns.
func (s *Service) Deliver(ctx context.Context) error {
	for {
		var sessions sync.WaitGroup
		var mu sync.Mutex
		var failed error
		begun, _, err := s.begin(ctx, &sessions, func(_ int64, err error) {
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
		sessions.Wait()
		if err = errors.Join(err, failed); begun == 0 || err != nil {
			return err
		}
	}
}

// begin starts a session for each webhook that is due. A session that cannot read or write the
// database calls failed before it ends. begin returns the number of sessions, and whether any
// webhook is enabled.
func (s *Service) begin(ctx context.Context, sessions *sync.WaitGroup, failed func(id int64, err error)) (begun int, exist bool, err error) {
	ids, exist, err := due(ctx, s.o.Store, s.o.Owner, s.o.Feed.Last())
	for _, id := range ids {
		if !s.enter(id) {
			continue
		}
		begun++
		sessions.Go(func() {
			defer s.leave(id)
			if err := s.session(ctx, id); err != nil {
				failed(id, err)
			}
		})
	}
	return begun, exist, err
}

// enter reserves a webhook for a session of this process.
func (s *Service) enter(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[id] || len(s.running) >= maxSessions {
		return false
	}
	s.running[id] = true
	return true
}

func (s *Service) leave(id int64) {
	s.mu.Lock()
	delete(s.running, id)
	s.mu.Unlock()
	s.Wake()
}

// session claims a webhook and sends its events. It ends when all are sent, after a failed attempt,
// or at the limits of a session.
func (s *Service) session(ctx context.Context, id int64) error {
	var h *Webhook
	err := s.o.Store.InTx(ctx, func(t *db.Tx) (err error) {
		h, err = claim(t, id, s.o.Owner)
		return err
	})
	if err != nil || h == nil {
		return err
	}
	if err = s.work(ctx, h); errors.Is(err, errClaimLost) {
		err = nil
	}
	ending, done := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
	defer done()
	return errors.Join(err, s.o.Store.InTx(ending, func(t *db.Tx) error {
		return errors.Join(prune(t, id), release(t, h))
	}))
}

// work sends the events of a claimed webhook.
func (s *Service) work(ctx context.Context, h *Webhook) error {
	known, sent := &owned{}, 0
	end := time.Now().Add(sessionTime)
	for {
		events, lost, err := event.Resume(ctx, s.o.Store.Read, h.Cursor, eventsAtOnce)
		if err != nil {
			return err
		}
		if lost > 0 {
			after := h.Cursor
			if len(events) == 0 {
				h.Cursor = lost // otherwise the webhook would stay due without an event to send
			}
			if err := s.recordLost(ctx, h, after, lost); err != nil {
				return err
			}
		}
		if len(events) == 0 {
			return nil
		}
		stored := h.Cursor
		for i := range events {
			for _, p := range split(&events[i]) {
				m, err := s.message(ctx, h, &p, known)
				if err != nil {
					return err
				}
				if m == nil {
					h.Cursor = p.Number
					continue
				}
				accepted, err := s.attempt(ctx, h, &p, m)
				if sent++; err != nil || !accepted || sent == sessionMessages || time.Now().After(end) {
					return err
				}
				stored = h.Cursor
			}
		}
		if h.Cursor != stored {
			if err := s.o.Store.InTx(ctx, func(t *db.Tx) error { return moveCursor(t, h) }); err != nil {
				return err
			}
		}
	}
}

// attempt sends a message and stores the outcome. It returns false if the message must be sent
// again later.
func (s *Service) attempt(ctx context.Context, h *Webhook, p *part, m *message) (handled bool, err error) {
	now := s.o.Store.Clock()
	d := &Delivery{Number: p.Number, First: p.first, Kind: event.Kind(m.kind), State: Delivered}
	if h.Attempts >= abandonAttempts && now.Sub(h.FailingSince) >= abandonAfter && now.Sub(p.At) >= abandonAfter {
		h.Cursor = p.Number
		err := s.o.Store.InTx(ctx, func(t *db.Tx) error {
			s.count(t, Failed)
			return errors.Join(moveCursor(t, h), abandon(t, h.ID, d))
		})
		return true, err
	}
	d.Outcome, d.Attempts = s.send(ctx, h, m), 1
	if ctx.Err() != nil {
		return false, ctx.Err() // the server stops, so the receiver did not fail
	}
	now = s.o.Store.Clock()
	h.TriedAt, h.LastError = now, d.Error
	if d.Error == "" {
		h.Cursor, h.Attempts, h.FailingSince, h.NextAt, h.DeliveredAt = p.Number, 0, time.Time{}, time.Time{}, now
	} else {
		d.State = Retrying
		h.fail(now, &d.Outcome)
	}
	err = s.o.Store.InTx(ctx, func(t *db.Tx) error {
		s.count(t, d.State)
		return errors.Join(storeAttempt(t, h), putDelivery(t, h.ID, d))
	})
	if err == nil && h.Disabled != "" {
		s.o.Logger.Warn("webhook disabled", "webhook", h.ID, "reason", h.Disabled, "error", d.Error)
	}
	return d.State == Delivered, err
}

// fail changes a webhook after a failed attempt.
func (h *Webhook) fail(now time.Time, out *Outcome) {
	h.Attempts++
	if h.FailingSince.IsZero() || now.Before(h.FailingSince) {
		h.FailingSince = now
	}
	wait := max(backoff(h.Attempts, now.Sub(h.FailingSince)), out.retryAfter)
	h.NextAt = now.Add(wait - rand.N(wait/10))
	switch {
	case out.Status == http.StatusGone:
		h.Disabled = Gone
	case now.Sub(h.FailingSince) >= disableAfter && h.Attempts >= disableAttempts:
		h.Disabled = Failing
	}
}

// recordLost stores that events after a number and up to another were deleted before they could be
// sent. It does so once for each last number. It also stores the cursor.
func (s *Service) recordLost(ctx context.Context, h *Webhook, after, until int64) error {
	return s.o.Store.InTx(ctx, func(t *db.Tx) error {
		isNew, err := putLost(t, h.ID, until)
		if err != nil {
			return err
		}
		if isNew {
			s.count(t, Lost)
			t.AfterCommit(func() {
				s.o.Logger.Warn("events of a webhook expired before they could be sent", "webhook", h.ID, "after", after, "until", until)
			})
		}
		return moveCursor(t, h) // only if the claim still holds
	})
}

// deliveryCounts counts attempts by state.
type deliveryCounts struct{ db.Counts[string] }

// count counts an attempt after the commit.
func (s *Service) count(t *db.Tx, state string) {
	t.AfterCommit(func() { db.Local[deliveryCounts](s.o.Store).Add(state) })
}

// States returns the number of webhooks by state. Webhooks that an operator disabled count as
// disabled. Webhooks that were disabled automatically count as failing.
func States(ctx context.Context, s *db.DB) (map[string]int, error) {
	hooks, err := list(ctx, s)
	out := map[string]int{IsHealthy: 0, IsFailing: 0, IsDisabled: 0}
	for i := range hooks {
		state := hooks[i].State()
		if state == IsDisabled && hooks[i].Disabled != ByOperator {
			state = IsFailing
		}
		out[state]++
	}
	return out, err
}

// Counts returns the number of attempts of this process, by the resulting state of the
// delivery.
func Counts(s *db.DB) map[string]int64 { return db.Local[deliveryCounts](s).Get() }
