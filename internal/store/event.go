package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"assay/internal/event"
	"assay/internal/refresh"
	"assay/internal/wallet"
)

// Event is one that is kept. Ids grow in the order in which events were written,
// which is not quite that of their commits: whoever follows them by id alone may
// miss one.
type Event struct {
	ID   int64
	Kind event.Kind
	At   time.Time
	Data json.RawMessage
}

const (
	// maxEvents is how many events are kept at most.
	maxEvents = 10_000
	// leastEvents of them stay however old they are.
	leastEvents = 50
)

// AddEvent writes an event, which is there if and only if the transaction is
// committed. Whoever may come to write it twice must first write what tells that
// it was.
func (t *Tx) AddEvent(d event.Data) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if _, err := t.exec(`INSERT INTO event (kind, at, data) VALUES ($1, $2, $3)`, string(d.Kind()), micros(t.now), string(data)); err != nil {
		return fmt.Errorf("event %s: %w", d.Kind(), err)
	}
	t.events = append(t.events, d.Kind())
	return nil
}

// Events returns the newest events, the newest first.
func (s *Store) Events(ctx context.Context, most int) ([]Event, error) {
	return collect(ctx, s.read, func(r *sql.Rows, e *Event) error {
		var at int64
		var data string
		err := r.Scan(&e.ID, &e.Kind, &at, &data)
		e.At, e.Data = moment(at), json.RawMessage(data)
		return err
	}, `SELECT id, kind, at, data FROM event ORDER BY id DESC LIMIT $1`, most)
}

// RetainEvents removes events that are older than so long, but for the newest, and
// all that are too many.
func (t *Tx) RetainEvents(age time.Duration) error {
	_, err := t.exec(`
		DELETE FROM event WHERE id <= (SELECT id FROM event ORDER BY id DESC LIMIT 1 OFFSET $1)
		OR at < $2 AND id <= (SELECT id FROM event ORDER BY id DESC LIMIT 1 OFFSET $3)`,
		maxEvents, micros(t.now.Add(-age)), leastEvents)
	return err
}

// kindCounts counts what this process has committed, by kind.
type kindCounts[K comparable] struct {
	mu     sync.Mutex
	counts map[K]int64
}

func (c *kindCounts[K]) add(kinds []K) {
	if len(kinds) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[K]int64{}
	}
	for _, k := range kinds {
		c.counts[k]++
	}
}

func (c *kindCounts[K]) get() map[K]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// EventCounts tells how many events this process has committed since it opened the
// database, by kind.
func (s *Store) EventCounts() map[event.Kind]int64 { return s.events.get() }

// PostingCounts returns how many ledger transactions this process has committed since
// it opened the database, by kind.
func (s *Store) PostingCounts() map[wallet.Kind]int64 { return s.postings.get() }

// endJob notes how complete a job is that has ended, and the event of it, as its rows
// say. It returns the job.
func (t *Tx) endJob(id int64, markets []event.MarketGap) (*refresh.Job, error) {
	jobs, err := collect(t.ctx, t.tx, scanJob, jobByID, id)
	if err != nil {
		return nil, err
	}
	if len(jobs) == 0 {
		return nil, errors.New("a job that has ended is not there")
	}
	j := &jobs[0]
	j.Outcome, j.MarketGaps = j.OutcomeWith(markets), markets
	var gaps []byte
	if len(markets) > 0 {
		if gaps, err = json.Marshal(markets); err != nil {
			return nil, err
		}
	}
	if _, err := t.exec(`UPDATE refresh_job SET outcome = $2, market_gaps = $3 WHERE id = $1`, id, string(j.Outcome), string(gaps)); err != nil {
		return nil, err
	}
	if j.State == refresh.Cancelled {
		return j, nil
	}
	return j, t.AddEvent(jobEnded(j))
}

func jobEnded(j *refresh.Job) event.JobEnded {
	e := event.JobEnded{
		JobID: strconv.FormatInt(j.ID, 10), JobKind: string(j.Kind), Forced: j.Forced, RequestedBy: j.RequestedBy,
		TotalItems: j.Counts.Total, UpdatedItems: j.Counts.Updated, ChangedItems: j.Counts.Changed,
		NoQuoteItems: j.Counts.NoQuote, FailedItems: j.Counts.Failed, Outcome: string(j.Outcome),
		Gaps: j.Gaps(),
	}
	if !j.StartedAt.IsZero() {
		e.StartedAt = &j.StartedAt
	}
	if j.LastError != "" {
		e.LastError = &j.LastError
	}
	return e
}
