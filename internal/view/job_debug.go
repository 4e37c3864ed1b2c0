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
	Workers          []Claim         `json:"workers"`
	Scheduled        []ScheduledRun  `json:"scheduled"`
	Jobs             []JobSummary    `json:"jobs"`
	Failures         []FailureReason `json:"failures"`
	Events           []Event         `json:"events"` // the newest 50, newest first
}

// Event is a recorded event. See docs/reference/events.md.
type Event struct {
	ID   string          `json:"id"`
	Kind string          `json:"kind"` // job.finished, job.partial, job.failed, provider.degraded, provider.down, provider.quarantined, provider.up, budget.low, ledger.problem, trade.overdue; other responses also have price.changed and the events of inventories, listings and trades
	At   time.Time       `json:"at"`
	Data json.RawMessage `json:"data"` // JSON object with the fields of the kind
}

// QueueDepth is the number of work units of one kind in one state.
type QueueDepth struct {
	Kind  string `json:"kind"`
	State string `json:"state"` // pending or running; entries of the missing-price queue also waiting for a retry
	Count int64  `json:"count"`
}

// Instance is a process that uses the database. With several instances, each increments its
// heartbeat counter twice a second. If the counter does not change for three seconds, other
// processes take over the claims.
type Instance struct {
	Owner         string     `json:"owner"`
	Version       string     `json:"version"`
	ServesRequest bool       `json:"servesRequest"` // this instance serves the request
	StartedAt     time.Time  `json:"startedAt"`
	Providers     []string   `json:"providers"`
	Heartbeat     int64      `json:"heartbeat"`
	HeartbeatAt   *time.Time `json:"heartbeatAt"` // by the clock of the instance
	Working       int        `json:"working"`     // number of claims
}

// Claim is work that an instance has claimed. A process that takes it over gets a greater fencing token. The
// database then rejects writes with the old token.
type Claim struct {
	Owner string    `json:"owner"`
	Kind  string    `json:"kind"`
	Work  string    `json:"work"`
	Since time.Time `json:"since"`
	Token int64     `json:"token"`

	Provider string `json:"-"` // empty for work without requests
}

// ScheduledRun is the next scheduled start of a run.
type ScheduledRun struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

// JobSummary is a job with its duration.
type JobSummary struct {
	Job
	DurationSeconds *float64 `json:"durationSeconds"`
}

// FailureReason groups the failed items of recent jobs by error.
type FailureReason struct {
	Cause       string   `json:"cause"`
	Count       int64    `json:"count"`
	SampleNames []string `json:"sampleNames"`

	Items []catalog.Key `json:"-"` // the samples
}

// debugJobs is the number of jobs in JobDebug.
const debugJobs = 10

// debugEvents is the number of events in JobDebug.
const debugEvents = 50

// JobDebug returns queued work, claims, schedules and failure reasons.
func (r *JobReader) JobDebug(ctx context.Context) (JobDebug, error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return JobDebug{}, err
	}
	defer leave()
	d := JobDebug{Queues: []QueueDepth{}, Instances: []Instance{}, Workers: []Claim{}, Scheduled: []ScheduledRun{}, Jobs: []JobSummary{}, Failures: []FailureReason{}, Events: []Event{}}
	now := r.o.Now()
	depths, oldest, err := Depths(ctx, r.o.Store, now)
	if err != nil {
		return d, err
	}
	for _, q := range depths {
		if q.Count > 0 {
			d.Queues = append(d.Queues, q)
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

// addInstances adds the processes and their claims.
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
		d.Workers = append(d.Workers, c)
		working[c.Owner]++
	}
	for _, i := range instances {
		providers := []string{}
		for _, a := range i.Endpoints {
			providers = append(providers, a.Provider)
		}
		slices.Sort(providers)
		d.Instances = append(d.Instances, Instance{
			Owner: i.Owner, Version: i.Version, ServesRequest: i.Owner == r.o.Owner, StartedAt: i.StartedAt,
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
	for i := range jobs {
		d.Jobs = append(d.Jobs, JobSummary{Job: jobs[i], DurationSeconds: duration(&rows[i], now)})
	}
	d.Failures, err = r.lastFailures(ctx, rows)
	return err
}

// lastFailures groups the failed items of several jobs by error.
func (r *JobReader) lastFailures(ctx context.Context, jobs []refresh.Job) ([]FailureReason, error) {
	var failed []int64 // only jobs with failed items need the query
	for i := range jobs {
		if jobs[i].Counts.Failed+jobs[i].Counts.NoQuote > 0 {
			failed = append(failed, jobs[i].ID)
		}
	}
	list, _, err := r.failures(ctx, failed, 0)
	return list, err
}

// CausesShown is the maximum number of failure reasons in a list.
const CausesShown = 20

// JobFailures groups the failed items of a job by error, most frequent first. It leaves out the
// first skip reasons. It also returns the number of items that failed for reasons after the list.
func (r *JobReader) JobFailures(ctx context.Context, id int64, skip int) (list []FailureReason, others int64, err error) {
	return r.failures(ctx, []int64{id}, skip)
}

// FailedWith returns how many items of a job failed with an error.
func (r *JobReader) FailedWith(ctx context.Context, id int64, cause string) (int64, error) {
	all, _, err := allCauses(ctx, r.o.Store, []int64{id})
	for i := range all {
		if all[i].Cause == cause {
			return all[i].Count, err
		}
	}
	return 0, err
}

func (r *JobReader) failures(ctx context.Context, jobs []int64, skip int) (list []FailureReason, others int64, err error) {
	list = []FailureReason{}
	if len(jobs) == 0 {
		return list, 0, nil
	}
	causes, others, err := Causes(ctx, r.o.Store, jobs, skip, CausesShown)
	return append(list, causes...), others, err
}

// duration returns the duration of a job up to its end or now. It returns nil before the
// start, and 0 if the clock moved back.
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
