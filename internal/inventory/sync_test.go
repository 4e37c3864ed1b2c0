package inventory_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/store"
)

// noon is when the tests' inventories are of.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newService returns a service on a database of its own.
func newService(t *testing.T) *inventory.Service {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "assay.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &inventory.Service{
		InTx: func(ctx context.Context, fn func(inventory.Tx) error) error {
			return db.InTx(ctx, func(tx *store.Tx) error { return fn(tx) })
		},
		Queued: func() {},
	}
}

// pushOf is an inventory as of a moment with an asset of each name.
func pushOf(at time.Time, names ...string) inventory.Push {
	p := inventory.Push{AppID: 730, ContextID: "2", SnapshotAt: at}
	for i, name := range names {
		p.Assets = append(p.Assets, inventory.Asset{
			AssetID: string(rune('a' + i)), Name: name, Amount: 1, Tradable: true, Marketable: true,
		})
	}
	return p
}

// want syncs and compares what it did.
func want(t *testing.T, s *inventory.Service, p inventory.Push, expected inventory.Result) {
	t.Helper()
	got, err := s.Sync(t.Context(), "u1", p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Error(diff)
	}
}

func TestSync_TheSamePushAgainChangesNothing(t *testing.T) {
	s := newService(t)
	push := pushOf(noon, "A", "B", "B")
	want(t, s, push, inventory.Result{Added: 3, QueuedNames: 2})
	want(t, s, push, inventory.Result{Unchanged: 3})
}

func TestSync_TheStoredInventoryBecomesThatOfThePush(t *testing.T) {
	s := newService(t)
	want(t, s, pushOf(noon, "A", "B"), inventory.Result{Added: 2, QueuedNames: 2})
	want(t, s, pushOf(noon.Add(time.Second), "A", "C", "D"), inventory.Result{Added: 1, Changed: 1, Unchanged: 1, QueuedNames: 2})
	want(t, s, pushOf(noon.Add(2*time.Second)), inventory.Result{Removed: 3})
}

func TestSync_AnOlderPushIsRefusedAndAnEquallyOldOneWins(t *testing.T) {
	s := newService(t)
	want(t, s, pushOf(noon, "A"), inventory.Result{Added: 1, QueuedNames: 1})
	_, err := s.Sync(t.Context(), "u1", pushOf(noon.Add(-time.Microsecond), "B"))
	if f := fault.Of(err); f == nil || f.Kind != fault.Conflict || f.Code != "snapshot_outdated" {
		t.Fatalf("an older push: %v", err)
	}
	want(t, s, pushOf(noon, "A", "B"), inventory.Result{Added: 1, Unchanged: 1, QueuedNames: 1})
}

func TestSync_EachGameAndContextHasItsOwnMoment(t *testing.T) {
	s := newService(t)
	want(t, s, pushOf(noon, "A"), inventory.Result{Added: 1, QueuedNames: 1})
	older := pushOf(noon.Add(-time.Hour), "A")
	older.ContextID = "6"
	want(t, s, older, inventory.Result{Added: 1})
	older.AppID = 570
	want(t, s, older, inventory.Result{Added: 1, QueuedNames: 1})
}

func TestSync_RefusesAUserWithoutAName(t *testing.T) {
	_, err := newService(t).Sync(t.Context(), "", pushOf(noon))
	if f := fault.Of(err); f == nil || f.Code != "invalid_user_id" {
		t.Fatalf("got %v", err)
	}
}
