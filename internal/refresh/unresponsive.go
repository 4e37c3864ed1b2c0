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

// DefaultProviderWait is how long a job waits for a host without a successful response,
// unless the configuration sets another time.
const DefaultProviderWait = time.Minute

// UnresponsiveHost is a host that a job no longer waits for.
type UnresponsiveHost struct {
	JobID    int64
	Provider string
	Files    []string      // files of the host; nil: the provider is queried by name
	For      time.Duration // time without a successful response
	Kind     string        // kind of the last failure; "": no response at all
	Error    string
}

// Detachment describes whether and when a job continued without a unit.
type Detachment int

// The values of Detachment, as stored.
const (
	NotDetached        Detachment = iota
	DetachedPending               // before the unit was requested
	DetachedRunning               // during its request; the provider's failure is stored already
	DetachedBackground            // a name of the background fetch
)

// waitKey identifies a host that a job waits for.
type waitKey struct {
	job            int64
	provider, host string
}

// waiting is the state of a job's wait for a host. The wait begins with the first request
// after the last successful response. A wait for our own rate limit does not count.
type waiting struct {
	calls   int           // calls in progress
	since   time.Duration // start of the wait
	started bool          // since is set
	kind    string        // kind of the last failure
	error   string        // text of the last failure
}

// waits holds the waits of live jobs for which this process sends requests. Times are
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

// begin counts a call. The caller must call end.
func (w *waits) begin(k waitKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entry(k).calls++
}

// sending records the time of a request just before it is sent.
func (w *waits) sending(k waitKey, now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.entry(k); !h.started {
		h.started, h.since = true, now
	}
}

// succeeded records a successful response. The wait of other calls starts again.
func (w *waits) succeeded(k waitKey, now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.entry(k)
	h.started, h.since, h.kind, h.error = h.calls > 1, now, "", ""
}

// end records the end of a call and its error, if any. A request that was not sent because of
// a circuit breaker or a retry-after also starts the wait.
func (w *waits) end(k waitKey, failure error, now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.entry(k)
	h.calls--
	if failure != nil {
		kind := provider.KindOf(failure)
		if h.kind, h.error = string(kind), failure.Error(); !h.started && (kind == provider.KindBreaker || kind == provider.KindRateLimited) {
			h.started, h.since = true, now
		}
	}
	if h.calls == 0 && !h.started {
		delete(w.hosts, k)
	}
}

// startWait records that a job waits for a host that other jobs already wait for.
func (w *waits) startWait(k waitKey, now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hosts[k] == nil {
		w.entry(k).started, w.entry(k).since = true, now
	}
}

// unresponsive returns the waits that have lasted at least minimum. It checks once a second at
// most.
func (w *waits) unresponsive(now, minimum time.Duration) map[waitKey]waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.hosts) == 0 || now-w.checkedAt < time.Second {
		return nil
	}
	w.checkedAt = now
	out := map[waitKey]waiting{}
	for k, h := range w.hosts {
		if h.started && now-h.since >= minimum {
			out[k] = *h
		}
	}
	return out
}

// remove deletes a wait, unless a call is in progress.
func (w *waits) remove(k waitKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.hosts[k]; h != nil && h.calls == 0 {
		delete(w.hosts, k)
	}
}

// callForJob makes a call that a job waits for.
func (f *fetcher) callForJob(k waitKey, r *quoteSink, meter *provider.Meter, call func() error) error {
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

// unresponsiveAfter is how long a host must be unresponsive before other jobs that need the
// host begin their waits too.
const unresponsiveAfter = 5 * time.Second

// detachUnresponsive lets jobs continue without hosts that have been unresponsive for too
// long. Requests in progress and their retries continue, and the next job uses their
// responses.
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
		s.Error += "; last error: " + h.error
	}
	var units int64
	err := f.store.InTx(ctx, func(tx *db.Tx) (err error) {
		units, err = detachUnits(tx, s)
		return err
	})
	if err != nil {
		return fmt.Errorf("detach from %s: %w", k.provider, err)
	}
	f.waits.remove(k)
	if units > 0 {
		f.log.Warn("provider wait exceeded", "job", k.job, "provider", k.provider, "host", k.host, "requests", units, "last_error", h.error)
		f.wake(WorkEstimate)
	}
	return nil
}

// filesOf returns the files of a provider's host, or nil if the provider is queried by name.
func (f *fetcher) filesOf(provider, host string) []string {
	for _, q := range f.queues {
		if q.provider == provider && q.host == host && !q.local {
			return q.files
		}
	}
	return nil
}
