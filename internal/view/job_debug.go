package view

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/event"
	"assay/internal/refresh"
)

// JobDebug is the response of GET /api/market-prices/job-debug.
type JobDebug struct {
	Queues           []QueueDepth    `json:"queues"`
	OldestPendingSec int64           `json:"oldestPendingSeconds"`
	Instances        []Instance      `json:"instances"`
	Workers          []Worker        `json:"workers"`
	Scheduled        []ScheduledRun  `json:"scheduled"`
	Jobs             []JobSummary    `json:"jobs"`
	Failures         []FailureReason `json:"failures"`
	Events           []Event         `json:"events"` // the newest 50, newest first
}

// Event is something that happened: see docs/reference/events.md.
type Event struct {
	ID   string          `json:"id"`
	Kind string          `json:"kind"` // job.finished, job.partial, job.failed, provider.down, provider.quarantined, provider.up, budget.low, ledger.problem, trade.overdue, price.changed
	At   time.Time       `json:"at"`
	Data json.RawMessage `json:"data"` // an object; its fields are those of the kind
}

// QueueDepth counts the work of one kind in one state.
type QueueDepth struct {
	Kind  string `json:"kind"`  // plan, fetch, estimate, apply, missing
	State string `json:"state"` // pending, running; of missing also waiting: for another try
	Count int64  `json:"count"`
}

// Instance is a process that works on the database. If there can be several, its
// heartbeat counter is raised twice a second. When it stands still for three seconds,
// the other processes take over its claims.
type Instance struct {
	Owner       string     `json:"owner"`
	Version     string     `json:"version"`
	Answering   bool       `json:"answering"` // it served this request
	StartedAt   time.Time  `json:"startedAt"`
	Providers   []string   `json:"providers"`
	Heartbeat   int64      `json:"heartbeat"`
	HeartbeatAt *time.Time `json:"heartbeatAt"` // by its own clock
	Working     int        `json:"working"`     // claims that it holds
}

// Worker is a claim. A process that takes it over gets a greater fencing token, and
// writes with the old one are refused.
type Worker struct {
	Owner string    `json:"owner"`
	Kind  string    `json:"kind"`
	Work  string    `json:"work"`
	Since time.Time `json:"since"`
	Token int64     `json:"token"`
}

// ScheduledRun is a run that will start by itself.
type ScheduledRun struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

// JobSummary is a job with how long it took.
type JobSummary struct {
	Job
	DurationSeconds *float64 `json:"durationSeconds"`
}

// FailureReason groups failed items of the last jobs by what went wrong.
type FailureReason struct {
	Cause       string   `json:"cause"`
	Count       int64    `json:"count"`
	SampleNames []string `json:"sampleNames"`

	Items []catalog.Key `json:"-"` // the samples
}

// debugJobs is how many of the last jobs JobDebug shows.
const debugJobs = 10

// debugEvents is how many of the newest events JobDebug shows.
const debugEvents = 50

// JobDebug returns queued work, claims, schedules, and why items failed.
func (r *JobReader) JobDebug(ctx context.Context) (JobDebug, error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return JobDebug{}, err
	}
	defer leave()
	d := JobDebug{Queues: []QueueDepth{}, Instances: []Instance{}, Workers: []Worker{}, Scheduled: []ScheduledRun{}, Jobs: []JobSummary{}, Failures: []FailureReason{}, Events: []Event{}}
	now := r.o.Now()
	depths, oldest, err := Depths(ctx, r.o.Store, now)
	if err != nil {
		return d, err
	}
	for _, q := range depths {
		if q.Count > 0 {
			d.Queues = append(d.Queues, QueueDepth(q))
		}
	}
	if !oldest.IsZero() {
		d.OldestPendingSec = seconds(now.Sub(oldest))
	}
	if err := r.addInstances(ctx, &d); err != nil {
		return d, err
	}
	for name, at := range r.o.Scheduled() {
		d.Scheduled = append(d.Scheduled, ScheduledRun{Name: name, At: at})
	}
	slices.SortFunc(d.Scheduled, func(a, b ScheduledRun) int { return a.At.Compare(b.At) })
	events, err := event.List(ctx, r.o.Store, debugEvents)
	if err != nil {
		return d, err
	}
	for _, e := range events {
		d.Events = append(d.Events, Event{ID: strconv.FormatInt(e.ID, 10), Kind: string(e.Kind), At: e.At, Data: e.Data})
	}
	return d, r.addJobs(ctx, &d, now)
}

// addInstances lists the processes and their claims.
func (r *JobReader) addInstances(ctx context.Context, d *JobDebug) error {
	instances, err := refresh.Instances(ctx, r.o.Store)
	if err != nil {
		return err
	}
	claims, err := Claims(ctx, r.o.Store)
	if err != nil {
		return err
	}
	working := map[string]int{}
	for _, c := range claims {
		d.Workers = append(d.Workers, worker(c))
		working[c.Owner]++
	}
	for _, i := range instances {
		providers := []string{}
		for _, a := range i.Endpoints {
			providers = append(providers, a.Provider)
		}
		slices.Sort(providers)
		d.Instances = append(d.Instances, Instance{
			Owner: i.Owner, Version: i.Version, Answering: i.Owner == r.o.Owner, StartedAt: i.StartedAt,
			Providers: slices.Compact(providers), Heartbeat: i.Heartbeat, HeartbeatAt: when(i.HeartbeatAt), Working: working[i.Owner],
		})
	}
	return nil
}

func (r *JobReader) addJobs(ctx context.Context, d *JobDebug, now time.Time) error {
	rows, err := Jobs(ctx, r.o.Store, "", 1<<62, debugJobs)
	if err != nil {
		return err
	}
	jobs, err := r.jobs(ctx, rows)
	if err != nil {
		return err
	}
	var failed []int64 // the others have no failed items to read
	for i := range jobs {
		if rows[i].Counts.Failed+rows[i].Counts.NoQuote > 0 {
			failed = append(failed, rows[i].ID)
		}
		d.Jobs = append(d.Jobs, JobSummary{Job: jobs[i], DurationSeconds: duration(&rows[i], now)})
	}
	d.Failures, _, err = r.failures(ctx, failed)
	return err
}

// causesShown is how many causes of failures are listed.
const causesShown = 20

// JobFailures groups all failed items of a job by cause, and returns how many there are
// of causes beyond the list.
func (r *JobReader) JobFailures(ctx context.Context, id int64) (list []FailureReason, others int64, err error) {
	return r.failures(ctx, []int64{id})
}

func (r *JobReader) failures(ctx context.Context, jobs []int64) (list []FailureReason, others int64, err error) {
	list = []FailureReason{}
	if len(jobs) == 0 {
		return list, 0, nil
	}
	causes, others, err := Causes(ctx, r.o.Store, jobs, causesShown)
	for _, c := range causes {
		f := FailureReason{Cause: c.Error, Count: c.Count, Items: c.Items, SampleNames: []string{}}
		for _, k := range c.Items {
			f.SampleNames = append(f.SampleNames, k.Name)
		}
		list = append(list, f)
	}
	return list, others, err
}

// duration is how long a job ran, or has been running; nil before its start. A
// clock set back meanwhile makes it 0.
func duration(j *refresh.Job, now time.Time) *float64 {
	if j.StartedAt.IsZero() {
		return nil
	}
	end := j.FinishedAt
	if end.IsZero() {
		end = now
	}
	s := max(0, end.Sub(j.StartedAt).Seconds())
	return &s
}
