package view

import (
	"context"
	"slices"
	"time"

	"assay/internal/admission"
	"assay/internal/refresh"
)

// Timeline shows what a run did at which time. For a live run, To is now.
type Timeline struct {
	From, To  time.Time
	Stages    []Span        // plan, fetch, estimate and apply, as far as reached
	Providers []ProviderRow // by provider
}

// Span is a part of a timeline.
type Span struct {
	Kind     string // a stage; in a row: requests, wait or breaker
	From, To time.Time
	Requests int64  // of the units in the span
	Text     string // for people; may be empty
}

// ProviderRow shows the requests of a run to one provider. Waits fill the gaps between the spans of
// requests. Spans of the circuit breaker overlap both.
type ProviderRow struct {
	Provider string
	Spans    []Span
	Requests int64
	Bytes    int64
	Open     int64  // units that are pending or running
	Failed   int64  // units that failed
	Deferred int64  // units or names that were not requested because of a budget, a pause or a backoff
	Reason   string // why they were deferred, for people
	Error    string // last error
}

// spansShown limits the spans of a row. Requests share a span if the pause between them is at most
// 1/spansShown of the run.
const spansShown = 200

// Timeline returns the timeline of a run.
func (r *JobReader) Timeline(ctx context.Context, id int64) (Timeline, error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return Timeline{}, err
	}
	defer leave()
	job, err := refresh.ReadJob(ctx, r.o.Store, id)
	if err != nil {
		return Timeline{}, err
	}
	stages, err := readStageTimes(ctx, r.o.Store, id)
	if err != nil {
		return Timeline{}, err
	}
	units, err := readTimedUnits(ctx, r.o.Store, id)
	if err != nil {
		return Timeline{}, err
	}
	t := newTimeline(&job, stages, r.o.Now())
	breaks, err := readBreakerChanges(ctx, r.o.Store, t.To)
	if err != nil {
		return Timeline{}, err
	}
	for len(units) > 0 {
		n := slices.IndexFunc(units, func(u timedUnit) bool { return u.provider != units[0].provider })
		if n < 0 {
			n = len(units)
		}
		t.Providers = append(t.Providers, t.providerRow(units[:n], stages, breaks))
		units = units[n:]
	}
	return t, nil
}

// newTimeline returns a timeline with its stages only.
func newTimeline(job *refresh.Job, s stageTimes, now time.Time) Timeline {
	t := Timeline{From: job.CreatedAt, To: now}
	if !job.State.Live() {
		t.To = job.FinishedAt
	}
	if t.To.Before(t.From) {
		t.To = t.From // the clock was set back
	}
	from := t.From
	for _, stage := range []struct {
		name refresh.Stage
		end  time.Time
	}{{refresh.StagePlan, s.planned}, {refresh.StageFetch, s.fetched}, {refresh.StageEstimate, s.estimated}, {refresh.StageApply, job.FinishedAt}} {
		end := stage.end
		if end.IsZero() || end.After(t.To) {
			end = t.To
		}
		if end.Before(from) {
			end = from
		}
		t.Stages = append(t.Stages, Span{Kind: string(stage.name), From: from, To: end})
		if from = end; stage.end.IsZero() {
			break // the stage has not ended, or the run was cancelled in it
		}
	}
	return t
}

// providerRow returns the row of one provider. Its units must be sorted by start.
func (t *Timeline) providerRow(units []timedUnit, stages stageTimes, breaks []breakerChange) ProviderRow {
	l := ProviderRow{Provider: units[0].provider}
	begin, merge := stages.planned, t.To.Sub(t.From)/spansShown
	if begin.IsZero() {
		begin = t.From
	}
	for i := range units {
		u := &units[i]
		l.count(u)
		if from, to := t.busy(u); !from.IsZero() {
			l.add(Span{Kind: "requests", From: from, To: to, Requests: u.requests}, merge)
		}
	}
	l.Spans = withWaits(l.Spans, begin, t.To, l.Open > 0)
	l.Spans = append(l.Spans, breakerSpans(breaks, l.Provider, begin, t.To)...)
	return l
}

// count adds a unit to the counts of a row.
func (l *ProviderRow) count(u *timedUnit) {
	l.Requests += u.requests
	l.Bytes += u.bytes
	switch u.state {
	case refresh.UnitPending, refresh.UnitRunning:
		l.Open++
	case refresh.UnitFailed:
		l.Failed++
	case refresh.UnitDeferred:
		l.Deferred += max(u.waiting, 1)
		l.Reason = u.err
	}
	if u.err != "" {
		l.Error = u.err
	}
}

// busy returns the period in which the unit's last claim sent requests. Both times are zero if the
// unit sent none in this run.
func (t *Timeline) busy(u *timedUnit) (from, to time.Time) {
	if u.startedAt.IsZero() || u.startedAt.After(t.To) {
		return from, to
	}
	switch end := u.fetchedAt; {
	case u.state == refresh.UnitRunning:
		return u.startedAt, t.To
	case end.IsZero() || end.Before(u.startedAt):
		return from, to // released without a response
	default:
		return u.startedAt, earlier(end, t.To)
	}
}

// add adds a span of requests. It extends the last span if the pause after it is at most merge.
func (l *ProviderRow) add(s Span, merge time.Duration) {
	if n := len(l.Spans); n > 0 && s.From.Sub(l.Spans[n-1].To) <= merge {
		last := &l.Spans[n-1]
		last.Requests += s.Requests
		if s.To.After(last.To) {
			last.To = s.To
		}
		return
	}
	l.Spans = append(l.Spans, s)
}

// withWaits adds spans for the waits before and between requests. If more is true, it also adds the
// wait from the last request to end.
func withWaits(requests []Span, begin, end time.Time, more bool) []Span {
	var out []Span
	from := begin
	for _, s := range requests {
		if s.From.After(from) {
			out = append(out, Span{Kind: "wait", From: from, To: s.From})
		}
		out = append(out, s)
		from = s.To
	}
	if more && end.After(from) {
		out = append(out, Span{Kind: "wait", From: from, To: end})
	}
	return out
}

// breakerSpans returns the times between begin and end in which the circuit breaker of a host of
// the provider was open.
func breakerSpans(breaks []breakerChange, name string, begin, end time.Time) []Span {
	var out []Span
	open := map[string]breakerChange{}
	endSpan := func(host string, at time.Time) {
		since, found := open[host]
		if delete(open, host); !found || !at.After(begin) {
			return
		}
		from := since.at
		if from.Before(begin) {
			from = begin
		}
		out = append(out, Span{Kind: "breaker", From: from, To: at, Text: since.detail})
	}
	for _, c := range breaks {
		switch {
		case c.provider != name:
		case !c.open:
			endSpan(c.host, c.at)
		default:
			open[c.host] = c
		}
	}
	for host := range open {
		endSpan(host, end)
	}
	slices.SortFunc(out, func(a, b Span) int { return a.From.Compare(b.From) })
	return out
}
