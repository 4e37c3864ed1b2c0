package provider

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
)

func TestMeter_StoresEveryRequestBeforeSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stored int64 = 1
		c, f := newFake(Options{}, func(n int) (*http.Response, error) {
			if int64(n) > stored {
				t.Errorf("request %d: got %d requests stored before it was sent, want at least %d", n, stored, n)
			}
			return reply(500, ""), nil
		})
		req := get
		req.Meter = NewMeter(stored, func(context.Context) (int64, error) {
			stored++
			return 1, nil
		})
		_ = c.Do(t.Context(), req, discard)
		if f.count() != DefaultAttempts || stored != DefaultAttempts || req.Meter.Requests() != DefaultAttempts {
			t.Errorf("got %d sent, %d stored, %d counted; want %d", f.count(), stored, req.Meter.Requests(), DefaultAttempts)
		}
	})
}

func TestMeter_StoreErrorPreventsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(Options{}, func(int) (*http.Response, error) { return reply(500, ""), nil })
		full := errors.New("disk full")
		req := get
		req.Meter = NewMeter(2, func(context.Context) (int64, error) { return 0, full })
		err := c.Do(t.Context(), req, discard)
		if kind, _ := kindOf(t, err); kind != KindCancelled || !errors.Is(err, full) {
			t.Errorf("got error %v of kind %s, want %v of kind %s", err, kind, full, KindCancelled)
		}
		if f.count() != 2 || req.Meter.Requests() != 2 {
			t.Errorf("got %d sent, %d counted; want 2", f.count(), req.Meter.Requests())
		}
		if s := c.Snapshot(); len(s.Requests) != 2 || s.Breaker != BreakerClosed {
			t.Errorf("got %d requests recorded, breaker %s; want 2, %s", len(s.Requests), s.Breaker, BreakerClosed)
		}
	})
}
