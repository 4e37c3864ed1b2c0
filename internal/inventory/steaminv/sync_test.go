package steaminv_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/inventory/steaminv/steaminvtest"
	"assay/internal/provider"
	"assay/internal/user"
	"assay/internal/view"
)

// TestMain runs all tests with both databases.
func TestMain(m *testing.M) { os.Exit(dbtest.RunOnEngines(m)) }

// fixture is a database with a Syncer that pulls inventories into it.
type fixture struct {
	*steaminv.Syncer
	store *db.DB
}

func newFixture(t *testing.T, s *steam) *fixture {
	t.Helper()
	database := dbtest.NewDatabase(t)
	st, err := db.Open(t.Context(), db.Options{Path: database.Path, URL: database.URL, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	service := &inventory.Service{
		InTx:        st.InTx,
		Queued:      func() {},
		Inspectable: func() {},
	}
	if err := service.PutUser(t.Context(), user.User{ID: "u", SteamID: someone}); err != nil {
		t.Fatal(err)
	}
	steamID := func(ctx context.Context, userID string) (string, error) {
		u, err := user.Read(ctx, st, userID)
		return u.SteamID, err
	}
	p := &fixture{steaminv.NewSyncer(steaminv.Options{
		SteamID: steamID, Pull: s.puller.Pull, Held: s.puller.Held, Sync: service.Sync, Logger: slog.New(slog.DiscardHandler),
	}), st}
	t.Cleanup(func() {
		p.Close()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// rows returns the stored rows as text, by asset.
func (p *fixture) rows(t *testing.T) map[string]string {
	t.Helper()
	key, _, err := user.Key(t.Context(), p.store, "u")
	if err != nil {
		t.Fatal(err)
	}
	list, err := view.ReadInventory(t.Context(), p.store, key, 0, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range list {
		out[r.AssetID] = fmt.Sprintf("%s|%s|%s|%d|%t|%t", r.Name, r.ClassID, r.InstanceID, r.Amount, r.Tradable, r.Marketable)
	}
	if len(out) != len(list) {
		t.Errorf("got %d rows of %d assets, want one per asset", len(list), len(out))
	}
	return out
}

// Sync pulls the recorded inventory in several pages and stores it unchanged. Later errors of Steam
// do not change the stored rows.
func TestSync_StoresTheRecordedInventoryAndKeepsItOnErrors(t *testing.T) {
	own, err := steaminvtest.Read(recorded(t))
	if err != nil {
		t.Fatal(err)
	}
	s := newSteam(t, &steaminvtest.Server{Inventories: map[string]*steaminvtest.Inventory{csPlace: own}, PageSize: 100})
	p := newFixture(t, s)
	push, err := s.pull(t)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal)
	if want := (inventory.Result{Added: 810, QueuedNames: 566}); err != nil || got != want {
		t.Fatalf("got result %+v, error %v, want %+v", got, err, want)
	}
	rows := p.rows(t)
	for _, a := range push.Assets {
		if want := fmt.Sprintf("%s|%s|%s|%d|%t|%t", a.Name, a.ClassID, a.InstanceID, a.Amount, a.Tradable, a.Marketable); rows[a.AssetID] != want {
			t.Errorf("asset %s: got row %q, want %q", a.AssetID, rows[a.AssetID], want)
		}
	}
	for code, reply := range map[string]steaminvtest.Reply{
		"inventory_private":     {Status: 403, Body: steaminvtest.Null},
		"inventory_hidden":      {Body: `{"total_inventory_count":810,"success":1,"rwgrsn":-2}`},
		"inventory_unavailable": {Status: 500, Body: steaminvtest.Final},
	} {
		next := len(s.Paths()) + 1
		s.Set(func(f *steaminvtest.Server) { f.Script = map[int]steaminvtest.Reply{next: reply} })
		p.wantUnchanged(t, code, rows)
	}
	third := len(s.Paths()) + 3
	s.Set(func(f *steaminvtest.Server) {
		own.Assets = own.Assets[400:] // half of the assets are sold, but the pull fails
		f.Script = map[int]steaminvtest.Reply{third: {Status: 429, Body: steaminvtest.Null}}
	})
	p.wantUnchanged(t, "steam_throttled", rows)
}

// wantUnchanged syncs the inventory. It checks that the sync fails with a code and that the
// stored rows do not change.
func (p *fixture) wantUnchanged(t *testing.T, want string, rows map[string]string) {
	t.Helper()
	_, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal)
	if code(err) != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	now := p.rows(t)
	for id, row := range rows {
		if now[id] != row {
			t.Errorf("%s: asset %s: got row %q, want %q", want, id, now[id], row)
		}
	}
	if len(now) != len(rows) {
		t.Errorf("%s: got %d rows, want %d", want, len(now), len(rows))
	}
}

func TestSync_PartlyHiddenInventoryRemovesNoRows(t *testing.T) {
	s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(3)...)})
	p := newFixture(t, s)
	if _, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal); err != nil {
		t.Fatal(err)
	}
	s.Set(func(f *steaminvtest.Server) {
		f.Inventories = owned(items(1)...)
		f.Inventories[csPlace].Concealed = 2
	})
	got, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Listing)
	if want := (inventory.Result{Changed: 2, Unchanged: 1, Hidden: 2}); err != nil || got != want || len(p.rows(t)) != 3 {
		t.Errorf("got result %+v, error %v, want %+v and 3 rows", got, err, want)
	}
	s.Set(func(f *steaminvtest.Server) { f.Inventories = owned(items(2)...) })
	if got, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal); err != nil || got.Removed != 1 || got.Changed != 1 {
		t.Errorf("got result %+v, error %v, want 1 removed and 1 changed row", got, err)
	}
}

