package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"assay/internal/event"
	"assay/internal/view"
)

// refreshCmd starts a refresh of all prices.
type refreshCmd struct {
	Force  bool `help:"Refresh every item, including items with recent quotes and items without sales."`
	DryRun bool `help:"Only show a forecast of the refresh." xor:"mode"`
	Wait   bool `help:"Show progress and wait for the end." xor:"mode"`
}

func (*refreshCmd) examples() []example {
	return []example{
		{"refresh", "start a refresh and return immediately"},
		{"refresh --wait", "start a refresh, or join the running one, and wait for its end"},
		{"refresh --force --dry-run", "show the requests of a forced refresh per provider"},
		{"refresh --wait --json", "print the finished job as JSON; progress goes to standard error"},
	}
}

// Run starts a refresh, or prints its forecast.
func (c *refreshCmd) Run(ctx context.Context, s *session) error {
	r := refreshRequest(c.Force, c.DryRun)
	if c.DryRun {
		return show(ctx, s, r, writeForecast)
	}
	return startRun(ctx, s, r, c.Wait)
}

// startRun sends a request that starts a run. If wait is set, it waits for the end of the run.
func startRun(ctx context.Context, s *session, r request, wait bool) error {
	if !wait {
		return show(ctx, s, r, func(w io.Writer, run *startedRun) { _, _ = fmt.Fprintln(w, startedText(run)) })
	}
	api, err := s.server()
	if err != nil {
		return err
	}
	run, err := call[startedRun](ctx, api, r)
	if err != nil {
		return err
	}
	return waitForRun(ctx, s, api, &run)
}

// waitForRun shows the progress of a run until it ends, then prints the job. The error is nil
// only for a complete run.
func waitForRun(ctx context.Context, s *session, api *client, started *startedRun) error {
	s.printf("%s", startedText(started))
	job, err := awaitJob(ctx, s, api, started.Job)
	if ctx.Err() != nil {
		s.printf("refresh %s continues in the background. `assay status` shows it, `assay cancel %s` cancels it", started.Job.ID, started.Job.ID)
		return fmt.Errorf("%w: %w", context.Canceled, errReported)
	}
	if errors.Is(err, errJobRemoved) && endsWell(job) {
		job.State, job.Stage, err = "finished", "done", nil
	}
	if err != nil {
		return err
	}
	if err := s.out.result(job, func(w io.Writer) { writeJob(w, &job) }); err != nil {
		return err
	}
	switch outcomeOf(job) {
	case "complete":
		return nil
	case "partial":
		return errRunPartial
	default:
		return errRunFailed
	}
}

// outcomeOf returns the outcome of an ended job. If the server removed the job before its outcome
// was read, the job counts as complete, because endsWell has checked it.
func outcomeOf(job view.Job) string {
	switch {
	case job.Outcome != nil:
		return *job.Outcome
	case job.State == "finished":
		return "complete"
	default:
		return "failed"
	}
}

func startedText(a *startedRun) string {
	switch {
	case a.Started:
		return "refresh " + a.Job.ID + " started"
	case a.ForcedIgnored:
		return "refresh " + a.Job.ID + " is already running; --force has no effect on it"
	default:
		return "refresh " + a.Job.ID + " is already running"
	}
}

// writeForecast prints the forecast of a refresh.
func writeForecast(w io.Writer, plan *view.DryRun) {
	_, _ = fmt.Fprintf(w, "%s of %s items are due; skipped: %s\n", count(plan.DueItems), count(plan.TotalItems), skippedText(plan.SkippedItems))
	rows := [][]string{{"PROVIDER", "REQUESTS", "DEFERRED", "SECONDS"}}
	for _, cost := range plan.Providers {
		rows = append(rows, costRow(printable(cost.Provider), cost.Requests, cost.Deferred, cost.Seconds))
		if len(cost.Hosts) < 2 {
			continue
		}
		for _, h := range cost.Hosts {
			rows = append(rows, costRow("  "+printable(h.Host), h.Requests, h.Deferred, h.Seconds))
		}
	}
	rows = append(rows, []string{"all", count(plan.Requests), "", fmt.Sprintf("%.1f", plan.Seconds)})
	table(w, rows)
	for _, cost := range plan.Providers {
		for _, h := range cost.Hosts {
			writeDeferred(w, strings.TrimSpace(printable(cost.Provider)+" "+printable(h.Host)), h)
		}
	}
}

func costRow(of string, requests, deferred int64, seconds float64) []string {
	return []string{of, count(requests), count(deferred), fmt.Sprintf("%.1f", seconds)}
}

// writeDeferred prints the requests that a host's budget defers, and until when.
func writeDeferred(w io.Writer, place string, h view.PlannedHost) {
	if h.Why == nil {
		return
	}
	what := count(h.DeferredNames) + " names"
	if len(h.DeferredFiles) > 0 {
		what = printable(strings.Join(h.DeferredFiles, ", "))
	}
	if h.FreeAt == nil {
		_, _ = fmt.Fprintf(w, "%s is fetched in the background: %s\n", place, what)
		return
	}
	_, _ = fmt.Fprintf(w, "%s defers %s until %s: %s\n", place, what, h.FreeAt.UTC().Format(time.RFC3339), boundText(*h.Why))
}

