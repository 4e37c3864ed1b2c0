package db

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestTurns_AnUrgentTransactionIsTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTurns()
		running, err := w.take(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		var all sync.WaitGroup
		come := func(name string, urgent bool) {
			all.Go(func() {
				release, err := w.take(t.Context(), urgent)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, name)
				release()
			})
			synctest.Wait()
		}
		come("first", false)
		come("second", false)
		come("urgent", true)
		come("third", false)
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			if _, err := w.take(ctx, false); !errors.Is(err, context.Canceled) {
				t.Errorf("a transaction whose caller gave up: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		running()
		all.Wait()
		if !slices.Equal(order[:1], []string{"urgent"}) || len(order) != 4 {
			t.Errorf("transactions began as %v, want the urgent one first of four", order)
		}
		last, err := w.take(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		last()
	})
}