func TestSync_EmptyInventoryRemovesRows(t *testing.T) {
	s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(3)...)})
	p := newFixture(t, s)
	if _, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal); err != nil {
		t.Fatal(err)
	}
	s.Set(func(f *steaminvtest.Server) { f.Inventories = owned() })
	if got, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Listing); err != nil || got.Removed != 3 || len(p.rows(t)) != 0 {
		t.Errorf("got result %+v, error %v, want 3 removed rows", got, err)
	}
}

func TestSync_ConcurrentCallsAreCoalesced(t *testing.T) {
	s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(30)...), PageSize: 10})
	p := newFixture(t, s)
	const callers = 8
	var started sync.WaitGroup
	started.Add(callers)
	s.Arrived = func(n int, _ *http.Request) {
		if n == 2 {
			started.Wait() // all callers join the running pull
		}
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			started.Done()
			if got, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal); err != nil || got.Added+got.Unchanged != 30 {
				t.Errorf("got result %+v, error %v, want 30 added or unchanged rows", got, err)
			}
		})
	}
	wg.Wait()
	if n := len(p.rows(t)); n != 30 {
		t.Errorf("got %d rows, want 30", n)
	}
}

// syncer returns a Syncer with a pull function, and the number of completed syncs.
func syncer(pull func(ctx context.Context) error) (*steaminv.Syncer, *atomic.Int64) {
	synced := new(atomic.Int64)
	return steaminv.NewSyncer(steaminv.Options{
		SteamID: func(context.Context, string) (string, error) { return someone, nil },
		Pull: func(ctx context.Context, _ string, _ steaminv.Place) (inventory.Push, error) {
			return inventory.Push{}, pull(ctx)
		},
		Sync: func(_ context.Context, _ string, push inventory.Push, mode inventory.Mode) (inventory.Result, error) {
			if push.SteamID != someone {
				return inventory.Result{}, errors.New("push of the wrong account " + push.SteamID)
			}
			return inventory.Result{Added: synced.Add(1), Removed: int64(mode)}, nil
		},
		Held:   func() time.Duration { return 0 },
		Logger: slog.New(slog.DiscardHandler),
	}), synced
}

// blockedUntil is an allowance that refuses requests until a time.
type blockedUntil struct {
	until   time.Time
	allowed time.Time // time of the first request after the block
}

func (l *blockedUntil) Take(context.Context) (provider.Refusal, error) {
	if wait := time.Until(l.until); wait > 0 {
		return provider.Refusal{Kind: provider.KindRateLimited, Wait: wait}, nil
	}
	l.allowed = time.Now()
	return provider.Refusal{}, errors.New("this test sends no requests")
}

