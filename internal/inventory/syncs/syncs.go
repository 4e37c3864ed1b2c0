// Package syncs runs the inventory syncs that requests start: pushes from the platform, pulls
// from Steam, and renewals before listings.
package syncs

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/internal/admission"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
)

// The kinds of syncs in metrics.
const (
	syncPush  = "push"  // an inventory from the platform
	syncPull  = "pull"  // an inventory from Steam
	syncRenew = "renew" // new prices for the stored inventory, before a listing
)

// The outcomes of syncs in metrics.
const (
	syncOK      = "ok"
	syncRefused = "refused" // a retry of the request cannot succeed
	syncFailed  = "failed"  // an error of the server or of Steam; a retry can succeed
)

// Service runs syncs and counts them. It counts rows when they are written, not per request:
// two requests can share a pull, and a pull can continue after its request. Its methods are
// safe for concurrent use.
type Service struct {
	// Priority lets writes of inventories run before refreshes.
	Priority *admission.Priority

	inventories *inventory.Service
	steam       *steaminv.Syncer

	count *prometheus.CounterVec
	rows  *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

// New returns a Service. It sets the field Sync of the options. The caller must call Close.
func New(inventories *inventory.Service, steam steaminv.Options) *Service {
	s := &Service{
		inventories: inventories, Priority: admission.NewPriority(),
		count: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_inventory_syncs_total", Help: "Syncs of inventories by kind: push, pull (from Steam) or renew (of the last push, for a listing). The outcome is ok, refused, or failed (may succeed later). The reason is a problem code, too_old, cancelled, timeout or internal_error.",
		}, []string{"kind", "outcome", "reason"}),
		rows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_inventory_sync_rows_total", Help: "Inventory rows that syncs added, changed or removed.",
		}, []string{"kind", "change"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "assay_inventory_sync_duration_seconds", Help: "How long requests waited for a sync, including the wait for Steam.",
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
	steam.Sync = s.pulled
	s.steam = steaminv.NewSyncer(steam)
	return s
}

// Close aborts all pulls and ends the requests that wait for them.
func (s *Service) Close() { s.steam.Close() }

// Collectors returns the metrics of syncs.
func (s *Service) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.count, s.rows, s.took}
}

// Push syncs an inventory from the platform.
func (s *Service) Push(ctx context.Context, userID string, push inventory.Push, mode inventory.Mode) (r inventory.Result, err error) {
	defer s.Priority.Write()()
	began := time.Now()
	r, err = s.inventories.Sync(ctx, userID, push, mode)
	outcome, reason := syncOutcome(err)
	s.done(syncPush, began, outcome, reason)
	s.written(syncPush, r)
	return r, err
}

// Pull syncs an inventory from Steam.
func (s *Service) Pull(ctx context.Context, userID string, place steaminv.Place, mode inventory.Mode) (r inventory.Result, err error) {
	began := time.Now()
	r, err = s.steam.Sync(ctx, userID, place, mode)
	outcome, reason := syncOutcome(err)
	s.done(syncPull, began, outcome, reason)
	return r, err
}

// pulled stores the inventory of a completed pull.
func (s *Service) pulled(ctx context.Context, userID string, push inventory.Push, mode inventory.Mode) (r inventory.Result, err error) {
	defer s.Priority.Write()()
	r, err = s.inventories.Sync(ctx, userID, push, mode)
	s.written(syncPull, r)
	return r, err
}

// Renew updates the prices of the stored inventory before a listing. It returns false if
// that inventory is too old.
func (s *Service) Renew(ctx context.Context, userID string, app int32, contextID string, notBefore time.Time) (fresh bool, err error) {
	defer s.Priority.Write()()
	began := time.Now()
	fresh, err = s.inventories.Renew(ctx, userID, app, contextID, notBefore)
	outcome, reason := syncOutcome(err)
	if err == nil && !fresh {
		outcome, reason = syncRefused, "too_old"
	}
	s.done(syncRenew, began, outcome, reason)
	return fresh, err
}

func (s *Service) done(kind string, began time.Time, outcome, reason string) {
	s.count.WithLabelValues(kind, outcome, reason).Inc()
	s.took.WithLabelValues(kind).Observe(time.Since(began).Seconds())
}

func (s *Service) written(kind string, r inventory.Result) {
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
