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

// TestMain runs everything on both databases.
func TestMain(m *testing.M) { os.Exit(dbtest.RunOnEngines(m)) }

// place is a database that inventories are pulled into.
type place struct {
	*steaminv.Syncer
	store *db.DB
}

func newPlace(t *testing.T, s *steam) *place {
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
	p := &place{steaminv.NewSyncer(steaminv.Options{
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

// rows are the stored rows by asset, as text.
func (p *place) rows(t *testing.T) map[string]string {
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
		t.Errorf("%d rows of %d assets", len(list), len(out))
	}
	return out
}

// The recorded inventory goes page by page, byte for byte, into either database,
// and whatever Steam answers later leaves it there.
func TestSync_StoresTheRecordedInventoryAndKeepsItWhateverSteamSays(t *testing.T) {
	own, err := steaminvtest.Read(recorded(t))
	if err != nil {
		t.Fatal(err)
	}
	s := newSteam(t, &steaminvtest.Server{Inventories: map[string]*steaminvtest.Inventory{csPlace: own}, PageSize: 100})
	p := newPlace(t, s)
	push, err := s.pull(t)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal)
	if want := (inventory.Result{Added: 810, QueuedNames: 566}); err != nil || got != want {
		t.Fatalf("%+v, %v, want %+v", got, err, want)
	}
	rows := p.rows(t)
	for _, a := range push.Assets {
		if want := fmt.Sprintf("%s|%s|%s|%d|%t|%t", a.Name, a.ClassID, a.InstanceID, a.Amount, a.Tradable, a.Marketable); rows[a.AssetID] != want {
			t.Errorf("asset %s is stored as %q, want %q", a.AssetID, rows[a.AssetID], want)
		}
	}
	for code, reply := range map[string]steaminvtest.Reply{
		"inventory_private":     {Status: 403, Body: steaminvtest.Null},
		"inventory_hidden":      {Body: `{"total_inventory_count":810,"success":1,"rwgrsn":-2}`},
		"inventory_unavailable": {Status: 500, Body: steaminvtest.Final},
	} {
		next := len(s.Paths()) + 1
		s.Set(func(f *steaminvtest.Server) { f.Script = map[int]steaminvtest.Reply{next: reply} })
		p.keeps(t, code, rows)
	}
	third := len(s.Paths()) + 3
	s.Set(func(f *steaminvtest.Server) {
		own.Assets = own.Assets[400:] // half is sold, but who could tell
		f.Script = map[int]steaminvtest.Reply{third: {Status: 429, Body: steaminvtest.Null}}
	})
	p.keeps(t, "steam_throttled", rows)
}

// keeps pulls, which fails with a code, and checks that the rows are as before.
func (p *place) keeps(t *testing.T, want string, rows map[string]string) {
	t.Helper()
	_, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal)
	if code(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	now := p.rows(t)
	for id, row := range rows {
		if now[id] != row {
			t.Errorf("%s: asset %s is %q, was %q", want, id, now[id], row)
		}
	}
	if len(now) != len(rows) {
		t.Errorf("%s: %d rows of %d are left", want, len(now), len(rows))
	}
}

func TestSync_APartlyHiddenInventoryRemovesNoRows(t *testing.T) {
	s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(3)...)})
	p := newPlace(t, s)
	if _, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal); err != nil {
		t.Fatal(err)
	}
	s.Set(func(f *steaminvtest.Server) {
		f.Inventories = owned(items(1)...)
		f.Inventories[csPlace].Concealed = 2
	})
	got, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Listing)
	if want := (inventory.Result{Changed: 2, Unchanged: 1, Hidden: 2}); err != nil || got != want || len(p.rows(t)) != 3 {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	s.Set(func(f *steaminvtest.Server) { f.Inventories = owned(items(2)...) })
	if got, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal); err != nil || got.Removed != 1 || got.Changed != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSync_AnEmptyInventoryRemovesRows(t *testing.T) {
	s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(3)...)})
	p := newPlace(t, s)
	if _, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal); err != nil {
		t.Fatal(err)
	}
	s.Set(func(f *steaminvtest.Server) { f.Inventories = owned() })
	if got, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Listing); err != nil || got.Removed != 3 || len(p.rows(t)) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSync_TwoAtOnceAreOnePull(t *testing.T) {
	s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(30)...), PageSize: 10})
	p := newPlace(t, s)
	const callers = 8
	var begun sync.WaitGroup
	begun.Add(callers)
	s.Arrived = func(n int, _ *http.Request) {
		if n == 2 {
			begun.Wait() // so that all of them find it under way
		}
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			begun.Done()
			if got, err := p.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal); err != nil || got.Added+got.Unchanged != 30 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	wg.Wait()
	if n := len(p.rows(t)); n != 30 {
		t.Errorf("%d rows", n)
	}
}

