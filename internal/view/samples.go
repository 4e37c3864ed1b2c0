package view

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/provider"
)

// HalfHour counts the requests to a provider in a half hour, from all instances.
type HalfHour struct {
	At       time.Time // start
	ByResult map[provider.SentResult]int64
	Requests int64
	Bytes    int64
	// P50 and P95 are the lowest of provider.LatencyBounds that 50 % and 95 % of the requests
	// did not exceed. Above the last bound, they are the mean duration of the half hour, but at
	// least that bound.
	P50, P95 time.Duration
	// State is "good", "warn" (some requests had no usable response), "bad" (no request
	// had one) or "none" (no request).
	State string
}

// Bad counts the requests without a usable response.
func (h *HalfHour) Bad() int64 {
	return h.Requests - h.ByResult[provider.ResultOK] - h.ByResult[provider.ResultNotModified] - h.ByResult[provider.ResultCancelled]
}

// healthPeriod is the period of the health bars.
const healthPeriod = 24 * time.Hour

// ProviderHours returns the last 48 half hours of each provider with requests, oldest first,
// including the current one. A half hour without requests has State "none".
func (r *ProviderReader) ProviderHours(ctx context.Context) (map[string][]HalfHour, error) {
	now := r.o.Now().UTC()
	begin := now.Truncate(provider.SamplePeriod).Add(provider.SamplePeriod - healthPeriod)
	samples, err := readSamples(ctx, r.o.Store, "", begin)
	out := map[string][]HalfHour{}
	for len(samples) > 0 {
		n := slices.IndexFunc(samples, func(s storedSample) bool { return s.provider != samples[0].provider })
		if n < 0 {
			n = len(samples)
		}
		out[samples[0].provider] = halfHours(samples[:n], begin, now)
		samples = samples[n:]
	}
	return out, err
}

// ProviderHistory returns the half hours of a provider over the given period, oldest first. The
// period is limited to 35 days. A half hour without requests has State "none".
func (r *ProviderReader) ProviderHistory(ctx context.Context, name string, period time.Duration) ([]HalfHour, error) {
	now := r.o.Now().UTC()
	begin := now.Truncate(provider.SamplePeriod).Add(provider.SamplePeriod - min(period, historyKept))
	samples, err := readSamples(ctx, r.o.Store, name, begin)
	if err != nil {
		return nil, err
	}
	return halfHours(samples, begin.Truncate(provider.SamplePeriod), now), nil
}

// historyKept is how long samples are stored.
const historyKept = 35 * 24 * time.Hour

// halfHours returns all half hours from begin to now. The samples are ordered by time.
func halfHours(samples []storedSample, begin, now time.Time) []HalfHour {
	var out []HalfHour
	for at := begin; !at.After(now); at = at.Add(provider.SamplePeriod) {
		for len(samples) > 0 && samples[0].at.Before(at) {
			samples = samples[1:]
		}
		n := 0
		for n < len(samples) && samples[n].at.Equal(at) {
			n++
		}
		out = append(out, halfHour(at, samples[:n]))
		samples = samples[n:]
	}
	return out
}

func halfHour(at time.Time, samples []storedSample) HalfHour {
	h := HalfHour{At: at, ByResult: map[provider.SentResult]int64{}, State: "none"}
	var total time.Duration
	byBound := map[time.Duration]int64{}
	for _, s := range samples {
		h.ByResult[s.result] += s.requests
		h.Requests += s.requests
		h.Bytes += s.bytes
		total += s.duration
		byBound[s.upTo] += s.requests
	}
	if h.Requests == 0 {
		return h
	}
	mean := total / time.Duration(h.Requests)
	h.P50, h.P95 = quantile(byBound, h.Requests, 50, mean), quantile(byBound, h.Requests, 95, mean)
	switch h.Bad() {
	case 0:
		h.State = "good"
	case h.Requests:
		h.State = "bad"
	default:
		h.State = "warn"
	}
	return h
}

// quantile returns the lowest latency bound that the given percentage of requests did not exceed.
// Above the last bound, it returns the mean, but at least that bound.
func quantile(byBound map[time.Duration]int64, requests int64, percent int64, mean time.Duration) time.Duration {
	sum, bounds := int64(0), provider.LatencyBounds()
	for _, bound := range bounds {
		if sum += byBound[bound]; sum*100 >= requests*percent {
			return bound
		}
	}
	return max(mean, bounds[len(bounds)-1])
}

