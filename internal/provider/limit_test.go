package provider

import (
	"testing"
	"time"

	"assay/internal/randtest"
)

func TestWindow_KeepsLimitInEveryInterval(t *testing.T) {
	rng := randtest.New(t)
	for range 200 {
		limit := Limit{Requests: 1 + rng.IntN(20), Per: time.Duration(1+rng.IntN(10)) * time.Second}
		w := newWindow(limit)
		if rng.IntN(2) == 0 { // requests share marks, as with a large limit
			w.grain = limit.Per / 8
		}
		var sent []time.Duration
		now := time.Duration(0)
		for range 300 {
			now += time.Duration(rng.Int64N(int64(limit.Per) / int64(limit.Requests) * 2))
			if w.take(now) == 0 {
				sent = append(sent, now)
			}
		}
		for i := limit.Requests; i < len(sent); i++ {
			if gap := sent[i] - sent[i-limit.Requests]; gap <= limit.Per {
				t.Fatalf("got %d requests within %v, want %d in %v", limit.Requests+1, gap, limit.Requests, limit.Per)
			}
		}
	}
}

func TestWindow_ReturnsNeededWait(t *testing.T) {
	w := newWindow(Limit{Requests: 2, Per: 10 * time.Second})
	w.take(0)
	w.take(4 * time.Second)
	wait := w.take(5 * time.Second)
	if wait < 5*time.Second || wait > 6*time.Second {
		t.Fatalf("got wait %v, want between 5s and 6s", wait)
	}
	if again := w.take(5*time.Second + wait); again != 0 {
		t.Errorf("after the wait: got wait %v, want 0", again)
	}
	if used, reset := w.state(5*time.Second + wait); used != 2 || reset <= 0 {
		t.Errorf("got %d used, reset in %v; want 2 used, a positive reset", used, reset)
	}
}

func TestWindow_UntakeRemovesOneRequest(t *testing.T) {
	for _, grain := range []time.Duration{0, time.Minute} {
		w := newWindow(Limit{Requests: 3, Per: time.Hour})
		w.grain = grain
		w.take(1 * time.Second)
		w.take(2 * time.Second)
		w.untake(1 * time.Second)
		w.untake(30 * time.Minute) // no request was counted at this time
		if used, _ := w.state(2 * time.Second); used != 1 {
			t.Errorf("grain %v: got %d used, want 1", grain, used)
		}
		for i := range 3 {
			if refused := w.take(3*time.Second) > 0; refused != (i == 2) {
				t.Errorf("grain %v, request %d: got refused %v, want only the third refused", grain, i, refused)
			}
		}
	}
}

func TestWindow_LimitsNumberOfMarks(t *testing.T) {
	w := newWindow(Limit{Requests: 1_000_000, Per: time.Hour})
	for i := range 200_000 {
		w.take(time.Duration(i) * 10 * time.Millisecond)
	}
	if len(w.marks) > maxMarks {
		t.Errorf("got %d marks, want at most %d", len(w.marks), maxMarks)
	}
	if w.used != 200_000 {
		t.Errorf("got %d used, want 200000", w.used)
	}
}

func TestWindow_WithoutLimitAllowsAllRequests(t *testing.T) {
	for _, limit := range []Limit{{}, {Requests: 5}, {Per: time.Second}, {Requests: -1, Per: time.Second}} {
		w := newWindow(limit)
		for range 100 {
			if wait := w.take(0); wait != 0 {
				t.Fatalf("limit %+v: got wait %v, want 0", limit, wait)
			}
		}
	}
}
