package view

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sort"
	"strconv"
	"sync"
	"time"

	"assay/internal/event"
)

// Frames are server-sent events, and the number after which the stream continues.
type Frames struct {
	Text []byte
	Next int64
}

const (
	// streamPage is the number of events or price changes of one read of a stream.
	streamPage = 1_000
	// recentBytes limits the pages in memory. They hold the changes of a refresh of 50,000 items.
	recentBytes = 16 << 20
	// groupEvery is the shortest time between two reads of the newest events, so that all streams
	// wake up together, and not for each commit.
	groupEvery = 250 * time.Millisecond
	// quietAfter is the time without a new event after which streams need no pace.
	quietAfter = time.Second
	// progressEvery is the time between two reports of the progress of a job.
	progressEvery = time.Second
)

// recent holds the newest pages of events, so that an event is read and encoded once, and not
// for each client. A page ends where a later page begins. Therefore clients that began at
// different numbers share pages after their first one.
type recent struct {
	mu      sync.Mutex
	pages   []*frames // by their start
	size    int       // bytes of all pages
	limit   int       // of size
	endedAt time.Time // when a read reached the last event
	reads   int64     // reads of the database, also by Older
}

// frames holds the events after a number. It is read once.
type frames struct {
	after int64
	once  sync.Once
	Frames
	err error
}

// Stream returns the events after a number as server-sent events, without waiting for new ones.
// Without new events the text is empty. The caller must not change it. It returns a
// fault.Expired as Events does.
func (r *ItemReader) Stream(ctx context.Context, after int64) (Frames, error) {
	p, until := r.recent.page(after)
	p.once.Do(func() {
		if until == 0 {
			r.recent.gather()
		}
		p.Frames, p.err = r.readFrames(context.WithoutCancel(ctx), after, until)
		r.recent.keep(p, p.Next >= r.o.Feed.Last())
	})
	return p.Frames, p.err
}

// Behind reports whether a number is before all pages in memory, without room for more. Its
// client must use Older.
func (r *ItemReader) Behind(after int64) bool {
	c := &r.recent
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pages) > 0 && after < c.pages[0].after && c.size > c.limit-c.limit/4
}

// Older is Stream for a client that is behind. Its result is not kept. The caller limits how many
// clients have such a result at the same time.
func (r *ItemReader) Older(ctx context.Context, after int64) (Frames, error) {
	c := &r.recent
	c.mu.Lock()
	c.reads++
	until := c.end(c.find(after))
	c.mu.Unlock()
	return r.readFrames(ctx, after, until)
}

// find returns the index of the first page that begins at a number or later.
func (c *recent) find(after int64) int {
	return sort.Search(len(c.pages), func(k int) bool { return c.pages[k].after >= after })
}

// end returns the number at which a page before the k-th must end; 0: none.
func (c *recent) end(k int) int64 {
	if k == len(c.pages) {
		return 0
	}
	return c.pages[k].after
}

// page returns the page after a number. If the page is new, it must end at the number until.
func (c *recent) page(after int64) (p *frames, until int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.find(after)
	if k < len(c.pages) && c.pages[k].after == after {
		return c.pages[k], c.end(k + 1)
	}
	p, until = &frames{after: after}, c.end(k)
	c.pages = slices.Insert(c.pages, k, p)
	return p, until
}

// gather waits if a read has just reached the last event, so that the next one returns the events
// of several commits.
func (c *recent) gather() {
	c.mu.Lock()
	wait := groupEvery - time.Since(c.endedAt)
	c.mu.Unlock()
	<-time.After(wait)
}

// keep counts a page that was read. It removes the page if it has no events, because the next
// read may have some, and otherwise the oldest pages beyond the limit.
func (c *recent) keep(p *frames, end bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	k := c.find(p.after)
	if k == len(c.pages) || c.pages[k] != p {
		return // removed as the oldest
	}
	if p.err != nil || len(p.Text) == 0 {
		c.pages = slices.Delete(c.pages, k, k+1)
		return
	}
	if end {
		c.endedAt = time.Now()
	}
	for c.size += cap(p.Text); c.size > c.limit && len(c.pages) > 1; c.pages = slices.Delete(c.pages, 0, 1) {
		c.size -= cap(c.pages[0].Text)
	}
}

// readFrames reads a page of events. It ends with the event that has the number until, unless
// that is 0 or within its first event.
func (r *ItemReader) readFrames(ctx context.Context, after, until int64) (Frames, error) {
	page, err := r.events(ctx, after, streamPage)
	out := Frames{Next: after}
	for i := range page.Items {
		e := &page.Items[i]
		number, _ := strconv.ParseInt(e.Number, 10, 64) // it was formatted from an integer
		if i > 0 && until > 0 && number > until {
			break
		}
		out.Text, out.Next = appendFrame(out.Text, e.Number, e.Kind, e.Data), number
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

// progress shares the reads of the progress of a job.
type progress struct {
	mu     sync.Mutex
	frame  []byte // empty: no job is running
	readAt time.Time
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

// CheckNumber returns a fault.Expired if Events would for that number.
func (r *ItemReader) CheckNumber(ctx context.Context, after int64) error {
	_, err := event.After(ctx, r.o.Store.Read, after, 1)
	if errors.Is(err, event.ErrExpired) {
		err = r.cursorExpired(ctx)
	}
	return err
}

// Quiet reports whether no event was added recently, so that streams need no pace.
func (r *ItemReader) Quiet() bool { return r.o.Feed.Quiet(quietAfter) }

// LastNumber numbers all events and returns the last number.
func (r *ItemReader) LastNumber(ctx context.Context) (int64, error) {
	if err := r.o.Feed.Number(ctx); err != nil {
		return 0, err
	}
	return r.o.Feed.Last(), nil
}

// KnownNumber returns the last number that this process knows.
func (r *ItemReader) KnownNumber() int64 { return r.o.Feed.Last() }
