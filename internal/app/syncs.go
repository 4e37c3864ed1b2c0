package app

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/internal/admission"
	"assay/internal/dispatch"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/refresh"
)

// The kinds of syncs in metrics.
const (
	syncPush  = "push"  // an inventory from the platform
	syncPull  = "pull"  // an inventory from Steam
	syncRenew = "renew" // the last push again, for a listing
)

// The outcomes of syncs in metrics.
const (
	syncOK      = "ok"
	syncRefused = "refused" // a retry of the request cannot succeed
	syncFailed  = "failed"  // an error of the server or of Steam; a retry can succeed
)

// syncs runs the inventory syncs that requests start, and counts them. It counts rows when
// they are written, not per request: two requests can share a pull, and a pull can continue
// after its request.
type syncs struct {
	service *inventory.Service
	steam   *steaminv.Syncer
	// priority lets writes of inventories run before refreshes.
	priority *admission.Priority

	count *prometheus.CounterVec
	rows  *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

func newSyncs(service *inventory.Service) *syncs {
	s := &syncs{
		service: service, priority: admission.NewPriority(),
		count: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_inventory_syncs_total", Help: "Syncs of inventories by outcome. The reason is the code of the error, or empty.",
		}, []string{"kind", "outcome", "reason"}),
		rows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_inventory_sync_rows_total", Help: "Inventory rows that syncs wrote.",
		}, []string{"kind", "change"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "assay_inventory_sync_duration_seconds", Help: "How long requests waited for a sync.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90},
		}, []string{"kind"}),
	}
	// Create the time series now, so that rates include the first sync.
	for _, kind := range []string{syncPush, syncPull, syncRenew} {
		s.count.WithLabelValues(kind, syncOK, "")
		s.took.WithLabelValues(kind)
	}
	for _, kind := range []string{syncPush, syncPull} {
		s.written(kind, inventory.Result{})
	}
	return s
}

func (s *syncs) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.count, s.rows, s.took}
}

// takePriority makes the stages plan, estimate and apply of a refresh wait for syncs,
// because they use the processors and lock rows. A fetch mostly waits for the network. It
// waits for syncs only when it stores a response.
func (s *syncs) takePriority(workers []dispatch.Worker) {
	for i := range workers {
		w := &workers[i]
		if w.Kind == refresh.WorkPlan || w.Kind == refresh.WorkEstimate || w.Kind == refresh.WorkApply {
			work := w.Work
			w.Work = func(ctx context.Context) (bool, error) { return s.priority.Run(ctx, work) }
		}
	}
}

// push syncs an inventory from the platform.
func (s *syncs) push(ctx context.Context, userID string, push inventory.Push, mode inventory.Mode) (r inventory.Result, err error) {
	defer s.priority.Begin()()
	began := time.Now()
	r, err = s.service.Sync(ctx, userID, push, mode)
	outcome, reason := syncOutcome(err)
	s.done(syncPush, began, outcome, reason)
	s.written(syncPush, r)
	return r, err
}

// pull syncs an inventory from Steam.
func (s *syncs) pull(ctx context.Context, userID string, place steaminv.Place, mode inventory.Mode) (r inventory.Result, err error) {
	began := time.Now()
	r, err = s.steam.Sync(ctx, userID, place, mode)
	outcome, reason := syncOutcome(err)
	s.done(syncPull, began, outcome, reason)
	return r, err
}

// pulled stores the inventory of a completed pull.
func (s *syncs) pulled(ctx context.Context, userID string, push inventory.Push, mode inventory.Mode) (r inventory.Result, err error) {
	defer s.priority.Begin()()
	r, err = s.service.Sync(ctx, userID, push, mode)
	s.written(syncPull, r)
	return r, err
}

// renew syncs the last push again. It returns false if the push is too old.
func (s *syncs) renew(ctx context.Context, userID string, app int32, contextID string, notBefore time.Time) (fresh bool, err error) {
	defer s.priority.Begin()()
	began := time.Now()
	fresh, err = s.service.Renew(ctx, userID, app, contextID, notBefore)
	outcome, reason := syncOutcome(err)
	if err == nil && !fresh {
		outcome, reason = syncRefused, "too_old"
	}
	s.done(syncRenew, began, outcome, reason)
	return fresh, err
}

func (s *syncs) done(kind string, began time.Time, outcome, reason string) {
	s.count.WithLabelValues(kind, outcome, reason).Inc()
	s.took.WithLabelValues(kind).Observe(time.Since(began).Seconds())
}

func (s *syncs) written(kind string, r inventory.Result) {
	s.rows.WithLabelValues(kind, "added").Add(float64(r.Added))
	s.rows.WithLabelValues(kind, "changed").Add(float64(r.Changed))
	s.rows.WithLabelValues(kind, "removed").Add(float64(r.Removed))
}

// syncOutcome returns the metric labels of an error. Codes are constants, which limits the
// number of time series.
func syncOutcome(err error) (outcome, reason string) {
	switch f := fault.Of(err); {
	case err == nil:
		return syncOK, ""
	case f != nil && (f.Kind == fault.Unavailable || f.Kind == fault.Busy || f.Kind == fault.Upstream || f.Kind == fault.Internal):
		return syncFailed, f.Code
	case f != nil:
		return syncRefused, f.Code
	case errors.Is(err, context.Canceled):
		return syncFailed, "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return syncFailed, "timeout"
	default:
		return syncFailed, "internal_error"
	}
}
