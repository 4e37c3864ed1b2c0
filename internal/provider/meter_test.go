package provider

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
)

func TestMeter_NotesEveryRequestBeforeItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var noted int64 = 1
		c, f := newFake(Options{}, func(n int) (*http.Response, error) {
			if int64(n) > noted {
				t.Errorf("request %d was sent, and %d were noted", n, noted)
			}
			return reply(500, ""), nil
		})
		req := get
		req.Meter = NewMeter(noted, func(context.Context) (int64, error) {
			noted++
			return 1, nil
		})
		_ = c.Do(t.Context(), req, discard)
		if f.count() != DefaultAttempts || noted != DefaultAttempts || req.Meter.Requests() != DefaultAttempts {
			t.Errorf("%d sent, %d noted, %d counted", f.count(), noted, req.Meter.Requests())
		}
	})
}

func TestMeter_WhatCannotBeNotedIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(Options{}, func(int) (*http.Response, error) { return reply(500, ""), nil })
		full := errors.New("the disk is full")
		req := get
		req.Meter = NewMeter(2, func(context.Context) (int64, error) { return 0, full })
		err := c.Do(t.Context(), req, discard)
		if kind, _ := kindOf(t, err); kind != KindCancelled || !errors.Is(err, full) {
			t.Errorf("error %v of kind %s", err, kind)
		}
		if f.count() != 2 || req.Meter.Requests() != 2 {
			t.Errorf("%d sent, %d counted, want 2", f.count(), req.Meter.Requests())
		}
		if s := c.Snapshot(); len(s.Requests) != 2 || s.Breaker != BreakerClosed {
			t.Errorf("%d requests recorded, breaker %s", len(s.Requests), s.Breaker)
		}
	})
}