// boundText describes the limit that defers requests to a host.
func boundText(why string) string {
	switch why {
	case "day":
		return "daily quota"
	case "month":
		return "monthly quota"
	case "reported":
		return "reported quota"
	case "retryAfter":
		return "retry-after"
	default:
		return "rate limit"
	}
}

// These control the wait for a job.
const (
	pollEvery = 250 * time.Millisecond
	// patience is the time that a server may be unreachable, for example during a restart.
	patience = 30 * time.Second
)

// awaitJob shows the progress of a job until it ends, and returns the ended job.
func awaitJob(ctx context.Context, s *session, api *client, job view.Job) (view.Job, error) {
	p := s.newProgress()
	defer p.end()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	p.showJob(&job)
	for responded := s.Now(); !ended(job.State); {
		select {
		case <-ctx.Done():
			return job, ctx.Err()
		case <-tick.C:
		}
		latest, err := call[view.Job](ctx, api, jobRequest(job.ID))
		var away *unreachableError
		switch {
		case err == nil:
			job, responded = latest, s.Now()
			p.showJob(&job)
		case isJobNotFound(err):
			return job, errJobRemoved
		case !errors.As(err, &away) || s.Now().Sub(responded) > patience:
			return job, err
		}
	}
	return job, nil
}

// errJobRemoved means that a job was removed immediately after its end. This happens if
// MARKET_PRICE_JOB_RETENTION_DAYS and _MIN_JOBS keep no jobs.
var errJobRemoved = errors.New("the refresh has ended, but its result is unknown because the server does not keep ended jobs: set MARKET_PRICE_JOB_RETENTION_MIN_JOBS to 1 or more")

func isJobNotFound(err error) bool {
	response, ok := errors.AsType[*problem](err)
	return ok && response.Code == "job_not_found"
}

// endsWell reports whether a job in this state can only end as complete. This requires that all its
// items are done without a failure.
func endsWell(job view.Job) bool {
	return job.Stage == "apply" && job.PendingItems == 0 && job.UpdatedItems > 0 && len(job.Gaps.Items) == 0 &&
		len(job.Deferred) == 0 && job.LastError == nil
}

// ended reports whether a job in this state has ended.
func ended(state string) bool {
	return state == "finished" || state == "failed" || state == "cancelled"
}

// writeJob prints the result of a refresh.
func writeJob(w io.Writer, job *view.Job) {
	took := ""
	if job.StartedAt != nil && job.FinishedAt != nil {
		took = fmt.Sprintf(" in %.1f s", job.FinishedAt.Sub(*job.StartedAt).Seconds())
	}
	if job.Outcome != nil && *job.Outcome != job.State && *job.Outcome != "complete" {
		took += ": " + *job.Outcome
	}
	_, _ = fmt.Fprintf(w, "refresh %s %s%s\n", job.ID, job.State, took)
	rows := [][]string{
		{"items", count(job.TotalItems)},
		{"updated", count(job.UpdatedItems) + " (" + count(job.ChangedItems) + " with a new price)"},
		{"skipped", skippedText(job.SkippedItems)},
		{"no quote", count(job.NoQuoteItems)},
		{"failed", count(job.FailedItems)},
	}
	if job.CancelledItems > 0 {
		rows = append(rows, []string{"cancelled", count(job.CancelledItems)})
	}
	rows = append(rows, []string{"requests", count(job.Usage.RequestCount)})
	for _, s := range job.Providers {
		for _, m := range s.Markets {
			rows = append(rows, []string{"quotes", count(m.Quotes) + " from " + printable(s.Provider+"/"+m.Market)})
		}
		if s.DeferredNames > 0 {
			rows = append(rows, []string{"deferred", count(s.DeferredNames) + " names at " + printable(s.Provider)})
		}
	}
	rows = append(rows, gapRows(job.Gaps)...)
	if job.LastError != nil {
		rows = append(rows, []string{"last error", printable(*job.LastError)})
	}
	table(w, rows)
}

// gapRows lists the missing items and markets of a refresh.
func gapRows(g event.Gaps) (rows [][]string) {
	for _, gap := range view.GapsOf(g) {
		text := gap.String()
		if gap.Detail != "" {
			text += ", " + gap.Detail
		}
		rows = append(rows, []string{"missing", printable(text)})
	}
	return rows
}

func skippedText(s view.Skipped) string {
	text := fmt.Sprintf("%s (%s fresh, %s without sales, %s over budget", count(s.Total()), count(s.TTL), count(s.NoSales), count(s.Budget))
	if s.Paused > 0 {
		text += ", " + count(s.Paused) + " paused"
	}
	if s.Backoff > 0 {
		text += ", " + count(s.Backoff) + " backing off"
	}
	return text + ")"
}