// BurnDown is the use of one part of a host's budget over its window.
type BurnDown struct {
	Host  string
	Part  string // limit, day, month or reported
	Limit int64  // 0: unknown
	Left  int64
	// From is the start of the window, and ResetsAt its end. A limit has a rolling window that
	// ends now. Its ResetsAt is the time at which the oldest request leaves the window.
	From, ResetsAt time.Time
	RunsOutAt      *time.Time // forecast; nil: not before the budget resets
	Used           []UsedAt   // requests since From, oldest first
}

// UsedAt is the number of requests from the start of a window up to a time.
type UsedAt struct {
	At   time.Time
	Used int64
}

// BurnDowns returns the use of each budget of a provider over its window, by host. Limits of
// up to an hour are not included. The series counts the requests in samples, so it can differ
// slightly from the budget, and it starts at most 35 days ago.
func (r *ProviderReader) BurnDowns(ctx context.Context, name string) ([]BurnDown, error) {
	var out []BurnDown
	for _, p := range r.o.Providers {
		d := p.Describe()
		if d.Name != name {
			continue
		}
		hosts, err := r.hosts(ctx, d)
		if err != nil {
			return nil, err
		}
		for _, h := range d.Hosts {
			state := hosts[h.Key]
			parts, err := r.burnDowns(ctx, d.Name, h.Key, &state.Budget)
			if err != nil {
				return nil, err
			}
			out = append(out, parts...)
		}
	}
	return out, nil
}

func (r *ProviderReader) burnDowns(ctx context.Context, name, host string, b *provider.Budget) ([]BurnDown, error) {
	now := r.o.Now().UTC()
	var out []BurnDown
	if !b.Limit.None() && provider.HasForecast(b.Limit.Per) {
		out = append(out, BurnDown{
			Host: host, Part: "limit", Limit: int64(b.Limit.Requests), Left: int64(b.Left), From: now.Add(-b.Limit.Per),
			ResetsAt: b.ResetsAt, RunsOutAt: when(b.Forecast.RunsOutAt),
		})
	}
	for _, q := range b.Quotas {
		from, _ := q.Period.Bounds(now)
		out = append(out, BurnDown{
			Host: host, Part: string(q.Period), Limit: q.Limit, Left: q.Left, From: from, ResetsAt: q.ResetsAt, RunsOutAt: when(q.Forecast.RunsOutAt),
		})
	}
	if t := b.Reported; t != nil {
		from := t.At
		if t.Period != "" {
			from, _ = t.Period.Bounds(now)
		}
		out = append(out, BurnDown{
			Host: host, Part: "reported", Limit: t.Limit, Left: t.Left, From: from, ResetsAt: t.ResetsAt, RunsOutAt: when(t.Forecast.RunsOutAt),
		})
	}
	if len(out) == 0 {
		return nil, nil
	}
	oldest := slices.MinFunc(out, func(a, b BurnDown) int { return a.From.Compare(b.From) }).From
	requests, err := readHostRequests(ctx, r.o.Store, name, host, oldest.Truncate(provider.SamplePeriod))
	if err != nil {
		return nil, err
	}
	for i := range out {
		w := &out[i]
		w.Used = append(w.Used, UsedAt{At: w.From})
		sum := int64(0)
		for _, q := range requests {
			if end := q.at.Add(provider.SamplePeriod); !q.at.Before(w.From.Truncate(provider.SamplePeriod)) {
				sum += q.requests
				w.Used = append(w.Used, UsedAt{At: earlier(end, now), Used: sum})
			}
		}
	}
	return out, nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// FilterRequests returns the recorded requests that have one of the outcomes and whose method,
// host, path, status or error contains the text. The outcome is "" (all), ok, failed, or a
// status such as 429.
func FilterRequests(all []RequestDebug, outcome, search string) []RequestDebug {
	return slices.DeleteFunc(slices.Clone(all), func(q RequestDebug) bool { return !q.has(outcome) || !q.contains(search) })
}

// has reports whether the request had the outcome.
func (q *RequestDebug) has(outcome string) bool {
	good := q.Error == "" || q.Status == http.StatusNotModified
	switch outcome {
	case "":
		return true
	case "ok":
		return good
	case "failed":
		return !good
	default:
		return strconv.Itoa(q.Status) == outcome
	}
}

// contains reports whether a part of the request contains the text, ignoring ASCII case.
func (q *RequestDebug) contains(search string) bool {
	all := q.Method + " " + q.Host + q.Path + " " + strconv.Itoa(q.Status) + " " + q.Error
	return strings.Contains(strings.ToLower(all), strings.ToLower(search))
}
