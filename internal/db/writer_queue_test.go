package db

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestWriterQueue_UrgentTransactionsRunFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWriterQueue()
		running, err := w.acquire(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		var all sync.WaitGroup
		start := func(name string, urgent bool) {
			all.Go(func() {
				release, err := w.acquire(t.Context(), urgent)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, name)
				release()
			})
			synctest.Wait()
		}
		start("first", false)
		start("second", false)
		start("urgent", true)
		start("third", false)
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			if _, err := w.acquire(ctx, false); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled transaction: got error %v, want context.Canceled", err)
			}
		})
		synctest.Wait()
		cancel()
		running()
		all.Wait()
		if !slices.Equal(order[:1], []string{"urgent"}) || len(order) != 4 {
			t.Errorf("got order %v, want four transactions with the urgent one first", order)
		}
		release, err := w.acquire(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		release()
	})
}
