package api

import (
	"context"
	"net/http"
	"strconv"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/refresh"
	"assay/internal/view"
)

// started says that a job was started.
type started struct {
	Started bool     `json:"started"` // true
	Job     view.Job `json:"job"`
}

// alreadyRunning says that none was, since the job in it is queued or runs.
type alreadyRunning struct {
	Started bool   `json:"started"` // false
	Reason  string `json:"reason"`  // already_running
	// ForcedIgnored is true where force was asked and the live job is not forced.
	ForcedIgnored bool     `json:"forcedIgnored"`
	Job           view.Job `json:"job"`
}

// dryRunAnswer says that none was, since only a forecast was requested.
type dryRunAnswer struct {
	Started bool   `json:"started"` // false
	Reason  string `json:"reason"`  // dry_run
	view.DryRun
}

// Why no job was started. The reason tells apart the answers with status 200.
const (
	reasonRunning = "already_running"
	reasonDryRun  = "dry_run"
)

func (s *server) startRefresh(w http.ResponseWriter, c *call) error {
	forced := c.values.flag("force")
	if c.values.flag("dryRun") {
		forecast, err := s.Refresher.DryRun(c.Context(), forced)
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, dryRunAnswer{Reason: reasonDryRun, DryRun: forecast})
	}
	run, err := s.Refresher.Start(c.Context(), forced, c.role)
	if err != nil {
		return err
	}
	return s.answerStart(w, c, run)
}

func (s *server) retryFailed(w http.ResponseWriter, c *call) error {
	old, err := c.jobID()
	if err != nil {
		return err
	}
	run, err := s.Refresher.RetryFailed(c.Context(), old, c.role)
	if err != nil {
		return err
	}
	return s.answerStart(w, c, run)
}

// answerStart tells of the job that was started, or of the one that kept it
// from being.
func (s *server) answerStart(w http.ResponseWriter, c *call, run refresh.Started) error {
	job, err := s.Reader.Job(c.Context(), run.JobID)
	switch {
	case err != nil:
		return err
	case !run.Started:
		return writeJSON(w, http.StatusOK, alreadyRunning{Reason: reasonRunning, ForcedIgnored: run.ForcedIgnored, Job: job})
	}
	w.Header().Set("Location", "/api/market-prices/jobs/"+job.ID)
	return writeJSON(w, http.StatusAccepted, started{Started: true, Job: job})
}

func (s *server) cancelJob(w http.ResponseWriter, c *call) error {
	id, err := c.jobID()
	if err != nil {
		return err
	}
	if err := s.Refresher.Cancel(c.Context(), id); err != nil {
		return err
	}
	return s.job(w, c)
}

func (s *server) status(w http.ResponseWriter, c *call) error {
	status, err := s.Reader.Status(c.Context())
	return answer(w, status, err)
}

func (s *server) providerDebug(w http.ResponseWriter, c *call) error {
	debug, err := s.Reader.ProviderDebug(c.Context())
	return answer(w, debug, err)
}

func (s *server) jobDebug(w http.ResponseWriter, c *call) error {
	debug, err := s.Reader.JobDebug(c.Context())
	return answer(w, debug, err)
}

func (s *server) jobs(w http.ResponseWriter, c *call) error {
	page, err := s.Reader.Jobs(c.Context(), c.values["kind"], c.values["cursor"], c.limit())
	return answer(w, page, err)
}

func (s *server) job(w http.ResponseWriter, c *call) error {
	id, err := c.jobID()
	if err != nil {
		return err
	}
	job, err := s.Reader.Job(c.Context(), id)
	return answer(w, job, err)
}

func (s *server) jobItems(w http.ResponseWriter, c *call) error {
	id, err := c.jobID()
	if err != nil {
		return err
	}
	page, err := s.Reader.JobItems(c.Context(), id, c.values["state"], c.values["cursor"], c.limit())
	return answer(w, page, err)
}

// steerProvider makes a handler of a method of the Refresher.
func (s *server) steerProvider(steer func(ctx context.Context, provider string) error) func(http.ResponseWriter, *call) error {
	return func(w http.ResponseWriter, c *call) error {
		if err := steer(c.Context(), c.values["provider"]); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

func (s *server) acceptProvider(w http.ResponseWriter, c *call) error {
	if err := s.Refresher.AcceptProvider(c.Context(), c.values["provider"], c.values["market"]); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *server) acceptItem(w http.ResponseWriter, c *call) error {
	detail, err := s.Refresher.AcceptItem(c.Context(), c.key())
	return answer(w, detail, err)
}

// answer answers with what a Reader returned.
func answer(w http.ResponseWriter, value any, err error) error {
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, value)
}

// jobID returns the job that the path names. What no job can be called is not
// found, as any other that does not exist.
func (c *call) jobID() (int64, error) { return c.idOf("job") }

// idOf returns the id in the path. What is no id is one of nothing.
func (c *call) idOf(what string) (int64, error) {
	text := c.values["id"]
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != text {
		return 0, fault.New(fault.NotFound, what+"_not_found", "There is no such %s.", what)
	}
	return id, nil
}

func (c *call) limit() int { return int(c.values.number("limit")) }

// fields returns the figures that are requested beside each price.
func (c *call) fields() view.Fields {
	f, _ := view.ParseFields(c.values["fields"]) // was checked
	return f
}

// key returns the item that the request names.
func (c *call) key() catalog.Key {
	return catalog.Key{AppID: int32(c.values.number("appId")), Name: c.values["name"], Phase: c.values["phase"]}
}
