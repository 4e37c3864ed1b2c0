package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"assay/internal/fault"
)

// author is the requester of runs that are started on the page.
const author = "page"

// start starts a bulk run; "force" is the button that was pressed.
func (s *site) start(w http.ResponseWriter, r *http.Request, sess session) error {
	forced := r.PostFormValue("force") == "1"
	run, err := s.Refresher.Start(r.Context(), forced, author)
	if err != nil {
		return s.decline(w, r, sess, err)
	}
	id := run.JobID
	message := flash{Good: true, Text: "Run " + text(id) + " is started.", Href: "/runs/" + text(id), Link: "Show it"}
	switch {
	case run.Started && forced:
		message.Text = "Run " + text(id) + " is started and refreshes every item."
	case !run.Started && run.ForcedIgnored:
		message.Good, message.Text = false, "Run "+text(id)+" is under way and is not a forced one. Nothing new was started."
	case !run.Started:
		message.Good, message.Text = false, "Run "+text(id)+" is already under way. Nothing new was started."
	}
	return s.done(w, r, sess, message)
}

func (s *site) cancel(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := jobID(r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := s.Refresher.Cancel(r.Context(), id); err != nil {
		return s.decline(w, r, sess, err)
	}
	return s.done(w, r, sess, flash{Good: true, Text: "Run " + text(id) + " is cancelled. What it has priced stays."})
}

func (s *site) retryFailed(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := jobID(r.PathValue("id"))
	if err != nil {
		return err
	}
	run, err := s.Refresher.RetryFailed(r.Context(), id, author)
	if err != nil {
		return s.decline(w, r, sess, err)
	}
	next := run.JobID
	message := flash{Good: true, Text: "Run " + text(next) + " tries the failed items of run " + text(id) + " again.", Href: "/runs/" + text(next), Link: "Show it"}
	if !run.Started {
		message.Good, message.Text = false, "Run "+text(next)+" is already under way. Nothing new was started."
	}
	return s.done(w, r, sess, message)
}

func (s *site) pauseProvider(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.onProvider(w, r, sess, s.Refresher.PauseProvider, "%s is paused: it gets no requests until you resume it.")
}

func (s *site) resumeProvider(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.onProvider(w, r, sess, s.Refresher.ResumeProvider, "%s gets requests again from the next run on.")
}

func (s *site) acceptProvider(w http.ResponseWriter, r *http.Request, sess session) error {
	market := r.PostFormValue("market")
	accept := func(ctx context.Context, provider string) error {
		return s.Refresher.AcceptProvider(ctx, provider, market)
	}
	message := "The quarantine of %s is over."
	if market != "" {
		message = "The quarantine of " + strings.ReplaceAll(market, "%", "%%") + " of %s is over."
	}
	return s.onProvider(w, r, sess, accept, message)
}

// onProvider does one thing to the provider that the path names.
func (s *site) onProvider(w http.ResponseWriter, r *http.Request, sess session, do func(context.Context, string) error, message string) error {
	provider := r.PathValue("provider")
	if err := do(r.Context(), provider); err != nil {
		return s.decline(w, r, sess, err)
	}
	return s.done(w, r, sess, flash{Good: true, Text: fmt.Sprintf(message, provider)})
}

// acceptItem takes the price that is held back.
func (s *site) acceptItem(w http.ResponseWriter, r *http.Request, sess session) error {
	key, err := keyOf(r.URL.Query())
	if err != nil {
		return err
	}
	if err := s.Refresher.AcceptItem(r.Context(), key); err != nil {
		return s.decline(w, r, sess, err)
	}
	return s.done(w, r, sess, flash{Good: true, Text: "The new price is accepted."})
}

// done returns to the page that the button was on and shows there what came
// of it.
func (s *site) done(w http.ResponseWriter, r *http.Request, sess session, message flash) error {
	s.sessions.put(sess.key, message)
	http.Redirect(w, r, localPath(r.PostFormValue("back")), http.StatusSeeOther)
	return nil
}

// decline shows a fault on the page that the button was on. Other errors
// remain errors.
func (s *site) decline(w http.ResponseWriter, r *http.Request, sess session, err error) error {
	known := fault.Of(err)
	if known == nil {
		return err
	}
	return s.done(w, r, sess, flash{Text: sentence(known.Error())})
}

func text(id int64) string { return strconv.FormatInt(id, 10) }
