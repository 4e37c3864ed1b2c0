package cli

import (
	"context"
	"fmt"
	"net/http"

	"assay/internal/config"
	"assay/internal/view"
)

// runsCmd lists refreshes, or shows one of them.
type runsCmd struct {
	ID    string `arg:"" optional:"" complete:"run" help:"Number of the run to show. Default: list the last runs."`
	Kind  string `enum:"bulk,missing,items," default:"" placeholder:"KIND" help:"List only runs of this kind: bulk, missing or items (chosen by an operator)."`
	Items string `enum:"pending,updated,skipped,noQuote,failed,cancelled," default:"" placeholder:"STATE" help:"With a run: list its items in this state."`
	listFlags
}

func (*runsCmd) examples() []example {
	return []example{
		{"runs", "list the last 20 runs"},
		{"runs --kind bulk --limit 100 --json", "print the last 100 bulk runs as JSON"},
		{"runs 17", "show run 17: its counts, requests and last error"},
		{"runs 17 --items failed", "list the items that failed in run 17, with their errors"},
	}
}

func (c *runsCmd) Run(ctx context.Context, s *session) error {
	switch {
	case c.Items != "" && c.ID == "":
		return &usageError{text: "--items needs the number of a run"}
	case c.Kind != "" && c.ID != "":
		return &usageError{text: "--kind is for the list of runs"}
	}
	if err := c.check(); err != nil {
		return err
	}
	switch {
	case c.Items != "":
		return c.items(ctx, s)
	case c.ID != "":
		return show(ctx, s, jobRequest(c.ID), writeJob)
	}
	r := request{path: marketPrices + "/jobs", query: filter("kind", c.Kind), as: config.RoleMarket}
	header := []string{"RUN", "KIND", "STATE", "OUTCOME", "CREATED", "TOOK", "ITEMS", "UPDATED", "SKIPPED", "NO QUOTE", "FAILED", "REQUESTS"}
	return showList(ctx, s, c.listFlags, r, header, runRow)
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

// items lists the items of a run, filtered by state.
func (c *runsCmd) items(ctx context.Context, s *session) error {
	r := jobRequest(c.ID)
	r.path, r.query = r.path+"/items", filter("state", c.Items)
	header := []string{"GAME", "NAME", "PHASE", "STATE", "REASON", "BEFORE", "AFTER", "ERROR"}
	return showList(ctx, s, c.listFlags, r, header, func(it *view.JobItem) []string {
		return []string{
			fmt.Sprint(it.AppID), cell(it.MarketHashName), phaseText(it.Phase, false), it.State, dashed(it.Reason),
			amount(&it.PriceBefore), amount(it.PriceAfter), dashed(printable(value(it.Error))),
		}
	})
}

// dashed returns s, or a dash if s is empty.
func dashed(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// cancelCmd cancels a run.
type cancelCmd struct {
	ID string `arg:"" optional:"" complete:"run" help:"Number of the run. Default: the queued or running bulk run."`
}

func (*cancelCmd) examples() []example {
	return []example{
		{"cancel", "cancel the queued or running bulk run; prices written so far are kept"},
		{"cancel 17 --json", "cancel run 17 and print it as JSON"},
	}
}

func (c *cancelCmd) Run(ctx context.Context, s *session) error {
	id := c.ID
	if id == "" {
		api, err := s.server()
		if err != nil {
			return err
		}
		now, err := call[view.Status](ctx, api, statusRequest())
		if err != nil {
			return err
		}
		if !now.Status.Running || now.Status.JobID == nil {
			return &usageError{text: "no bulk run is queued or running: give the number of the run to cancel", hint: "run `assay runs`"}
		}
		id = *now.Status.JobID
	}
	r := jobRequest(id)
	r.method, r.path = http.MethodPost, r.path+"/cancel"
	return show(ctx, s, r, writeJob)
}

// retryFailedCmd starts a run of the failed items of another run.
type retryFailedCmd struct {
	ID   string `arg:"" complete:"run" help:"Number of the run. Its items are retried if they failed or were skipped because of a budget, pause or backoff."`
	Wait bool   `help:"Show progress and wait for the end of the new run."`
}

func (*retryFailedCmd) examples() []example {
	return []example{
		{"retry-failed 17", "start a new run of the failed and skipped items of run 17"},
		{"retry-failed 17 --wait --json", "wait for its end and print it as JSON"},
	}
}

func (c *retryFailedCmd) Run(ctx context.Context, s *session) error {
	r := jobRequest(c.ID)
	r.method, r.path = http.MethodPost, r.path+"/retry-failed"
	return startRun(ctx, s, r, c.Wait)
}
