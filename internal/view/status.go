package view

import (
	"context"
	"fmt"
	"math"
	"time"

	"assay/internal/event"
	"assay/internal/refresh"
)

// Status is the response of GET /api/market-prices/status.
type Status struct {
	Status       RunStatus     `json:"status"`
	PendingItems int64         `json:"pendingItems"`
	UpdatedItems int64         `json:"updatedItems"`
	SkippedItems Skipped       `json:"skippedItems"`
	NoQuoteItems int64         `json:"noQuoteItems"`
	FailedItems  int64         `json:"failedItems"`
	TotalItems   int64         `json:"totalItems"`
	LastError    *string       `json:"lastError"`
	Usage        Usage         `json:"usage"`
	Missing      MissingStatus `json:"missing"`
	Freshness    Freshness     `json:"freshness"`
}

// RunStatus describes the running or last bulk job.
type RunStatus struct {
	Running    bool       `json:"running"`
	JobID      *string    `json:"jobId"`
	Kind       *string    `json:"kind"`
	Forced     bool       `json:"forced"`
	State      *string    `json:"state"`
	Stage      *string    `json:"stage"`
	StartedAt  *time.Time `json:"startedAt"`
	FinishedAt *time.Time `json:"finishedAt"`
	Outcome    *string    `json:"outcome"` // complete, partial or failed; null while the job runs
	Gaps       event.Gaps `json:"gaps"`    // of the job
	EtaSeconds *int64     `json:"etaSeconds"`
}

// MissingStatus describes the queue of items without a price.
type MissingStatus struct {
	Running       bool  `json:"running"`
	PendingItems  int64 `json:"pendingItems"`  // due or in progress
	WaitingItems  int64 `json:"waitingItems"`  // waiting for the next attempt
	OldestSeconds int64 `json:"oldestSeconds"` // age of the oldest due entry
}

// Freshness counts all items in scope by the age of their price.
type Freshness struct {
	Fresh         int64 `json:"fresh"`   // at most 24 h old
	Stale         int64 `json:"stale"`   // older
	Unknown       int64 `json:"unknown"` // no price
	OldestSeconds int64 `json:"oldestSeconds"`
}

// Status returns the running or last job, and the freshness of prices. Concurrent callers
// share one result, which they must not change.
func (r *JobReader) Status(ctx context.Context) (Status, error) {
	c, err := r.status.Do(ctx, r.readStatus)
	if err == nil {
		c.Freshness, err = r.fresh.get(ctx, &c, r.o.Now, r.countFresh)
	}
	return c.Status, err
}

// ChosenProgress describes the progress of the newest run of chosen items. The text differs when the
// run has made progress. It is empty without such a run.
func (r *JobReader) ChosenProgress(ctx context.Context) (string, error) {
	jobs, err := Jobs(ctx, r.o.Store, refresh.Chosen, math.MaxInt64, 1)
	if err != nil || len(jobs) == 0 {
		return "", err
	}
	j := &jobs[0]
	return fmt.Sprint(j.ID, j.State, j.Stage, j.Counts), nil
}

// counted is a Status without Freshness, and the key to look up its Freshness.
type counted struct {
	Status
	key freshKey
}

func (r *JobReader) readStatus(ctx context.Context) (counted, error) {
	now := r.o.Now()
	latest, requests, q, err := readLatest(ctx, r.o.Store, now)
	if err != nil {
		return counted{}, err
	}
	s := Status{Usage: Usage{ByProvider: requests}}
	key := freshKey{estimated: true, queued: q.PendingItems + q.WaitingItems}
	if latest != nil {
		last := job(latest)
		last.Usage.ByProvider = requests
		for _, n := range requests {
			last.Usage.RequestCount += n
		}
		s = status(last, *latest, now)
		key.job, key.updated = latest.ID, latest.Counts.Updated
		key.estimated = latest.Stage == refresh.StageApply || !latest.State.Live()
	}
	s.Missing = q
	return counted{s, key}, nil
}

func status(job Job, j refresh.Job, now time.Time) Status {
	s := Status{
		Status: RunStatus{
			Running: j.State.Live(), JobID: &job.ID, Kind: &job.Kind, Forced: job.Forced, State: &job.State, Stage: &job.Stage,
			StartedAt: job.StartedAt, FinishedAt: job.FinishedAt, Outcome: job.Outcome, Gaps: job.Gaps,
		},
		PendingItems: job.PendingItems, UpdatedItems: job.UpdatedItems, SkippedItems: job.SkippedItems,
		NoQuoteItems: job.NoQuoteItems, FailedItems: job.FailedItems, TotalItems: job.TotalItems,
		LastError: job.LastError, Usage: job.Usage,
	}
	if j.State == refresh.Running {
		s.Status.EtaSeconds = eta(j, now)
	}
	return s
}

// eta estimates the remaining seconds of a running job from its speed so far. It returns nil
// before the first estimate.
func eta(j refresh.Job, now time.Time) *int64 {
	c := j.Counts
	work := c.Total - c.SkippedTTL - c.SkippedNoSales
	done := work - c.Pending
	if done <= 0 || work <= 0 {
		return nil
	}
	s := seconds(now.Sub(j.StartedAt) / time.Duration(done) * time.Duration(c.Pending))
	return &s
}
