package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"assay/internal/fault"
	"assay/internal/view"
)

// These are the polling intervals of the script in seconds.
const (
	everyLive = 1
	everyIdle = 5
)

// livePanel is the part of a page that shows the progress of a run.
type livePanel struct {
	User  *user
	Run   *runView // nil: no run yet
	Only  bool     // the page shows only this run
	Back  string   // page that contains the panel
	Poll  string   // URL to poll
	Every int
	// Exchange includes the buttons in the response. The script replaces them only after the run's
	// state has changed, so that a click does not hit a button during its replacement.
	Exchange bool

	Missing   view.MissingStatus
	Freshness freshness
}

// freshness is the age of the prices.
type freshness struct {
	view.Freshness
	Total    int64
	Segments []segment
}

func newFreshness(f view.Freshness) freshness {
	total := f.Fresh + f.Stale + f.Unknown
	return freshness{
		Freshness: f, Total: total,
		Segments: segments(total, part{"fresh", f.Fresh}, part{"stale", f.Stale}, part{"unknown", f.Unknown}),
	}
}

// live responds with only the panel. The script requests it.
func (s *runPages) live(w http.ResponseWriter, r *http.Request, sess session) error {
	panel, err := s.panel(r.Context(), sess, r.URL.Query().Get("run"))
	if err != nil {
		return err
	}
	if seen := r.URL.Query().Get("seen"); seen != panel.state() {
		panel.Exchange = true
		w.Header().Set("HX-Trigger", "run-changed")
	}
	s.execute(w, r, http.StatusOK, "overview", "live", panel)
	return nil
}

// panel reads the run with the ID. If the ID is empty, it reads the running or last bulk run.
// If there is none, it reads the newest run of missing prices.
func (s *runPages) panel(ctx context.Context, sess session, id string) (livePanel, error) {
	status, err := s.Jobs.Status(ctx)
	if err != nil {
		return livePanel{}, err
	}
	p := livePanel{
		User: userOf(sess), Only: id != "", Back: "/", Every: everyIdle,
		Missing: status.Missing, Freshness: newFreshness(status.Freshness),
	}
	if p.Only {
		p.Back = "/runs/" + id
	}
	current := status.Status.JobID
	switch {
	case p.Only:
	case current != nil:
		id = *current
	default:
		newest, err := s.Jobs.Jobs(ctx, "", "", 1)
		if err != nil {
			return livePanel{}, err
		}
		if len(newest.Items) > 0 {
			id = newest.Items[0].ID
		}
	}
	if id != "" {
		var eta *int64
		if current != nil && *current == id {
			eta = status.Status.EtaSeconds
		}
		if p.Run, err = s.runView(ctx, id, eta); err != nil && (p.Only || !gone(err)) {
			return livePanel{}, err
		}
	}
	if p.Run != nil && p.Run.Live {
		p.Every = everyLive
	}
	p.Poll = p.poll()
	return p, nil
}

func (s *runPages) runView(ctx context.Context, text string, eta *int64) (*runView, error) {
	id, err := jobID(text)
	if err != nil {
		return nil, err
	}
	job, err := s.Jobs.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	return newRunView(job, eta, s.Now()), nil
}

// state returns a text that changes with the state of the buttons.
func (p *livePanel) state() string {
	if p.Run == nil {
		return "none"
	}
	return p.Run.ID + "." + p.Run.State
}

func (p *livePanel) poll() string {
	q := url.Values{"seen": {p.state()}}
	if p.Only {
		q.Set("run", p.Run.ID)
	}
	return "/live?" + q.Encode()
}

// CanStart reports whether a new run can be started.
func (p livePanel) CanStart() bool {
	return p.User.Admin && (p.Run == nil || !p.Run.Live || p.missing())
}

// missing reports whether this is a run of missing prices, which can run concurrently with a
// bulk run.
func (p livePanel) missing() bool { return p.Run.Kind == "missing" }

// CanCancel reports whether the user can cancel the run.
func (p livePanel) CanCancel() bool { return p.User.Admin && p.Run != nil && p.Run.Live }

// CanRetry reports whether the run has items to retry.
func (p livePanel) CanRetry() bool {
	if !p.User.Admin || p.Run == nil || p.Run.Live {
		return false
	}
	skipped := p.Run.SkippedItems
	return p.Run.FailedItems+skipped.Budget+skipped.Paused+skipped.Backoff > 0
}

// jobID parses a job ID in a URL.
func jobID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 || strings.HasPrefix(text, "+") {
		return 0, fault.New(fault.NotFound, "not_found", "Unknown run.")
	}
	return id, nil
}

// gone reports whether the requested job has been removed.
func gone(err error) bool {
	known := fault.Of(err)
	return known != nil && known.Kind == fault.NotFound
}
