package view

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sort"
	"sync"
	"time"

	"assay/internal/event"
)

// Frames holds server-sent events, and the number after which the stream continues.
type Frames struct {
	Text []byte
	Next int64
}

const (
	// streamPage is the maximum number of events or price changes in one read of a stream.
	streamPage = 1_000
	// recentBytes limits the pages in memory without figures and conversion. It is enough for the
	// changes of a refresh of 50,000 items.
	recentBytes = 16 << 20
	// maxForms limits the other forms whose pages are in memory. A form with figures or conversion has a
	// quarter of recentBytes.
	maxForms = 4
	// groupEvery is the minimum time between two reads of the newest events. Without it, all streams
	// would wake up for each commit.
	groupEvery = 250 * time.Millisecond
	// quietAfter is the time without a new event after which streams need no rate limit.
	quietAfter = time.Second
	// progressEvery is the time between two reports of the progress of a job.
	progressEvery = time.Second
)

// Stream reads events in one form, for one client.
type Stream struct {
	feed   *FeedReader
	form   EventForm
	recent *recent // shared by all streams of the form; nil: there are too many forms
}

// OpenStream returns a stream that the caller must close. It returns a fault.Unprocessable if there is
// no rate for the currency.
func (r *FeedReader) OpenStream(ctx context.Context, form EventForm) (*Stream, error) {
	if _, err := r.o.converter(ctx, form.Currency, r.o.Now()); err != nil {
		return nil, err
	}
	return &Stream{r, form, r.recents.open(form)}, nil
}

// Close ends the stream.
func (s *Stream) Close() { s.feed.recents.close(s.form, s.recent) }

// recents holds the newest events in each form that open streams use.
type recents struct {
	mu    sync.Mutex
	forms map[EventForm]*recent
	limit int // maximum size of the pages of a form without figures and conversion
}

// open returns the pages of a form, or nil if there are too many forms.
func (a *recents) open(form EventForm) *recent {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.forms[form]
	if c == nil {
		others, limit := len(a.forms), a.limit
		if a.forms[EventForm{}] != nil {
			others--
		}
		if form != (EventForm{}) && others == maxForms {
			return nil
		}
		if form != (EventForm{Hidden: form.Hidden}) {
			limit /= 4
		}
		c = &recent{limit: limit}
		a.forms[form] = c
	}
	c.streams++
	return c
}

// close ends the use of the pages of a form. The last stream of the form removes them.
func (a *recents) close(form EventForm, c *recent) {
	if c == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.streams--; c.streams == 0 {
		delete(a.forms, form)
	}
}

// recent holds the newest pages of events in one form, so that each event is read and encoded once for all
// clients. A page ends where the next page begins. Clients that began at different numbers
// therefore share all pages after their first one.
type recent struct {
	mu      sync.Mutex
	pages   []*frames // sorted by start
	size    int       // bytes of all pages
	limit   int       // maximum of size
	endedAt time.Time // when a read reached the last event
	reads   int64     // number of database reads, including those of Older
	streams int       // open streams; guarded by recents.mu
}

// frames is a page: the events after a number. They are read only once.
type frames struct {
	after int64
	once  sync.Once
	Frames
	err error
}

// Read returns the events after a number as server-sent events. It does not wait for new events:
// if there are none, the text is empty. The caller must not change the text. Read returns a
// fault.Expired in the same cases as Events.
func (s *Stream) Read(ctx context.Context, after int64) (Frames, error) {
	p, until := s.recent.page(after)
	p.once.Do(func() {
		if until == 0 {
			s.recent.gather()
		}
		p.Frames, p.err = s.readFrames(context.WithoutCancel(ctx), after, until)
		s.recent.keep(p, p.Next >= s.feed.o.Feed.Last())
	})
	return p.Frames, p.err
}

// Behind reports whether a number is before all pages in memory and there is no room for more
// pages. The client must then use Older, as it must if the pages of its form are not in memory.
func (s *Stream) Behind(after int64) bool {
	c := s.recent
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pages) > 0 && after < c.pages[0].after && c.size > c.limit-c.limit/4
}

// Older is like Read, but for a client that is behind. It does not keep the result in memory. The
// caller must limit how many clients hold such a result at the same time.
func (s *Stream) Older(ctx context.Context, after int64) (Frames, error) {
	until := int64(0)
	if c := s.recent; c != nil {
		c.mu.Lock()
		c.reads++
		until = c.end(c.find(after))
		c.mu.Unlock()
	}
	return s.readFrames(ctx, after, until)
}

// find returns the index of the first page that begins at a number or later.
func (c *recent) find(after int64) int {
	return sort.Search(len(c.pages), func(k int) bool { return c.pages[k].after >= after })
}

// end returns the number at which a page before page k must end, or 0 if there is no page k.
func (c *recent) end(k int) int64 {
	if k == len(c.pages) {
		return 0
	}
	return c.pages[k].after
}

// page returns the page after a number, and adds it if it is missing. A new page must end at the
// number until, unless that is 0.
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

// gather waits until groupEvery has passed since a read reached the last event. The next read then
// returns the events of several commits.
func (c *recent) gather() {
	c.mu.Lock()
	wait := groupEvery - time.Since(c.endedAt)
	c.mu.Unlock()
	<-time.After(wait)
}

// keep records that a page was read. It removes the page if it failed or has no events, because a
// later read may return some. Otherwise it removes the oldest pages beyond the limit.
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

// readFrames reads a page of events. If until is not 0, the page ends before the first event with a
// greater number, but it always includes the first event.
func (s *Stream) readFrames(ctx context.Context, after, until int64) (Frames, error) {
	page, err := s.feed.events(ctx, after, streamPage, s.form)
	out := Frames{Next: after}
	for i := range page.Items {
		e := &page.Items[i]
		number := numberOf(e.Number)
		if i > 0 && until > 0 && number > until {
			return out, err
		}
		out.Text, out.Next = appendFrame(out.Text, e.Number, e.Kind, e.Data), number
	}
	next := numberOf(page.Next) // after events that the form leaves out
	if until > 0 {
		next = min(next, until)
	}
	out.Next = max(out.Next, next)
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

// progress caches the progress of the running job for all streams.
type progress struct {
	mu     sync.Mutex
	frame  []byte // empty: no job is running
	readAt time.Time
}

// Progress returns the progress of the running bulk job as a server-sent event without a
// number, or nil if no job is running. The result is at most progressEvery old.
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

// AwaitEvent waits until there is an event with a number above last, or until ctx ends. It returns
// false if the server is stopping.
func (r *FeedReader) AwaitEvent(ctx context.Context, last int64) bool {
	r.o.Feed.Wait(ctx, last)
	return !r.o.Feed.Ended()
}

// CheckNumber returns a fault.Expired if Events does not accept the number.
func (r *FeedReader) CheckNumber(ctx context.Context, after int64) error {
	_, err := event.After(ctx, r.o.Store.Read, after, 1, false)
	if errors.Is(err, event.ErrExpired) {
		err = r.eventExpired(ctx)
	}
	return err
}

// Quiet reports whether no event was added recently, so that streams need no rate limit.
func (r *FeedReader) Quiet() bool { return r.o.Feed.Quiet(quietAfter) }

// LastNumber assigns numbers to all events and returns the last number.
func (r *FeedReader) LastNumber(ctx context.Context) (int64, error) {
	if err := r.o.Feed.Number(ctx); err != nil {
		return 0, err
	}
	return r.o.Feed.Last(), nil
}

// KnownNumber returns the last number that this process knows.
func (r *FeedReader) KnownNumber() int64 { return r.o.Feed.Last() }
