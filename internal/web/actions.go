package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"assay/internal/fault"
	"assay/internal/refresh"
)

// author is the requester of runs that are started on the page.
const author = "page"

// start starts a bulk run.
func (s *runPages) start(w http.ResponseWriter, r *http.Request, sess session) error {
	forced := r.PostFormValue("force") == "1"
	run, err := s.Refresher.Start(r.Context(), forced, author)
	message := " is started."
	if forced {
		message = " is started and refreshes every item."
	}
	return s.showStarted(w, r, sess, run, message, err)
}

func (s *runPages) cancel(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := jobID(r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.done(w, r, sess, flash{Good: true, Text: "Run " + text(id) + " is cancelled. What it has priced stays."}, s.Refresher.Cancel(r.Context(), id))
}

func (s *runPages) retryFailed(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := jobID(r.PathValue("id"))
	if err != nil {
		return err
	}
	run, err := s.Refresher.RetryFailed(r.Context(), id, author)
	return s.showStarted(w, r, sess, run, " retries the failed items of run "+text(id)+".", err)
}

// showStarted shows which run was started, or which one prevented it.
func (s *runPages) showStarted(w http.ResponseWriter, r *http.Request, sess session, run refresh.Started, message string, err error) error {
	id := text(run.JobID)
	switch {
	case err != nil:
	case run.ForcedIgnored:
		message = " is running and is not a forced one. Nothing new was started."
	case !run.Started:
		message = " is already running. Nothing new was started."
	}
	return s.done(w, r, sess, flash{Good: run.Started, Text: "Run " + id + message, Href: "/runs/" + id, Link: "Show it"}, err)
}

func (s *providerPages) pauseProvider(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.onProvider(w, r, sess, s.Refresher.PauseProvider, "%s is paused: it gets no requests until you resume it.")
}

func (s *providerPages) resumeProvider(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.onProvider(w, r, sess, s.Refresher.ResumeProvider, "%s gets requests again from the next run on.")
}

func (s *providerPages) acceptProvider(w http.ResponseWriter, r *http.Request, sess session) error {
	market := r.PostFormValue("market")
	accept := func(ctx context.Context, provider string) error {
		return s.Refresher.AcceptProvider(ctx, provider, market)
	}
	message := "The quarantine of %s has ended."
	if market != "" {
		message = "The quarantine of " + strings.ReplaceAll(market, "%", "%%") + " of %s has ended."
	}
	return s.onProvider(w, r, sess, accept, message)
}

// onProvider changes the provider that the path names.
func (s *providerPages) onProvider(w http.ResponseWriter, r *http.Request, sess session, do func(context.Context, string) error, message string) error {
	provider := r.PathValue("provider")
	return s.done(w, r, sess, flash{Good: true, Text: fmt.Sprintf(message, provider)}, do(r.Context(), provider))
}

// acceptItem accepts a held price.
func (s *itemPages) acceptItem(w http.ResponseWriter, r *http.Request, sess session) error {
	key, err := keyOf(r.URL.Query())
	if err != nil {
		return err
	}
	return s.done(w, r, sess, flash{Good: true, Text: "The new price is accepted."}, s.Refresher.AcceptItem(r.Context(), key))
}

// done returns to the page with the button and shows there the message or, instead, why
// the action was refused. Other errors remain errors.
func (s *pages) done(w http.ResponseWriter, r *http.Request, sess session, message flash, err error) error {
	if refused := fault.Of(err); refused != nil {
		message = flash{Text: sentence(refused.Error())}
	} else if err != nil {
		return err
	}
	s.sessions.put(sess.key, message)
	http.Redirect(w, r, localPath(r.PostFormValue("back")), http.StatusSeeOther)
	return nil
}

func text(id int64) string { return strconv.FormatInt(id, 10) }
