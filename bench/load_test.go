package main

import (
	"context"
	"testing"
	"time"
)

func TestLoad_ReportsEachRateAndCorrectPrices(t *testing.T) {
	w := worldWithin(t, size{names: 200, markets: 2, rows: 400})
	l := newLoad(w, 3*time.Second, time.Second, 5, 20)
	l.users, l.items, l.note = 4, 10, t.Logf
	if err := l.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := w.engine.open(w.server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	wrong, bytes, err := l.stored(t.Context(), db)
	if err != nil || wrong != 0 || bytes == 0 {
		t.Errorf("got %d wrong rows, %d bytes, %v; want no wrong row and a size", wrong, bytes, err)
	}
	if l.failed != nil || l.failedItems != 0 || l.oldest <= 0 {
		t.Errorf("got failures %v, %d failed items, oldest price %s; want no failure and an age", l.failed, l.failedItems, l.oldest)
	}
	if len(l.took) == 0 || len(l.pushes.took) == 0 || len(l.lookups.took) == 0 {
		t.Errorf("got %d refreshes, %d pushes, %d lookups; want some of each", len(l.took), len(l.pushes.took), len(l.lookups.took))
	}
	for _, p := range []*paced{l.pushes, l.lookups} {
		if p.errors != nil {
			t.Errorf("%s: got errors %v and failures %v, want none", p.name, p.errors, p.failed)
		}
	}
}

func TestPaced_DropsRequestsAboveItsLimit(t *testing.T) {
	release := make(chan struct{})
	p := &paced{name: "stalled", rate: 200, limit: 2}
	p.send = func(context.Context, int) (int, error) { <-release; return 200, nil }
	go func() { <-after(100 * time.Millisecond); close(release) }()
	p.run(t.Context(), after(100*time.Millisecond))
	if p.dropped == 0 || p.missed == 0 || len(p.took) < 2 {
		t.Errorf("got %d dropped, first after %s, %d responses; want drops and two responses", p.dropped, p.missed, len(p.took))
	}
}