// syncer has a pull that is told when to end; synctest's clock is its time.
func syncer(pull func(ctx context.Context) error) (*steaminv.Syncer, *atomic.Int64) {
	synced := new(atomic.Int64)
	return steaminv.NewSyncer(steaminv.Options{
		SteamID: func(context.Context, string) (string, error) { return someone, nil },
		Pull: func(ctx context.Context, _ string, _ steaminv.Place) (inventory.Push, error) {
			return inventory.Push{}, pull(ctx)
		},
		Sync: func(_ context.Context, _ string, push inventory.Push, mode inventory.Mode) (inventory.Result, error) {
			if push.SteamID != someone {
				return inventory.Result{}, errors.New("an inventory of the account " + push.SteamID)
			}
			return inventory.Result{Added: synced.Add(1), Removed: int64(mode)}, nil
		},
		Held:   func() time.Duration { return 0 },
		Logger: slog.New(slog.DiscardHandler),
	}), synced
}

// leftAlone is what everybody knows of an order to wait until a moment.
type leftAlone struct {
	until time.Time
	after time.Time // when it first let somebody pass
}

func (l *leftAlone) Take(context.Context) (provider.Refusal, error) {
	if wait := time.Until(l.until); wait > 0 {
		return provider.Refusal{Kind: provider.KindRateLimited, Wait: wait}, nil
	}
	l.after = time.Now()
	return provider.Refusal{}, errors.New("nobody is asked in this test")
}

func (*leftAlone) StoreRetryAfter(_ context.Context, o provider.RetryAfter) (time.Duration, error) {
	return o.Wait, nil
}

func (*leftAlone) StoreReported(context.Context, provider.Rate) error { return nil }

func (*leftAlone) Down(context.Context, string) error { return nil }

func (*leftAlone) Up(context.Context) error { return nil }

// TestSync_SaysAtOnceThatSteamWantsToBeLeftAlone asks during the whole of an order to
// wait: nobody hangs for what is not going to come in time.
func TestSync_SaysAtOnceThatSteamWantsToBeLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		order := &leftAlone{until: time.Now().Add(10 * time.Minute)}
		o := provider.Options{Provider: "steam", Allowance: order}
		steaminv.Tune(&o)
		client := provider.NewClient(o)
		defer client.Close()
		puller := &steaminv.Puller{BaseURL: "https://steamcommunity.com", Client: client, Now: time.Now}
		s := steaminv.NewSyncer(steaminv.Options{
			SteamID: func(context.Context, string) (string, error) { return someone, nil },
			Pull:    puller.Pull, Held: puller.Held, Logger: slog.New(slog.DiscardHandler),
		})
		defer s.Close()
		for left := 10 * time.Minute; left >= steaminv.AnswerTime; left -= 30 * time.Second {
			begun := time.Now()
			_, err := s.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal)
			if f := fault.Of(err); f == nil || f.Code != "steam_throttled" || f.RetryAfter != left || time.Since(begun) != 0 {
				t.Fatalf("%v before its end: %v in %v", left, err, time.Since(begun))
			}
			<-time.After(30 * time.Second)
		}
		// What is left now can be waited for.
		_, _ = s.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal)
		if !order.after.Equal(order.until) {
			t.Errorf("asked again at %v, want %v", order.after, order.until)
		}
	})
}

func TestSync_TellsOfAnOrderToWaitThatCameMeanwhile(t *testing.T) {
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
			t.Error(err)
		}
	})
}

func TestSync_KeepsNobodyWaitingForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		s, synced := syncer(func(context.Context) error { <-finish; return nil })
		begun := time.Now()
		_, err := s.Sync(t.Context(), "u", steaminv.Default(), inventory.Listing)
		if f := fault.Of(err); f == nil || f.Code != "inventory_unavailable" || f.RetryAfter <= 0 || time.Since(begun) != steaminv.AnswerTime {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		// It goes on, and who asks again has what it comes to: for its own sake, too.
		time.AfterFunc(time.Second, func() { close(finish) })
		got, err := s.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal)
		if err != nil || got.Added != 1 || inventory.Mode(got.Removed) != inventory.Normal || synced.Load() != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		s.Close()
	})
}

func TestSync_ClosingEndsPulls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, synced := syncer(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				if _, err := s.Sync(t.Context(), fmt.Sprint(i), steaminv.Default(), inventory.Normal); err == nil {
					t.Error("no error")
				}
			})
		}
		synctest.Wait()
		s.Close()
		wg.Wait()
		if _, err := s.Sync(t.Context(), "u", steaminv.Default(), inventory.Normal); code(err) != "inventory_unavailable" || synced.Load() != 0 {
			t.Errorf("after the end: %v, %d synced", err, synced.Load())
		}
	})
}
