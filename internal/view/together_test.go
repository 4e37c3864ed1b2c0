package view_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"assay/internal/view"
)

func TestTogether(t *testing.T) {
	t.Run("calls all parts", func(t *testing.T) {
		var n atomic.Int64
		part := func(context.Context) error { n.Add(1); return nil }
		if err := view.Together(t.Context(), part, part, part, part, part, part, part); err != nil || n.Load() != 7 {
			t.Errorf("got %d calls and the error %v, want 7 calls", n.Load(), err)
		}
	})
	t.Run("returns the first error and cancels the other parts", func(t *testing.T) {
		failure := errors.New("failure")
		waiting := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		err := view.Together(t.Context(), waiting, waiting, func(context.Context) error { return failure }, waiting)
		if !errors.Is(err, failure) {
			t.Errorf("got the error %v, want %v", err, failure)
		}
	})
	t.Run("panics in the caller", func(t *testing.T) {
		defer func() {
			if p, _ := recover().(string); !strings.HasPrefix(p, "broken\n") || !strings.Contains(p, "together_test.go") {
				t.Errorf("got the panic %q, want broken with the stack of the part", p)
			}
		}()
		_ = view.Together(t.Context(), func(context.Context) error { panic("broken") })
	})
}
