package refresh

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"assay/internal/db"
	"assay/internal/provider"
)

// DefaultProviderWait is how long a job waits for a host without a successful
// response, unless an operator sets another time.
const DefaultProviderWait = time.Minute

// UnresponsiveHost is a host that a job no longer waits for.
type UnresponsiveHost struct {
	JobID    int64
	Provider string
	Files    []string      // that the host serves; nil: any
	For      time.Duration // without a successful response
	Kind     string        // of its last failure; empty: there was no response at all
	Error    string
}

// Detachment says whether a unit's job went on without it.
type Detachment int

// The values of Detachment, as they are stored.
const (
	NotDetached        Detachment = iota
	DetachedPending               // the job went on before the unit was requested
	DetachedRunning               // the job went on while it was requested: the failure of its provider is stored already
	DetachedBackground            // a name of the background fetch
)

// waitKey identifies what a job waits for: a host of a provider.
type waitKey struct {
	job            int64
	provider, host string
}

// waiting is how long a job has waited for a host. Time counts from the first request without
// a successful response after it, so that a wait for our own limit does not count.
type waiting struct {
	calls int // under way
	since time.Duration
	sent  bool   // since is set
	kind  string // of the last failure
	error string
}

// waits is what the live jobs wait for, as far as this process sends the requests. Times are
// readings of process.elapsed.
type waits struct {
	mu        sync.Mutex
	hosts     map[waitKey]*waiting
	checkedAt time.Duration
}

func (w *waits) entry(k waitKey) *waiting {
	if w.hosts == nil {
		w.hosts = map[waitKey]*waiting{}
	}
	if w.hosts[k] == nil {
		w.hosts[k] = &waiting{}
	}
	return w.hosts[k]
}

// begin counts a call. The caller ends it.
func (w *waits) begin(k waitKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entry(k).calls++
}

// sending stores the time of a request that is about to be sent.
func (w *waits) sending(k waitKey, now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.entry(k); !h.sent {
		h.sent, h.since = true, now
	}
}

// succeeded stores a successful response. For other calls under way, time starts again.
func (w *waits) succeeded(k waitKey, now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.entry(k)
	h.sent, h.since, h.kind, h.error = h.calls > 1, now, "", ""
}

// end stores the end of a call and its failure, if any. A request that a circuit breaker or a
// retry-after kept from being sent counts as silence too.
func (w *waits) end(k waitKey, failure error, now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.entry(k)
	h.calls--
	if failure != nil {
		kind := provider.KindOf(failure)
		if h.kind, h.error = string(kind), failure.Error(); !h.sent && (kind == provider.KindBreaker || kind == provider.KindRateLimited) {
			h.sent, h.since = true, now
		}
	}
	if h.calls == 0 && !h.sent {
		delete(w.hosts, k)
	}
}

// startWait stores that a job waits for a host that other jobs wait for already.
func (w *waits) startWait(k waitKey, now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hosts[k] == nil {
		w.entry(k).sent, w.entry(k).since = true, now
	}
}

// unresponsive returns what has been waited for at least that long, at most once a second.
func (w *waits) unresponsive(now, least time.Duration) map[waitKey]waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.hosts) == 0 || now-w.checkedAt < time.Second {
		return nil
	}
	w.checkedAt = now
	out := map[waitKey]waiting{}
	for k, h := range w.hosts {
		if h.sent && now-h.since >= least {
			out[k] = *h
		}
	}
	return out
}

// remove removes what a job no longer waits for, unless a call is under way.
func (w *waits) remove(k waitKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.hosts[k]; h != nil && h.calls == 0 {
		delete(w.hosts, k)
	}
}

// callForJob makes a call that a job waits for.
func (f *fetcher) callForJob(k waitKey, r *response, meter *provider.Meter, call func() error) error {
	meter.OnRequest(func() { f.waits.sending(k, f.elapsed()) })
	r.succeeded = func() { f.waits.succeeded(k, f.elapsed()) }
	f.waits.begin(k)
	err := call()
	if err == nil {
		r.succeeded()
	}
	f.waits.end(k, err, f.elapsed())
	return err
}

// unresponsiveAfter is how long a host has been silent when other waiting jobs are looked for.
const unresponsiveAfter = 5 * time.Second

// detachUnresponsive lets jobs go on without hosts that have not responded for too long. Requests
// under way and their retries continue, for the next job.
func (f *fetcher) detachUnresponsive(ctx context.Context) error {
	now := f.elapsed()
	var errs []error
	for k, h := range f.waits.unresponsive(now, min(unresponsiveAfter, f.cfg.ProviderWait)) {
		files := f.filesOf(k.provider, k.host)
		if h.calls > 0 {
			jobs, err := waitingJobs(ctx, f.store, k.provider, files)
			errs = append(errs, err)
			for _, job := range jobs {
				f.waits.startWait(waitKey{job, k.provider, k.host}, now)
			}
		}
		if now-h.since >= f.cfg.ProviderWait {
			errs = append(errs, f.detach(ctx, k, h, files))
		}
	}
	return errors.Join(errs...)
}

func (f *fetcher) detach(ctx context.Context, k waitKey, h waiting, files []string) error {
	s := UnresponsiveHost{JobID: k.job, Provider: k.provider, Files: files, For: f.cfg.ProviderWait, Kind: h.kind}
	s.Error = fmt.Sprintf("%s: no successful response for %s", k.provider, s.For)
	if h.error != "" {
		s.Error += "; last: " + h.error
	}
	var units int64
	err := f.store.InTx(ctx, func(tx *db.Tx) (err error) {
		units, err = detachUnits(tx, s)
		return err
	})
	if err != nil {
		return fmt.Errorf("go on without %s: %w", k.provider, err)
	}
	f.waits.remove(k)
	if units > 0 {
		f.log.Warn("provider wait exceeded", "job", k.job, "provider", k.provider, "host", k.host, "requests", units, "last_error", h.error)
		f.wake(WorkEstimate)
	}
	return nil
}

// filesOf returns the files that a host of a provider serves; nil: it is queried by name.
func (f *fetcher) filesOf(provider, host string) []string {
	for _, l := range f.queues {
		if l.provider == provider && l.host == host && !l.local {
			return l.files
		}
	}
	return nil
}
