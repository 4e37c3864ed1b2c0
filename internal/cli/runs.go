package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"assay/internal/view"
)

// runsCmd lists refreshes, or shows one.
type runsCmd struct {
	ID    string `arg:"" optional:"" complete:"run" help:"Number of the run to show. Without it, the last runs are listed."`
	Kind  string `enum:"bulk,missing," default:"" placeholder:"KIND" help:"List only bulk or missing runs."`
	Items string `enum:"pending,updated,skipped,noQuote,failed,cancelled," default:"" placeholder:"STATE" help:"With a run: list its items in this state."`
	listFlags
}

func (*runsCmd) examples() []example {
	return []example{
		{"runs", "list the last 20 runs"},
		{"runs --kind bulk --limit 100 --json", "print the last 100 bulk runs as JSON"},
		{"runs 17", "show run 17: its counts, requests and last error"},
		{"runs 17 --items failed", "list the items that failed in run 17, and why"},
	}
}

// Run lists or shows.
func (c *runsCmd) Run(ctx context.Context, s *session) error {
	const help = "assay runs --help"
	switch {
	case c.Items != "" && c.ID == "":
		return &usageError{text: "--items needs the number of a run", help: help}
	case c.Kind != "" && c.ID != "":
		return &usageError{text: "--kind is for the list of runs", help: help}
	}
	if err := c.check(help); err != nil {
		return err
	}
	api, err := s.server()
	if err != nil {
		return err
	}
	switch {
	case c.Items != "":
		return c.items(ctx, s, api)
	case c.ID != "":
		job, err := api.job(ctx, c.ID)
		if err != nil {
			return err
		}
		return s.out.result(job, func(w io.Writer) { writeJob(w, job) })
	}
	q := url.Values{}
	if c.Kind != "" {
		q.Set("kind", c.Kind)
	}
	page, err := listAll[view.Job](ctx, api, request{path: marketPrices + "/jobs", query: q, with: api.market}, c.Limit)
	if err != nil {
		return err
	}
	return s.out.result(page, func(w io.Writer) {
		rows := [][]string{{"RUN", "KIND", "STATE", "OUTCOME", "CREATED", "TOOK", "ITEMS", "UPDATED", "SKIPPED", "NO QUOTE", "FAILED", "REQUESTS"}}
		for i := range page.Items {
			rows = append(rows, runRow(&page.Items[i]))
		}
		table(w, rows)
		_, _ = io.WriteString(w, moreText(page))
	})
}

func runRow(j *view.Job) []string {
	took := "-"
	if j.StartedAt != nil && j.FinishedAt != nil {
		took = fmt.Sprintf("%.1f s", j.FinishedAt.Sub(*j.StartedAt).Seconds())
	}
	skipped := j.TotalItems - j.PendingItems - j.UpdatedItems - j.NoQuoteItems - j.FailedItems - j.CancelledItems
	return []string{
		j.ID, j.Kind, j.State, orDash(j.Outcome), moment(&j.CreatedAt), took, count(j.TotalItems), count(j.UpdatedItems), count(skipped),
		count(j.NoQuoteItems), count(j.FailedItems), count(j.Usage.RequestCount),
	}
}

// items lists the items of a run in one state.
func (c *runsCmd) items(ctx context.Context, s *session, api *client) error {
	r := request{path: marketPrices + "/jobs/" + segment(c.ID) + "/items", query: url.Values{"state": {c.Items}}, with: api.market}
	page, err := listAll[view.JobItem](ctx, api, r, c.Limit)
	if err != nil {
		return err
	}
	return s.out.result(page, func(w io.Writer) {
		rows := [][]string{{"GAME", "NAME", "PHASE", "STATE", "REASON", "BEFORE", "AFTER", "ERROR"}}
		for _, it := range page.Items {
			rows = append(rows, []string{
				fmt.Sprint(it.AppID), cell(it.MarketHashName), phaseText(it.Phase, false), it.State, dashed(it.Reason),
				amount(&it.PriceBefore), amount(it.PriceAfter), dashed(printable(value(it.Error))),
			})
		}
		table(w, rows)
		_, _ = io.WriteString(w, moreText(page))
	})
}

// dashed returns s, or a dash where there is nothing.
func dashed(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// cancelCmd cancels a run.
type cancelCmd struct {
	ID string `arg:"" optional:"" complete:"run" help:"Number of the run. Without it, the bulk run that is queued or running."`
}

func (*cancelCmd) examples() []example {
	return []example{
		{"cancel", "cancel the bulk run that is queued or running; prices written so far stay"},
		{"cancel 17 --json", "cancel run 17 and print it as JSON"},
	}
}

// Run cancels.
func (c *cancelCmd) Run(ctx context.Context, s *session) error {
	api, err := s.server()
	if err != nil {
		return err
	}
	id := c.ID
	if id == "" {
		now, err := api.status(ctx)
		if err != nil {
			return err
		}
		if !now.Status.Running || now.Status.JobID == nil {
			return &usageError{text: "no bulk run is queued or running: name the run to cancel", help: "assay runs"}
		}
		id = *now.Status.JobID
	}
	var job view.Job
	r := request{method: http.MethodPost, path: marketPrices + "/jobs/" + segment(id) + "/cancel", with: api.market}
	if err := api.do(ctx, r, &job); err != nil {
		return err
	}
	return s.out.result(job, func(w io.Writer) { writeJob(w, job) })
}

// retryFailedCmd runs the failed items of a run again.
type retryFailedCmd struct {
	ID   string `arg:"" complete:"run" help:"Number of the run whose items to retry: those that failed, or were skipped for a budget, a pause or a backoff."`
	Wait bool   `help:"Wait for the end of the new run and show its progress."`
}

func (*retryFailedCmd) examples() []example {
	return []example{
		{"retry-failed 17", "start a new run of the items of which run 17 learned nothing"},
		{"retry-failed 17 --wait --json", "wait for its end and print it as JSON"},
	}
}

// Run retries.
func (c *retryFailedCmd) Run(ctx context.Context, s *session) error {
	api, err := s.server()
	if err != nil {
		return err
	}
	var answer startAnswer
	r := request{method: http.MethodPost, path: marketPrices + "/jobs/" + segment(c.ID) + "/retry-failed", with: api.market}
	if err := api.do(ctx, r, &answer); err != nil {
		return err
	}
	if !c.Wait {
		return s.out.result(answer, func(w io.Writer) { _, _ = fmt.Fprintln(w, startedText(answer)) })
	}
	return waitForRun(ctx, s, api, answer)
}
