package view

import (
	"context"
	"errors"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/wallet/audit"
)

// Health is the response of GET /api/health.
type Health struct {
	Status        string            `json:"status"` // ok or failing
	Version       string            `json:"version"`
	UptimeSeconds int64             `json:"uptimeSeconds"`
	Checks        map[string]string `json:"checks"` // database, schema and queue: ok or failing
	Details       map[string]any    `json:"details,omitempty"`
}

// Health reports whether the service works. Details are for administrators only.
func (r *HealthReader) Health(ctx context.Context, details bool) (Health, error) {
	now := r.o.Now()
	h := Health{
		Status: "ok", Version: r.o.Version, UptimeSeconds: seconds(now.Sub(r.o.Started)),
		Checks: map[string]string{"database": "ok", "schema": "ok", "queue": "ok"},
	}
	fail := func(check string, err error) {
		h.Status, h.Checks[check] = "failing", "failing"
		if details {
			if h.Details == nil {
				h.Details = map[string]any{}
			}
			h.Details[check+"Error"] = err.Error()
		}
	}
	if err := r.o.Store.Healthy(ctx); err != nil {
		fail("database", err)
		if errors.Is(err, db.ErrReadOnly) {
			h.Checks["database"] = "readOnly"
		}
	}
	schema, err := r.o.Store.SchemaVersion(ctx)
	if err != nil {
		fail("schema", err)
	}
	if !details {
		if err := catalog.CheckQueue(ctx, r.o.Store); err != nil {
			fail("queue", err)
		}
		return h, nil
	}
	q, err := ReadMissingQueue(ctx, r.o.Store, now)
	if err != nil {
		fail("queue", err)
	} else {
		if h.Details == nil {
			h.Details = map[string]any{}
		}
		h.Details["schemaVersion"] = schema
		h.Details["missingPending"] = q.PendingItems
		h.Details["missingWaiting"] = q.WaitingItems
	}
	if !r.o.PricesOnly {
		r.healthOfLedger(ctx, &h)
	}
	return h, nil
}

// healthOfLedger adds the result of the last ledger verification to a health report with
// details.
func (r *HealthReader) healthOfLedger(ctx context.Context, h *Health) {
	v, err := r.LedgerVerification(ctx)
	if err != nil || v == nil {
		return // another check reports database errors
	}
	if h.Details == nil {
		h.Details = map[string]any{}
	}
	h.Details["ledger"] = v
}

// LedgerVerification is the result of the last verification of the whole ledger.
type LedgerVerification struct {
	Status       string    `json:"status"` // ok, failed or incomplete
	VerifiedAt   time.Time `json:"verifiedAt"`
	FinishedAt   time.Time `json:"finishedAt"`
	Accounts     int64     `json:"accounts"`
	Entries      int64     `json:"entries"`
	Transactions int64     `json:"transactions"`
	FailureCount int64     `json:"failureCount"`
	Checks       []string  `json:"checks"` // failed and incomplete checks
}

// LedgerVerification returns the last verification of the whole ledger, or nil if there is
// none.
func (r *HealthReader) LedgerVerification(ctx context.Context) (*LedgerVerification, error) {
	v, err := audit.LastVerification(ctx, r.o.Store)
	if err != nil || v == nil {
		return nil, err
	}
	return &LedgerVerification{
		Status: v.Status, VerifiedAt: v.VerifiedAt, FinishedAt: v.FinishedAt, Accounts: v.Accounts, Entries: v.Entries,
		Transactions: v.Transactions, FailureCount: v.Failures, Checks: v.Checks,
	}, nil
}
