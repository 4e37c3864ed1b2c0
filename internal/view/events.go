package view

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"assay/internal/event"
)

// NumberedEvent is an event in the order of commits.
type NumberedEvent struct {
	Number string `json:"number"`
	Event
}

// Events is a page of events, oldest first.
type Events struct {
	Items    []NumberedEvent `json:"items"`
	Next     string          `json:"next"`     // number to continue after
	UpToDate bool            `json:"upToDate"` // no later event is known
}

// Events returns events after a number. If there are none, it waits for one, at most for the
// given time. A page ends when it has limit events or price changes. It returns a
// fault.Expired if after is older than the stored price changes or is not the number of an
// event.
func (r *ItemReader) Events(ctx context.Context, after int64, limit int, wait time.Duration) (Events, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		last := r.o.Feed.Last()
		page, err := r.events(ctx, after, limit)
		if err != nil || len(page.Items) > 0 || !r.o.Feed.Wait(waiting, last) {
			return page, err
		}
	}
}

func (r *ItemReader) events(ctx context.Context, after int64, limit int) (Events, error) {
	page := Events{Items: []NumberedEvent{}, Next: id(after)}
	found, err := event.After(ctx, r.o.Store.Read, after, limit)
	if errors.Is(err, event.ErrExpired) {
		err = r.cursorExpired(ctx)
	}
	if err != nil {
		return page, err
	}
	for i := range found {
		e := &found[i]
		if e.Batch != nil {
			if e.Data, err = r.ChangeData(ctx, e.Batch); err != nil {
				return page, err
			}
		}
		page.Next = id(e.Number)
		page.Items = append(page.Items, NumberedEvent{page.Next, Event{ID: id(e.ID), Kind: string(e.Kind), At: e.At, Data: e.Data}})
	}
	page.UpToDate = len(found) == 0 || found[len(found)-1].Number >= r.o.Feed.Last()
	return page, nil
}

// ChangeData returns the data of a price.changed event for clients. It leaves out items with
// id 0.
func (r *ItemReader) ChangeData(ctx context.Context, b *event.Batch) (json.RawMessage, error) {
	changes, err := r.appendChanges(ctx, nil, b, 0)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, lookupSize*(len(changes)+1))
	out = append(out, `{"items":[`...)
	for i := range changes {
		if i > 0 {
			out = append(out, ',')
		}
		out = changes[i].appendJSON(out)
	}
	return append(out, `]}`...), nil
}

// Frames are server-sent events, and the number after which the stream continues.
type Frames struct {
	Text []byte
	Next int64
}

const (
	// streamPage is the number of events or price changes of one read of a stream.
	streamPage = 1_000
	// keptFrames limits the reads whose results are shared by all streams.
	keptFrames = 8
	// progressEvery is the time between two reports of the progress of a job.
	progressEvery = time.Second
)

// frames shares the reads of streams. Most streams continue after the same number, so that an
// event is read and encoded once, and not for each client.
type frames struct {
	mu     sync.Mutex
	pages  map[int64]*sharedFrames
	newest []int64 // keys of pages, oldest first
}

// progress shares the reads of the progress of a job.
type progress struct {
	mu     sync.Mutex
	frame  []byte // empty: no job is running
	readAt time.Time
}

type sharedFrames struct {
	once sync.Once
	Frames
	err error
}

// Stream returns the events after a number as server-sent events, without waiting. Without
// new events the text is empty. The caller must not change it. It returns a fault.Expired as
// Events does.
func (r *ItemReader) Stream(ctx context.Context, after int64) (Frames, error) {
	f := &r.frames
	f.mu.Lock()
	page := f.pages[after]
	if page == nil {
		page = &sharedFrames{}
		if f.pages == nil {
			f.pages = map[int64]*sharedFrames{}
		}
		f.pages[after], f.newest = page, append(f.newest, after)
		if len(f.newest) > keptFrames {
			delete(f.pages, f.newest[0])
			f.newest = f.newest[1:]
		}
	}
	f.mu.Unlock()
	page.once.Do(func() { page.Frames, page.err = r.readFrames(context.WithoutCancel(ctx), after) })
	if page.err != nil || len(page.Text) == 0 {
		f.drop(after, page) // the next read may have events
	}
	return page.Frames, page.err
}

func (f *frames) drop(after int64, page *sharedFrames) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pages[after] != page {
		return
	}
	delete(f.pages, after)
	for i, key := range f.newest {
		if key == after {
			f.newest = append(f.newest[:i:i], f.newest[i+1:]...)
			return
		}
	}
}

func (r *ItemReader) readFrames(ctx context.Context, after int64) (Frames, error) {
	page, err := r.events(ctx, after, streamPage)
	out := Frames{Next: after}
	for i := range page.Items {
		e := &page.Items[i]
		out.Text = appendFrame(out.Text, e.Number, e.Kind, e.Data)
		out.Next, _ = strconv.ParseInt(e.Number, 10, 64) // it was formatted from an integer
	}
	return out, err
}

// appendFrame appends a server-sent event. The data is JSON and has no line break.
func appendFrame(b []byte, number, kind string, data []byte) []byte {
	if number != "" {
		b = append(append(append(b, "id: "...), number...), '\n')
	}
	b = append(append(append(b, "event: "...), kind...), '\n')
	return append(append(append(b, "data: "...), data...), '\n', '\n')
}

// Progress returns the progress of the running bulk job as a server-sent event without a
// number, or nothing. It is at most progressEvery old.
func (r *JobReader) Progress(ctx context.Context) ([]byte, error) {
	p := &r.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.readAt) < progressEvery {
		return p.frame, nil
	}
	s, err := r.Status(ctx)
	if err != nil {
		return nil, err
	}
	p.frame, p.readAt = nil, now
	if s.Status.Running {
		data, err := json.Marshal(map[string]any{
			"jobId": s.Status.JobID, "stage": s.Status.Stage, "pendingItems": s.PendingItems, "updatedItems": s.UpdatedItems, "totalItems": s.TotalItems,
		})
		if err != nil {
			return nil, err
		}
		p.frame = appendFrame(nil, "", "job.progress", data)
	}
	return p.frame, nil
}

// AwaitEvent waits until there is an event after the last one that this process knew at the
// call, or until ctx ends. It returns false if the server is stopping.
func (r *ItemReader) AwaitEvent(ctx context.Context, last int64) bool {
	r.o.Feed.Wait(ctx, last)
	return !r.o.Feed.Ended()
}

// LastNumber numbers all events and returns the last number.
func (r *ItemReader) LastNumber(ctx context.Context) (int64, error) {
	if err := r.o.Feed.Number(ctx); err != nil {
		return 0, err
	}
	return r.o.Feed.Last(), nil
}

// KnownNumber returns the last number that this process knows.
func (r *ItemReader) KnownNumber() int64 { return r.o.Feed.Last() }
