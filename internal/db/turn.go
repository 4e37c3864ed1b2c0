package db

import "context"

// turns gives SQLite's one writer to one transaction at a time, in the order in
// which they come, except that an urgent one waits for no other than the one that
// has begun. Without turns, as on PostgreSQL, no transaction waits.
type turns struct {
	queue  chan struct{} // held by the transaction that is not urgent and is next, until it ends
	next   chan struct{} // held by the transaction that is next, until it begins
	writer chan struct{} // held by the transaction that runs
}

func newTurns() *turns {
	return &turns{queue: make(chan struct{}, 1), next: make(chan struct{}, 1), writer: make(chan struct{}, 1)}
}

// take waits for the writer, and returns what gives it back.
func (w *turns) take(ctx context.Context, urgent bool) (release func(), err error) {
	if w == nil {
		return func() {}, nil
	}
	var held []chan struct{}
	release = func() {
		for _, c := range held {
			<-c
		}
	}
	wanted := []chan struct{}{w.queue, w.next, w.writer}
	if urgent {
		wanted = wanted[1:]
	}
	for _, c := range wanted {
		select {
		case c <- struct{}{}:
			held = append([]chan struct{}{c}, held...)
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
	<-w.next
	held = append(held[:1], held[2:]...)
	return release, nil
}
