package provider

import (
	"testing"
	"time"
)

// openBreaker returns a breaker that opened at time 0.
func openBreaker(t *testing.T) *breaker {
	t.Helper()
	b := &breaker{base: 30 * time.Second}
	for i := range breakAfter {
		if _, wait := b.acquire(0); wait != 0 {
			t.Fatalf("request %d: got wait %v, want 0", i, wait)
		}
		if opened, _ := b.report(0, false, failed); opened != (i == breakAfter-1) {
			t.Fatalf("after %d failures: got opened %v, want it only after the last one", i+1, opened)
		}
	}
	return b
}

func TestBreaker_OpensAfterConsecutiveFailures(t *testing.T) {
	b := openBreaker(t)
	if _, wait := b.acquire(10 * time.Second); wait != 20*time.Second {
		t.Errorf("got wait %v, want 20s", wait)
	}
	if state, pause := b.state(10 * time.Second); state != BreakerOpen || pause != 20*time.Second {
		t.Errorf("got state %v for %v, want %v for 20s", state, pause, BreakerOpen)
	}
}

func TestBreaker_ResponseResetsFailures(t *testing.T) {
	b := &breaker{base: time.Second}
	for range 3 * breakAfter {
		b.report(0, false, failed)
		b.report(0, false, responded)
	}
	if state, _ := b.state(0); state != BreakerClosed {
		t.Errorf("got state %v, want %v", state, BreakerClosed)
	}
}

func TestBreaker_NeverOpensWithNegativePause(t *testing.T) {
	b := &breaker{base: -1}
	for range 3 * breakAfter {
		b.report(0, false, failed)
	}
	if state, _ := b.state(0); state != BreakerClosed {
		t.Errorf("got state %v, want %v", state, BreakerClosed)
	}
}

func TestBreaker_AllowsOneProbeAtATime(t *testing.T) {
	b := openBreaker(t)
	at := 30 * time.Second
	probe, wait := b.acquire(at)
	if !probe || wait != 0 {
		t.Fatalf("got probe %v, wait %v; want a probe", probe, wait)
	}
	if _, wait := b.acquire(at); wait != probeRetry {
		t.Errorf("second request: got wait %v, want %v", wait, probeRetry)
	}
	b.report(at, false, neutral) // a request sent before the breaker opened
	if _, wait := b.acquire(at); wait == 0 {
		t.Error("after the end of an earlier request: got a second probe, want a wait")
	}
	b.report(at, true, neutral)
	if probe, wait := b.acquire(at); !probe || wait != 0 {
		t.Errorf("after a cancelled probe: got probe %v, wait %v, want a new probe", probe, wait)
	}
	if _, closed := b.report(at, true, responded); !closed {
		t.Error("after a successful probe: got an open breaker, want closed")
	}
	if state, _ := b.state(at); state != BreakerClosed {
		t.Errorf("got state %v, want %v", state, BreakerClosed)
	}
}

func TestBreaker_PauseDoublesUpToMaximum(t *testing.T) {
	b := openBreaker(t)
	for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		now := b.until
		probe, _ := b.acquire(now)
		b.report(now, probe, failed)
		if _, pause := b.state(now); pause != want {
			t.Errorf("got pause %v, want %v", pause, want)
		}
	}
}
