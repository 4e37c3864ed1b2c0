package provider

import (
	"testing"
	"time"
)

// broken returns a breaker that opened at time 0.
func broken(t *testing.T) *breaker {
	t.Helper()
	b := &breaker{base: 30 * time.Second}
	for i := range breakAfter {
		if _, wait := b.acquire(0); wait != 0 {
			t.Fatalf("request %d is refused", i)
		}
		if opened, _ := b.report(0, false, failed); opened != (i == breakAfter-1) {
			t.Fatalf("after %d failures: opened %v", i+1, opened)
		}
	}
	return b
}

func TestBreaker_OpensAfterFailuresInARow(t *testing.T) {
	b := broken(t)
	if _, wait := b.acquire(10 * time.Second); wait != 20*time.Second {
		t.Errorf("wait %v, want 20s", wait)
	}
	if state, pause := b.state(10 * time.Second); state != BreakerOpen || pause != 20*time.Second {
		t.Errorf("state %v for %v", state, pause)
	}
}

func TestBreaker_AnAnswerBetweenFailuresKeepsItClosed(t *testing.T) {
	b := &breaker{base: time.Second}
	for range 3 * breakAfter {
		b.report(0, false, failed)
		b.report(0, false, responded)
	}
	if state, _ := b.state(0); state != BreakerClosed {
		t.Errorf("state %v", state)
	}
}

func TestBreaker_NeverOpensWithoutAPause(t *testing.T) {
	b := &breaker{base: -1}
	for range 3 * breakAfter {
		b.report(0, false, failed)
	}
	if state, _ := b.state(0); state != BreakerClosed {
		t.Errorf("state %v", state)
	}
}

func TestBreaker_OneProbeAtATime(t *testing.T) {
	b := broken(t)
	at := 30 * time.Second
	probe, wait := b.acquire(at)
	if !probe || wait != 0 {
		t.Fatalf("probe %v, wait %v", probe, wait)
	}
	if _, wait := b.acquire(at); wait != probeRetry {
		t.Errorf("a second one: wait %v, want %v", wait, probeRetry)
	}
	b.report(at, false, neutral) // one that was under way since before it opened
	if _, wait := b.acquire(at); wait == 0 {
		t.Error("a straggler let a second probe pass")
	}
	b.report(at, true, neutral)
	if probe, wait := b.acquire(at); !probe || wait != 0 {
		t.Error("a probe whose caller went away blocks all others")
	}
	if _, closed := b.report(at, true, responded); !closed {
		t.Error("a good probe does not close it")
	}
	if state, _ := b.state(at); state != BreakerClosed {
		t.Errorf("state %v", state)
	}
}

func TestBreaker_PauseDoublesUpToItsBound(t *testing.T) {
	b := broken(t)
	for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		now := b.until
		probe, _ := b.acquire(now)
		b.report(now, probe, failed)
		if _, pause := b.state(now); pause != want {
			t.Errorf("pause %v, want %v", pause, want)
		}
	}
}
