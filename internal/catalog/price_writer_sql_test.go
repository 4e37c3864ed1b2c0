package catalog_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/randtest"
)

// two opens a PostgreSQL database twice, as two processes do.
func two(t *testing.T) (a, b *db.DB, d dbtest.Database) {
	t.Helper()
	d = dbtest.On(t, dbtest.PostgreSQL)
	return d.Open(t, db.Options{Owner: "a"}), d.Open(t, db.Options{Owner: "b"}), d
}

func change(t *testing.T, s *db.DB, buckets ...int64) {
	t.Helper()
	if err := s.InTx(t.Context(), func(tx *db.Tx) error { return catalog.PricesChanged(tx, buckets) }); err != nil {
		t.Fatal(err)
	}
}

func version(t *testing.T, s *db.DB) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	v, err := catalog.PriceVersion(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPriceVersion_IsKnownForAMomentWhileNoProcessWrites(t *testing.T) {
	a, b, _ := two(t)
	known := func(what string, s *db.DB, want bool) {
		t.Helper()
		got := false
		for range 10 { // a read may take longer than its result is valid
			version(t, s)
			if _, got = catalog.KnownPriceVersion(s); got == want {
				return
			}
		}
		t.Errorf("%s: got a known version: %v, want %v", what, got, want)
	}
	known("no process has written", a, true)
	<-time.After(catalog.VersionLife)
	if _, known := catalog.KnownPriceVersion(a); known {
		t.Error("after its time: got a known version, want none")
	}
	if err := catalog.AnnouncePrices(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	known("another process may write", a, false)
	change(t, b, 1, 2)
	change(t, b, 2)
	if got := version(t, a); got != 3 {
		t.Errorf("after three changes: got version %d, want 3", got)
	}
	for _, idle := range []time.Duration{time.Hour, 0} {
		if err := catalog.WithdrawPrices(t.Context(), b, idle); err != nil {
			t.Fatal(err)
		}
		known("after withdrawals of processes idle for "+idle.String(), a, idle == 0)
	}
	change(t, a, 7)
	known("this process may write", a, false)
}

// A process whose row was deleted, because another one took it for dead, announces itself again.
func TestPricesChanged_AnnouncesAgainAfterATakeover(t *testing.T) {
	a, b, _ := two(t)
	change(t, a, 1)
	if err := b.InTx(t.Context(), func(tx *db.Tx) error { return catalog.RemovePriceWriter(tx, "a") }); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	change(t, a, 1)
	if took := time.Since(began); took < catalog.AnnouncedBefore {
		t.Errorf("commit after a takeover: got %v, want at least %v", took, catalog.AnnouncedBefore)
	}
	if got := version(t, b); got != 2 {
		t.Errorf("got version %d, want 2", got)
	}
}

// A withdrawal must not end the announcement of a transaction that is still open, and must not wait
// for it.
func TestWithdrawPrices_SkipsOpenTransactions(t *testing.T) {
	a, b, _ := two(t)
	if err := a.InTx(t.Context(), func(tx *db.Tx) error {
		if err := catalog.PricesChanged(tx, []int64{1}); err != nil {
			return err
		}
		if err := catalog.WithdrawPrices(t.Context(), a, 0); err != nil {
			return err
		}
		version(t, b)
		if _, known := catalog.KnownPriceVersion(b); known {
			t.Error("before the commit: got a known version, want none")
		}
		return catalog.PricesChanged(tx, []int64{2})
	}); err != nil {
		t.Fatal(err)
	}
	if got := version(t, b); got != 2 {
		t.Errorf("got version %d, want 2", got)
	}
}

// TestPriceVersion_IsNeverOlderThanTheLastCommit commits prices in two processes, which withdraw
// their announcements at any time and lose their rows to takeovers. A third process reads. Each
// value must include all commits before its read.
func TestPriceVersion_IsNeverOlderThanTheLastCommit(t *testing.T) {
	seed := randtest.Seed(t)
	a, b, d := two(t)
	reader := d.Open(t, db.Options{Owner: "c"})
	var committed atomic.Int64
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	var cached, queried atomic.Int64
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				want := committed.Load()
				got, known := catalog.KnownPriceVersion(reader)
				if known {
					cached.Add(1)
				} else {
					queried.Add(1)
					got = version(t, reader)
				}
				if got < want {
					t.Errorf("cached %v: got version %d, want at least %d", known, got, want)
					return
				}
				<-time.After(100 * time.Microsecond)
			}
		})
	}
	for n, s := range []*db.DB{a, b} {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		writers.Go(func() {
			for range randtest.Count(40, 2_000) {
				<-time.After(rand.N(4 * catalog.VersionLife))
				change(t, s, random.Int64N(4))
				committed.Add(1)
				if random.IntN(2) == 0 {
					if err := catalog.WithdrawPrices(t.Context(), s, 0); err != nil {
						t.Error(err)
					}
				}
				if random.IntN(8) == 0 {
					if err := s.InTx(t.Context(), func(tx *db.Tx) error { return catalog.RemovePriceWriter(tx, []string{"b", "a"}[n]) }); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	if cached.Load() == 0 || queried.Load() == 0 {
		t.Errorf("got %d cached and %d queried versions, want both", cached.Load(), queried.Load())
	}
}
