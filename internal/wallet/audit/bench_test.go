package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"assay/internal/randtest"
	"assay/internal/wallet/audit"
)

// BenchmarkVerifyAll verifies a ledger of ASSAY_ENTRIES entries, 20,000 by default, on the
// engine of ASSAY_TEST_ENGINE. As lower bounds it also reports the time to read every entry once
// and hash it, and the time to hash alone. It reports the CPU time of this process too, which
// varies less on a busy machine. The CPU time excludes the PostgreSQL server.
func BenchmarkVerifyAll(b *testing.B) {
	entries, err := strconv.Atoi(os.Getenv("ASSAY_ENTRIES"))
	if err != nil {
		entries = 20_000
	}
	w := newWorld(b)
	w.fill(randtest.New(b), entries, max(entries/20, 10))
	processor := used()
	hashing, reading := w.hashing()
	processor = used() - processor
	debug.FreeOSMemory()
	for b.Loop() {
		began, working := time.Now(), used()
		resetResident()
		before := resident("VmRSS")
		peak := peakHeap(func() {
			if r := w.verifyAll(); !r.OK {
				b.Fatalf("got status %s, want ok: %+v", r.Status, r.Failures)
			}
		})
		took, worked := time.Since(began), used()-working
		n := float64(w.count("wallet_entry"))
		b.ReportMetric(n/took.Seconds(), "entries/s")
		b.ReportMetric(float64(hashing.Nanoseconds())/n, "ns-hashing/entry")
		b.ReportMetric(float64(took)/float64(hashing), "times-hashing")
		b.ReportMetric(float64(took)/float64(hashing+reading), "times-reading-and-hashing")
		b.ReportMetric(float64(worked)/float64(processor), "times-its-processor-time")
		b.ReportMetric(float64(peak)/(1<<20), "MiB-heap")
		b.ReportMetric(float64(resident("VmHWM")-before)/(1<<20), "MiB-resident")
	}
}

// Limits for the cost of a full verification.
const (
	mostMemory   = 64 << 20
	mostTenths   = 30 // tenths of the time to read and hash all entries once
	looserTenths = 50 // limit for a short run on a busy machine
	timedAgain   = 20 // maximum number of attempts
)

func TestVerify_LimitsMemoryAndTime(t *testing.T) {
	w := newWorld(t)
	entries := randtest.Count(6_000, 1_000_000)
	w.fill(randtest.New(t), entries, entries/20)
	verify := func() {
		if r := w.verifyAll(); !r.OK {
			t.Fatalf("got status %s, want ok: %+v", r.Status, r.Failures)
		}
	}
	verify() // warm up: create caches
	if peak := peakHeap(verify); peak > mostMemory {
		t.Errorf("verification used %d MiB, want at most %d", peak>>20, mostMemory>>20)
	}
	// Take the lowest time of each: other processes only make both slower.
	most := int64(randtest.Count(looserTenths, mostTenths))
	least, floor := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range timedAgain {
		hashing, reading := w.hashing()
		began := time.Now()
		verify()
		floor, least = min(floor, hashing+reading), min(least, time.Since(began))
		if 10*least.Nanoseconds() <= most*floor.Nanoseconds() {
			t.Logf("verification took %v; %v of it to read and hash the entries", least, floor)
			return
		}
	}
	t.Errorf("verification took %v, want at most %d tenths of %v, the time to read and hash the entries", least, most, floor)
}

// hashing returns the time to hash all entries, and the time to read them.
func (w *world) hashing() (hashing, reading time.Duration) {
	w.Helper()
	s := w.Keys.Sealer()
	w.must(audit.ReadLedger(context.Background(), w.store, func(l *audit.Snapshot) error {
		after := audit.Place{Number: -1}
		for {
			began := time.Now()
			page, err := l.Entries("", after, 2_000)
			reading += time.Since(began)
			if err != nil || len(page) == 0 {
				return err
			}
			began = time.Now()
			for i := range page {
				if ok, err := s.EntryIntact(&page[i].Entry); !ok || err != nil {
					w.Fatalf("entry: got intact %t, error %v, want a valid seal", ok, err)
				}
			}
			hashing += time.Since(began)
			last := page[len(page)-1]
			after = audit.Place{Account: last.Account, Number: last.Number}
		}
	}))
	return hashing, reading
}

// used returns the CPU time of the process.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident returns a memory size of the process in bytes. The name VmHWM selects the peak.
func resident(name string) (size int64) {
	text, _ := os.ReadFile("/proc/self/status")
	_, text, _ = bytes.Cut(text, []byte(name+":"))
	_, _ = fmt.Sscan(string(text), &size)
	return size << 10
}

// resetResident resets VmHWM.
func resetResident() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peakHeap returns the maximum growth of the heap while fn runs.
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
