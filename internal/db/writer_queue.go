package db

import "context"

// writerQueue grants SQLite's one writer connection to one transaction at a time, in
// order of arrival. An urgent transaction runs before all others that wait. On PostgreSQL
// the queue is nil, and no transaction waits.
type writerQueue struct {
	queue  chan struct{} // held by one transaction that is not urgent, until it ends
	next   chan struct{} // held by the next transaction, until it begins
	writer chan struct{} // held by the running transaction
}

func newWriterQueue() *writerQueue {
	return &writerQueue{queue: make(chan struct{}, 1), next: make(chan struct{}, 1), writer: make(chan struct{}, 1)}
}

// acquire waits for the writer. The caller must call release.
func (w *writerQueue) acquire(ctx context.Context, urgent bool) (release func(), err error) {
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
