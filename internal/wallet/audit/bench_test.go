package audit_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/store"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
)

// BenchmarkVerifyAll verifies a ledger of ASSAY_ENTRIES entries, 20,000 by
// default, on the engine of ASSAY_TEST_ENGINE, and tells how much longer that takes
// than to hash the entries alone: in memory, and with reading each once.
func BenchmarkVerifyAll(b *testing.B) {
	entries, err := strconv.Atoi(os.Getenv("ASSAY_ENTRIES"))
	if err != nil {
		entries = 20_000
	}
	w := newWorld(b, "alice")
	w.fill(entries)
	hashing, reading := w.hashing()
	for b.Loop() {
		began := time.Now()
		peak := peakHeap(func() {
			if r := w.verifyAll(); !r.OK {
				b.Fatalf("%s: %+v", r.Status, r.Failures)
			}
		})
		took := time.Since(began)
		n := float64(w.count("wallet_entry"))
		b.ReportMetric(n/took.Seconds(), "entries/s")
		b.ReportMetric(float64(hashing.Nanoseconds())/n, "ns-hashing/entry")
		b.ReportMetric(float64(took)/float64(hashing), "times-hashing")
		b.ReportMetric(float64(took)/float64(hashing+reading), "times-reading-and-hashing")
		b.ReportMetric(float64(peak)/(1<<20), "MiB-heap")
	}
}

func TestVerify_TakesLittleMemory(t *testing.T) {
	w := newWorld(t, "alice")
	w.fill(6_000)
	w.verifyAll() // what is made once
	if peak := peakHeap(func() { w.verifyAll() }); peak > 64<<20 {
		t.Errorf("a verification took %d MiB", peak>>20)
	}
}

// fill posts so many entries to a thousand users, many in one transaction.
func (w *world) fill(entries int) {
	w.Helper()
	const atOnce = 500
	for n := 0; n < entries/2; n += atOnce {
		w.must(w.store.InTx(context.Background(), func(tx *store.Tx) error {
			for k := range atOnce {
				a := in("user"+strconv.Itoa((n+k)%1_000), "USD")
				if _, err := w.ledger.Deposit(tx, a, 100, wallet.Request{Scope: "scope", Key: strconv.Itoa(n + k)}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

// hashing returns how long it takes to hash all entries, and to read them.
func (w *world) hashing() (hashing, reading time.Duration) {
	w.Helper()
	s := w.Keys.Sealer()
	w.must(w.store.ReadLedger(context.Background(), func(l *store.LedgerSnapshot) error {
		after := audit.Place{Number: -1}
		for {
			began := time.Now()
			page, err := l.Entries("", after, 1_000)
			reading += time.Since(began)
			if err != nil || len(page) == 0 {
				return err
			}
			began = time.Now()
			for i := range page {
				if ok, err := s.EntryIntact(&page[i].Entry); !ok || err != nil {
					w.Fatal(ok, err)
				}
			}
			hashing += time.Since(began)
			last := page[len(page)-1]
			after = audit.Place{Account: last.Account, Number: last.Number}
		}
	}))
	return hashing, reading
}

// peakHeap returns by how much the heap was greater, at most, while fn ran.
func peakHeap(fn func()) uint64 {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var peak atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(10 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				runtime.ReadMemStats(&now)
				peak.Store(max(peak.Load(), now.HeapAlloc))
			}
		}
	}()
	fn()
	close(done)
	<-ended
	return max(peak.Load(), before.HeapAlloc) - before.HeapAlloc
}
