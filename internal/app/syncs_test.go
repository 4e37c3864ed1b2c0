package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"assay/internal/db"
	"assay/internal/dispatch"
	"assay/internal/inventory"
	"assay/internal/refresh"
)

// TestSyncs_RunBeforeARefresh does a piece of each kind of work beside each kind of sync.
func TestSyncs_RunBeforeARefresh(t *testing.T) {
	const took = 10 * time.Millisecond
	fetch := refresh.FetchKind("provider", "")
	rests := map[string]bool{refresh.WorkPlan: true, refresh.WorkEstimate: true, refresh.WorkApply: true, refresh.WorkMissing: false, fetch: false}
	push := inventory.Push{AppID: 730, ContextID: "2"}
	for kind, want := range rests {
		for name, sync := range map[string]func(context.Context, *syncs) error{
			"push": func(ctx context.Context, s *syncs) error {
				_, err := s.push(ctx, "u", push, inventory.Normal)
				return err
			},
			"pull": func(ctx context.Context, s *syncs) error {
				_, err := s.pulled(ctx, "u", push, inventory.Normal)
				return err
			},
			"renewal": func(ctx context.Context, s *syncs) error {
				_, err := s.renew(ctx, "u", 730, "2", time.Time{})
				return err
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				workers := []dispatch.Worker{{Kind: kind, Work: func(context.Context) (bool, error) {
					<-time.After(took)
					return true, nil
				}}}
				none := errors.New("no database")
				var beside time.Duration
				s := newSyncs(&inventory.Service{InTx: func(ctx context.Context, _ func(*db.Tx) error) error {
					began := time.Now()
					if more, err := workers[0].Work(ctx); !more || err != nil {
						t.Errorf("%s: %v, %v", kind, more, err)
					}
					beside = time.Since(began)
					return none
				}})
				s.goFirst(workers)
				if err := sync(t.Context(), s); !errors.Is(err, none) {
					t.Fatal(err)
				}
				if rested := beside > took; rested != want {
					t.Errorf("%s of %v took %v beside a %s", kind, took, beside, name)
				}
			})
		}
	}
}
