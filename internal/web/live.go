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

// How often the script polls, in seconds.
const (
	everyLive = 1
	everyIdle = 5
)

// livePanel is the part of a page that follows a run.
type livePanel struct {
	User  *user
	Run   *runView // nil: there was none yet
	Only  bool     // the page is about this one run
	Back  string   // the page that the panel is on
	Poll  string   // the address to poll
	Every int
	// Exchange sends the buttons along: they are replaced only when the run's
	// state changed, so that no click falls between two copies of a button.
	Exchange bool

	Missing   view.MissingStatus
	Freshness freshness
}

// freshness is how old the prices are.
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

// live responds with the panel alone, for the script.
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

// panel reads the run with the id or, where the id is empty, the bulk run that runs or
// ran last; without one the newest run of missing prices.
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

// state identifies the state of the page's buttons.
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

// CanStart reports whether a run can be started now.
func (p livePanel) CanStart() bool {
	return p.User.Admin && (p.Run == nil || !p.Run.Live || p.missing())
}

// missing reports whether the run is one of missing prices, which hinders no other.
func (p livePanel) missing() bool { return p.Run.Kind == "missing" }

// CanCancel reports whether there is a live run to end.
func (p livePanel) CanCancel() bool { return p.User.Admin && p.Run != nil && p.Run.Live }

// CanRetry reports whether the run learned nothing of some items.
func (p livePanel) CanRetry() bool {
	if !p.User.Admin || p.Run == nil || p.Run.Live {
		return false
	}
	skipped := p.Run.SkippedItems
	return p.Run.FailedItems+skipped.Budget+skipped.Paused+skipped.Backoff > 0
}

// jobID reads the id of a job as it stands in addresses.
func jobID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 || strings.HasPrefix(text, "+") {
		return 0, fault.New(fault.NotFound, "not_found", "Unknown run.")
	}
	return id, nil
}

// gone reports whether the requested job was removed meanwhile.
func gone(err error) bool {
	known := fault.Of(err)
	return known != nil && known.Kind == fault.NotFound
}