func (*blockedUntil) StoreRetryAfter(_ context.Context, o provider.RetryAfter) (time.Duration, error) {
	return o.Wait, nil
}

func (*blockedUntil) StoreReported(context.Context, provider.Rate) error { return nil }

func (*blockedUntil) Down(context.Context, string) error { return nil }

func (*blockedUntil) Up(context.Context) error { return nil }

// While Steam demands a wait that is longer than SyncTimeout, Sync fails immediately.
func TestSync_FailsImmediatelyDuringALongBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		allowance := &blockedUntil{until: time.Now().Add(10 * time.Minute)}
		o := provider.Options{Provider: "steam", Allowance: allowance}
		steaminv.Tune(&o)
		client := provider.NewClient(o)
		defer client.Close()
		puller := &steaminv.Puller{BaseURL: "https://steamcommunity.com", Client: client, Now: time.Now}
		s := steaminv.NewSyncer(steaminv.Options{
			SteamID: func(context.Context, string) (string, error) { return someone, nil },
			Pull:    puller.Pull, Held: puller.Held, Logger: slog.New(slog.DiscardHandler),
		})
		defer s.Close()
		for left := 10 * time.Minute; left >= steaminv.SyncTimeout; left -= 30 * time.Second {
			start := time.Now()
			_, err := s.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal)
			if f := fault.Of(err); f == nil || f.Code != "steam_throttled" || f.RetryAfter != left || time.Since(start) != 0 {
				t.Fatalf("%v before the end of the block: got error %v after %v, want steam_throttled immediately", left, err, time.Since(start))
			}
			<-time.After(30 * time.Second)
		}
		// The rest of the block is shorter than SyncTimeout, so Sync waits for its end.
		_, _ = s.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal)
		if !allowance.allowed.Equal(allowance.until) {
			t.Errorf("got a request at %v, want at %v", allowance.allowed, allowance.until)
		}
	})
}

func TestSync_ReportsABlockThatStartsDuringThePull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := steaminv.Options{
			SteamID: func(context.Context, string) (string, error) { return someone, nil },
			Pull: func(ctx context.Context, _ string, _ steaminv.Place) (inventory.Push, error) {
				<-ctx.Done()
				return inventory.Push{}, ctx.Err()
			},
			Held:   func() time.Duration { return 40 * time.Second },
			Logger: slog.New(slog.DiscardHandler),
		}
		s := steaminv.NewSyncer(o)
		defer s.Close()
		_, err := s.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal)
		if f := fault.Of(err); f == nil || f.Code != "steam_throttled" || f.RetryAfter != 40*time.Second {
			t.Errorf("got error %v, want steam_throttled with Retry-After 40s", err)
		}
	})
}

func TestSync_ReturnsAfterSyncTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		s, synced := syncer(func(context.Context) error { <-finish; return nil })
		start := time.Now()
		_, err := s.Sync(t.Context(), "u", steaminv.Default(), inventory.Listing)
		if f := fault.Of(err); f == nil || f.Code != "inventory_unavailable" || f.RetryAfter <= 0 || time.Since(start) != steaminv.SyncTimeout {
			t.Errorf("got error %v after %v, want inventory_unavailable after %v", err, time.Since(start), steaminv.SyncTimeout)
		}
		// The pull continues. A second call joins the pull and changes the mode of the sync to
		// Normal.
		time.AfterFunc(time.Second, func() { close(finish) })
		got, err := s.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal)
		if err != nil || got.Added != 1 || inventory.Mode(got.Removed) != inventory.Normal || synced.Load() != 1 {
			t.Errorf("got result %+v, error %v, want one normal sync", got, err)
		}
		s.Close()
	})
}

func TestClose_AbortsPulls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, synced := syncer(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				if _, err := s.Sync(t.Context(), fmt.Sprint(i), steaminv.Default(), inventory.Normal); err == nil {
					t.Error("sync after Close: got no error, want one")
				}
			})
		}
		synctest.Wait()
		s.Close()
		wg.Wait()
		if _, err := s.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal); code(err) != "inventory_unavailable" || synced.Load() != 0 {
			t.Errorf("after Close: got error %v and %d syncs, want inventory_unavailable and 0", err, synced.Load())
		}
	})
}
