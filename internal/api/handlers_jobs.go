package api

import (
	"net/http"

	"assay/internal/refresh"
	"assay/internal/view"
)

// jobHandlers serve refresh jobs.
type jobHandlers struct{ *Deps }

// started is the response after a job was started.
type started struct {
	Started bool     `json:"started"` // true
	Job     view.Job `json:"job"`
}

// alreadyRunning is the response if a job is already queued or running.
type alreadyRunning struct {
	Started bool   `json:"started"` // false
	Reason  string `json:"reason"`  // already_running
	// ForcedIgnored is true if force was requested and the existing job is not forced.
	ForcedIgnored bool     `json:"forcedIgnored"`
	Job           view.Job `json:"job"`
}

// dryRunResponse is the response to a dry run.
type dryRunResponse struct {
	Started bool   `json:"started"` // false
	Reason  string `json:"reason"`  // dry_run
	view.DryRun
}

// Reasons why no job was started. They distinguish the two responses with status 200.
const (
	reasonRunning = "already_running"
	reasonDryRun  = "dry_run"
)

func (h jobHandlers) startRefresh(c *call) (any, error) {
	forced := c.values.flag("force")
	if c.values.flag("dryRun") {
		forecast, err := h.Readers.Jobs.DryRun(c.Context(), forced)
		if err != nil {
			return nil, err
		}
		return dryRunResponse{Reason: reasonDryRun, DryRun: forecast}, nil
	}
	run, err := h.Engine.Start(c.Context(), forced, c.role)
	if err != nil {
		return nil, err
	}
	return h.started(c, run)
}

func (h jobHandlers) retryFailed(c *call) (any, error) {
	old, err := c.jobID()
	if err != nil {
		return nil, err
	}
	run, err := h.Engine.RetryFailed(c.Context(), old, c.values["cause"], c.role)
	if err != nil {
		return nil, err
	}
	return h.started(c, run)
}

// refreshBody describes the body of a refresh of chosen items. decodeKeys decodes it.
type refreshBody struct {
	Items []lookupKey `json:"items"`
}

func (h jobHandlers) refreshItems(c *call) (any, error) {
	keys, err := decodeKeys(c.Body)
	if err != nil {
		return nil, err
	}
	run, err := h.Engine.RefreshItems(c.Context(), keys, c.role)
	if err != nil {
		return nil, err
	}
	return h.started(c, run)
}

// started returns the response for a job that was started or was already running.
func (h jobHandlers) started(c *call, run refresh.Started) (any, error) {
	job, err := h.Readers.Jobs.Job(c.Context(), run.JobID)
	switch {
	case err != nil:
		return nil, err
	case !run.Started:
		return alreadyRunning{Reason: reasonRunning, ForcedIgnored: run.ForcedIgnored, Job: job}, nil
	}
	return response{status: http.StatusAccepted, location: "/api/market-prices/jobs/" + job.ID, value: started{Started: true, Job: job}}, nil
}

func (h jobHandlers) cancelJob(c *call) (any, error) {
	id, err := c.jobID()
	if err != nil {
		return nil, err
	}
	if err := h.Engine.Cancel(c.Context(), id); err != nil {
		return nil, err
	}
	return h.job(c)
}

func (h jobHandlers) status(c *call) (any, error) {
	return h.Readers.Jobs.Status(c.Context())
}

func (h jobHandlers) jobDebug(c *call) (any, error) {
	return h.Readers.Jobs.JobDebug(c.Context())
}

func (h jobHandlers) jobs(c *call) (any, error) {
	return h.Readers.Jobs.Jobs(c.Context(), c.values["kind"], c.values["cursor"], c.limit())
}

func (h jobHandlers) job(c *call) (any, error) {
	id, err := c.jobID()
	if err != nil {
		return nil, err
	}
	return h.Readers.Jobs.Job(c.Context(), id)
}

func (h jobHandlers) jobItems(c *call) (any, error) {
	id, err := c.jobID()
	if err != nil {
		return nil, err
	}
	return h.Readers.Jobs.JobItems(c.Context(), id, view.JobItemFilter{State: c.values["state"], Cause: c.values["cause"], Search: c.values["q"]}, c.values["cursor"], c.limit())
}
