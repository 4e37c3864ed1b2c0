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
	"assay/internal/inventory/steaminv"
	"assay/internal/inventory/syncs"
	"assay/internal/refresh"
)

// TestSyncs_RunBeforeARefresh runs each kind of work during each kind of sync. Plan, estimate
// and apply must wait for the sync.
func TestSyncs_RunBeforeARefresh(t *testing.T) {
	const took = 10 * time.Millisecond
	fetch := refresh.FetchKind("provider", "")
	waits := map[string]bool{refresh.WorkPlan: true, refresh.WorkEstimate: true, refresh.WorkApply: true, refresh.WorkMissing: false, fetch: false}
	push := inventory.Push{AppID: 730, ContextID: "2"}
	for kind, want := range waits {
		for name, sync := range map[string]func(context.Context, *syncs.Service) error{
			"push": func(ctx context.Context, s *syncs.Service) error {
				_, err := s.Push(ctx, "u", push, inventory.Normal)
				return err
			},
			"pull": func(ctx context.Context, s *syncs.Service) error {
				_, err := s.Pull(ctx, "u", steaminv.Default(), inventory.Normal)
				return err
			},
			"renewal": func(ctx context.Context, s *syncs.Service) error {
				_, err := s.Renew(ctx, "u", 730, "2", time.Time{})
				return err
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				workers := []dispatch.Worker{{Kind: kind, Work: func(context.Context) (bool, error) {
					<-time.After(took)
					return true, nil
				}}}
				none := errors.New("no database")
				var duration time.Duration
				s := syncs.New(&inventory.Service{InTx: func(ctx context.Context, _ func(*db.Tx) error) error {
					began := time.Now()
					if more, err := workers[0].Work(ctx); !more || err != nil {
						t.Errorf("%s: got more work %v, error %v; want true", kind, more, err)
					}
					duration = time.Since(began)
					return none
				}}, steaminv.Options{
					SteamID: func(context.Context, string) (string, error) { return "76561198000000001", nil },
					Pull:    func(context.Context, string, steaminv.Place) (inventory.Push, error) { return push, nil },
				})
				defer s.Close()
				takePriority(workers, s.Priority)
				if err := sync(t.Context(), s); !errors.Is(err, none) {
					t.Fatal(err)
				}
				if waited := duration > took; waited != want {
					t.Errorf("%s during a %s: got %v for work of %v, want a wait: %v", kind, name, duration, took, want)
				}
			})
		}
	}
}
